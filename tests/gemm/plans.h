// Plans that a test makes itself: schedules to run them under, and launches that are verified.
#pragma once

#include <cstdint>

#include "catch.h"
#include "emulator/machine/options.h"
#include "harness/verify/workload/workload.h"

using emulator::Completion;

struct Schedule {
  std::uint64_t seed;
  Completion completion;
};
constexpr Schedule kSchedules[] = {{1, Completion::kRandom},
                                   {1, Completion::kEarliest},
                                   {2, Completion::kRandom},
                                   {1, Completion::kLatest},
                                   {3, Completion::kRandom}};

inline emulator::Options options_of(const Schedule& schedule, int sms) {
  emulator::Options options;
  options.seed = schedule.seed;
  options.completion = schedule.completion;
  options.sm_count = sms;
  return options;
}

/// Launches once, with D poisoned before; a report of the emulator is thrown, and fails the test.
template <typename Launch>
void verify_launch(harness::Workload& workload, const Launch& launch, const gemm::TileShape& tile) {
  workload.poison();
  launch(nullptr);
  const harness::CheckResult result = workload.check(tile);
  INFO(result.report);
  REQUIRE(result.ok);
}
