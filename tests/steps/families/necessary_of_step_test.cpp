// What docs/lab/necessary.md says of the step is what the emulator finds.
//
//   <!-- necessary: 11_mbarrier_ring 128x256_stages4 -->
//   | statement | line | threads | broken without it | why it stays |
//   Needed: ...
//   <!-- /necessary -->
//
// The last column is written by hand. To write the tables anew:
// GEMM_STEPS_UPDATE_PAGES=1 build/emulator/tests/steps/tests_steps_NN "[.necessary]"
#include "harness/verify/necessary.h"

#include <fmt/format.h>

#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "steps/generated_tables.h"
#include "steps/verify_shape.h"

namespace {

using harness::Necessity;

constexpr double kSecondsOfSearch = 120;  // on a machine with much else to do; none needs a tenth of it

/// The rows with what `old` says in its last column.
std::string necessary_table(const std::vector<Necessity>& all, const std::string& old) {
  const auto key_of = [](const std::string& row) { return row.substr(0, row.find(" | ")); };
  std::multimap<std::string, std::string> prose;
  std::istringstream lines(old);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::size_t begin = line.rfind("| ", line.size() - 3) + 2;
    prose.emplace(key_of(line), line.substr(begin, line.size() - 2 - begin));
  }
  std::string table =
      "| statement | line | threads | broken without it | why it stays |\n|---|---|---|---|---|\n";
  std::string needed;
  for (const Necessity& one : all) {
    const std::string own = "steps/" + step_under_test().name + "/kernel.cuh:";
    const bool is_own = one.statement.place.starts_with(own);
    const std::string place = one.statement.place.substr(is_own ? own.size() : 0);
    std::string broken = "only `" + one.stricter + "`";
    switch (one.verdict) {
      case Necessity::Verdict::kNeeded:
        if (!is_own) continue;  // several steps share it
        needed += fmt::format("{}`{}` ({}: `{}`{})", needed.empty() ? "" : ", ", to_string(one.statement),
                              place, one.rule, one.by_exploring ? " by exploring" : "");
        continue;
      case Necessity::Verdict::kStricter:
        break;
      case Necessity::Verdict::kOffByDefault:
        broken += ", off by default";
        break;
      case Necessity::Verdict::kNotNeeded:
        broken = fmt::format("**nothing**, schedules: {}", one.schedules);
        break;
      case Necessity::Verdict::kUndecided:
        broken = "nothing, search not exhausted";
    }
    const std::string begin =
        fmt::format("| `{}` | {} | {} | {} | ", to_string(one.statement), place, one.statement.by, broken);
    const auto found = prose.find(key_of(begin));
    table += begin + (found == prose.end() ? "TODO: why does it stay?" : found->second) + " |\n";
    if (found != prose.end()) prose.erase(found);
  }
  return table + "\nNeeded: " + needed + ".\n";
}

}  // namespace

TEST_CASE("the lab says which of its statements are necessary", "[.necessary]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  check_or_write_tables(
      GEMM_SOURCE_DIR "/docs/lab/necessary.md", "<!-- necessary: " + step.name + " (\\S+) -->",
      "<!-- /necessary -->", [&](const std::smatch& match, const std::string& old) {
        const gemm::Variant& variant = variant_named(match[1]);
        return necessary_table(harness::judge_statements(step, variant, kSecondsOfSearch), old);
      });
}
