// What the pages in docs/ and the chapters quote is what the programs print and the emulator reports.
//
//   <!-- play: mbarrier init 1, arrive 2 -->            the output of tools/play with these arguments
//   <!-- mutant: s08_no_proxy_fence seed=1 -->            the report about a mutant under this seed
//   (completion=latest too)
//   ```                                                 compared without the line numbers of kernels, which
//   come and go
//   ...
//   ```
//
// To write the blocks anew: GEMM_STEPS_UPDATE_PAGES=1 build/emulator/tests/tests_playground "[pages]"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "run_play.h"

const gemm::Step& mutant_s08_no_proxy_fence();
const gemm::Step& mutant_s09_no_init_fence();
const gemm::Step& mutant_s09_wrong_first_parity();
const gemm::Step& mutant_s11_producer_starts_at_phase_0();
const gemm::Step& mutant_s11_released_while_read();
const gemm::Step& mutant_s12_registers_over_budget();
const gemm::Step& mutant_s16_leaves_early();
const gemm::Step& mutant_s17_no_mainloop_order();

namespace {

const std::map<std::string, play::Program> kPrograms = {
    {"mbarrier", play::mbarrier},     {"tma_swizzle", play::tma_swizzle}, {"descriptor", play::descriptor},
    {"tensor_map", play::tensor_map}, {"raster", play::raster},           {"events", play::events}};

const std::map<std::string, const gemm::Step& (*)()> kMutants = {
    {"s08_no_proxy_fence", mutant_s08_no_proxy_fence},
    {"s09_no_init_fence", mutant_s09_no_init_fence},
    {"s09_wrong_first_parity", mutant_s09_wrong_first_parity},
    {"s11_producer_starts_at_phase_0", mutant_s11_producer_starts_at_phase_0},
    {"s11_released_while_read", mutant_s11_released_while_read},
    {"s12_registers_over_budget", mutant_s12_registers_over_budget},
    {"s16_leaves_early", mutant_s16_leaves_early},
    {"s17_no_mainloop_order", mutant_s17_no_mainloop_order},
};

std::string play_text(const std::string& arguments) {
  const std::size_t blank = std::min(arguments.find(' '), arguments.size());
  const auto program = kPrograms.find(arguments.substr(0, blank));
  REQUIRE(program != kPrograms.end());
  const play_test::Ran ran = play_test::run(program->second, arguments.substr(blank));
  return "$ tools/play " + arguments + "\n" + ran.text + ran.errors;
}

/// "seed=3" -> "3".
std::string option(const std::string& options, const std::string& name, const std::string& otherwise) {
  std::smatch match;
  const std::regex pattern(name + "=(\\S+)");
  return std::regex_search(options, match, pattern) ? match[1].str() : otherwise;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A line "name: value" of a mutant's file.
std::string field(const std::string& mutant, const std::string& name) {
  std::smatch match;
  REQUIRE(std::regex_search(mutant, match, std::regex("(^|\n)" + name + ": *([^\n]*)\n")));
  return match[2];
}

std::string mutant_text(const std::string& options) {
  const std::string name = options.substr(0, options.find(' '));
  const std::string file =
      read(GEMM_SOURCE_DIR "/tests/mutants/" + name.substr(0, 3) + "/" + name.substr(4) + ".mutant");
  const auto mutant = kMutants.find(name);
  REQUIRE(mutant != kMutants.end());
  harness::EmulatorControl control;
  control.schedule_seed = std::stoull(option(options, "seed", "1"));
  const std::string completion = option(options, "completion", "random");
  if (completion == "latest") control.completion = harness::Completion::kLatest;
  if (completion == "earliest") control.completion = harness::Completion::kEarliest;
  harness::control_emulator(control);
  const gemm::Step& step = mutant->second();
  std::string report = "nothing";
  try {
    const gemm::Variant& variant = harness::find_variant(step, field(file, "variant"));
    harness::Workload workload(harness::parse_shape(option(options, "shape", field(file, "shape"))),
                               harness::Pattern::kExact, 1, harness::form_of(step, variant));
    workload.poison();
    harness::name_tiles(workload.gemm().shape, variant.tile);
    gemm::prepare(variant, workload.problem())(nullptr);
  } catch (const harness::EmulatorReport& error) {
    report = error.what();
  }
  harness::control_emulator({});
  // The reader breaks the step itself, and finds its file in the report.
  const std::string folder = "tests/mutants/" + name + "/";
  for (std::size_t found = report.find(folder); found != std::string::npos; found = report.find(folder))
    report.replace(found, folder.size(), "steps/" + step.name + "/");
  return report + "\n";
}

std::string without_line_numbers(const std::string& text) {
  return std::regex_replace(std::regex_replace(text, std::regex("(\\.cuh|\\.cpp):[0-9]+"), "$1"),
                            std::regex(" +\n"), "\n");
}

}  // namespace

TEST_CASE("what the pages quote is what is printed", "[pages]") {
  const bool update = std::getenv("GEMM_STEPS_UPDATE_PAGES") != nullptr;
  int blocks = 0;
  std::vector<std::filesystem::path> pages;
  for (const auto& entry : std::filesystem::directory_iterator(GEMM_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  for (const auto& entry : std::filesystem::directory_iterator(GEMM_SOURCE_DIR "/steps")) {
    if (std::filesystem::exists(entry.path() / "README.md")) pages.push_back(entry.path() / "README.md");
  }
  for (const std::filesystem::path& page : pages) {
    const std::string text = read(page);
    std::string renewed;
    std::size_t done = 0;
    const std::regex marker("<!-- (play|mutant): (.*) -->\n+```\n");
    for (auto match = std::sregex_iterator(text.begin(), text.end(), marker); match != std::sregex_iterator();
         ++match) {
      const auto begin = static_cast<std::size_t>(match->position() + match->length());
      const std::size_t end = text.find("```\n", begin);
      INFO(page.filename().string() << ": " << match->str());
      REQUIRE(end != std::string::npos);
      const std::string quoted = text.substr(begin, end - begin);
      std::string printed = (*match)[1] == "play" ? play_text((*match)[2]) : mutant_text((*match)[2]);
      printed = std::regex_replace(printed, std::regex(" +\n"), "\n");
      if (!update) CHECK(without_line_numbers(quoted) == without_line_numbers(printed));
      renewed += text.substr(done, begin - done) + printed;
      done = end;
      ++blocks;
    }
    renewed += text.substr(done);
    if (update && renewed != text) std::ofstream(page) << renewed;
  }
  CHECK(blocks > 0);
}
