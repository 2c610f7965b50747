// Clusters: ranks, the cluster's barrier, mbarriers of other CTAs, multicast, and when a CTA may end.
#include "emulator/hopper_test.h"

namespace hopper_cluster_test {

using namespace emulator_test;

namespace {

using ptx::Swizzle;

constexpr int kBox = 64 * 64 * 2;

struct alignas(1024) Shared {
  unsigned char tile[kBox];
  std::uint64_t full;
  std::uint64_t empty;
  int value;
};

constexpr ptx::LaunchShape shape(unsigned ctas, unsigned threads, unsigned clusters = 1) {
  return {.grid = {ctas * clusters}, .block = {threads}, .cluster = {ctas}, .shared_bytes = sizeof(Shared)};
}

__global__ void ranks(int* result) {
  if (threadIdx.x != 0) return;
  ptx::st_global(result + blockIdx.x + 4 * blockIdx.y,
                 static_cast<int>(ptx::cluster_ctarank() * 100 + ptx::cluster_nctarank()));
}

enum Fault {
  kNone,
  kNoClusterSync,
  kNoFence,
  kNoLastSync,
  kCtaScopeArrive,
  kCtaScopeWait,
  kCountTooHigh,
  kFencedArrive,      // no fault: a relaxed arrival behind a fence
  kRelaxedArrive,     // without one
  kCtaFenceArrive,    // behind a fence of the CTA
  kFenceBeforeStore,  // behind a fence, in front of which the word was not yet stored
  kFencedWait,        // no fault: a fence behind a relaxed wait
  kRelaxedWait,       // without one
};

/// Every CTA writes a word of global memory and arrives at the barrier of CTA 0, which waits and sums.
__global__ void gather(int* words, int fault) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t ctas = ptx::cluster_nctarank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, ctas + (fault == kCountTooHigh));
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (fault == kNoClusterSync) {
    __syncthreads();
  } else {
    cluster_sync();
  }
  if (threadIdx.x == 0) {
    if (fault == kFenceBeforeStore) ptx::fence_acq_rel_cluster();
    ptx::st_global(words + rank, static_cast<int>(rank) + 1);
    if (fault == kFencedArrive) ptx::fence_acq_rel_cluster();
    if (fault == kCtaFenceArrive) ptx::fence_acq_rel_cta();
    const std::uint32_t remote = ptx::mapa(ptx::shared_address(&shared.full), 0);
    if (fault == kCtaScopeArrive) {
      ptx::mbarrier_arrive_cluster(remote);
    } else if (fault >= kFencedArrive && fault <= kFenceBeforeStore) {
      ptx::mbarrier_arrive_relaxed_cluster(remote);
    } else {
      ptx::mbarrier_arrive_release_cluster(remote);
    }
  }
  if (rank == 0) {
    const bool relaxed = fault == kFencedWait || fault == kRelaxedWait;
    while (!(fault == kCtaScopeWait ? ptx::mbarrier_try_wait_parity(&shared.full, 0)
             : relaxed              ? ptx::mbarrier_try_wait_parity_relaxed_cluster(&shared.full, 0)
                                    : ptx::mbarrier_try_wait_parity_cluster(&shared.full, 0))) {
    }
    if (fault == kFencedWait) ptx::fence_acq_rel_cluster();
    if (threadIdx.x == 1) {
      int sum = 0;
      for (std::uint32_t i = 0; i < ctas; ++i) sum += ptx::ld_global(words + i);
      ptx::st_global(words + ctas, sum);
    }
  }
}

/// CTA 0 ends at once; CTA 1 arrives at its barrier, with or without a barrier of the cluster behind.
__global__ void arrives_late(int fault) {
  auto& shared = ptx::dynamic_shared<Shared>();
  make_barrier(&shared.full, 64);
  cluster_sync();
  if (ptx::cluster_ctarank() == 1) {
    ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(&shared.full), 0));
  }
  if (fault != kNoLastSync) cluster_sync();
}

enum MulticastFault {
  kMulticastNone,
  kOneCtaOnly,
  kMaskTooWide,
  kNoExpectInPeer,
  kNoWaitInPeer,
  kReuseWithoutPeer,
  kFencedRelease,   // no fault: a relaxed arrival behind a fence
  kRelaxedRelease,  // without one
};

/// CTA 0 loads a tile into every CTA of the cluster, twice; every CTA sums what came.
__global__ void multicast(ptx::TensorMap map, int fault, float* sums) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t ctas = ptx::cluster_nctarank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::mbarrier_init(&shared.empty, ctas);
    ptx::fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  float sum = 0;
  for (std::uint32_t round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
      if (fault != kNoExpectInPeer || rank == 0) ptx::mbarrier_arrive_expect_tx(&shared.full, kBox);
      if (rank == 0) {
        // The other CTAs have read the tile of the last round.
        if (fault != kReuseWithoutPeer) wait(&shared.empty, 1 - (round & 1));
        auto mask = static_cast<std::uint16_t>((1u << ctas) - 1);
        if (fault == kOneCtaOnly) mask = 1;
        if (fault == kMaskTooWide) mask = static_cast<std::uint16_t>(1u << ctas);
        if (round == 0) {
          ptx::cp_async_bulk_tensor_2d_multicast(shared.tile, &map, 0, 0, &shared.full, mask);
        } else {
          ptx::cp_async_bulk_tensor_2d_multicast_cache_hint(shared.tile, &map, 0, 64, &shared.full, mask,
                                                            ptx::createpolicy_fractional_l2_evict_first());
        }
      }
    }
    if (fault != kNoWaitInPeer || rank == 0) wait(&shared.full, round & 1);
    if (fault == kNoWaitInPeer) cluster_sync();
    const bool alone = fault >= kFencedRelease;  // who arrives reads all
    for (std::uint32_t i = threadIdx.x; i < kBox / 2 && (!alone || threadIdx.x == 0);
         i += alone ? 1 : blockDim.x) {
      sum += gemm::to_float(ptx::ld_shared(reinterpret_cast<const bf16*>(shared.tile) + i));
    }
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    const std::uint32_t empty = ptx::mapa(ptx::shared_address(&shared.empty), 0);
    if (fault == kFencedRelease) ptx::fence_acq_rel_cluster();
    if (threadIdx.x == 0 && fault >= kFencedRelease) {
      ptx::mbarrier_arrive_relaxed_cluster(empty);
    } else if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_cluster(empty);
    }
  }
  ptx::st_global(sums + blockIdx.x * blockDim.x + threadIdx.x, sum);
  cluster_sync();
}

Outcome run_multicast(int fault, unsigned ctas) {
  const std::vector<bf16> values = arange(128 * 64);
  const DeviceArray<bf16> matrix(values, "M");
  const ptx::TensorMap map =
      ptx::make_tensor_map(ptx::matrix_spec(matrix.get(), 128, 64, 64, 64, Swizzle::k128B));
  DeviceArray<float> sums(64 * ctas);
  Outcome outcome = run(multicast, shape(ctas, 64), map, fault, sums.get());
  if (outcome.rule == "passed") {
    float expected = 0;
    for (const bf16 value : values) expected += gemm::to_float(value);
    const std::vector<float> host = sums.host();
    for (unsigned cta = 0; cta < ctas; ++cta) {
      float sum = 0;
      for (unsigned i = 0; i < 64; ++i) sum += host[cta * 64 + i];
      CHECK(sum == expected);
    }
  }
  return outcome;
}

enum BarrierFault { kBarrierNone, kArriveTwice, kWaitFirst, kOneThreadMissing, kOneThreadReturns, kRelaxed };

/// Threads exchange words of global memory across the cluster's barrier.
__global__ void barrier_faults(int fault, int* words) {
  const unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
  // A thread that has returned is no longer waited for.
  if (fault == kOneThreadReturns && me == 3) return;
  ptx::st_global(words + me, 1);
  if (fault == kWaitFirst) ptx::barrier_cluster_wait();
  if (fault == kRelaxed) {
    ptx::barrier_cluster_arrive_relaxed();
  } else if (fault != kOneThreadMissing || me != 3) {
    ptx::barrier_cluster_arrive();
  }
  if (fault == kArriveTwice && me == 3) ptx::barrier_cluster_arrive();
  if (fault == kOneThreadMissing && me == 3) {
    __syncthreads();
    return;
  }
  ptx::barrier_cluster_wait();
  const unsigned other = (me + blockDim.x) % (gridDim.x * blockDim.x);
  if (fault != kOneThreadReturns || other != 3) ptx::ld_global(words + other);
}

__global__ void maps_outside() {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mapa(ptx::shared_address(&shared.full), 2);
}

}  // namespace

TEST_CASE("ranks in a cluster") {
  DeviceArray<int> result(8);
  const ptx::LaunchShape launch{.grid = {4, 2}, .block = {32}, .cluster = {2, 2}};
  CHECK_PASSES(run(ranks, launch, result.get()));
  CHECK(result.host() == std::vector<int>{4, 104, 4, 104, 204, 304, 204, 304});
}

TEST_CASE("mbarrier of another CTA") {
  DeviceArray<int> words(5);
  CHECK_PASSES(run(gather, shape(4, 64), words.get(), kNone));
  CHECK(words.host()[4] == 1 + 2 + 3 + 4);
}

TEST_CASE("mbarrier-uninitialised: no barrier of the cluster behind the initialisation") {
  DeviceArray<int> words(5);
  const Rules rules{"mbarrier-uninitialised", "cluster-exit"};
  CHECK_BREAKS_ONE_OF(rules, run(gather, shape(4, 64), words.get(), kNoClusterSync));
}

TEST_CASE("global-race: an arrival or a wait of CTA scope publishes nothing across the cluster") {
  DeviceArray<int> words(5);
  CHECK_BREAKS("global-race", run(gather, shape(4, 64), words.get(), kCtaScopeArrive));
  CHECK_BREAKS("global-race", run(gather, shape(4, 64), words.get(), kCtaScopeWait));
  check_report(run(gather, shape(4, 64), words.get(), kCtaScopeArrive), "global-race",
               {"mbarrier full", "missing  a release at cluster scope: the arrival"});
  check_report(run(gather, shape(4, 64), words.get(), kCtaScopeWait), "global-race",
               {"mbarrier full", "missing  an acquire at cluster scope: the wait at"});
}

TEST_CASE(
    "a fence and a relaxed arrival publish what a release does, and a relaxed wait and a fence acquire it") {
  DeviceArray<int> words(5);
  for (const Fault legal : {kFencedArrive, kFencedWait}) {
    CHECK_PASSES(run(gather, shape(4, 64), words.get(), legal));
    CHECK(words.host()[4] == 1 + 2 + 3 + 4);
  }
  for (const Fault fault : {kRelaxedArrive, kCtaFenceArrive, kFenceBeforeStore, kRelaxedWait})
    CHECK_BREAKS("global-race", run(gather, shape(4, 64), words.get(), fault));
}

TEST_CASE("load-overwrites: a relaxed arrival behind no fence says nothing of what was read before it") {
  CHECK_PASSES(run_multicast(kFencedRelease, 2));
  int named = 0;
  under_all_schedules([&] {
    const Outcome outcome = run_multicast(kRelaxedRelease, 2);
    INFO(outcome.report);
    CHECK(outcome.rule == "load-overwrites");
    named += contains(outcome.report, "missing  a release in the arrival at ") ? 1 : 0;
    CHECK(!contains(outcome.report, "arrived before it read"));
  });
  CHECK(named > 0);
}

TEST_CASE("deadlock: the barrier expects one CTA more") {
  DeviceArray<int> words(5);
  CHECK_BREAKS("deadlock", run(gather, shape(4, 64), words.get(), kCountTooHigh));
}

TEST_CASE("cluster-exit: a CTA ends while another still arrives in it") {
  CHECK_BREAKS("cluster-exit", run(arrives_late, shape(2, 64), kNoLastSync));
  CHECK_PASSES(run(arrives_late, shape(2, 64), kNone));
  check_report(run(arrives_late, shape(2, 64), kNoLastSync), "cluster-exit",
               {"(0,0,0) (rank 0)", "of CTA (1,0,0)"});
}

TEST_CASE("multicast") {
  CHECK_PASSES(run_multicast(kMulticastNone, 2));
  CHECK_PASSES(run_multicast(kMulticastNone, 4));
}

TEST_CASE("multicast-mask") {
  CHECK_BREAKS("multicast-mask", run_multicast(kMaskTooWide, 2));
}

TEST_CASE("deadlock: a CTA that the multicast leaves out") {
  CHECK_BREAKS("deadlock", run_multicast(kOneCtaOnly, 2));
}

TEST_CASE("multicast: a peer that expects nothing, does not wait, or has not finished") {
  const Rules expects{"deadlock", "expect-tx-small"};
  CHECK_BREAKS_ONE_OF(expects, run_multicast(kNoExpectInPeer, 2));
  const Rules waits{"load-not-waited", "load-overwrites", "shared-uninitialised", "exit-in-flight"};
  CHECK_BREAKS_ONE_OF(waits, run_multicast(kNoWaitInPeer, 2));
  const Rules overwrites{"load-overwrites", "load-not-waited", "expect-tx-small", "deadlock"};
  CHECK_BREAKS_ONE_OF(overwrites, run_multicast(kReuseWithoutPeer, 2));
}

TEST_CASE("barrier.cluster orders the cluster") {
  DeviceArray<int> words(128);
  CHECK_PASSES(run(barrier_faults, shape(4, 32), kBarrierNone, words.get()));
  CHECK_BREAKS("global-race", run(barrier_faults, shape(4, 32), kRelaxed, words.get()));
  CHECK_PASSES(run(barrier_faults, shape(4, 32), kOneThreadReturns, words.get()));
}

TEST_CASE("cluster-barrier: arrivals and waits alternate") {
  DeviceArray<int> words(128);
  CHECK_BREAKS("cluster-barrier", run(barrier_faults, shape(4, 32), kArriveTwice, words.get()));
  CHECK_BREAKS("cluster-barrier", run(barrier_faults, shape(4, 32), kWaitFirst, words.get()));
}

TEST_CASE("deadlock: a thread that does not come to the cluster's barrier") {
  DeviceArray<int> words(128);
  CHECK_BREAKS("deadlock", run(barrier_faults, shape(4, 32), kOneThreadMissing, words.get()));
  check_report(run(barrier_faults, shape(4, 32), kOneThreadMissing, words.get()), "deadlock",
               {"127 of 128 threads of the cluster have arrived"});
}

TEST_CASE("cluster-address: mapa outside the cluster") {
  CHECK_BREAKS("cluster-address", run(maps_outside, shape(2, 32)));
}

}  // namespace hopper_cluster_test
