// tcgen05 with cta_group::2: what a pair of CTAs computes, and for each rule a kernel that breaks it and a
// neighbour that does not.
#include "emulator/report/course_rules.h"
#include "emulator/tcgen05_tile.h"

namespace tcgen05_pair_test {

using namespace emulator_test;

namespace {

using ptx::InstructionDescriptor;
using ptx::Swizzle;

constexpr int kRounds = 3;
constexpr int kM = 256;  // of the pair; each CTA has half of A's rows, and of B's
constexpr int kN = 64;
constexpr std::uint32_t kColumns = 64;

struct alignas(1024) Shared {
  bf16 a[kM / 2 * kK];
  bf16 b[kN / 2 * kK];
  std::uint64_t full, empty, done;
  std::uint32_t tensor_memory;
};
constexpr std::uint32_t kBytes = sizeof(Shared::a) + sizeof(Shared::b);

/// What a kernel does wrong.
enum class Fault {
  kNone,
  kExpectsOwnBytes,     // the leader expects what one CTA loads
  kExpectsClusterSize,  // and twice what both load
  kPeerExpectsToo,      // both CTAs expect, and arrive, at the leader's barrier
  kOwnBarrier,          // the peer's copies signal the peer's own barrier
  kPeerIssues,          // the CTA of the odd rank
  kAllocOfOne,          // tcgen05.alloc with cta_group::1
  kCommitOfOne,
  kMultiplicationOfOne,
  kPeerUnknown,   // no barrier of the cluster before tcgen05.alloc
  kReadyUnknown,  // nor behind it
  kCommitToLeader,
  kLeaderWaitsInCta,  // acquires at CTA scope only
  kPeerWaitsInCta,
  kNoFenceAfter,
  kNoBarrierBeforeDealloc,
  kDeallocWhileMultiplying,
  kDeallocHangs,  // one CTA deallocates before a barrier of the cluster, the other behind it
  kOtherColumns,
  kPeerLeaves,          // and the leader commits once more
  kPeerWithoutAlloc,    // the peer's warp never comes
  kInstructionShape,    // M = 64
  kInstructionOfOne,    // M = 256 without cta_group::2
  kInstructionColumns,  // N = 56
  kOperandsOfOne,       // the descriptor of B leads behind the half that the CTA has
};

inline void wait_cluster(std::uint64_t* barrier, std::uint32_t parity,
                         emulator::Where where = emulator::Where::here()) {
  while (!ptx::mbarrier_try_wait_parity_cluster(barrier, parity, where)) {
  }
}

/// D = A * B^T, 256 x 64, over kRounds k-tiles, by a pair: with one thing wrong.
__global__ void multiply(ptx::TensorMap a, ptx::TensorMap b, float* out, int faulty) {
  const auto fault = static_cast<Fault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::mbarrier_init(&shared.empty, 1);
    ptx::mbarrier_init(&shared.done, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (fault != Fault::kPeerUnknown) cluster_sync();
  if (warp == 0 && !(fault == Fault::kPeerWithoutAlloc && rank == 1)) {
    if (fault == Fault::kAllocOfOne) {
      ptx::tcgen05_alloc(&shared.tensor_memory, kColumns);
    } else {
      const std::uint32_t columns = fault == Fault::kOtherColumns ? kColumns << rank : kColumns;
      ptx::tcgen05_alloc<2>(&shared.tensor_memory, columns);
      ptx::tcgen05_relinquish_alloc_permit<2>();
    }
  }
  __syncthreads();
  if (fault != Fault::kReadyUnknown) cluster_sync();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);

  if (threadIdx.x == 32) {
    const std::uint32_t leader = fault == Fault::kOwnBarrier ? rank : 0;
    const std::uint32_t full = ptx::mapa(ptx::shared_address(&shared.full), leader);
    std::uint32_t expected = 2 * kBytes;
    if (fault == Fault::kExpectsOwnBytes || fault == Fault::kOwnBarrier || fault == Fault::kPeerExpectsToo)
      expected = kBytes;
    if (fault == Fault::kExpectsClusterSize) expected = 4 * kBytes;
    for (int round = 0; round < kRounds; ++round) {
      wait(&shared.empty, 1 - (static_cast<std::uint32_t>(round) & 1));
      if (rank == leader) {
        ptx::mbarrier_arrive_expect_tx(&shared.full, expected);
      } else if (fault == Fault::kPeerExpectsToo) {
        ptx::mbarrier_arrive_expect_tx_cluster(full, expected);
      }
      const int row = static_cast<int>(rank);
      ptx::cp_async_bulk_tensor_2d_cta_group_2(shared.a, &a, kK * round, row * kM / 2, full);
      ptx::cp_async_bulk_tensor_2d_cta_group_2(shared.b, &b, kK * round, row * kN / 2, full);
    }
    wait(&shared.empty, 1 - kRounds % 2);  // the last commit's arrival, which must find this CTA
  }
  std::uint32_t instruction = ptx::encode(InstructionDescriptor{.m = kM, .n = kN});
  if (fault == Fault::kInstructionShape) instruction = ptx::encode(InstructionDescriptor{.m = 64, .n = kN});
  if (fault == Fault::kInstructionColumns) instruction = ptx::encode(InstructionDescriptor{.m = kM, .n = 56});
  const bool of_one = fault == Fault::kMultiplicationOfOne || fault == Fault::kInstructionOfOne;
  if (fault == Fault::kMultiplicationOfOne)
    instruction = ptx::encode(InstructionDescriptor{.m = 128, .n = kN / 2});
  if (threadIdx.x == 0 && rank == (fault == Fault::kPeerIssues ? 1u : 0u)) {
    for (int round = 0; round < kRounds; ++round) {
      const std::uint32_t parity = static_cast<std::uint32_t>(round) & 1;
      if (fault == Fault::kLeaderWaitsInCta) {
        wait(&shared.full, parity);
      } else if (fault != Fault::kPeerIssues) {
        wait_cluster(&shared.full, parity);
      }
      ptx::tcgen05_fence_after_thread_sync();
      for (int k = 0; k < kK; k += 16) {
        const std::uint64_t of_a = descriptor(shared.a, k);
        const std::uint64_t of_b =
            descriptor(fault == Fault::kOperandsOfOne ? shared.b + 8 * kK : shared.b, k);
        if (of_one) {
          ptx::tcgen05_mma_f16_ss(d, of_a, of_b, instruction, round > 0 || k > 0);
        } else {
          ptx::tcgen05_mma_f16_ss<2>(d, of_a, of_b, instruction, round > 0 || k > 0);
        }
      }
      if (fault == Fault::kCommitOfOne) {
        ptx::tcgen05_commit_multicast(&shared.empty, 3);
      } else {
        ptx::tcgen05_commit_multicast<2>(&shared.empty, 3);
      }
    }
    ptx::tcgen05_commit_multicast<2>(&shared.done, fault == Fault::kCommitToLeader ? 1 : 3);
  }
  __syncwarp();
  if (fault == Fault::kDeallocWhileMultiplying && rank == 1 && warp == 0)
    ptx::tcgen05_dealloc<2>(d, kColumns);
  if (fault == Fault::kPeerWaitsInCta && rank == 1) {
    wait(&shared.done, 0);
  } else {
    wait_cluster(&shared.done, 0);
  }
  if (fault != Fault::kNoFenceAfter || rank == 0) ptx::tcgen05_fence_after_thread_sync();
  for (int column = 0; column < kN; column += 32) {
    float values[32];
    ptx::tcgen05_ld_32x32b_x32(values, lane_address(d) + static_cast<std::uint32_t>(column));
    ptx::tcgen05_wait_ld();
    const int row = static_cast<int>(rank * kM / 2 + threadIdx.x);
    for (int i = 0; i < 32; ++i) ptx::st_global(out + row * kN + column + i, values[i]);
  }
  __syncthreads();
  if (fault == Fault::kDeallocHangs) {
    cluster_sync();
    if (rank == 0 && warp == 0) ptx::tcgen05_dealloc<2>(d, kColumns);
    cluster_sync();
    if (rank == 1 && warp == 0) ptx::tcgen05_dealloc<2>(d, kColumns);
    return;
  }
  if (fault != Fault::kNoBarrierBeforeDealloc) cluster_sync();
  if (warp == 0) ptx::tcgen05_dealloc<2>(d, kColumns);
  if (fault == Fault::kPeerLeaves && rank == 0 && threadIdx.x == 0) {
    ptx::tcgen05_commit<2>(&shared.done);
    wait(&shared.done, 1);
  }
}

Outcome run_pair(Fault fault, unsigned ctas = 2) {
  const std::vector<bf16> a = arange(kM * kK * kRounds, 3);
  const std::vector<bf16> b = arange(kN * kK * kRounds, 11);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(kM * kN);
  const auto map = [](const bf16* matrix, unsigned rows) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, rows, kK * kRounds, rows / 2, kK, Swizzle::k128B));
  };
  const Outcome outcome =
      run(multiply, {.grid = {ctas}, .block = {128}, .cluster = {ctas}, .shared_bytes = sizeof(Shared)},
          map(device_a.get(), kM), map(device_b.get(), kN), out.get(), static_cast<int>(fault));
  if (outcome.rule != "passed" || ctas != 2) return outcome;
  CHECK(count_wrong(out.host(), a, b, kK * kRounds) == 0);
  return outcome;
}

/// One thread multiplies for every pair of the cluster, M x N by kK: D of pair p is A of p times B of p. The
/// operands are written by the threads. Bits of `fault`: 1, a pair's commit goes to the other pair; 2, an
/// accumulator of M = 128 at lane 16; 4, the peer reads the columns behind the folded ones.
template <int kRows, int kColumnsOfD>
__global__ void multiply_pairs(const bf16* a, const bf16* b, float* out, int fault) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t pair = rank / 2;
  const int half = static_cast<int>(rank) % 2;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  fill(shared.a, a + (static_cast<int>(pair) * kRows + half * kRows / 2) * kK, kRows / 2);
  fill(shared.b, b + (static_cast<int>(pair) * kColumnsOfD + half * kColumnsOfD / 2) * kK, kColumnsOfD / 2);
  ptx::fence_proxy_async_shared_cta();
  make_barrier(&shared.done);
  cluster_sync();
  if (warp == 0) ptx::tcgen05_alloc<2>(&shared.tensor_memory, kColumns);
  cluster_sync();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (threadIdx.x == 0 && half == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    const std::uint32_t at = fault == 2 ? ptx::tensor_memory_address(d, 16, 0) : d;
    for (int k = 0; k < kK; k += 16)
      ptx::tcgen05_mma_f16_ss<2>(at, descriptor(shared.a, k), descriptor(shared.b, k),
                                 ptx::encode(InstructionDescriptor{.m = kRows, .n = kColumnsOfD}), k > 0);
    ptx::tcgen05_commit_multicast<2>(&shared.done,
                                     static_cast<std::uint16_t>(3 << 2 * (fault == 1 ? 1 - pair : pair)));
  }
  __syncwarp();
  wait_cluster(&shared.done, 0);
  ptx::tcgen05_fence_after_thread_sync();
  // With M = 128 lanes 64 to 127 have the right half of the columns of 64 rows (layout B).
  constexpr bool kFolded = kRows == 128;
  constexpr int kWidth = kFolded ? kColumnsOfD / 2 : kColumnsOfD;
  const int lane = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(pair) * kRows + half * kRows / 2 + (kFolded ? lane % 64 : lane);
  const int first = kFolded ? lane / 64 * kWidth : 0;
  for (int column = 0; column < kWidth; column += 8) {
    float values[8];
    const int behind = fault == 4 && half == 1 ? kWidth : 0;
    ptx::tcgen05_ld_32x32b_x8(values, lane_address(d) + static_cast<std::uint32_t>(column + behind));
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 8; ++i) ptx::st_global(out + row * kColumnsOfD + first + column + i, values[i]);
  }
  __syncthreads();
  cluster_sync();
  if (warp == 0) ptx::tcgen05_dealloc<2>(d, kColumns);
}

template <int kRows, int kColumnsOfD>
Outcome run_pairs(unsigned pairs, int fault = 0) {
  const std::vector<bf16> a = arange(pairs * kRows * kK, 3);
  const std::vector<bf16> b = arange(pairs * kColumnsOfD * kK, 11);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(pairs * kRows * kColumnsOfD);
  const Outcome outcome =
      run(multiply_pairs<kRows, kColumnsOfD>,
          {.grid = {2 * pairs}, .block = {128}, .cluster = {2 * pairs}, .shared_bytes = sizeof(Shared)},
          device_a.get(), device_b.get(), out.get(), fault);
  if (outcome.rule != "passed") return outcome;
  const std::vector<float> host = out.host();
  for (unsigned pair = 0; pair < pairs; ++pair) {
    const auto part = [&](const auto& all, unsigned size) {
      return std::vector(all.begin() + pair * size, all.begin() + (pair + 1) * size);
    };
    CHECK(count_wrong(part(host, kRows * kColumnsOfD), part(a, kRows * kK), part(b, kColumnsOfD * kK), kK) ==
          0);
  }
  return outcome;
}

/// Two commits of one thread, on two mbarriers of the peer. It waits for the second one and, unless `leaves`,
/// for the first as well.
__global__ void two_commits(int leaves) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.empty, 1);
    ptx::mbarrier_init(&shared.done, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  if (rank == 0 && threadIdx.x == 0) {
    ptx::tcgen05_commit_multicast(&shared.empty, 3);
    ptx::tcgen05_commit_multicast(&shared.done, 3);
  }
  __syncwarp();
  if (threadIdx.x == 0) {
    wait_cluster(&shared.done, 0);
    if (!leaves || rank == 0) wait_cluster(&shared.empty, 0);
  }
  __syncwarp();
  cluster_sync();
}

/// Each CTA multiplies for itself, and its commit tells both. The one that comes last may be the peer's.
__global__ void commits_of_both(const bf16* a, const bf16* b, int no_fence) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  fill(shared.a, a, kM / 2);
  fill(shared.b, b, kN / 2);
  ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.done, 2);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (warp == 0) ptx::tcgen05_alloc(&shared.tensor_memory, 32);
  cluster_sync();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (threadIdx.x == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    const std::uint32_t instruction = ptx::encode(InstructionDescriptor{.m = kM / 2, .n = kN / 2});
    for (int k = 0; k < kK; k += 16)
      ptx::tcgen05_mma_f16_ss(d, descriptor(shared.a, k), descriptor(shared.b, k), instruction, k > 0);
    ptx::tcgen05_commit_multicast(&shared.done, 3);
  }
  __syncwarp();
  wait_cluster(&shared.done, 0);
  if (no_fence == 0) ptx::tcgen05_fence_after_thread_sync();
  float values[32];
  ptx::tcgen05_ld_32x32b_x32(values, lane_address(d));
  ptx::tcgen05_wait_ld();
  __syncthreads();
  cluster_sync();
  if (warp == 0) ptx::tcgen05_dealloc(d, 32);
}

/// Notes which of two commits' arrivals came first.
__global__ void which_first(int* first) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mbarrier_init(&shared.empty, 1);
  ptx::mbarrier_init(&shared.done, 1);
  ptx::fence_mbarrier_init_release_cluster();
  ptx::tcgen05_commit(&shared.empty);
  ptx::tcgen05_commit(&shared.done);
  wait(&shared.done, 0);
  ptx::st_global(first, ptx::mbarrier_test_wait_parity(&shared.empty, 0) ? 1 : 2);
  wait(&shared.empty, 0);
}

/// The peer's warps hand an accumulator back, and the leader's issuer takes it.
enum class HandBack { kRelaxed, kNoFenceBefore, kNoFenceAfter, kNotWaited, kData };

/// D is multiplied, read by both CTAs, and multiplied again into the same columns.
__global__ void hand_back(const bf16* a, const bf16* b, int faulty) {
  const auto fault = static_cast<HandBack>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  fill(shared.a, a, kM / 2);
  fill(shared.b, b, kN / 2);
  ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.done, 1);
    ptx::mbarrier_init(&shared.full, 1);
    ptx::mbarrier_init(&shared.empty, 8);
    ptx::fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  if (warp == 0) ptx::tcgen05_alloc<2>(&shared.tensor_memory, kColumns);
  cluster_sync();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  const std::uint32_t instruction = ptx::encode(InstructionDescriptor{.m = kM, .n = kN});
  if (rank == 0 && threadIdx.x == 128) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_mma_f16_ss<2>(d, descriptor(shared.a, 0), descriptor(shared.b, 0), instruction, false);
    ptx::tcgen05_commit_multicast<2>(&shared.done, 3);
    while (!ptx::mbarrier_try_wait_parity_relaxed_cluster(&shared.empty, 0)) {
    }
    if (fault != HandBack::kNoFenceAfter) ptx::tcgen05_fence_after_thread_sync();
    if (fault == HandBack::kData) ptx::ld_shared(&shared.tensor_memory + 1);
    ptx::tcgen05_mma_f16_ss<2>(d, descriptor(shared.a, 16), descriptor(shared.b, 16), instruction, false);
    ptx::tcgen05_commit_multicast<2>(&shared.full, 3);
  } else if (warp < 4) {
    wait_cluster(&shared.done, 0);
    ptx::tcgen05_fence_after_thread_sync();
    float values[8];
    ptx::tcgen05_ld_32x32b_x8(values, lane_address(d));
    if (fault == HandBack::kData && rank == 0 && threadIdx.x == 0)
      ptx::st_shared(&shared.tensor_memory + 1, 7u);
    if (fault != HandBack::kNotWaited) ptx::tcgen05_wait_ld();
    if (fault != HandBack::kNoFenceBefore) ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      ptx::mbarrier_arrive_relaxed_cluster(ptx::mapa(ptx::shared_address(&shared.empty), 0));
    if (fault == HandBack::kNotWaited) ptx::tcgen05_wait_ld();
  }
  __syncwarp();
  if (warp < 4) wait_cluster(&shared.full, 0);
  __syncwarp();
  cluster_sync();
  if (warp == 0) ptx::tcgen05_dealloc<2>(d, kColumns);
}

Outcome run_hand_back(HandBack fault) {
  const DeviceArray<bf16> a(arange(kM / 2 * kK, 3), "A");
  const DeviceArray<bf16> b(arange(kN / 2 * kK, 11), "B");
  return run(hand_back, {.grid = {2}, .block = {160}, .cluster = {2}, .shared_bytes = sizeof(Shared) + 64},
             a.get(), b.get(), static_cast<int>(fault));
}

/// Two warps of each CTA want all columns: the second gets them when both CTAs have given them back.
__global__ void one_after_the_other(int gives_back) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  cluster_sync();
  if (warp == 0) ptx::tcgen05_alloc<2>(&shared.tensor_memory, 512);
  cluster_sync();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  __syncthreads();
  if (warp == 0 && gives_back) ptx::tcgen05_dealloc<2>(d, 512);
  if (warp == 1) ptx::tcgen05_alloc<2>(&shared.tensor_memory, 512);
  cluster_sync();
  if (warp == 1) ptx::tcgen05_dealloc<2>(ptx::ld_shared(&shared.tensor_memory), 512);
}

Outcome run_one_after_the_other(int gives_back) {
  return run(one_after_the_other,
             {.grid = {2}, .block = {64}, .cluster = {2}, .shared_bytes = sizeof(Shared)}, gives_back);
}

/// A CTA without a cluster.
__global__ void relinquishes_alone() {
  ptx::tcgen05_relinquish_alloc_permit<2>();
}

/// A load for CTA 0 that signals an mbarrier of CTA `holder`.
__global__ void foreign_barrier(ptx::TensorMap b, std::uint32_t holder) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  make_barrier(&shared.full);
  cluster_sync();
  if (threadIdx.x == 0 && rank == holder) {
    ptx::mbarrier_arrive_expect_tx(&shared.full, sizeof shared.b);
    if (rank != 0) wait_cluster(&shared.full, 0);
  }
  if (threadIdx.x == 0 && rank == 0) {
    ptx::cp_async_bulk_tensor_2d_cta_group_2(shared.b, &b, 0, 0,
                                             ptx::mapa(ptx::shared_address(&shared.full), holder));
    if (rank == holder) wait(&shared.full, 0);
  }
  __syncwarp();
  cluster_sync();
}

Outcome run_foreign_barrier(std::uint32_t holder) {
  const DeviceArray<bf16> b(arange(kN * kK, 11), "B");
  return run(foreign_barrier, {.grid = {4}, .block = {32}, .cluster = {4}, .shared_bytes = sizeof(Shared)},
             ptx::make_tensor_map(ptx::matrix_spec(b.get(), kN, kK, kN / 2, kK, Swizzle::k128B)), holder);
}

}  // namespace

TEST_CASE("a pair multiplies what both CTAs have loaded into both tensor memories") {
  CHECK_PASSES(run_pair(Fault::kNone));
}

TEST_CASE("a pair multiplies every shape that it has: N in steps of 16, M of 256 and 128") {
  CHECK_PASSES(run_pairs<256, 48>(1));
  CHECK(run_pairs<256, 16>(1).rule == "passed");
  CHECK(run_pairs<256, 32>(1).rule == "passed");
  CHECK_PASSES(run_pairs<128, 48>(1));
  CHECK(run_pairs<128, 16>(1).rule == "passed");
  CHECK(run_pairs<128, 64>(1).rule == "passed");
  CHECK_BREAKS("tensor-memory-lanes", run_pairs<128, 48>(1, 2));
  CHECK_BREAKS("tensor-memory-uninitialised", run_pairs<128, 48>(1, 4));
  const Outcome behind = run_pairs<128, 48>(1, 4);
  check_text(behind.report, {"M = 128 for a pair, 64 rows in each of its CTAs, N = 48"});
  CHECK(
      contains(behind.report, "M = 256 in the instruction descriptor, if each CTA of the pair has 128 rows"));
}

TEST_CASE("two pairs of one cluster do not disturb each other") {
  CHECK_PASSES(run_pairs<256, 32>(2));
  CHECK(run_pairs<128, 32>(2).rule == "passed");
  CHECK_BREAKS_ONE_OF(
      (Rules{"tcgen05-mma-not-waited", "tcgen05-commit-thread", "tensor-memory-uninitialised"}),
      run_pairs<256, 32>(2, 1));
}

TEST_CASE("arrivals of two commits come in any order, and each must find its CTA") {
  std::set<int> seen;
  under_all_schedules([&] {
    DeviceArray<int> first(1);
    CHECK(run(which_first, one_cta(1, sizeof(Shared)), first.get()).rule == "passed");
    seen.insert(first.host()[0]);
  });
  CHECK(seen == std::set<int>{1, 2});
  const ptx::LaunchShape shape{.grid = {2}, .block = {32}, .cluster = {2}, .shared_bytes = sizeof(Shared)};
  CHECK_PASSES(run(two_commits, shape, 0));
  CHECK_BREAKS("cluster-exit", run(two_commits, shape, 1));
}

TEST_CASE("commits of several CTAs end a phase together, and the fence behind it is what is missing") {
  const DeviceArray<bf16> a(arange(kM / 2 * kK, 3), "A");
  const DeviceArray<bf16> b(arange(kN / 2 * kK, 11), "B");
  const ptx::LaunchShape shape{.grid = {2}, .block = {128}, .cluster = {2}, .shared_bytes = sizeof(Shared)};
  CHECK_PASSES(run(commits_of_both, shape, a.get(), b.get(), 0));
  CHECK_BREAKS("tcgen05-fence", run(commits_of_both, shape, a.get(), b.get(), 1));
}

TEST_CASE("relaxed arrivals and waits order what tcgen05 does, between its fences, and nothing else") {
  CHECK_PASSES(run_hand_back(HandBack::kRelaxed));
  CHECK_BREAKS("tcgen05-fence", run_hand_back(HandBack::kNoFenceBefore));
  CHECK_BREAKS("tcgen05-fence", run_hand_back(HandBack::kNoFenceAfter));
  CHECK_BREAKS("tensor-memory-overwritten", run_hand_back(HandBack::kNotWaited));
  CHECK_BREAKS("shared-race", run_hand_back(HandBack::kData));
}

TEST_CASE("the leader's barrier counts the bytes of both CTAs of a pair") {
  // The phase ends when the leader's own bytes are there, whatever the peer's are doing.
  const Rules early{"expect-tx-small", "load-not-waited", "tcgen05-operand-uninitialised"};
  CHECK_BREAKS_ONE_OF(early, run_pair(Fault::kExpectsOwnBytes));
  CHECK_BREAKS("deadlock", run_pair(Fault::kExpectsClusterSize));
  CHECK_BREAKS_ONE_OF((Rules{"expect-tx-small", "load-not-waited", "tcgen05-operand-uninitialised",
                             "deadlock", "mbarrier-arrivals"}),
                      run_pair(Fault::kPeerExpectsToo));
  CHECK_BREAKS_ONE_OF(early, run_pair(Fault::kOwnBarrier));
}

TEST_CASE("a load of a pair signals a barrier of the pair") {
  CHECK_PASSES(run_foreign_barrier(0));
  CHECK_PASSES(run_foreign_barrier(1));
  CHECK_BREAKS("pair-barrier", run_foreign_barrier(2));
}

TEST_CASE("the CTA of the even rank issues for the pair") {
  CHECK_BREAKS("tcgen05-pair-leader", run_pair(Fault::kPeerIssues));
}

TEST_CASE("a kernel has one cta_group") {
  CHECK_BREAKS("tcgen05-cta-group", run_pair(Fault::kAllocOfOne));
  CHECK_BREAKS("tcgen05-cta-group", run_pair(Fault::kCommitOfOne));
  CHECK_BREAKS("tcgen05-cta-group", run_pair(Fault::kMultiplicationOfOne));
}

TEST_CASE("a pair is two CTAs of one cluster, and both are there") {
  CHECK_BREAKS("tcgen05-no-peer", run_pair(Fault::kNone, 1));
  CHECK_BREAKS("tcgen05-no-peer", run(relinquishes_alone, one_cta(32, sizeof(Shared))));
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-peer-gone", "cluster-exit"}), run_pair(Fault::kPeerLeaves));
}

TEST_CASE("both CTAs of a pair allocate, the same, and the leader knows it") {
  CHECK_BREAKS("tcgen05-peer-not-ready", run_pair(Fault::kPeerUnknown));
  CHECK_BREAKS("tcgen05-peer-not-ready", run_pair(Fault::kReadyUnknown));
  CHECK_BREAKS("tensor-memory-alloc", run_pair(Fault::kOtherColumns));
  CHECK_BREAKS("deadlock", run_pair(Fault::kPeerWithoutAlloc));
}

TEST_CASE("an allocation of a pair waits until both CTAs have columns") {
  CHECK_PASSES(run_one_after_the_other(1));
  CHECK_BREAKS("tensor-memory-exhausted", run_one_after_the_other(0));
}

TEST_CASE("what is over in one CTA of a pair is known in the other at cluster scope") {
  CHECK_BREAKS("deadlock", run_pair(Fault::kCommitToLeader));
  CHECK_BREAKS("load-not-waited", run_pair(Fault::kLeaderWaitsInCta));
  CHECK_BREAKS("tcgen05-mma-not-waited", run_pair(Fault::kPeerWaitsInCta));
  CHECK_BREAKS("tcgen05-fence", run_pair(Fault::kNoFenceAfter));
  const emulator::ScopedCourseRule off(emulator::CourseRule::kPairClusterScope, false);
  CHECK_PASSES(run_pair(Fault::kLeaderWaitsInCta));
  CHECK_PASSES(run_pair(Fault::kPeerWaitsInCta));
}

TEST_CASE("tensor memory of a pair is deallocated when neither CTA uses it") {
  CHECK_BREAKS("tensor-memory-dealloc", run_pair(Fault::kNoBarrierBeforeDealloc));
  int of_cluster = 0;
  under_all_schedules([&] {
    of_cluster +=
        contains(run_pair(Fault::kNoBarrierBeforeDealloc).report, "a barrier of the cluster") ? 1 : 0;
  });
  CHECK(of_cluster > 0);
  CHECK_BREAKS_ONE_OF((Rules{"tensor-memory-dealloc", "tensor-memory-unallocated"}),
                      run_pair(Fault::kDeallocWhileMultiplying));
}

TEST_CASE("a deallocation of a pair may wait for the other CTA") {
  std::set<std::string> seen;
  under_all_schedules([&] { seen.insert(run_pair(Fault::kDeallocHangs).rule); });
  CHECK(seen == Rules{"deadlock", "passed"});
}

TEST_CASE("descriptors of a pair are those of both CTAs") {
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_pair(Fault::kInstructionShape));
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_pair(Fault::kInstructionColumns));
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-instruction-descriptor", "tcgen05-cta-group"}),
                      run_pair(Fault::kInstructionOfOne));
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-operand-uninitialised", "tcgen05-descriptor"}),
                      run_pair(Fault::kOperandsOfOne));
}

TEST_CASE("reports of a pair name the CTA and what is missing") {
  check_text(run_pair(Fault::kPeerWaitsInCta).report,
             {"mbarrier_wait_parity_cluster", "--allow pair-cluster-scope"});
  check_text(run_pair(Fault::kReadyUnknown).report, {"a barrier of the cluster after tcgen05.alloc"});
  check_text(run_pair(Fault::kPeerIssues).report, {"the CTA with rank 0 must issue for both"});
  check_text(run_pair(Fault::kLeaderWaitsInCta).report, {"mbarrier_wait_parity_cluster"});
}

}  // namespace tcgen05_pair_test
