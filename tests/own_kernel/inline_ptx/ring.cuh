// A GEMM for Hopper with every instruction in inline PTX: a producer warp and one warpgroup that multiplies,
// a ring of stages, a cluster that shares its loads of B, and a store by the copy engine. The kernel and its
// launch are in this header, and its cluster depends on a template parameter.
#pragma once

#include "../tensor_map.h"
#include "wrappers.cuh"

constexpr int kTile = 64;
constexpr int kStages = 3;
constexpr std::uint32_t kTileBytes = kTile * kTile * sizeof(__nv_bfloat16);

struct Shared {
  __nv_bfloat16 a[kStages][kTile * kTile];
  __nv_bfloat16 b[kStages][kTile * kTile];
  __nv_bfloat16 d[kTile * kTile];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

/// Each CTA of a cluster has other rows of A and the same columns.
template <int kCluster>
__global__ void __launch_bounds__(256, 1) __cluster_dims__(kCluster, 1, 1)
    multiply_tiles(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                   const __grid_constant__ CUtensorMap map_d, int k_tiles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      init_barrier(&s.full[i], 1);
      init_barrier(&s.empty[i], kCluster);
    }
    FENCE(mbarrier_init.release.cluster);
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");

  if (threadIdx.x >= 128) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(40));
    if (threadIdx.x == 128) {
      for (int i = 0; i < k_tiles; ++i) {
        const int stage = i % kStages;
        wait_barrier(&s.empty[stage], i / kStages % 2 ^ 1);
#ifdef SHORT_EXPECT
        expect_bytes(&s.full[stage], kTileBytes);
#else
        expect_bytes(&s.full[stage], 2 * kTileBytes);
#endif
        load_tile(s.a[stage], &map_a, &s.full[stage], kTile * i, kTile * static_cast<int>(blockIdx.x));
        if constexpr (kCluster == 1) {
          load_tile(s.b[stage], &map_b, &s.full[stage], kTile * i, kTile * static_cast<int>(blockIdx.y));
        } else {
          constexpr int kPart = kTile / kCluster;
          load_tile_for_all(s.b[stage] + kPart * kTile * rank, &map_b, &s.full[stage], kTile * i,
                            kTile * static_cast<int>(blockIdx.y) + kPart * static_cast<int>(rank),
                            (1 << kCluster) - 1);
        }
      }
    }
  } else {  // the consumers
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(216));
    float d[32];
    for (int i = 0; i < k_tiles; ++i) {
      const int stage = i % kStages;
#ifndef NO_WAIT
      wait_barrier(&s.full[stage], i / kStages % 2);
#endif
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
      const std::uint64_t a = descriptor(s.a[stage]), b = descriptor(s.b[stage]);
#pragma unroll
      for (int k = 0; k < 4; ++k) multiply(d, a + 2 * k, b + 2 * k, i + k > 0);
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#ifdef EARLY_RELEASE
      if (threadIdx.x < kCluster) arrive_at(&s.empty[stage], threadIdx.x);
      wait_for_groups<0>();
#else
      wait_for_groups<0>();
      asm volatile("bar.sync 1, 128;" ::: "memory");
      if (threadIdx.x < kCluster) arrive_at(&s.empty[stage], threadIdx.x);
#endif
    }
    const std::uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 16, half = threadIdx.x / 16 % 2;
    for (int i = 0; i < 4; ++i) {
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(
                       shared(s.d) + row * 128 + ((2 * i + half) ^ (row % 8)) * 16),
                   "r"(packed(d[8 * i], d[8 * i + 1])), "r"(packed(d[8 * i + 2], d[8 * i + 3])),
                   "r"(packed(d[8 * i + 4], d[8 * i + 5])), "r"(packed(d[8 * i + 6], d[8 * i + 7]))
                   : "memory");
    }
#ifndef NO_FENCE
    FENCE(proxy.async.shared::cta);
#endif
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) {
      store_tile(&map_d, s.d, kTile * static_cast<int>(blockIdx.y), kTile * static_cast<int>(blockIdx.x));
      asm volatile("cp.async.bulk.commit_group;");
      asm volatile("cp.async.bulk.wait_group %0;" ::"n"(0) : "memory");
    }
  }
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;\n" ::: "memory");
}

template <int kCluster>
void run_gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* d, int m, int n, int k) {
  auto* kernel = multiply_tiles<kCluster>;
  constexpr int kBytes = sizeof(Shared);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  kernel<<<dim3(m / kTile, n / kTile), 256, kBytes>>>(
      make_map(a, m, k, kTile), make_map(b, n, k, kTile / kCluster), make_map(d, m, n, kTile), k / kTile);
}
