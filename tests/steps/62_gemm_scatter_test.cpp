// Step 62: sums that are scattered over two, three and four ranks, under many schedules.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.h"
#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/verify/workload/rank_scatter.h"
#include "launches.h"
#include "ptx/peer_copy.h"

namespace {

void check(const gemm::Variant& variant, const harness::ScatterCase& one,
           const harness::EmulatorControl& schedule, int epochs = 3) {
  harness::control_emulator(schedule);
  const harness::CheckResult result = harness::check_scatter_case(variant, one, epochs);
  INFO(variant.name << ", " << one.form.ranks << " ranks, seed " << schedule.schedule_seed << "\n"
                    << result.report);
  CHECK(result.ok);
  harness::control_emulator({});
}

gemm::RankLauncher nothing() {
  const auto nothing = [](int, std::uint32_t, gemm::ptx::Stream) {};
  return {nothing, nothing, nothing, nothing};
}

}  // namespace

TEST_CASE("every variant adds what all ranks have, as early and as late as may be", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  const std::vector<harness::ScatterCase> cases = harness::scatter_cases();
  const harness::ScatterCase two_ranks = harness::scatter_case({2, 2, 2});
  for (const gemm::Variant& variant : step_under_test().variants) {
    check(variant, cases[0], {.schedule_seed = 1, .sm_count = 3});
    check(variant, two_ranks, {.completion = harness::Completion::kEarliest});
    check(variant, two_ranks, {.completion = harness::Completion::kLatest});
    for (std::uint64_t seed = 2; seed <= 4; ++seed)
      check(variant, cases[1], {.schedule_seed = seed, .sm_count = 2});
  }
}

TEST_CASE("partials are added in the promised order, whichever comes first", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  const std::vector<harness::ScatterCase> cases = harness::scatter_cases();
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) check(variant, cases.back(), {.schedule_seed = seed}, 2);
  }
}

TEST_CASE("a rank that is late, more CTAs than tiles, and many epochs", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = step_under_test().variants.front();
  const harness::ScatterCase one = harness::scatter_case({2, 1, 1});
  check(variant, one, {.sm_count = 8}, 9);
  const std::vector<std::byte> from(std::size_t{1} << 20);  // what the late rank copies first
  std::vector<std::byte> to(from.size());
  for (int late = 0; late < one.form.ranks; ++late) {
    harness::RankScatter scatter(one.form);
    gemm::RankLauncher launcher = variant.prepare_scatter(scatter.problem());
    launcher.before = [&](int rank, std::uint32_t, gemm::ptx::Stream stream) {
      if (rank == late) gemm::ptx::copy_to_peer(to.data(), late, from.data(), late, from.size(), stream);
    };
    const harness::CheckResult result = scatter.run(launcher, 4, harness::RankRun::Readers::kBeside);
    INFO("rank " << late << " is late\n" << result.report);
    CHECK(result.ok);
  }
}

TEST_CASE("a sum without a rank's part is found, and a shape that cannot be divided is refused",
          "[emulator]") {
  if (skip_without_emulator()) return;
  harness::RankScatter scatter(harness::scatter_case({2, 1, 1}).form);
  const harness::CheckResult result = scatter.run(nothing(), 1, harness::RankRun::Readers::kBeside);
  CHECK_FALSE(result.ok);
  CHECK(result.report.find("it was not stored") != std::string::npos);
  CHECK_THROWS_AS(harness::check_scatter({.ranks = 2, .shape = {384, 64, 64}}), harness::Error);
  CHECK_THROWS_AS(harness::check_scatter({.ranks = 2, .shape = {256, 64, 72}}), harness::Error);
  CHECK_THROWS_AS(harness::check_scatter({.ranks = 2, .shape = {256, 12, 64}}), harness::Error);
}
