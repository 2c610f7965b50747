// What the steps say about each other.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.h"
#include "step_table.h"

namespace {

/// What is wrong with the steps that these build on, a sentence each.
std::vector<std::string> problems(const std::vector<const gemm::Step*>& steps) {
  std::vector<std::string> found;
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    const std::string& base = (*step)->builds_on;
    const bool is_earlier =
        std::any_of(steps.begin(), step, [&](const gemm::Step* earlier) { return earlier->name == base; });
    if (!base.empty() && !is_earlier)
      found.push_back((*step)->name + " builds on '" + base + "', which is no step before it");
  }
  return found;
}

}  // namespace

TEST_CASE("ladder: a step builds on the one before it or names an earlier one") {
  for (const std::string& problem : problems(gemm::all_steps())) FAIL_CHECK(problem);
}

TEST_CASE("ladder: a step that builds on itself, a later one or none is found") {
  const gemm::Step first{.name = "01_first"};
  const gemm::Step last{.name = "03_last", .builds_on = "01_first"};
  CHECK(problems({&first, &last}).empty());
  for (const char* base : {"02_second", "03_last", "01_fist", "01"}) {
    const gemm::Step second{.name = "02_second", .builds_on = base};
    CHECK(problems({&first, &second, &last}) ==
          std::vector<std::string>{"02_second builds on '" + std::string(base) +
                                   "', which is no step before it"});
  }
}
