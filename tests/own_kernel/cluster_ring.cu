// A GEMM with a ring of stages: one producer, two consumer warpgroups, and clusters of two CTAs that share B
// by multicast.
//
// A stage is free when both consumers of both CTAs have arrived at its empty barrier, because the bytes go to
// both CTAs. Broken on purpose: -D OWN_EMPTY_ONLY (a consumer arrives only in its own CTA), -D NO_INIT_FENCE
// (the neighbour's barriers are used before their initialisation is visible), -D HALF_BYTES (a CTA expects
// only the bytes that it loads itself), -D EARLY_RELEASE (a stage is released while wgmma is still reading
// it), -D NO_LAST_MEETING (a CTA ends while its neighbour is still signalling it).
#include <cooperative_groups.h>

#include <cuda/ptx>

#include "ptx/elect.cuh"
#include "ptx/setmaxnreg.cuh"
#include "tensor_map.h"
#include "wgmma_tile.h"

namespace ptx = cuda::ptx;

constexpr int kM = 128;
constexpr int kN = 64;
constexpr int kK = 64;
constexpr int kStages = 3;
constexpr int kCluster = 2;

struct Shared {
  alignas(1024) __nv_bfloat16 a[kStages][kM * kK];
  alignas(1024) __nv_bfloat16 b[kStages][kN * kK];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

__device__ inline void wait(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier, parity)) {
  }
}

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(384)
    ring(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* d,
         int columns, int k_tiles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const std::uint32_t rank = ptx::get_sreg_cluster_ctarank();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const int row = static_cast<int>(blockIdx.x) * kM;
  const int column = static_cast<int>(blockIdx.y) * kN;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(&shared.full[stage], 1);
      ptx::mbarrier_init(&shared.empty[stage], 2 * kCluster);
    }
#ifndef NO_INIT_FENCE
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
#endif
  }
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();

  if (warpgroup == 2) {
    gemm::ptx::setmaxnreg_dec<40>();
    if (threadIdx.x / 32 == 8 && gemm::ptx::elect_sync()) {
      for (int i = 0; i < k_tiles; ++i) {
        const int stage = i % kStages;
        wait(&shared.empty[stage], (i / kStages & 1) ^ 1);
        std::uint64_t* full = &shared.full[stage];
#ifdef HALF_BYTES
        constexpr int kBytes = (kM + kN / kCluster) * kK * 2;
#else
        constexpr int kBytes = (kM + kN) * kK * 2;
#endif
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, kBytes);
        const std::int32_t at_a[] = {i * kK, row};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared.a[stage], &map_a, at_a, full);
        const int part = static_cast<int>(rank) * (kN / kCluster);
        const std::int32_t at_b[] = {i * kK, column + part};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &shared.b[stage][part * kK], &map_b,
                                  at_b, full, static_cast<std::uint16_t>((1 << kCluster) - 1));
      }
    }
  } else {
    gemm::ptx::setmaxnreg_inc<232>();
    float sums[kN / 2];
    for (int i = 0; i < k_tiles; ++i) {
      const int stage = i % kStages;
      wait(&shared.full[stage], i / kStages & 1);
      multiply<kN>(sums, &shared.a[stage][warpgroup * 64 * kK], shared.b[stage], i == 0);
#ifndef EARLY_RELEASE
      gemm::ptx::wgmma_wait_group<0>();
#endif
      if (threadIdx.x % 128 < kCluster) {
#ifdef OWN_EMPTY_ONLY
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &shared.empty[stage]);
#else
        std::uint64_t* empty =
            cooperative_groups::this_cluster().map_shared_rank(&shared.empty[stage], threadIdx.x % 128);
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, empty);
#endif
      }
#ifdef EARLY_RELEASE
      gemm::ptx::wgmma_wait_group<0>();
#endif
    }
    gemm::ptx::wgmma_fence_operand(sums);
    store<kN>(sums, d, row + warpgroup * 64, column, columns);
  }
#ifndef NO_LAST_MEETING
  __syncwarp();
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
#endif
}

void check_kernel(emulate::Run& run) {
  const int m = 256;
  const int n = 128;
  const int k = 7 * kK;
  const __nv_bfloat16* a = run.buffer("a", run.small_integers<__nv_bfloat16>(m * k));
  const __nv_bfloat16* b = run.buffer("b", run.small_integers<__nv_bfloat16>(n * k));
  float* d = run.buffer<float>("d", m * n);
  cudaFuncSetAttribute(ring, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  ring<<<dim3(m / kM, n / kN), 384, sizeof(Shared)>>>(make_map(a, m, k, kM), make_map(b, n, k, kN / kCluster),
                                                      d, n, k / kK);
  run.expect_gemm("d", d, a, b, m, n, k);
}
