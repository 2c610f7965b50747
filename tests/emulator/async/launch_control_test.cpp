// clusterlaunchcontrol: every piece of work is done once, and for each rule a kernel that breaks it and a
// neighbour that does not.
#include <numeric>

#include "emulator/hopper_test.h"
#include "emulator/report/course_rules.h"
#include "ptx/atomic.cuh"
#include "ptx/clusterlaunchcontrol.cuh"

namespace launch_control_test {

using namespace emulator_test;

namespace {

struct Shared {
  uint4 response[2];
  std::uint64_t answered;
  std::uint64_t taken;
};

/// What a kernel does wrong.
enum class Fault {
  kNone,
  kReadsAtOnce,       // without waiting for the mbarrier
  kExpectsTooLittle,  // 8 bytes
  kExpectsTooMuch,
  kExpectsNothing,  // an arrival alone
  kNoFence,         // between the read and the next request
  kFenceBeforeRead,
  kAsksAgain,         // behind a failure
  kIdOfFailure,       // get_first_ctaid without is_canceled
  kIgnoresCancelled,  // returns although a cluster was cancelled
  kLeavesAtOnce,      // with the request under way
  kMisaligned,
  kResponseInTheWay,  // stores to the response while it is under way
  kQueriesOther,      // 16 bytes that are no response
  kBarrierOfNobody,   // not initialised
  kTwoRequests,       // for the same 16 bytes
};

/// A thread counts its CTA's pieces of work.
__global__ void count(std::uint32_t* done, int faulty) {
  const auto fault = static_cast<Fault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  if (fault != Fault::kBarrierOfNobody) ptx::mbarrier_init(&shared.answered, 1);
  ptx::st_shared(&shared.response[1], uint4{1, 2, 3, 4});
  std::uint32_t work = blockIdx.x;
  bool canceled = true;
  for (std::uint32_t round = 0; canceled; ++round) {
    const std::uint32_t bytes = fault == Fault::kExpectsTooLittle ? 8
                                : fault == Fault::kExpectsTooMuch ? 32
                                                                  : 16;
    if (fault == Fault::kExpectsNothing) {
      ptx::mbarrier_arrive(&shared.answered);
    } else {
      ptx::mbarrier_arrive_expect_tx(&shared.answered, bytes);
    }
    uint4* const response = &shared.response[0];
    if (fault == Fault::kMisaligned) {
      ptx::clusterlaunchcontrol_try_cancel(reinterpret_cast<uint4*>(reinterpret_cast<char*>(response) + 8),
                                           &shared.answered);
    } else {
      ptx::clusterlaunchcontrol_try_cancel(response, &shared.answered);
    }
    if (fault == Fault::kTwoRequests) ptx::clusterlaunchcontrol_try_cancel(response, &shared.answered);
    if (fault == Fault::kResponseInTheWay) ptx::st_shared(response, uint4{});
    ptx::red_add_relaxed_gpu(&done[work], 1);
    if (fault == Fault::kLeavesAtOnce) return;
    if (fault != Fault::kReadsAtOnce) wait(&shared.answered, round & 1);
    if (fault == Fault::kFenceBeforeRead) ptx::fence_proxy_async_shared_cta();
    const uint4 answer = ptx::ld_shared(fault == Fault::kQueriesOther ? &shared.response[1] : response);
    canceled = ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer);
    if (fault == Fault::kIgnoresCancelled) return;
    if (canceled || fault == Fault::kIdOfFailure)
      work = ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x(answer);
    if (fault != Fault::kNoFence && fault != Fault::kFenceBeforeRead) ptx::fence_proxy_async_shared_cta();
    if (canceled || fault != Fault::kAsksAgain) continue;
    ptx::mbarrier_arrive_expect_tx(&shared.answered, 16);
    ptx::clusterlaunchcontrol_try_cancel(response, &shared.answered);
    wait(&shared.answered, (round + 1) & 1);
  }
}

Outcome run_count(Fault fault, unsigned ctas = 9) {
  DeviceArray<std::uint32_t> done(std::vector<std::uint32_t>(ctas, 0), "done");
  const Outcome outcome = run(count, {.grid = {ctas}, .block = {1}, .shared_bytes = sizeof(Shared)},
                              done.get(), static_cast<int>(fault));
  if (outcome.rule == "passed" && fault != Fault::kIgnoresCancelled)
    CHECK(done.host() == std::vector<std::uint32_t>(ctas, 1));
  return outcome;
}

enum class PairFault {
  kNone,
  kNotHandedBack,   // the leader asks again without knowing that its peer has read
  kNoFence,         // the peer has none between its read and its arrival
  kReleasesInCta,   // the peer's arrival is not released to the cluster
  kPeerExpectsNot,  // the bytes of its own copy
  kPeerLeaves,      // without having waited for the response
  kBothAsk,         // each for the same 16 bytes of both
  kOneCta,          // the form without multicast, and the peer waits
};

/// The same for clusters of two CTAs in three dimensions: the leader asks, both are answered.
__global__ void count_in_pairs(std::uint32_t* done, int faulty) {
  const auto fault = static_cast<PairFault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  ptx::mbarrier_init(&shared.answered, 1);
  ptx::mbarrier_init(&shared.taken, 1);
  ptx::fence_mbarrier_init_release_cluster();
  cluster_sync();
  uint3 work = {blockIdx.x - rank, blockIdx.y, blockIdx.z};
  bool canceled = true;
  for (std::uint32_t round = 0; canceled; ++round) {
    if (rank == 0 && round > 0 && fault != PairFault::kNotHandedBack)
      while (!ptx::mbarrier_try_wait_parity_cluster(&shared.taken, (round - 1) & 1)) {
      }
    if (rank == 0 || fault != PairFault::kPeerExpectsNot)
      ptx::mbarrier_arrive_expect_tx(&shared.answered, 16);
    if (rank == 0 && fault == PairFault::kOneCta) {
      ptx::clusterlaunchcontrol_try_cancel(&shared.response[0], &shared.answered);
    } else if (rank == 0 || fault == PairFault::kBothAsk) {
      ptx::clusterlaunchcontrol_try_cancel_multicast(&shared.response[0], &shared.answered);
    }
    ptx::red_add_relaxed_gpu(&done[(work.z * gridDim.y + work.y) * gridDim.x + work.x + rank], 1);
    if (rank == 1 && fault == PairFault::kPeerLeaves) break;
    while (!ptx::mbarrier_try_wait_parity_cluster(&shared.answered, round & 1)) {
    }
    const uint4 answer = ptx::ld_shared(&shared.response[0]);
    canceled = ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer);
    if (canceled) work = ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid(answer);
    if (rank == 0 || fault != PairFault::kNoFence) ptx::fence_proxy_async_shared_cta();
    if (rank == 1) {
      const std::uint32_t taken = ptx::mapa(ptx::shared_address(&shared.taken), 0);
      fault == PairFault::kReleasesInCta ? ptx::mbarrier_arrive_cluster(taken)
                                         : ptx::mbarrier_arrive_release_cluster(taken);
    }
  }
  if (fault == PairFault::kPeerLeaves) return;
  cluster_sync();
}

Outcome run_pairs(PairFault fault, ptx::Extent grid = {4, 3, 2}) {
  const auto ctas = static_cast<std::size_t>(grid.count());
  DeviceArray<std::uint32_t> done(std::vector<std::uint32_t>(ctas, 0), "done");
  const Outcome outcome =
      run(count_in_pairs, {.grid = grid, .block = {1}, .cluster = {2}, .shared_bytes = sizeof(Shared)},
          done.get(), static_cast<int>(fault));
  if (outcome.rule == "passed") CHECK(done.host() == std::vector<std::uint32_t>(ctas, 1));
  return outcome;
}

/// How many clusters each CTA that ran has taken over.
__global__ void count_taken(std::uint32_t* taken) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mbarrier_init(&shared.answered, 1);
  for (std::uint32_t round = 0;; ++round) {
    ptx::mbarrier_arrive_expect_tx(&shared.answered, 16);
    ptx::clusterlaunchcontrol_try_cancel(&shared.response[0], &shared.answered);
    wait(&shared.answered, round & 1);
    const uint4 answer = ptx::ld_shared(&shared.response[0]);
    ptx::fence_proxy_async_shared_cta();
    if (!ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer)) break;
    ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x(answer);
    ptx::red_add_relaxed_gpu(&taken[blockIdx.x], 1);
  }
  ptx::red_add_relaxed_gpu(&taken[blockIdx.x], 1);
}

std::vector<std::uint32_t> taken_by(unsigned ctas, int os_threads) {
  emulator::Options options = emulator::options();
  options.os_threads = os_threads;
  const emulator::ScopedOptions scope(options);
  DeviceArray<std::uint32_t> taken(std::vector<std::uint32_t>(ctas, 0), "taken");
  run(count_taken, {.grid = {ctas}, .block = {1}, .shared_bytes = sizeof(Shared)}, taken.get());
  return taken.host();
}

}  // namespace

TEST_CASE("each cluster of a grid runs or is cancelled, and its work is done once") {
  CHECK_PASSES(run_count(Fault::kNone));
  CHECK_PASSES(run_count(Fault::kNone, 1));
  CHECK_PASSES(run_count(Fault::kNone, 40));
  CHECK_PASSES(run_pairs(PairFault::kNone));
  CHECK_PASSES(run_pairs(PairFault::kNone, {2}));
}

TEST_CASE("the seed decides who cancels whom, and not the number of OS threads") {
  std::set<std::vector<std::uint32_t>> seen;
  bool one_takes_many = false;
  bool more_run_than_fit = false;
  under_all_schedules([&] {
    const auto taken = taken_by(12, 1);
    CHECK(taken == taken_by(12, 4));
    CHECK(std::accumulate(taken.begin(), taken.end(), 0u) == 12);
    one_takes_many = one_takes_many || *std::max_element(taken.begin(), taken.end()) >= 5;
    const auto ran = 12 - std::count(taken.begin(), taken.end(), 0);
    more_run_than_fit = more_run_than_fit || ran > emulator::options().sm_count;
    seen.insert(taken);
  });
  CHECK(seen.size() > 20);
  CHECK(one_takes_many);
  CHECK(more_run_than_fit);  // a request fails although clusters are left, and these start by themselves
}

TEST_CASE("a cooperative grid has nobody left to cancel") {
  DeviceArray<std::uint32_t> taken(std::vector<std::uint32_t>(4, 0), "taken");
  const Outcome outcome =
      run(count_taken, {.grid = {4}, .block = {1}, .shared_bytes = sizeof(Shared), .co_resident = true},
          taken.get());
  CHECK(outcome.rule == "passed");
  CHECK(taken.host() == std::vector<std::uint32_t>(4, 1));
}

TEST_CASE("a response is there behind a wait for its mbarrier, which expects 16 bytes") {
  const Rules early{"load-not-waited", "launch-control-response"};
  // Where the response comes at once it is there, and yet nobody has waited for it.
  CHECK_BREAKS("load-not-waited", run_count(Fault::kReadsAtOnce));
  CHECK_BREAKS_ONE_OF((Rules{"expect-tx-small", "load-not-waited"}), run_count(Fault::kExpectsTooLittle));
  CHECK_BREAKS("deadlock", run_count(Fault::kExpectsTooMuch));
  CHECK_BREAKS_ONE_OF((Rules{"expect-tx-small", "load-not-waited", "deadlock"}),
                      run_count(Fault::kExpectsNothing));
  CHECK_BREAKS("mbarrier-uninitialised", run_count(Fault::kBarrierOfNobody));
}

TEST_CASE("a response is 16 aligned bytes, and nobody else writes them") {
  CHECK_BREAKS("launch-control-address", run_count(Fault::kMisaligned));
  CHECK_BREAKS("load-not-waited", run_count(Fault::kResponseInTheWay));
  CHECK_BREAKS_ONE_OF((Rules{"load-not-waited", "load-overwrites"}), run_count(Fault::kTwoRequests));
  CHECK_BREAKS("launch-control-response", run_count(Fault::kQueriesOther));
}

TEST_CASE("a proxy fence stands between the read of a response and the next request") {
  CHECK_BREAKS("launch-control-fence", run_count(Fault::kNoFence));
  CHECK_BREAKS("launch-control-fence", run_count(Fault::kFenceBeforeRead));
  const emulator::ScopedCourseRule off(emulator::CourseRule::kLaunchControlFence, false);
  CHECK_PASSES(run_count(Fault::kNoFence));
}

TEST_CASE("behind a failure a CTA asks for nothing, and has no cluster") {
  CHECK_BREAKS("launch-control-after-failure", run_count(Fault::kAsksAgain));
  CHECK_BREAKS("launch-control-not-canceled", run_count(Fault::kIdOfFailure));
}

TEST_CASE("who cancels a cluster does its work, and stays until the response is there") {
  CHECK_BREAKS("launch-control-lost", run_count(Fault::kIgnoresCancelled));
  CHECK_BREAKS("exit-in-flight", run_count(Fault::kLeavesAtOnce));
}

TEST_CASE("both CTAs of a cluster are answered, and the one that asks knows that both have read") {
  const auto all = [](PairFault fault) {
    Rules seen;
    under_all_schedules([&] { seen.insert(run_pairs(fault).rule); });
    return seen;
  };
  CHECK(all(PairFault::kNotHandedBack).count("load-overwrites") == 1);
  CHECK(all(PairFault::kNoFence).count("launch-control-fence") == 1);
  CHECK(all(PairFault::kReleasesInCta).count("launch-control-fence") == 1);
  CHECK_BREAKS_ONE_OF((Rules{"deadlock"}), run_pairs(PairFault::kPeerExpectsNot));
  CHECK_BREAKS_ONE_OF((Rules{"exit-in-flight", "cluster-exit"}), run_pairs(PairFault::kPeerLeaves));
  CHECK_BREAKS_ONE_OF((Rules{"load-not-waited", "load-overwrites", "launch-control-fence",
                             "mbarrier-arrivals", "expect-tx-small", "deadlock"}),
                      run_pairs(PairFault::kBothAsk));
  CHECK_BREAKS("deadlock", run_pairs(PairFault::kOneCta));
}

TEST_CASE("reports of launch control name the request and what is missing") {
  check_text(run_count(Fault::kNoFence, 40).report,
             {"fence_proxy_async by thread (0,0,0)", "--allow launch-control-fence"});
  check_text(run_count(Fault::kAsksAgain).report, {"a CTA that has seen an earlier request fail executes"});
  check_text(run_count(Fault::kIgnoresCancelled, 40).report, {"its first CTA is ("});
  check_text(run_count(Fault::kReadsAtOnce).report, {"try_cancel"});
}

}  // namespace launch_control_test
