// Step 61: products of which other ranks have the rows, on two and three ranks and under many schedules.
#include <string>

#include "catch.h"
#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/verify/workload/rank_gather.h"
#include "launches.h"

namespace {

void check(const gemm::Variant& variant, const harness::GatherCase& one,
           const harness::EmulatorControl& schedule, int epochs = 3) {
  harness::control_emulator(schedule);
  const harness::CheckResult result = harness::check_gather_case(variant, one, epochs);
  INFO(variant.name << ", " << one.form.ranks << " ranks, seed " << schedule.schedule_seed << "\n"
                    << result.report);
  CHECK(result.ok);
  harness::control_emulator({});
}

}  // namespace

TEST_CASE("every variant multiplies what other ranks have, as early and as late as may be", "[emulator]") {
  if (skip_without_emulator()) return;
  const std::vector<harness::GatherCase> cases = harness::gather_cases();
  for (const gemm::Variant& variant : step_under_test().variants) {
    check(variant, cases[0], {.schedule_seed = 1, .sm_count = 3});
    check(variant, cases[1], {.completion = harness::Completion::kEarliest});
    check(variant, cases[1], {.completion = harness::Completion::kLatest});
    for (std::uint64_t seed = 2; seed <= 4; ++seed)
      check(variant, cases[2], {.schedule_seed = seed, .sm_count = 2});
  }
}

TEST_CASE("more CTAs than tiles, more CTAs that copy than pieces, and many epochs", "[emulator]") {
  if (skip_without_emulator()) return;
  harness::GatherCase one = harness::gather_case({2, 1, 1});
  one.ctas = 3;
  for (const gemm::Variant& variant : step_under_test().variants) check(variant, one, {.sm_count = 8}, 7);
}

TEST_CASE("rows of A that never came are found, and a shape that cannot be divided is refused",
          "[emulator]") {
  if (skip_without_emulator()) return;
  const harness::RankGatherForm form = harness::gather_case({2, 1, 1}).form;
  harness::RankGather gather(form, step_under_test().variants.front().tile);
  const auto nothing = [](int, std::uint32_t, gemm::ptx::Stream) {};
  const harness::CheckResult result =
      gather.run({nothing, nothing, nothing, nothing}, 1, harness::RankRun::Readers::kBeside);
  CHECK_FALSE(result.ok);
  CHECK(result.report.find("it has not arrived") != std::string::npos);
  CHECK_THROWS_AS(harness::check_gather({.ranks = 2, .shape = {384, 64, 64}}), harness::Error);
  CHECK_THROWS_AS(harness::check_gather({.ranks = 2, .shape = {256, 72, 64}}), harness::Error);
  CHECK_THROWS_AS(harness::check_gather({.ranks = 2, .shape = {256, 64, 12}}), harness::Error);
}
