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
  check_text(outcome.report, {first, second});
  CHECK(outcome.report.find("missing  ") == outcome.report.rfind("missing  "));
}

/// All threads of the CTA. Several kernels share it, and in each other warps arrive.
void init(Slots& shared) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], 1);
    }
  }
  __syncthreads();
}

/// Slots are handed back one item later; `next`: by the number of the item that begins.
__global__ void hands_back_later(bool next) {
  auto& shared = ptx::dynamic_shared<Slots>();
  init(shared);
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) {
      wait(&shared.empty[i % 2], i / 2 % 2 ^ 1);
      ptx::mbarrier_arrive(&shared.full[i % 2]);
    } else if (threadIdx.x == 32) {
      wait(&shared.full[i % 2], i / 2 % 2);
      if (i > 0) ptx::mbarrier_arrive(&shared.empty[(next ? i : i - 1) % 2]);
    }
  }
  __syncthreads();
}

/// Warp 0 has `items` items and says behind the `first`-th one that it has begun; warp 1 waits for that and
/// fills a slot, for which warp 2 waits.
__global__ void begins(int first, int items) {
  auto& shared = ptx::dynamic_shared<Slots>();
  init(shared);
  for (int i = 1; threadIdx.x == 0 && i <= items; ++i) {
    if (i == first) ptx::mbarrier_arrive(&shared.empty[1]);
  }
  if (threadIdx.x == 32) {
    wait(&shared.empty[1], 0);
    ptx::mbarrier_arrive(&shared.full[0]);
  }
  if (threadIdx.x == 64) wait(&shared.full[0], 0);
}

/// Thread 32 hands out a slot twice; thread 64 hands it back before its second wait, or behind it.
__global__ void hands_back_behind(bool late) {
  auto& shared = ptx::dynamic_shared<Slots>();
  init(shared);
  if (threadIdx.x == 32) {
    ptx::mbarrier_arrive(&shared.full[0]);
    wait(&shared.empty[0], 0);
    ptx::mbarrier_arrive(&shared.full[0]);
  } else if (threadIdx.x == 64) {
    wait(&shared.full[0], 0);
    if (!late) ptx::mbarrier_arrive(&shared.empty[0]);
    wait(&shared.full[0], 1);
    if (late) ptx::mbarrier_arrive(&shared.empty[0]);
  }
}

// ---- A ring that copies fill

constexpr int kStages = 4;
constexpr int kInts = 32;

struct Ring {
  alignas(128) int stage[kStages][kInts];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

/// A base class and a member of its own: the base class's members have names.
struct Shared : Ring {
  std::uint64_t begun;
};

enum RingFault {
  kFlawless,
  kOtherParity,
  kOwnArrivalLast,
  kNextStage,
  kKeepsAll,
  kKeepsTurn,   // warpgroups read in turns of eight items, with four stages
  kShortTurns,  // no fault: in turns of two
  kOnlyItsOwn,
  kOnlyItsOwnOfTwo,  // and items have the numbers 0 and 1
  kLeavesOneOut,     // stage 3 is never handed back
};

/// Thread 256, or thread 0 of the first warpgroup, fills the ring; both warpgroups read all of it, or
/// (`turns`) two items in turn.
__global__ void ring(const int* source, int fault, bool turns, bool own_producer) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  constexpr int kItems = 16;
  const auto at = [](int i) { return static_cast<std::uint32_t>(i / kStages % 2); };
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], turns ? 1 : 2);
    }
    ptx::mbarrier_init(&shared.begun, 1);
    ptx::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  const auto number = [fault](int i) { return fault == kOnlyItsOwnOfTwo ? i % 2 : i; };
  const bool only_its_own = fault == kOnlyItsOwn || fault == kOnlyItsOwnOfTwo;
  const auto fill = [&](int i) {
    ptx::mbarrier_wait_parity(&shared.empty[i % kStages], at(i) ^ 1,
                              {"producer", "empty", i % kStages, number(i)});
    ptx::mbarrier_arrive_expect_tx(&shared.full[i % kStages], sizeof(shared.stage[0]));
    ptx::cp_async_bulk(shared.stage[i % kStages], source, sizeof(shared.stage[0]), &shared.full[i % kStages]);
  };
  if (thread >= 256) {
    for (int i = 0; thread == 256 && own_producer && i < kItems; ++i) fill(i);
  } else {
    int next = 0;  // to be filled
    if (!own_producer && thread == 0) {
      while (next < kStages) fill(next++);
    }
    const int warpgroup = thread / 128;
    int state = turns && !only_its_own ? 2 * warpgroup : 0;
    for (int i = 0; i < kItems; ++i) {
      if (turns && i / 2 % 2 != warpgroup) continue;
      const int place = turns ? state : i;
      const int stage = place % kStages;
      ptx::mbarrier_wait_parity(&shared.full[stage], at(place) ^ (fault == kOtherParity ? 1u : 0u),
                                {"consumer", "full", stage, number(i)});
      const int turn = fault == kKeepsTurn ? 8 : 2;
      const bool in_turns = fault == kKeepsTurn || fault == kShortTurns;
      if (in_turns && i == 0 && warpgroup == 1) ptx::bar_arrive(3, 256);
      if (in_turns && i % turn == 0) ptx::bar_sync(3u + static_cast<unsigned>(warpgroup), 256);
      if (in_turns && i % turn == turn - 1 && (warpgroup == 0 || i + 1 < kItems))
        ptx::bar_arrive(4u - static_cast<unsigned>(warpgroup), 256);
      const bool fills = !own_producer && thread == 0 && next < kItems;
      ptx::bar_sync(1 + warpgroup, 128);
      if (fills && fault == kOwnArrivalLast) fill(next++);
      if (thread % 128 == 0 && (fault != kKeepsAll || warpgroup == 0) &&
          (fault != kLeavesOneOut || stage != 3))
        ptx::mbarrier_arrive(&shared.empty[(fault == kNextStage ? stage + 1 : stage) % kStages]);
      if (fills && fault != kOwnArrivalLast) fill(next++);
      state += turns && i % 2 == 1 && !only_its_own ? 3 : 1;
    }
  }
  __syncthreads();
}

/// Warp 0 meets at named barrier 1, whose count is this; warp 1 leaves, and never comes there.
__global__ void meets(unsigned count) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.begun, 1);
  __syncthreads();
  if (threadIdx.x >= 64) {
    if (threadIdx.x == 64) wait(&shared.begun, 0);
    return;
  }
  if (threadIdx.x >= 32) return;
  ptx::bar_sync(1, count);
  if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.begun);
}

/// Thread 0 puts three items into one stage, one after the other; thread 32 takes them, or leaves one out.
__global__ void takes(const int* source, bool leaves_one_out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full[0], 1);
    ptx::mbarrier_init(&shared.empty[0], 1);
    ptx::mbarrier_init(&shared.begun, 1);
    ptx::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t parity = static_cast<std::uint32_t>(i) % 2;
    if (threadIdx.x == 0) {
      ptx::mbarrier_wait_parity(&shared.empty[0], parity ^ 1, {"producer", "empty", 0, i});
      ptx::mbarrier_arrive_expect_tx(&shared.full[0], sizeof(shared.stage[0]));
      ptx::cp_async_bulk(shared.stage[0], source, sizeof(shared.stage[0]), &shared.full[0]);
      if (i == 1) ptx::mbarrier_arrive(&shared.begun);
    } else if (threadIdx.x == 32) {
      if (i == 1) wait(&shared.begun, 0);
      if (i == 1 && leaves_one_out) continue;
      ptx::mbarrier_wait_parity(&shared.full[0], parity, {"consumer", "full", 0, i});
      if (i < 2) ptx::mbarrier_arrive(&shared.empty[0]);
    }
  }
  __syncthreads();
}

Outcome run_ring(RingFault fault, bool turns, bool own_producer) {
  const DeviceArray<int> source(std::vector<int>(kInts, 1), "source");
  return run(ring, one_cta(288, sizeof(Shared)), source.get(), fault, turns, own_producer);
}

/// Under how many schedules a deadlock is reported with both texts.
int schedules_of_ring(RingFault fault, bool turns, bool own_producer, const std::string& first,
                      const std::string& second) {
  return schedules_that_say("deadlock", {first, second}, {},
                            [&] { return run_ring(fault, turns, own_producer); });
}

}  // namespace

TEST_CASE("deadlock: the slot that was filled later is handed back") {
  const ptx::LaunchShape shape = one_cta(64, sizeof(Slots));
  CHECK_PASSES(run(hands_back_later, shape, false));
  const auto next = [&] { return run(hands_back_later, shape, true); };
  CHECK_BREAKS("deadlock", next());
  CHECK(schedules_that_say(
            "deadlock",
            {"1 arrivals at mbarrier empty[0] (shared + 0x10), which is waited for by thread 0 of "
             "CTA (0,0,0): they went to mbarrier empty[1]"},
            {}, next) > 0);
}

TEST_CASE("deadlock: of two mbarriers that nobody has arrived at, that of the warp that has returned") {
  const ptx::LaunchShape shape = one_cta(96, sizeof(Slots));
  CHECK_PASSES(run(begins, shape, 2, 3));
  CHECK_BREAKS("deadlock", run(begins, shape, 4, 3));
  check_report(
      run(begins, shape, 4, 3), "deadlock",
      {"an arrival at mbarrier empty[1]", "in launches that finished, warp 0 (once, at tests/emulator/",
       ") has arrived. In phase 0 of mbarrier empty[1]", "none has so far: warp 0 has returned"},
      {"or at mbarrier full[0]"});
}

TEST_CASE("deadlock: a ring that copies fill") {
  for (const bool turns : {false, true}) CHECK_PASSES(run_ring(kFlawless, turns, true));
  CHECK_PASSES(run_ring(kFlawless, false, false));
}

TEST_CASE("deadlock: a consumer waits for the other parity") {
  CHECK(schedules_of_ring(kOtherParity, false, true, "for parity 1 of mbarrier full[0]",
                          "has the right stage but the wrong parity") > 0);
  CHECK(schedules_of_ring(kOtherParity, false, true,
                          "it arrived in phase 0, which has completed, has parity 0",
                          "parity 0 in this wait") > 0);
}

TEST_CASE("deadlock: a thread waits for an arrival that it would make itself") {
  CHECK(schedules_of_ring(kOwnArrivalLast, false, false, "for mbarrier empty[0] (shared + ",
                          "the thread waits for itself") > 0);
  CHECK(schedules_of_ring(kOwnArrivalLast, false, false, "is from its own warpgroup, 0",
                          "For warpgroup 1, thread 128 arrived") > 0);
}

TEST_CASE("deadlock: a thread has released another stage than the one that it waits for") {
  CHECK(schedules_of_ring(kNextStage, false, false, "missing  its arrival at mbarrier empty[0]",
                          "it has arrived at mbarrier empty[1]") > 0);
}

TEST_CASE("deadlock: a stage is handed back that was not filled yet") {
  CHECK(schedules_of_ring(kNextStage, false, true, "ended by threads 0, 128 of CTA (0,0,0)",
                          "the one for the stage that was read") > 0);
}

TEST_CASE("deadlock: a stage is left out when stages are handed back") {
  CHECK(schedules_of_ring(
            kLeavesOneOut, false, true, "first    no thread has ever arrived at mbarrier empty[3]",
            "Among its readers, warpgroup 0 of CTA (0,0,0), warpgroup 1 of CTA (0,0,0) have") > 0);
}

TEST_CASE("deadlock: a consumer forgets what the other one takes from the ring") {
  CHECK(schedules_of_ring(kOnlyItsOwn, true, true, "had delivered item ",
                          "including what other consumers take from it in between") > 0);
  CHECK(schedules_of_ring(kOnlyItsOwnOfTwo, true, true,
                          "warpgroups 0 and 1 of CTA (0,0,0) have both waited for phase",
                          "a state that also advances past the items that the other warpgroup takes") > 0);
}

TEST_CASE("deadlock: a reader waits for the next filling of a stage that it has not handed back") {
  CHECK(schedules_of_ring(kKeepsAll, false, true, "of warpgroup 1 waits at ",
                          "missing  the arrival of warpgroup 1 at empty[] after each wait") > 0);
  CHECK(schedules_of_ring(kKeepsAll, false, true, "it has waited for all 4 stages and has arrived at none",
                          "as consumer of k-tile 4, stage 0, at mbarrier full[0]") > 0);
}

TEST_CASE("deadlock: a turn of more items than the ring has stages") {
  CHECK_PASSES(run_ring(kShortTurns, false, true));
  CHECK(schedules_of_ring(kKeepsTurn, false, true,
                          " for named barrier 4, where 128 of 256 threads have arrived. Between two arrivals",
                          "missing  the arrival of warpgroup ") > 50);
  CHECK(schedules_of_ring(kKeepsTurn, false, true, "missing  ", "would match") == 0);
}

TEST_CASE("deadlock: a named barrier whose count is more than the threads that come") {
  CHECK_PASSES(run(meets, one_cta(96, sizeof(Shared)), 32u));
  check_report(run(meets, one_cta(96, sizeof(Shared)), 96u), "deadlock",
               {"expects 96 threads, and 32 have reached it: threads 0-31. threads 32-63, 65-95 have "
                "returned, so it never completes",
                "thread 64 of CTA (0,0,0): its wait at mbarrier ",
                "missing  a count that matches the threads that execute"});
}

TEST_CASE("deadlock: a stage holds what nobody has waited for") {
  const DeviceArray<int> source(std::vector<int>(kInts, 1), "source");
  const auto run_takes = [&](bool leaves_one_out) {
    return run(takes, one_cta(64, sizeof(Shared)), source.get(), leaves_one_out);
  };
  CHECK_PASSES(run_takes(false));
  CHECK(schedules_that_say(
            "deadlock",
            {"as consumer of k-tile 2, stage 0, for parity ", "but item 1 is there: it arrived in phase 1",
             "missing  a wait for item 1 by its owner"},
            {}, [&] { return run_takes(true); }) > 0);
}

TEST_CASE("deadlock: two warps that pass slots on") {
  CHECK_PASSES(run(passes_on, one_cta(64, sizeof(Slots)), kNone));
}

TEST_CASE("deadlock: the lanes of a warp have gone different ways") {
  check_says(kLanesApart, "in warp 1 of CTA (0,0,0), lanes 1-31 wait at ",
             "must be passed to the other lanes by a shuffle");
}

TEST_CASE("deadlock: a slot is handed back before anybody has handed it out") {
  check_says(kHandedBackEarly, "waits for the first time at tests/",
             "these release something that had not been filled yet");
}

TEST_CASE("deadlock: no phase of an array has ever ended") {
  check_says(kCountTooLarge,
             "no phase of any full[] has ever completed: 2 of them have received 1 of 2 arrivals each",
             "and 1 would match");
}

TEST_CASE("deadlock: more arrivals than waits") {
  // Where the second one comes before the wait for the first.
  CHECK(schedules_that_say("deadlock",
                           {"2 phases have completed since its last wait there: it was signalled more",
                            "or meant for another of empty[]"},
                           {}, [] { return run(passes_on, one_cta(64, sizeof(Slots)), kTwice); }) > 0);
}

TEST_CASE("deadlock: nobody has ever arrived") {
  check_says(kNobodyArrives, "an arrival at mbarrier full[0]",
             "or another of full[] (waited for by threads 32-63 of CTA (0,0,0))");
}

TEST_CASE("deadlock: nobody has ever arrived, and who is to arrive waits in a circle") {
  const ptx::LaunchShape shape = one_cta(96, sizeof(Slots));
  CHECK_PASSES(run(hands_back_behind, shape, false));
  CHECK_BREAKS("deadlock", run(hands_back_behind, shape, true));
  check_report(run(hands_back_behind, shape, true), "deadlock",
               {"  chain    mbarrier full[0] ",
                "(waited for by thread 64 of CTA (0,0,0)) lacks thread (32,0,0) (warp 1, lane 0) of CTA "
                "(0,0,0); and mbarrier empty[0] "});
}

TEST_CASE("deadlock: who arrives has gone on, and waits elsewhere") {
  check_says(kLeaves, "none has so far: warp 0 waits at ",
             "missing  the arrival of warp 0 at mbarrier full[0]");
}

}  // namespace deadlock_causes_test
