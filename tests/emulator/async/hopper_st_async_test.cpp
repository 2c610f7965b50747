// st.async: 16 bytes into the shared memory of a CTA of the cluster, counted by an mbarrier there. PTX ISA,
// "Data Movement and Conversion Instructions: st.async".
#include "emulator/hopper_test.h"

namespace hopper_st_async_test {

using namespace emulator_test;

namespace {

constexpr unsigned kThreads = 32;
constexpr unsigned kBytes = kThreads * sizeof(float4);

struct alignas(1024) Shared {
  float4 got[4][kThreads];  // [source][thread]
  std::uint64_t full;
};

constexpr ptx::LaunchShape shape(unsigned ctas) {
  return {.grid = {ctas}, .block = {kThreads}, .cluster = {ctas}, .shared_bytes = sizeof(Shared)};
}

enum Fault {
  kNone,
  kOrdinaryStoresBefore,  // no fault: both are of the generic proxy
  kToItself,              // no fault: any CTA of the cluster
  kNoClusterSync,
  kNoWait,
  kCtaScopeWait,
  kExpectsLess,
  kExpectsMore,
  kSendsAndReturns,
  kReturnsAtOnce,
  kMisaligned,
  kBehindTheEnd,
  kBarrierOfTheSender,
  kNoClusterSyncBetween,
};

__device__ std::uint32_t expected_bytes(int fault) {
  return kBytes + (fault == kExpectsMore ? 16 : 0) - (fault == kExpectsLess ? 16 : 0);
}

/// Every CTA sends 16 bytes of every thread to its neighbour, twice.
__global__ void ring(int fault, float* sums) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t next = fault == kToItself ? rank : (rank + 1) % ptx::cluster_nctarank();
  const unsigned me = threadIdx.x;
  const bool leaves = fault == kReturnsAtOnce && rank == 1;
  if (fault == kOrdinaryStoresBefore) ptx::st_shared(&shared.got[0][me], make_float4(9, 9, 9, 9));
  if (me == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::fence_mbarrier_init_release_cluster();
    if (!leaves) ptx::mbarrier_arrive_expect_tx(&shared.full, expected_bytes(fault));
  }
  if (fault == kNoClusterSync) {
    __syncthreads();
  } else {
    cluster_sync();
  }
  if (leaves) return;

  std::uint32_t to = ptx::mapa(ptx::shared_address(&shared.got[0][me]), next);
  if (fault == kMisaligned) to += 8;
  if (fault == kBehindTheEnd) to += 1024 * 1024;
  const std::uint32_t full =
      ptx::mapa(ptx::shared_address(&shared.full), fault == kBarrierOfTheSender ? rank : next);
  float sum = 0;
  for (unsigned round = 0; round < 2; ++round) {
    const auto value = static_cast<float>(1000 * round + 100 * rank + me);
    ptx::st_async(to, make_float4(value, 1, 2, 3), full);
    if (fault == kSendsAndReturns && round == 1 && rank == 1) return;
    if (fault == kNoWait) {
      cluster_sync();
    } else if (fault == kCtaScopeWait) {
      ptx::mbarrier_wait_parity(&shared.full, round, {"consumer", "full", 0, 0});
    } else {
      ptx::mbarrier_wait_parity_cluster(&shared.full, round, {"consumer", "full", 0, 0});
    }
    const float4 got = ptx::ld_shared(&shared.got[0][me]);
    sum += got.x + got.y + got.z + got.w;
    if (round == 1) break;
    if (me == 0) ptx::mbarrier_arrive_expect_tx(&shared.full, expected_bytes(fault));
    if (fault != kNoClusterSyncBetween) cluster_sync();  // the neighbour has read them
  }
  ptx::st_global(sums + blockIdx.x * kThreads + me, sum);
}

Outcome run_ring(int fault, unsigned ctas = 4) {
  DeviceArray<float> sums(ctas * kThreads);
  Outcome outcome = run(ring, shape(ctas), fault, sums.get());
  if (outcome.rule == "passed") {
    const std::vector<float> host = sums.host();
    for (unsigned cta = 0; cta < ctas; ++cta) {
      for (unsigned me = 0; me < kThreads; ++me) {
        const unsigned before = fault == kToItself ? cta : (cta + ctas - 1) % ctas;
        CHECK(host[cta * kThreads + me] == static_cast<float>(1000 + 2 * (100 * before + me) + 2 * 6));
      }
    }
  }
  return outcome;
}

/// All CTAs but the first send to it, each to places of its own, or all to the same ones.
__global__ void gather(bool same_place, float* sums) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t sources = ptx::cluster_nctarank() - 1;
  const unsigned me = threadIdx.x;
  if (me == 0 && rank == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::fence_mbarrier_init_release_cluster();
    ptx::mbarrier_arrive_expect_tx(&shared.full, sources * kBytes);
  }
  cluster_sync();
  if (rank > 0) {
    const float4* const place = &shared.got[same_place ? 0 : rank - 1][me];
    ptx::st_async(ptx::mapa(ptx::shared_address(place), 0), make_float4(static_cast<float>(rank), 0, 0, 0),
                  ptx::mapa(ptx::shared_address(&shared.full), 0));
    return;
  }
  ptx::mbarrier_wait_parity_cluster(&shared.full, 0, {"consumer", "full", 0, 0});
  float sum = 0;
  for (std::uint32_t i = 0; i < sources; ++i) sum += ptx::ld_shared(&shared.got[i][me]).x;
  ptx::st_global(sums + me, sum);
}

}  // namespace

TEST_CASE("st.async: bytes and their number come together, phase after phase") {
  for (const unsigned ctas : {2u, 4u}) CHECK_PASSES(run_ring(kNone, ctas));
  CHECK_PASSES(run_ring(kOrdinaryStoresBefore));
  CHECK_PASSES(run_ring(kToItself));
}

TEST_CASE("load-not-waited: bytes of an st.async are read before the mbarrier has been waited for") {
  CHECK_BREAKS("load-not-waited", run_ring(kNoWait));
  CHECK(contains(run_ring(kNoWait).report, "st.async"));
}

TEST_CASE("load-not-waited: a wait with acquire at CTA scope is no wait for an st.async") {
  CHECK_BREAKS("load-not-waited", run_ring(kCtaScopeWait));
  CHECK(contains(run_ring(kCtaScopeWait).report, "with acquire at cluster scope"));
  CHECK(contains(run_ring(kCtaScopeWait).report, "which saw phase 0 end, with acquire at CTA scope"));
  CHECK(contains(run_ring(kCtaScopeWait).report, "  missing  acquire at cluster scope in the wait at "));
}

TEST_CASE("expect-tx-small: an mbarrier expects less than st.async brings") {
  CHECK(run_ring(kExpectsLess).rule == "expect-tx-small");
  // What lands after the phase is complete may first meet its readers.
  const Rules rules{"expect-tx-small", "load-overwrites", "load-not-waited"};
  CHECK_BREAKS_ONE_OF(rules, run_ring(kExpectsLess));
}

TEST_CASE("deadlock: an mbarrier expects more than st.async brings, and the report says how much") {
  CHECK_BREAKS("deadlock", run_ring(kExpectsMore));
  const std::string report = run_ring(kExpectsMore).report;
  check_text(report, {"16 of 528 expected bytes are missing"});
  // That comes before the places of all threads.
  CHECK(report.find("has all arrivals for phase 0 and waits only for bytes: 528 are expected (528 at ") <
        report.find("  CTA "));
  CHECK(contains(report, "  missing  a copy of 16 bytes, or an expect_tx that is 16 bytes smaller"));
}

TEST_CASE("exit-in-flight: a CTA ends that an st.async is on its way to") {
  CHECK_BREAKS("exit-in-flight", run_ring(kSendsAndReturns));
  // It may have ended before the store is issued.
  const Rules rules{"cluster-exit", "exit-in-flight"};
  CHECK_BREAKS_ONE_OF(rules, run_ring(kReturnsAtOnce));
}

TEST_CASE("mbarrier-uninitialised: an st.async before the barrier of its CTA is initialised") {
  const Rules rules{"mbarrier-uninitialised", "cluster-exit"};
  CHECK_BREAKS_ONE_OF(rules, run_ring(kNoClusterSync));
}

TEST_CASE("load-overwrites: an st.async to bytes that the neighbour has not read, or that another brings") {
  const Rules rules{"load-overwrites", "load-not-waited"};
  CHECK_BREAKS_ONE_OF(rules, run_ring(kNoClusterSyncBetween));
  DeviceArray<float> sums(kThreads);
  CHECK_BREAKS_ONE_OF(rules, run(gather, shape(4), true, sums.get()));
  CHECK(contains(run(gather, shape(4), true, sums.get()).report, "st.async"));
  CHECK_PASSES(run(gather, shape(4), false, sums.get()));
  CHECK(sums.host() == std::vector<float>(kThreads, 1 + 2 + 3));
}

TEST_CASE("cluster-address: where an st.async stores, and what counts it") {
  for (const int fault : {kMisaligned, kBehindTheEnd, kBarrierOfTheSender}) {
    INFO("fault " << fault);
    CHECK_BREAKS("cluster-address", run_ring(fault));
  }
  CHECK(contains(run_ring(kMisaligned).report, "misaligned"));
  CHECK(contains(run_ring(kBarrierOfTheSender).report, "not in the CTA that is stored to"));
  CHECK_BREAKS("cluster-address", run_ring(kNone, 1));
  CHECK(contains(run_ring(kNone, 1).report, "the cluster has one CTA"));
}

}  // namespace hopper_st_async_test
