#include "view/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "code/normalise.h"
#include "text.h"

namespace fs = std::filesystem;

namespace sass {
namespace {

constexpr std::size_t kTextWidth = 56;
constexpr std::size_t kShortestFold = 6;

/// The place in the source that says most: the innermost one that is neither an instruction wrapper of
/// common/ptx nor index arithmetic of a plain header.
const SourceFrame* best_frame(const Instruction& instruction) {
  for (const SourceFrame& frame : instruction.source)
    if (frame.file.find("/common/ptx/") == std::string::npos && frame.file.ends_with(".cuh")) return &frame;
  return instruction.source.empty() ? nullptr : &instruction.source.front();
}

std::string short_path(const std::string& file, const fs::path& root) {
  const std::string base = root.string() + "/";
  std::string path = file.starts_with(base) ? file.substr(base.size()) : fs::path(file).filename().string();
  for (const std::string prefix : {"steps/", "common/"})
    if (path.starts_with(prefix)) path = path.substr(prefix.size());
  // A step's own file needs no folder.
  return path.size() > 3 && std::isdigit(static_cast<unsigned char>(path[0]))
             ? fs::path(path).filename().string()
             : path;
}

/// One letter per source line that the listing refers to.
class Legend {
 public:
  Legend(const std::vector<Instruction>& code, const ReportOptions& options) : options_(options) {
    std::set<std::pair<std::string, int>> places;
    for (const Instruction& instruction : code)
      if (const SourceFrame* frame = best_frame(instruction)) places.emplace(frame->file, frame->line);
    for (const auto& place : places) keys_[place] = key_name(keys_.size());
  }

  std::string key(const Instruction& instruction) const {
    const SourceFrame* frame = best_frame(instruction);
    return frame == nullptr ? "" : keys_.at({frame->file, frame->line});
  }

  std::string text() const {
    if (keys_.empty()) return "";
    std::string result = "source lines\n";
    for (const auto& [place, name] : keys_) {
      const auto& [file, line] = place;
      const std::string where =
          short_path(file, options_.root) + (options_.line_numbers ? fmt::format(":{}", line) : "");
      result += fmt::format("  {:<2} {}  {}\n", name, where, shorten(source_text(file, line), 100));
      result.erase(result.find_last_not_of(" \n") + 1);
      result += '\n';
    }
    return result + "\n";
  }

 private:
  static std::string key_name(std::size_t index) {
    const char letter = static_cast<char>('a' + index % 26);
    return index < 26 ? std::string(1, letter)
                      : fmt::format("{}{}", static_cast<char>('a' + index / 26 - 1), letter);
  }

  std::string source_text(const std::string& file, int line) const {
    static std::map<std::string, std::vector<std::string>> files;
    const auto [entry, inserted] = files.try_emplace(file);
    const fs::path path = options_.root / file;  // an absolute `file` stays as it is
    if (inserted && fs::exists(path)) entry->second = split_lines(read_file(path));
    const auto index = static_cast<std::size_t>(line - 1);
    return line < 1 || index >= entry->second.size() ? "" : std::string(trim(entry->second[index]));
  }

  const ReportOptions& options_;
  std::map<std::pair<std::string, int>, std::string> keys_;
};

std::string wait_text(const ControlFields& control) {
  std::string text;
  for (int i = 0; i < 6; ++i)
    if (control.wait_mask >> i & 1) text += static_cast<char>('0' + i);
  return text.empty() ? "-" : text;
}

std::string set_text(const ControlFields& control) {
  std::string text;
  if (control.write_barrier >= 0) text += fmt::format("W{}", control.write_barrier);
  if (control.read_barrier >= 0) text += fmt::format("R{}", control.read_barrier);
  return text.empty() ? "-" : text;
}

std::string class_text(const Instruction& instruction) {
  const std::string_view detail = synchronisation(instruction);
  if (!detail.empty()) return std::string(detail);
  const int bytes = access_bytes(instruction);
  return std::string(to_string(classify(instruction))) + (bytes > 0 ? fmt::format(" {}B", bytes) : "");
}

constexpr const char* kColumnHelp =
    "wait: scoreboards that must be clear before it issues. sets: scoreboard it holds until its result is "
    "written (W)\n"
    "or its sources are read (R). stall: cycles before the warp's next instruction; y: hint to switch "
    "warps.\n\n";

std::string heading() {
  return fmt::format("{:>5}  {:<6} {:<5} {:>5}   {:<17} {:<{}} {}\n", "at", "wait", "sets", "stall", "class",
                     "instruction", kTextWidth, "source");
}

std::string line_text(const Instruction& instruction, const Legend& legend) {
  const ControlFields& control = instruction.control;
  std::string line =
      fmt::format("{:>5x}  {:<6} {:<5} {:>5} {} {:<17} {:<{}} {}", instruction.address, wait_text(control),
                  set_text(control), control.stall, control.yield ? 'y' : ' ', class_text(instruction),
                  instruction.text(), kTextWidth, legend.key(instruction));
  line.resize(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

/// Plain: nothing waits for it by scoreboard and it waits for nothing.
bool is_plain(const Instruction& instruction) {
  const ControlFields& control = instruction.control;
  return control.wait_mask == 0 && control.write_barrier < 0 && control.read_barrier < 0;
}

constexpr std::uint32_t kInstructionBytes = 16;
constexpr std::uint32_t kOutside = 0xffffffff;

/// Moves instructions together, so that their addresses do not tell what stands between them. Returns the new
/// addresses of those that had something else in front of them.
std::set<std::uint32_t> close_gaps(std::vector<Instruction>& code) {
  std::map<std::uint32_t, std::uint32_t> moved;
  std::set<std::uint32_t> behind_gap;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto address = static_cast<std::uint32_t>(i) * kInstructionBytes;
    moved[code[i].address] = address;
    if (i > 0 && code[i].address - code[i - 1].address > kInstructionBytes) behind_gap.insert(address);
  }
  for (Instruction& instruction : code) {
    instruction.address = moved[instruction.address];
    if (!instruction.target) continue;
    const auto target = moved.find(*instruction.target);
    instruction.target = target == moved.end() ? kOutside : target->second;
  }
  return behind_gap;
}

/// `behind_gap`: addresses where a line says that other code stands in front.
std::string annotated(const std::vector<Instruction>& code, const std::set<std::uint32_t>& behind_gap,
                      const ReportOptions& options) {
  const Legend legend(code, options);
  const std::vector<std::uint32_t> targets = branch_targets(code);
  const auto label_of = [&](const Instruction& instruction) {
    const auto found = std::find(targets.begin(), targets.end(), instruction.address);
    return found == targets.end() ? "" : fmt::format("L{}:\n", found - targets.begin());
  };
  const auto heading_of = [&](const Instruction& instruction) {
    return (behind_gap.count(instruction.address) ? "out of line, behind the rest of the kernel:\n" : "") +
           label_of(instruction);
  };
  std::string result = legend.text() + kColumnHelp + heading();
  for (std::size_t i = 0; i < code.size();) {
    std::size_t end = i + 1;
    if (options.fold && is_plain(code[i]))
      while (end < code.size() && is_plain(code[end]) && heading_of(code[end]).empty() &&
             code[end].full_opcode() == code[i].full_opcode())
        ++end;
    if (end - i < kShortestFold) end = i + 1;
    for (std::size_t shown = i; shown < end; ++shown) {
      const bool hidden = end - i >= kShortestFold && shown >= i + 2 && shown + 1 < end;
      if (!hidden) {
        result += heading_of(code[shown]) + line_text(code[shown], legend);
        continue;
      }
      std::vector<const Instruction*> rest;
      for (; shown + 1 < end; ++shown) rest.push_back(&code[shown]);
      --shown;
      const Mix mix = count_mix(rest);
      result += fmt::format("{:>5}  {} more {}, {} cycles to issue, {} operands from the reuse cache\n",
                            "...", rest.size(), code[i].full_opcode(), mix.stall_cycles, mix.reused_operands);
    }
    i = end;
  }
  return result;
}

std::string number(double value) {
  return value == 0 ? "-" : fmt::format("{:.4g}", value);
}

/// "HMMA" or "FFMA": the opcode that does the multiply-adds of the loop; one that multiplies matrices, where
/// there is one.
std::string math_opcode(const KernelView& view) {
  for (const Instruction* instruction : view.loop_code)
    if (classify(*instruction) == Class::kMatrixMath && multiply_adds(*instruction) > 0)
      return instruction->opcode;
  for (const Instruction* instruction : view.loop_code)
    if (multiply_adds(*instruction) > 0) return instruction->opcode;
  return "math";
}

int math_threads(const KernelView& view) {
  return view.variant.math_threads > 0 ? view.variant.math_threads : view.variant.threads;
}

int total_shared(const KernelView& view) {
  return view.resources.shared_bytes + view.variant.dynamic_shared_bytes;
}

/// A row of the comparison of two kernels.
std::string side_row(const std::string& name, const std::string& left, const std::string& right) {
  return fmt::format("{:<34} {:>22} {:>22}\n", name, left, right);
}

struct DiffLine {
  char mark;
  std::string text;
};

/// Longest common subsequence of two lists of lines.
std::vector<DiffLine> diff_lines(const std::vector<std::string>& left,
                                 const std::vector<std::string>& right) {
  std::vector<std::vector<int>> common(left.size() + 1, std::vector<int>(right.size() + 1, 0));
  for (std::size_t i = left.size(); i-- > 0;)
    for (std::size_t j = right.size(); j-- > 0;)
      common[i][j] =
          left[i] == right[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<DiffLine> result;
  std::size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    if (i < left.size() && j < right.size() && left[i] == right[j]) {
      result.push_back({' ', left[i++]});
      ++j;
    } else if (j == right.size() || (i < left.size() && common[i + 1][j] >= common[i][j + 1])) {
      result.push_back({'-', left[i++]});
    } else {
      result.push_back({'+', right[j++]});
    }
  }
  return result;
}

}  // namespace

std::string resource_lines(const KernelView& view) {
  const Resources& resources = view.resources;
  std::string text = fmt::format(
      "registers {} per thread, shared memory {} B ({} static + {} dynamic), stack {} B, spills {} B, {} "
      "threads{}\n",
      resources.registers, total_shared(view), resources.shared_bytes, view.variant.dynamic_shared_bytes,
      resources.stack_bytes, resources.spill_bytes(), view.variant.threads,
      view.variant.math_threads > 0 ? fmt::format(", {} of them multiply", view.variant.math_threads) : "");
  if (view.main_loop == nullptr) return text + "no loop of this kernel multiplies\n";
  const Mix mix = count_mix(view.loop_code);
  const auto k_tiles = view.k_tiles_per_iteration(math_threads(view));
  text += fmt::format("main loop: {} instructions, {} {}", mix.instructions, mix.math_instructions,
                      math_opcode(view));
  // tcgen05.mma does not say how much it multiplies, and no thread's share of it means anything.
  if (tensor_memory_depth(math_opcode(view)) == 0)
    text += fmt::format(" = {} multiply-adds per thread", mix.multiply_adds);
  text += k_tiles ? fmt::format(" = {} k-tile{} of {}x{}x{}\n", *k_tiles, *k_tiles == 1 ? "" : "s",
                                view.variant.tile_m, view.variant.tile_n, view.variant.tile_k)
                  : "\n";
  text += fmt::format("issue: {} cycles per warp and iteration if it never waits, {} of them {}\n",
                      mix.stall_cycles, mix.math_instructions, math_opcode(view));
  return text;
}

std::string mix_table(const KernelView& view) {
  const Mix loop = count_mix(view.loop_code);
  const Mix kernel = count_mix(view.code);
  const auto k_tiles = view.k_tiles_per_iteration(math_threads(view));
  std::string text =
      fmt::format("{:<15} {:>9} {:>10} {:>10} {:>7}   {}\n", "instruction mix", "main loop", "per k-tile",
                  fmt::format("per {}", math_opcode(view)), "kernel", "opcodes of the main loop");
  for (const Class kind : all_classes()) {
    const int total = kernel.count(kind);
    if (total == 0) continue;
    const int count = loop.count(kind);
    std::vector<std::pair<int, std::string>> opcodes;
    if (count > 0)
      for (const auto& [name, times] : loop.classes.at(kind).opcodes) opcodes.emplace_back(-times, name);
    std::sort(opcodes.begin(), opcodes.end());
    std::string detail;
    for (const auto& [times, name] : opcodes)
      detail += fmt::format("{}{} x{}", detail.empty() ? "" : ", ", name, -times);
    text += fmt::format("{:<15} {:>9} {:>10} {:>10} {:>7}   {}", to_string(kind), count,
                        k_tiles ? number(double(count) / *k_tiles) : "-",
                        loop.math_instructions > 0 ? number(double(count) / loop.math_instructions) : "-",
                        total, detail);
    text.resize(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  text += fmt::format(
      "{:<15} {:>9} {:>10} {:>10} {:>7}\n", "all", loop.instructions,
      k_tiles ? number(double(loop.instructions) / *k_tiles) : "-",
      loop.math_instructions > 0 ? number(double(loop.instructions) / loop.math_instructions) : "-",
      kernel.instructions);
  return text;
}

std::string loop_listing(const KernelView& view, const ReportOptions& options) {
  if (view.main_loop == nullptr) return "There is no main loop to show; --full lists the whole kernel.\n";
  std::vector<Instruction> code;
  for (const Instruction* instruction : view.loop_code) code.push_back(*instruction);
  const std::set<std::uint32_t> behind_gap = close_gaps(code);
  normalise(code, view.binary->target);
  return annotated(code, behind_gap, options);
}

std::string full_listing(const KernelView& view, const ReportOptions& options) {
  std::vector<Instruction> code = view.function->instructions;
  const std::vector<std::uint32_t> targets = branch_targets(code);
  for (Instruction& instruction : code) {
    if (!instruction.target) continue;
    const auto label = std::find(targets.begin(), targets.end(), *instruction.target);
    if (label == targets.end()) continue;
    for (std::string& operand : instruction.operands)
      if (operand.starts_with("`(") || operand.starts_with("0x"))
        operand = fmt::format("L{}", label - targets.begin());
  }
  std::string text;
  if (view.main_loop != nullptr)
    text = fmt::format("main loop: {:x} to {:x}\n\n", view.loop_start(), view.loop_code.back()->address);
  return text + annotated(code, {}, options);
}

std::string report(const KernelView& view, const ReportOptions& options) {
  return resource_lines(view) + "\n" + mix_table(view) + "\n" + loop_listing(view, options);
}

std::string listing_file(const StepBinary& binary, const Toolchain& toolchain, const fs::path& root) {
  const ReportOptions options{.root = root, .line_numbers = false, .fold = true};
  const KernelView view(binary, binary.variants.front());
  const std::string number_text = binary.step.substr(0, 2);
  std::string text = fmt::format(
      "{}, variant {}: the main loop in SASS\n"
      "compiled for {} by nvcc {}, disassembled by nvdisasm {}\n"
      "kernel {}\n"
      "Generated by 'tools/sass update {}'; docs/sass.md explains how to read it. Registers are renumbered "
      "in order of\n"
      "appearance, offsets count from the start of the loop; 'tools/sass {} --full' shows the kernel as it "
      "is.\n\n",
      binary.step, view.variant.name, binary.target, toolchain.compiler_version,
      toolchain.disassembler_version, demangle(view.function->name), number_text, number_text);
  text += report(view, options);
  text += fmt::format("\n{:<22} {:>9} {:>8} {:>7} {:>6} {:>12} {:>10} {:>12}\n", "all variants", "registers",
                      "shared B", "stack B", "spills", "loop length", "math", "math share");
  for (const VariantInfo& variant : binary.variants) {
    const KernelView each(binary, variant);
    const Mix mix = count_mix(each.loop_code);
    text += fmt::format("{:<22} {:>9} {:>8} {:>7} {:>6} {:>12} {:>10} {:>11.0f}%\n", variant.name,
                        each.resources.registers, total_shared(each), each.resources.stack_bytes,
                        each.resources.spill_bytes(), mix.instructions, mix.math_instructions,
                        mix.instructions > 0 ? 100.0 * mix.math_instructions / mix.instructions : 0.0);
  }
  return text;
}

std::string version_line(const std::string& listing_file) {
  const auto lines = split_lines(listing_file);
  return lines.size() > 1 ? lines[1] : "";
}

std::string diff(const KernelView& left, const KernelView& right, const std::string& left_name,
                 const std::string& right_name) {
  const Mix left_mix = count_mix(left.loop_code);
  const Mix right_mix = count_mix(right.loop_code);
  const auto int_row = [](const std::string& name, double a, double b) {
    return side_row(name, fmt::format("{:g}", a), fmt::format("{:g}", b));
  };
  std::string text = side_row("", left_name, right_name);
  text += int_row("registers per thread", left.resources.registers, right.resources.registers);
  text += int_row("shared memory, bytes", total_shared(left), total_shared(right));
  text += int_row("spills, bytes", left.resources.spill_bytes(), right.resources.spill_bytes());
  text += int_row("multiply-adds per thread and loop", left_mix.multiply_adds, right_mix.multiply_adds);
  text += int_row("cycles to issue the loop once", left_mix.stall_cycles, right_mix.stall_cycles);
  text += '\n';
  text += side_row("main loop: count (per 64 mult.-adds)", left_name, right_name);
  const auto cell = [](const Mix& mix, int count) {
    return mix.multiply_adds > 0 ? fmt::format("{} ({:.3g})", count, 64.0 * count / mix.multiply_adds)
                                 : fmt::format("{}", count);
  };
  for (const Class kind : all_classes()) {
    const int a = left_mix.count(kind);
    const int b = right_mix.count(kind);
    if (a + b > 0) text += side_row(std::string(to_string(kind)), cell(left_mix, a), cell(right_mix, b));
  }
  text += side_row("all", cell(left_mix, left_mix.instructions), cell(right_mix, right_mix.instructions));

  const auto shapes = [](const KernelView& view) {
    std::vector<std::string> lines;
    for (const Instruction* instruction : view.loop_code) lines.push_back(shape_of(*instruction));
    return lines;
  };
  text += fmt::format("\nmain loops by shape (register numbers and immediates left out): - {}  + {}\n\n",
                      left_name, right_name);
  const std::vector<DiffLine> lines = diff_lines(shapes(left), shapes(right));
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t end = i;
    while (end < lines.size() && lines[end].mark == lines[i].mark && lines[end].text == lines[i].text) ++end;
    const std::size_t count = end - i;
    text +=
        fmt::format("{} {}{}\n", lines[i].mark, lines[i].text, count > 1 ? fmt::format("   x{}", count) : "");
    i = end;
  }
  return text;
}

std::string opcode_markdown() {
  std::string text = "| opcode | class | what it does |\n|---|---|---|\n";
  for (const Class kind : all_classes())
    for (const Opcode& opcode : opcode_table())
      if (opcode.kind == kind && !opcode.summary.empty())
        text += fmt::format("| `{}` | {} | {} |\n", opcode.name, to_string(kind), opcode.summary);
  return text;
}

}  // namespace sass
