// What a deadlock's report says is missing: two warps that pass two slots on to each other, and one mistake.
#include <cstdint>
#include <string>

#include "emulator/hopper_test.h"

namespace deadlock_causes_test {

using namespace emulator_test;

namespace {

struct Slots {
  std::uint64_t full[2];
  std::uint64_t empty[2];
};

enum Fault { kNone, kLanesApart, kHandedBackEarly, kCountTooLarge, kNobodyArrives, kLeaves, kTwice };

__global__ void passes_on(int fault) {
  auto& shared = ptx::dynamic_shared<Slots>();
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_init(&shared.full[i], fault == kCountTooLarge ? 2 : 1);
      ptx::mbarrier_init(&shared.empty[i], 1);
    }
  }
  __syncthreads();
  if (fault == kHandedBackEarly && threadIdx.x == 32) ptx::mbarrier_arrive(&shared.empty[0]);
  __syncthreads();
  if (threadIdx.x < 32) {
    for (std::uint32_t i = 0; lane == 0 && i < 4; ++i) {
      wait(&shared.empty[i % 2], i / 2 % 2 ^ 1);
      if (fault == kLeaves && i == 2) break;
      if (fault != kNobodyArrives) ptx::mbarrier_arrive(&shared.full[i % 2]);
    }
  } else {
    const std::uint32_t rounds = fault == kLanesApart && lane > 0 ? 5 : 4;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      wait(&shared.full[i % 2], i / 2 % 2);
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(&shared.empty[i % 2]);
      if (lane == 0 && fault == kTwice && i == 0) ptx::mbarrier_arrive(&shared.empty[0]);
    }
    __syncwarp();
  }
  __syncthreads();
}

/// Under every schedule: a deadlock whose report has all the texts, and none of those of the other faults.
void check_says(Fault fault, const std::string& first, const std::string& second) {
  const ptx::LaunchShape shape = one_cta(64, sizeof(Slots));
  CHECK_BREAKS("deadlock", run(passes_on, shape, fault));
  const Outcome outcome = run(passes_on, shape, fault);
  INFO(outcome.report);
  CHECK(contains(outcome.report, first));
  CHECK(contains(outcome.report, second));
  CHECK(outcome.report.find("missing  ") == outcome.report.rfind("missing  "));
}

/// Under how many schedules the report has the text.
int schedules_that_say(Fault fault, const std::string& text) {
  int count = 0;
  under_all_schedules(
      [&] { count += contains(run(passes_on, one_cta(64, sizeof(Slots)), fault).report, text) ? 1 : 0; });
  return count;
}

}  // namespace

TEST_CASE("deadlock: two warps that pass slots on") {
  CHECK_PASSES(run(passes_on, one_cta(64, sizeof(Slots)), kNone));
}

TEST_CASE("deadlock: the lanes of a warp have gone different ways") {
  check_says(kLanesApart, "of warp 1 of CTA (0,0,0), lanes 1-31 wait at ", "goes to the others by a shuffle");
}

TEST_CASE("deadlock: a slot is handed back before anybody has handed it out") {
  check_says(kHandedBackEarly, "waits for the first time at mbarrier empty[0]",
             "these hand back what nobody had handed out");
}

TEST_CASE("deadlock: no phase of an array has ever ended") {
  check_says(kCountTooLarge, "no phase of any full[] has ever ended: 2 of them have had 1 of 2 arrivals each",
             "and 1 would fit");
}

TEST_CASE("deadlock: more arrivals than waits") {
  // Where the second one comes before the wait for the first.
  CHECK(schedules_that_say(kTwice, "2 phases of it are over since its last wait there: it was told more") >
        0);
  CHECK(schedules_that_say(kTwice, "or meant for another of empty[]") > 0);
  CHECK(schedules_that_say(kNone, "more often than") == 0);
}

TEST_CASE("deadlock: nobody has ever arrived") {
  check_says(kNobodyArrives, "an arrival at mbarrier full[0]",
             "or another of full[] (waited for by threads 32-63 of CTA (0,0,0))");
}

TEST_CASE("deadlock: who arrives has gone on, and waits elsewhere") {
  check_says(kLeaves, "Who arrives at full[] has gone on, and waits elsewhere: thread (0,0,0)",
             "__syncthreads");
}

}  // namespace deadlock_causes_test
