// How a phase departs from those before it: the line "ledger" of a report, with and without names.
#include <cstdint>
#include <string>

#include "emulator/hopper_test.h"

namespace departures_test {

using namespace emulator_test;

namespace {

constexpr int kStages = 2;
constexpr int kValues = 32;

struct Named {
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
  alignas(128) int stage[kStages][kValues];
};
struct Renamed {
  alignas(128) int milk[kStages][kValues];
  std::uint64_t tea[kStages];
  std::uint64_t coffee[kStages];
};
/// No member has a name in a report.
struct Nameless {
  int head;
  int tail;
  int of[11];
  int more;
  Named all;
  int a, b, c, d, e, f, g, h;
};

struct Ring {
  std::uint64_t* full;
  std::uint64_t* empty;
  int (*stage)[kValues];
};
__device__ Ring ring_of(Named& shared) {
  return {shared.full, shared.empty, shared.stage};
}
__device__ Ring ring_of(Renamed& shared) {
  return {shared.coffee, shared.tea, shared.milk};
}
__device__ Ring ring_of(Nameless& shared) {
  return ring_of(shared.all);
}

enum Fault {
  kNone,
  kForgets,        // warp 2, in round 6
  kTwice,          // warp 1 releases in round 6 for warp 2 as well
  kExpectsMore,    // in round 6
  kProducerLeaves  // before round 7
};
constexpr int kOdd = 6;  // round

/// A thread of warp 0 has copies fill a stage; warps 1 and 2 read it, and a lane of each says so.
template <typename Layout>
__global__ void copies_to_two(const int* source, int rounds, int fault, int* result) {
  const Ring ring = ring_of(ptx::dynamic_shared<Layout>());
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) ptx::mbarrier_init(&ring.full[i], 1);
    for (int i = 0; i < kStages; ++i) ptx::mbarrier_init(&ring.empty[i], 2);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const int at = round % kStages;
    const std::uint32_t lap = static_cast<std::uint32_t>(round / kStages) & 1;
    const bool odd = round == kOdd;
    if (threadIdx.x == 0) {
      if (fault == kProducerLeaves && round == kOdd + 1) break;
      wait(&ring.empty[at], lap ^ 1);
      ptx::mbarrier_arrive_expect_tx(&ring.full[at], fault == kExpectsMore && odd ? 256 : 128);
      ptx::cp_async_bulk(ring.stage[at], source, 128, &ring.full[at]);
    } else if (warp > 0) {
      wait(&ring.full[at], lap);
      ptx::st_global(result + threadIdx.x, ptx::ld_shared(&ring.stage[at][31 - lane]));
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (lane != 0 || (odd && warp == 2 && (fault == kForgets || fault == kTwice))) continue;
      ptx::mbarrier_arrive(&ring.empty[at]);
      if (odd && fault == kTwice) ptx::mbarrier_arrive(&ring.empty[at]);
    }
  }
}

/// Warps 1 and 2 take three stages each in turn, and a lane releases each. The producer leaves early.
__global__ void takes_turns(int rounds, int filled) {
  auto& shared = ptx::dynamic_shared<Named>();
  const unsigned lane = threadIdx.x % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], 1);
    }
  }
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const int at = round % kStages;
    const std::uint32_t lap = static_cast<std::uint32_t>(round / kStages) & 1;
    if (threadIdx.x == 0 && round < filled) {
      wait(&shared.empty[at], lap ^ 1);
      ptx::mbarrier_arrive(&shared.full[at]);
    } else if (warp > 0 && round / 3 % 2 == warp - 1) {
      wait(&shared.full[at], lap);
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(&shared.empty[at]);
    }
    if (warp > 0 && round % 3 == 2) ptx::bar_sync(1, 64);  // the turn passes
  }
}

/// In each CTA of a cluster thread 32 arrives as often as thread 0 waits; not in that of one rank.
__global__ void ranks(int rounds, int missing_rank) {
  auto& shared = ptx::dynamic_shared<Named>();
  make_barrier(&shared.full[0]);
  cluster_sync();
  const bool lacks = static_cast<int>(ptx::cluster_ctarank()) == missing_rank;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 32 && !lacks) ptx::mbarrier_arrive(&shared.full[0]);
    if (threadIdx.x == 0) wait(&shared.full[0], static_cast<std::uint32_t>(round) & 1);
    if (!lacks) __syncthreads();
  }
  cluster_sync();
}

template <typename Layout>
Outcome run_two(Fault fault, int rounds = 9) {
  const DeviceArray<int> source(std::vector<int>(kValues, 7));
  DeviceArray<int> result(96);
  return run(copies_to_two<Layout>, one_cta(96, sizeof(Layout)), source.get(), rounds, fault, result.get());
}

/// `empty`: what the report calls the array.
template <typename Layout>
void check_departures(const std::string& full, const std::string& empty) {
  CHECK_PASSES(run_two<Layout>(kNone));
  CHECK_BREAKS("deadlock", run_two<Layout>(kForgets));
  const std::string forgets = run_two<Layout>(kForgets).report;
  check_text(forgets, {"ledger   in all ", " completed phases of the 2 mbarriers " + empty,
                       ", warps 1-2 (once each, at tests/emulator/report/departures_test.cpp:",
                       " have arrived. In phase 3 of mbarrier ", ", warp 1 (once, at ",
                       ") has arrived, and warp 2 has not: warp 2 waits at "});
  CHECK_BREAKS("deadlock", run_two<Layout>(kExpectsMore));
  check_text(run_two<Layout>(kExpectsMore).report,
             {"ledger   in all ", " completed phases of the 2 mbarriers " + full,
              ", 128 bytes were expected. Phase 3 of mbarrier ", " expects 256"});
  CHECK(schedules_that_say("load-overwrites",
                           {"ledger   in all ", " other phases of the 2 mbarriers " + empty,
                            " was ended by warp 1 (2 times, at ", "), and without warp 2"},
                           {}, [] { return run_two<Layout>(kTwice); }) > 0);
  CHECK_BREAKS("deadlock", run_two<Layout>(kProducerLeaves));
  check_text(run_two<Layout>(kProducerLeaves).report,
             {"completed phases of the 2 mbarriers " + full, "warp 0 (once, at ",
              "none has so far: warp 0 has returned", "missing  "},
             {"warps 1-2"});
}

}  // namespace

TEST_CASE("a report says how a phase departs from the phases before it") {
  check_departures<Named>("full[]", "empty[]");
}

TEST_CASE("a departure does not depend on names") {
  check_departures<Renamed>("coffee[]", "tea[]");
}

TEST_CASE("a departure is found where mbarriers have no names") {
  const std::string place = "initialised at tests/emulator/report/departures_test.cpp:";
  check_departures<Nameless>(place, place);
}

TEST_CASE("nothing is said of phases that warps end in turn") {
  const ptx::LaunchShape shape = one_cta(96, sizeof(Named));
  CHECK_PASSES(run(takes_turns, shape, 12, 12));
  for (const int filled : {2, 5, 7, 10}) {
    INFO("filled " << filled);
    CHECK_BREAKS("deadlock", run(takes_turns, shape, 12, filled));
    check_text(run(takes_turns, shape, 12, filled).report, {}, {"mbarriers empty[]"});
  }
}

TEST_CASE("a departure from the same mbarrier of the cluster's other CTAs") {
  ptx::LaunchShape shape = one_cta(64, sizeof(Named));
  shape.grid = {2};
  shape.cluster = {2};
  CHECK_PASSES(run(ranks, shape, 3, -1));
  CHECK_BREAKS("deadlock", run(ranks, shape, 3, 1));
  check_text(
      run(ranks, shape, 3, 1).report,
      {"ledger   in all 3 completed phases of the same mbarrier in the cluster's other CTAs, warp 1 (once"});
}

}  // namespace departures_test
