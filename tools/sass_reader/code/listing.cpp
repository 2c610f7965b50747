#include "code/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>

#include "text.h"

namespace sass {
namespace {

constexpr std::uint32_t kInstructionBytes = 16;

bool parse_hex(std::string_view text, std::uint64_t& value) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return status == std::errc{} && end == text.data() + text.size() && !text.empty();
}

/// Takes "/* ... */" off the front of `text` and returns what is between; leaves `text` alone
/// when it starts otherwise.
std::string_view take_comment(std::string_view& text) {
  if (!text.starts_with("/*")) return {};
  const auto end = text.find("*/");
  if (end == std::string_view::npos) return {};
  const std::string_view inside = trim(text.substr(2, end - 2));
  text = trim(text.substr(end + 2));
  return inside;
}

/// "//## File "a.cuh", line 3 inlined at "b.cuh", line 7" -> a.cuh:3. The outer places follow on lines of
/// their own.
bool parse_source_line(std::string_view text, SourceFrame& frame) {
  constexpr std::string_view kMarker = "//## File \"";
  if (!text.starts_with(kMarker)) return false;
  text.remove_prefix(kMarker.size());
  const auto quote = text.find('"');
  const auto line = text.find("line ", quote);
  if (quote == std::string_view::npos || line == std::string_view::npos) return false;
  frame.file = std::string(text.substr(0, quote));
  const std::string_view number = text.substr(line + 5);
  frame.line = 0;
  std::from_chars(number.data(), number.data() + number.size(), frame.line);
  return true;
}

/// The name of a branch's target operand: "`(.L_x_3)" -> ".L_x_3", "0x1f0" -> "0x1f0"; "" for other operands.
std::string target_name(std::string_view operand) {
  const auto open = operand.find("`(");
  if (open != std::string_view::npos) {
    const auto close = operand.find(')', open);
    return std::string(operand.substr(open + 2, close - open - 2));
  }
  return operand.starts_with("0x") ? std::string(operand) : "";
}

bool is_branch(const Instruction& instruction) {
  static const std::vector<std::string> kBranches = {"BRA", "JMP", "CALL", "BSSY"};
  return std::find(kBranches.begin(), kBranches.end(), instruction.opcode) != kBranches.end();
}

class Parser {
 public:
  Listing parse(std::string_view text) {
    for (const std::string& line : split_lines(text)) {
      ++line_number_;
      parse_line(line);
    }
    finish_function();
    if (listing_.functions.empty())
      throw std::invalid_argument(
          "the text has no SASS function: it is not the output of nvdisasm or cuobjdump");
    return std::move(listing_);
  }

 private:
  void parse_line(const std::string& whole) {
    std::string_view line = trim(whole);
    SourceFrame frame;
    if (parse_source_line(line, frame)) {
      if (!in_source_group_) frames_.clear();
      in_source_group_ = true;
      frames_.push_back(std::move(frame));
      return;
    }
    if (line.starts_with("/*")) {
      parse_code_line(line);
      return;
    }
    constexpr std::string_view kCuobjdumpFunction = "Function : ";
    constexpr std::string_view kSection = ".section\t.text.";
    if (line.starts_with(".target")) {
      listing_.target = std::string(trim(line.substr(7)));
    } else if (line.starts_with("code for ")) {
      listing_.target = std::string(trim(line.substr(9)));
    } else if (line.starts_with(kSection)) {
      line.remove_prefix(kSection.size());
      start_function(line.substr(0, line.find(',')));
    } else if (line.starts_with(kCuobjdumpFunction)) {
      start_function(line.substr(kCuobjdumpFunction.size()));
    } else if (line.ends_with(":") && !function_.name.empty()) {
      labels_[std::string(line.substr(0, line.size() - 1))] = next_address_;
    }
  }

  void parse_code_line(std::string_view line) {
    std::string_view rest = line;
    const std::string_view first = take_comment(rest);
    std::uint64_t value = 0;
    const auto semicolon = rest.find(';');
    if (semicolon == std::string_view::npos) {
      // The upper word of the encoding stands alone on the second line of an instruction.
      if (!rest.empty() || !first.starts_with("0x")) return;  // "/* .byte */" data and the like
      if (!parse_hex(first, value) || function_.instructions.empty()) fail(line);
      Instruction& instruction = function_.instructions.back();
      instruction.high = value;
      instruction.has_encoding = true;
      instruction.control = decode_control(value);
      return;
    }
    if (!parse_hex(first, value) || function_.name.empty()) fail(line);
    Instruction instruction;
    try {
      instruction = parse_instruction(rest.substr(0, semicolon));
    } catch (const std::invalid_argument&) {
      fail(line);
    }
    instruction.address = static_cast<std::uint32_t>(value);
    instruction.source = frames_;
    in_source_group_ = false;
    std::string_view tail = trim(rest.substr(semicolon + 1));
    const std::string_view encoding = take_comment(tail);
    if (!encoding.empty() && !parse_hex(encoding, instruction.low)) fail(line);
    next_address_ = instruction.address + kInstructionBytes;
    function_.instructions.push_back(std::move(instruction));
  }

  void start_function(std::string_view name) {
    finish_function();
    function_.name = std::string(trim(name));
  }

  void finish_function() {
    if (!function_.instructions.empty()) {
      resolve_targets();
      drop_padding();
      listing_.functions.push_back(std::move(function_));
    }
    function_ = {};
    labels_.clear();
    frames_.clear();
    in_source_group_ = false;
    next_address_ = 0;
  }

  void resolve_targets() {
    for (Instruction& instruction : function_.instructions) {
      if (!is_branch(instruction)) continue;
      for (const std::string& operand : instruction.operands) {
        const std::string name = target_name(operand);
        std::uint64_t address = 0;
        const auto label = labels_.find(name);
        if (label != labels_.end())
          instruction.target = label->second;
        else if (name.starts_with("0x") && parse_hex(name, address))
          instruction.target = static_cast<std::uint32_t>(address);
      }
    }
  }

  /// ptxas ends a function with a branch to itself and NOPs up to the next 128-byte line.
  void drop_padding() {
    auto& code = function_.instructions;
    while (!code.empty() && code.back().opcode == "NOP") code.pop_back();
    if (!code.empty() && code.back().opcode == "BRA" && code.back().predicate.empty() &&
        code.back().target == code.back().address)
      code.pop_back();
  }

  [[noreturn]] void fail(std::string_view line) const {
    throw std::invalid_argument(
        fmt::format("line {} of the disassembly is not SASS: '{}'", line_number_, trim(line)));
  }

  Listing listing_;
  Function function_;
  std::map<std::string, std::uint32_t> labels_;
  std::vector<SourceFrame> frames_;
  bool in_source_group_ = false;
  std::uint32_t next_address_ = 0;
  int line_number_ = 0;
};

}  // namespace

const Function* Listing::find(std::string_view name) const {
  for (const Function& function : functions)
    if (function.name == name) return &function;
  return nullptr;
}

Listing parse_listing(std::string_view text) {
  return Parser().parse(text);
}

}  // namespace sass
