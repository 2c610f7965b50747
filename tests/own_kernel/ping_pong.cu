// Ping-pong: two consumer warpgroups compute alternate tiles. While one multiplies, the other stores its
// tile.
//
// An ordered barrier (two named barriers) gives the tensor cores to one consumer at a time: each waits for
// its turn, and signals the other afterwards. At the end, the producer waits until its last stages are empty
// (the tail), so that its barriers exist until all arrivals have happened; in a cluster, some come from other
// CTAs. Broken on purpose: -D NO_ORDER_START (nothing lets consumer 0 start), -D WRONG_STAGES (a consumer
// does not skip the other's k-tiles), -D NO_STORE_WAIT (the next tile overwrites bytes that a store is still
// reading), -D NO_FENCE (the store may not see the tile).
#include <cuda/ptx>

#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "tensor_map.h"
#include "wgmma_tile.h"

namespace ptx = cuda::ptx;

constexpr int kM = 64;
constexpr int kN = 64;
constexpr int kK = 64;
constexpr int kStages = 4;

struct Shared {
  alignas(1024) __nv_bfloat16 a[kStages][kM * kK];
  alignas(1024) __nv_bfloat16 b[kStages][kN * kK];
  alignas(1024) __nv_bfloat16 d[2][kM * kN];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

struct Position {
  int stage = 0;
  std::uint32_t phase = 0;
  __device__ void advance(int steps) {
    stage += steps;
    phase ^= static_cast<std::uint32_t>(stage / kStages) & 1u;
    stage %= kStages;
  }
};

__device__ inline void wait(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

__global__ void __launch_bounds__(384, 1)
    ping_pong(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
              const __grid_constant__ CUtensorMap map_d, int tiles_m, int tiles, int k_tiles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(&shared.full[stage], 1);
      ptx::mbarrier_init(&shared.empty[stage], 1);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (warpgroup == 2) {
    gemm::ptx::setmaxnreg_dec<40>();
    if (threadIdx.x == 256) {
      Position fill;
      for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
        for (int i = 0; i < k_tiles; ++i) {
          wait(&shared.empty[fill.stage], fill.phase ^ 1u);
          std::uint64_t* full = &shared.full[fill.stage];
          ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                         (kM + kN) * kK * 2);
          const std::int32_t at_a[] = {i * kK, tile % tiles_m * kM};
          const std::int32_t at_b[] = {i * kK, tile / tiles_m * kN};
          ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared.a[fill.stage], &map_a, at_a,
                                    full);
          ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared.b[fill.stage], &map_b, at_b,
                                    full);
          fill.advance(1);
        }
      }
      for (int stage = 0; stage < kStages; ++stage) {  // the tail
        wait(&shared.empty[fill.stage], fill.phase ^ 1u);
        fill.advance(1);
      }
    }
    return;
  }

  gemm::ptx::setmaxnreg_inc<232>();
  const unsigned mine = 1u + static_cast<unsigned>(warpgroup);
  const unsigned other = 2u - static_cast<unsigned>(warpgroup);
#ifndef NO_ORDER_START
  if (warpgroup == 1) gemm::ptx::bar_arrive(1, 256);
#endif
  Position read;
  read.advance(warpgroup * k_tiles);
  bool stores = false;
  int turn = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles;
       tile += static_cast<int>(gridDim.x), turn ^= 1) {
    if (turn != warpgroup) continue;
    float sums[kN / 2];
    gemm::ptx::bar_sync(mine, 256);  // my turn to multiply
    for (int i = 0; i < k_tiles; ++i) {
      wait(&shared.full[read.stage], read.phase);
      multiply<kN>(sums, shared.a[read.stage], shared.b[read.stage], i == 0);
      gemm::ptx::wgmma_wait_group<0>();
      gemm::ptx::bar_sync(4 + static_cast<unsigned>(warpgroup), 128);
      if (threadIdx.x % 128 == 0) ptx::mbarrier_arrive(&shared.empty[read.stage]);
      read.advance(1);
    }
    gemm::ptx::bar_arrive(other, 256);  // the other's turn
    gemm::ptx::wgmma_fence_operand(sums);
#ifndef WRONG_STAGES
    read.advance(k_tiles);
#endif

    __nv_bfloat16* out = shared.d[warpgroup];
    const int thread = static_cast<int>(threadIdx.x) % 128;
#ifndef NO_STORE_WAIT
    if (thread == 0 && stores) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#endif
    gemm::ptx::bar_sync(4 + static_cast<unsigned>(warpgroup), 128);
    const int row = thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int j = 0; j < kN / 8; ++j) {
      for (int half = 0; half < 2; ++half) {
        const int at = row + 8 * half;
        const int unit = j ^ (at % 8);  // the swizzle of 128 bytes
        *reinterpret_cast<__nv_bfloat162*>(out + at * kN + unit * 8 + thread % 4 * 2) =
            __floats2bfloat162_rn(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
      }
    }
#ifndef NO_FENCE
    ptx::fence_proxy_async(ptx::space_shared);
#endif
    gemm::ptx::bar_sync(4 + static_cast<unsigned>(warpgroup), 128);
    if (thread == 0) {
      const std::int32_t at[] = {tile / tiles_m * kN, tile % tiles_m * kM};
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map_d, at, out);
      ptx::cp_async_bulk_commit_group();
      stores = true;
    }
  }
  if (stores) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}

void check_kernel(emulate::Run& run) {
  const int m = 192;
  const int n = 192;
  const int k = 3 * kK;
  const __nv_bfloat16* a = run.buffer("a", run.small_integers<__nv_bfloat16>(m * k));
  const __nv_bfloat16* b = run.buffer("b", run.small_integers<__nv_bfloat16>(n * k));
  __nv_bfloat16* d = run.buffer<__nv_bfloat16>("d", m * n);
  const int tiles = m / kM * (n / kN);
  cudaFuncSetAttribute(ping_pong, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  ping_pong<<<2, 384, sizeof(Shared)>>>(make_map(a, m, k, kM), make_map(b, n, k, kN), make_map(d, m, n, kM),
                                        m / kM, tiles, k / kK);
  run.expect_gemm("d", d, a, b, m, n, k);
}
