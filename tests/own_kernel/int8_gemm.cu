// An int8 GEMM in the style of Ampere: cp.async through a ring of stages, ldmatrix from a swizzled tile,
// mma.sync, and 32-bit addresses of shared memory.
//
// Broken on purpose: -D WAIT_ONE_LESS (the tile may still be in flight), -D NO_BARRIER (other threads' copies
// may still be in flight), -D LOAD_EARLY (a copy into the stage that is being read).
#include <cuda_runtime.h>
#include <cstdint>
#include "ptx/cp_async.cuh"
#include "ptx/mma_sync.cuh"
#include "ptx/shared_addresses.cuh"

constexpr int BM = 64, BN = 64, BK = 64, STAGES = 3, WARPS = 4;

// was: asm volatile("cp.async.cg.shared.global [%0], [%1], 16;")
__device__ __forceinline__ void cp_async_cg(uint32_t smem, const void* gmem) {
  gemm::ptx::cp_async_cg_16(__cvta_shared_to_generic(smem), gmem);
}
__device__ __forceinline__ void commit() {
  gemm::ptx::cp_async_commit_group();
}
template <int N>
__device__ __forceinline__ void wait() {
  gemm::ptx::cp_async_wait_group<N>();
}
__device__ __forceinline__ uint32_t swizzle(int row, int chunk) {
  return row * BK + ((chunk ^ (row >> 1 & 3)) << 4);
}

__global__ __launch_bounds__(WARPS * 32) void igemm(const int8_t* __restrict__ A,
                                                    const int8_t* __restrict__ B, int32_t* __restrict__ C,
                                                    int M, int N, int K) {
  extern __shared__ __align__(128) uint8_t smem[];
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int wm = warp >> 1, wn = warp & 1;
  const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
  const int tiles = K / BK;
  auto a_stage = [&](int s) { return base + s * (BM + BN) * BK; };
  auto b_stage = [&](int s) { return base + s * (BM + BN) * BK + BM * BK; };
  auto load = [&](int tile) {
    const int s = tile % STAGES;
#pragma unroll
    for (int i = threadIdx.x; i < BM * BK / 16; i += WARPS * 32) {
      const int r = i / (BK / 16), c = i % (BK / 16);
      cp_async_cg(a_stage(s) + swizzle(r, c), A + (size_t)(row0 + r) * K + tile * BK + c * 16);
      cp_async_cg(b_stage(s) + swizzle(r, c), B + (size_t)(col0 + r) * K + tile * BK + c * 16);
    }
  };
  int32_t acc[2][4][4] = {};
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < tiles) load(s);
    commit();
  }
  for (int t = 0; t < tiles; ++t) {
#ifdef WAIT_ONE_LESS
    wait<STAGES - 1>();
#else
    wait<STAGES - 2>();
#endif
#ifndef NO_BARRIER
    __syncthreads();
#endif
#ifndef LOAD_EARLY
    if (t + STAGES - 1 < tiles) load(t + STAGES - 1);
#else
    if (t + STAGES < tiles + 1) load(t + STAGES);
#endif
    commit();
    const int s = t % STAGES;
#pragma unroll
    for (int kk = 0; kk < BK / 32; ++kk) {
      uint32_t a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int r = wm * 32 + i * 16 + (lane & 15);
        gemm::ptx::ldmatrix_x4(a[i], a_stage(s) + swizzle(r, kk * 2 + (lane >> 4)));
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int r = wn * 32 + j * 8 + (lane & 7);
        gemm::ptx::ldmatrix_x2(b[j], b_stage(s) + swizzle(r, kk * 2 + (lane >> 3 & 1)));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) gemm::ptx::mma_m16n8k32_s8(acc[i][j], a[i], b[j]);
    }
  }
  wait<0>();
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int r = row0 + wm * 32 + i * 16 + (lane >> 2), c = col0 + wn * 32 + j * 8 + (lane & 3) * 2;
      *reinterpret_cast<int2*>(&C[(size_t)r * N + c]) = make_int2(acc[i][j][0], acc[i][j][1]);
      *reinterpret_cast<int2*>(&C[(size_t)(r + 8) * N + c]) = make_int2(acc[i][j][2], acc[i][j][3]);
    }
}

void check_kernel(emulate::Run& run) {
  const int m = 128, n = 64, k = 5 * BK;
  const auto* a = run.buffer("A", run.small_integers<int8_t>(m * k));
  const auto* b = run.buffer("B", run.small_integers<int8_t>(n * k));
  auto* c = run.buffer<int32_t>("C", m * n);
  const int bytes = STAGES * (BM + BN) * BK;
  cudaFuncSetAttribute(igemm, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  igemm<<<dim3(n / BN, m / BM), WARPS * 32, bytes>>>(a, b, c, m, n, k);
  run.expect_gemm("C", c, a, b, m, n, k);
}
