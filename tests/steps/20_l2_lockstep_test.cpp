// Step 20's own shapes: CTAs with different numbers of barriers, with none, and one alone.
#include <algorithm>
#include <cstdint>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/check_plan.h"
#include "launches.h"
#include "schedules.h"

namespace {

/// Of the variant's name: k-tiles between two barriers; 0: none.
int period_of(const gemm::Variant& variant) {
  if (variant.name.find("_lockstep") == std::string::npos) return 0;
  return variant.name.back() == '4' ? 4 : 16;
}

}  // namespace

TEST_CASE("CTAs with different numbers of barriers, under every schedule, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    const int period = period_of(variant);
    // One CTA does two tiles, the other one: 34 and 17 k-tiles where barriers are every 16.
    const gemm::Shape shape = shape_of(variant, 3, period + 1);
    for (const Schedule& schedule : kSchedules) {
      under(schedule, 2);
      REQUIRE(variant.workspace_bytes(shape) == (period > 0 ? 8 : 0));  // two counters
      REQUIRE(variant.launch_shape(shape).co_resident == (period > 0));
      verify_twice(variant, shape);
    }
    // A CTA that has nothing to do, and one that is alone.
    under(kSchedules[0], 2);
    verify_twice(variant, shape_of(variant, 1, 2 * period + 1));
    under(kSchedules[0], 1);
    verify_twice(variant, shape_of(variant, 1, period + 2));
  }
  harness::control_emulator({});
}

TEST_CASE("k-tiles around the period, on three SMs, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  int round = 0;
  for (const gemm::Variant& variant : step_under_test().variants) {
    const int period = period_of(variant);
    if (period == 0) continue;
    for (const int k_tiles : {1, 2, period - 1, period, period + 1, 2 * period, 2 * period + 1}) {
      under(kSchedules[round % 4], 3);
      verify_twice(variant, shape_of(variant, 1 + round % 5, k_tiles));
      ++round;
    }
  }
  harness::control_emulator({});
}

TEST_CASE("entries of the queue and store buffers are used again, under every schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Schedule& schedule : kSchedules) {
      // Three times as many tiles as entries, whole in M so that no store is clipped away.
      under(schedule, 1);
      verify_twice(variant, {11 * variant.tile.m + 3, 40, variant.tile.k});
    }
  }
  harness::control_emulator({});
}

TEST_CASE("a bare check launches twice where there are counters, and speaks of no split tiles",
          "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const harness::CheckCase& one : harness::plan_check(step_under_test(), variant, 1, true)) {
      INFO(variant.name << ": " << one.why);
      const bool counters = period_of(variant) > 0;
      CHECK(one.launches == (counters ? 2 : 1));
      CHECK((one.why.find("launched twice on one workspace") != std::string::npos) == counters);
      CHECK(one.why.find("split along K") == std::string::npos);
    }
  }
  harness::control_emulator({});
}
