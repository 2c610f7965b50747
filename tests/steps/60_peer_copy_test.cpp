// Step 60: copies between two and three ranks, whoever sends, under many schedules.
#include <string>

#include "catch.h"
#include "gemm/problem/step.h"
#include "harness/backend/emulator_control.h"
#include "harness/verify/workload/rank_copy.h"
#include "launches.h"

namespace {

constexpr std::int64_t kChunk = gemm::kCopyChunkBytes;

void check(const gemm::Variant& variant, const harness::RankCase& one,
           const harness::EmulatorControl& schedule) {
  harness::control_emulator(schedule);
  const harness::CheckResult result = harness::check_rank_case(variant, one, 3);
  INFO(variant.name << ", " << one.form.ranks << " ranks, " << one.form.bytes << " bytes, seed "
                    << schedule.schedule_seed << "\n"
                    << result.report);
  CHECK(result.ok);
  harness::control_emulator({});
}

}  // namespace

TEST_CASE("every variant copies under many schedules, as early and as late as may be", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const harness::RankCase& one : harness::rank_cases()) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) check(variant, one, {.schedule_seed = seed});
      check(variant, one, {.completion = harness::Completion::kEarliest});
      check(variant, one, {.completion = harness::Completion::kLatest});
    }
  }
}

TEST_CASE("fewer pieces than CTAs, and a copy that is shorter than a chunk", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    check(variant, {.form = {.bytes = 2 * kChunk}, .piece_bytes = kChunk, .ctas = 3}, {});
    check(variant, {.form = {.bytes = gemm::kCopyRowBytes}, .piece_bytes = kChunk, .ctas = 1}, {});
  }
}

TEST_CASE("only rank 0 sends, and nothing else changes", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants)
    check(variant, {.form = {.ranks = 3, .bytes = 2 * kChunk, .one_way = true}}, {});
}

TEST_CASE("an inbox that nobody writes to is found", "[emulator]") {
  if (skip_without_emulator()) return;
  harness::RankCopy copy({.bytes = 2 * kChunk});
  const auto nothing = [](int, std::uint32_t, gemm::ptx::Stream) {};
  const harness::CheckResult result =
      copy.run({nothing, nothing, nothing, nothing}, 1, harness::RankCopy::Readers::kBeside);
  CHECK_FALSE(result.ok);
  CHECK(result.report.find("it was never written") != std::string::npos);
}
