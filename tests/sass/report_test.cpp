#include "view/report.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "catch.h"
#include "fixtures.h"
#include "harness/backend/backend.h"
#include "text.h"
#include "toolchain/process.h"

namespace fs = std::filesystem;

namespace {

const sass::ReportOptions kOptions{.root = GEMM_SOURCE_DIR, .line_numbers = true, .fold = true};

int lines_with(const std::string& text, const std::string& part) {
  int count = 0;
  for (const std::string& line : sass::split_lines(text))
    if (contains(line, part)) ++count;
  return count;
}

sass::StepBinary pretend_step() {
  sass::StepBinary binary;
  static_cast<sass::Binary&>(binary) = fixtures::committed("kernels");
  binary.step = "42_pretend";
  for (const char* kernel : {"prefetched", "scalar"})
    binary.variants.push_back(
        {.name = kernel, .function = kernel, .tile_m = 32, .tile_n = 32, .tile_k = 1, .threads = 64});
  return binary;
}

/// A folder that is gone at the end of the test.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "sass_test.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(folder_); }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

void write_program(const fs::path& path, const std::string& output) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\necho '" << output << "'\n";
  fs::permissions(path, fs::perms::owner_all);
}

}  // namespace

TEST_CASE("the report of a kernel") {
  const sass::KernelView view = fixtures::view(fixtures::committed("kernels"), "prefetched");
  const std::string text = sass::report(view, kOptions);
  CHECK_THAT(text, has_text("registers 37 per thread, shared memory 2048 B (2048 static + 0 dynamic)"));
  CHECK_THAT(text, has_text("16 FFMA = 16 multiply-adds per thread = 1 k-tile of 32x32x1"));
  CHECK_THAT(text, has_text("FFMA x16"));
  CHECK_THAT(text, has_text("shared load             2"));
  CHECK_THAT(text, has_text("global load 16B"));
  // Every line of the loop is there, none of them folded away silently.
  const std::string unfolded =
      sass::loop_listing(view, {.root = GEMM_SOURCE_DIR, .line_numbers = true, .fold = false});
  CHECK(lines_with(unfolded, " FFMA R") == 16);
  CHECK_THAT(unfolded, has_text("L0:\n"));
  CHECK_THAT(unfolded, has_text("BRA L0"));
}

TEST_CASE("k-tiles are counted over the threads that multiply") {
  const sass::Binary binary = fixtures::committed("kernels");
  const auto header = [&](int math_threads) {
    return sass::resource_lines(sass::KernelView(binary, {.name = "prefetched",
                                                          .function = "prefetched",
                                                          .tile_m = 32,
                                                          .tile_n = 32,
                                                          .tile_k = 1,
                                                          .threads = 128,
                                                          .math_threads = math_threads}));
  };
  CHECK_THAT(header(0), has_text("128 threads\n"));
  CHECK_THAT(header(0), has_text("= 2 k-tiles of 32x32x1"));
  CHECK_THAT(header(64), has_text("128 threads, 64 of them multiply\n"));
  CHECK_THAT(header(64), has_text("= 1 k-tile of 32x32x1"));
}

TEST_CASE("a part of the loop that stands at the end of the kernel is shown with it") {
  sass::Binary binary = fixtures::committed("hopper");
  const auto listing = [&] { return sass::loop_listing(fixtures::view(binary, "ring"), kOptions); };
  const std::string text = listing();
  CHECK(lines_with(text, "out of line") == 1);  // two waits, one behind the other
  CHECK(lines_with(text, "mbarrier wait") == 4);
  CHECK(lines_with(text, "wgmma wait") == 1);
  CHECK(lines_with(text, "BRA out") == 0);
  // How far away it stands does not show.
  sass::Function& ring =
      *std::find_if(binary.listing.functions.begin(), binary.listing.functions.end(),
                    [](const sass::Function& function) { return function.name == "ring"; });
  const std::uint32_t behind = fixtures::view(binary, "ring").after_loop().back()->address;
  for (sass::Instruction& instruction : ring.instructions) {
    if (instruction.address > behind) instruction.address += 0x1000;
    if (instruction.target && *instruction.target > behind) *instruction.target += 0x1000;
  }
  CHECK(listing() == text);
}

TEST_CASE("long runs are folded, and say how long they were") {
  const sass::KernelView view = fixtures::view(fixtures::committed("kernels"), "prefetched");
  const std::string text = sass::loop_listing(view, kOptions);
  int shown = lines_with(text, " FFMA R");
  int hidden = 0;
  for (const std::string& line : sass::split_lines(text)) {
    const auto more = line.find(" more FFMA");
    if (more != std::string::npos) hidden += std::atoi(line.substr(line.find("...") + 3).c_str());
  }
  CHECK(hidden > 0);
  CHECK(shown + hidden == 16);
}

TEST_CASE("the whole kernel has its real registers") {
  const sass::KernelView view = fixtures::view(fixtures::committed("kernels"), "nested");
  const std::string text =
      sass::full_listing(view, {.root = GEMM_SOURCE_DIR, .line_numbers = true, .fold = false});
  for (const sass::Instruction& instruction : view.function->instructions)
    if (!instruction.target) CHECK_THAT(text, has_text(instruction.text()));
  CHECK_THAT(text, has_text("main loop: "));
}

TEST_CASE("a kernel without a main loop says so") {
  const sass::KernelView view = fixtures::view(fixtures::committed("kernels"), "straight");
  CHECK_THAT(sass::report(view, kOptions), has_text("no loop of this kernel multiplies"));
}

TEST_CASE("listing files are deterministic and name what made them") {
  const sass::StepBinary binary = pretend_step();
  const sass::Toolchain toolchain{.compiler_version = "13.0.88", .disassembler_version = "13.2.86"};
  const std::string text = sass::listing_file(binary, toolchain, GEMM_SOURCE_DIR);
  CHECK(text == sass::listing_file(binary, toolchain, GEMM_SOURCE_DIR));
  CHECK(sass::version_line(text) == "compiled for sm_90a by nvcc 13.0.88, disassembled by nvdisasm 13.2.86");
  CHECK_THAT(text, has_text("42_pretend, variant prefetched") && has_text("kernel prefetched"));
  CHECK(lines_with(text, "scalar ") == 1);  // its row in the table of variants
  CHECK_THAT(text, !has_text(GEMM_SOURCE_DIR));
  CHECK_THAT(text, !has_text(".cu:"));  // no line numbers
  for (const std::string& line : sass::split_lines(text)) CHECK((line.empty() || line.back() != ' '));
}

TEST_CASE("two kernels side by side") {
  const sass::Binary& binary = fixtures::committed("kernels");
  const std::string text = sass::diff(fixtures::view(binary, "scalar"), fixtures::view(binary, "prefetched"),
                                      "scalar", "prefetched");
  CHECK_THAT(text, has_text("- LDS R, [R]") && has_text("+ LDS.128 R, [R]"));
  CHECK_THAT(text, has_text("registers per thread"));
  // A kernel differs in nothing from itself.
  const std::string same =
      sass::diff(fixtures::view(binary, "scalar"), fixtures::view(binary, "scalar"), "a", "b");
  const auto loops = same.substr(same.find("main loops by shape"));
  for (const std::string& line : sass::split_lines(loops.substr(loops.find("\n\n") + 2)))
    CHECK(line.starts_with("  "));
}

TEST_CASE("the page about SASS quotes the listings as they are") {
  const std::string page = sass::read_file(fs::path(GEMM_SOURCE_DIR) / "docs" / "sass.md");
  // The opcode table is generated.
  CHECK_THAT(page, has_text(sass::opcode_markdown()));
  // A block that starts with ```text steps/NN_name/sass.txt holds lines of that file, in order.
  int blocks = 0;
  std::vector<std::string> listing;
  std::size_t next = 0;
  bool inside = false;
  for (const std::string& line : sass::split_lines(page)) {
    const std::string marker = "```text steps/";
    if (line.starts_with(marker)) {
      const std::string name = line.substr(8);
      listing = sass::split_lines(sass::read_file(fs::path(GEMM_SOURCE_DIR) / name));
      next = 0;
      inside = true;
      ++blocks;
    } else if (line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      CAPTURE(line);
      while (next < listing.size() && listing[next] != line) ++next;
      CHECK(next < listing.size());
    }
  }
  CHECK(blocks >= 3);
}

TEST_CASE("a missing or old tool is named, with the way to get it") {
  const Scratch scratch;
  const fs::path& root = scratch.folder();
  setenv("PATH", (root / "path").c_str(), 1);
  setenv("GEMM_STEPS_SYSTEM_CUDA", (root / "nothing").c_str(), 1);
  unsetenv("CUDA_HOME");
  unsetenv("CUDACXX");
  CHECK_THROWS_WITH(sass::find_toolchain(root),
                    has_text("nvcc was not found") && has_text("tools/bootstrap --cuda"));

  const std::string release = "Cuda compilation tools, release ";
  write_program(root / "path" / "nvcc", release + "13.0, V13.0.88");
  setenv("PATH", (root / "path").string().append(":/bin:/usr/bin").c_str(), 1);
  if (fs::exists("/usr/bin/nvdisasm") || fs::exists("/usr/bin/nvcc")) {
    skip_test("a CUDA Toolkit in /usr/bin is in the way");
    return;
  }
  CHECK_THROWS_WITH(sass::find_toolchain(root),
                    has_text("nvdisasm was not found") && has_text("tools/bootstrap"));
  write_program(root / "path" / "nvdisasm", release + "12.8, V12.8.55");
  CHECK_THROWS_WITH(sass::find_toolchain(root), has_text("nvdisasm 12.8.55 is older than nvcc 13.0.88"));
  // A newer one further back is taken instead.
  write_program(root / ".toolchain" / "bin" / "nvdisasm", release + "13.2, V13.2.86");
  CHECK_THROWS_WITH(sass::find_toolchain(root), has_text("cuobjdump was not found"));
  write_program(root / ".toolchain" / "bin" / "cuobjdump", release + "13.2, V13.2.86");
  const sass::Toolchain toolchain = sass::find_toolchain(root);
  CHECK(toolchain.compiler_version == "13.0.88");
  CHECK(toolchain.disassembler_version == "13.2.86");
  CHECK(toolchain.nvdisasm == (root / ".toolchain" / "bin" / "nvdisasm").string());
  setenv("CUDACXX", (root / "no_such_compiler").c_str(), 1);
  CHECK_THROWS_WITH(sass::find_toolchain(root), has_text("does not run"));
}

TEST_CASE("bad input gets one sentence and status 2") {
  const std::string program = (fs::path(GEMM_BUILD_DIR) / "bin" / "sass_reader").string();
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program);
    return sass::run_process(arguments);
  };
  struct Row {
    std::vector<std::string> arguments;
    const char* complaint;
  };
  const std::vector<Row> rows = {
      {{"01_niave"}, "unknown step '01_niave'; did you mean '01_naive'?"},
      {{"99"}, "unknown step '99'"},
      {{}, "no step named"},
      {{"01", "02"}, "'tools/sass diff 01 02' compares two"},
      {{"diff", "01"}, "diff compares two steps"},
      {{"01", "--ful"}, "unknown flag '--ful'; did you mean '--full'?"},
      {{"01", "--arch", "sm_70"}, "sm_70"},
      {{"01", "--root", "/nowhere"}, "/nowhere has no folder steps"},
  };
  for (const Row& row : rows) {
    const sass::ProcessResult result = run(row.arguments);
    CAPTURE(result.output);
    CHECK(result.status == harness::kExitUsage);
    CHECK_THAT(result.output, has_text("error: ") && has_text(row.complaint));
    CHECK(sass::split_lines(result.output).size() == 1);
  }
}
