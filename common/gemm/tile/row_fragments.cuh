// What steps 04 and 50 taught, together: few rows of A by many of B on tensor cores, with fragments that come
// straight from global memory in loads of 16 bytes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/problem/gemm.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sync.cuh"

namespace gemm {

/// A CTA computes 16 rows by 32 columns of D; its eight warps share the K axis, 32 elements each in turn.
template <int kLoadsOfARow>
struct FragmentTile {
  static constexpr int kM = 16;
  static constexpr int kRows = 4;  // of B, for a lane; eight lie between two of them
  static constexpr int kRowStep = 8;
  static constexpr int kLoads = kLoadsOfARow;
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kN = 32;
  static constexpr int kLane = kWarps * 32;  // elements from a lane's load of a row to its next one
  static constexpr int kK = kLane * kLoads;  // of a round
  static constexpr int kCtas = 2;            // on an SM

  static constexpr int first_row(int, int lane) { return lane / 4; }
  static constexpr int first_k(int warp, int lane) { return warp * 32 + lane % 4 * 8; }
};

/// A lane's share. mma.sync wants pairs of neighbours along K in an order of its own; a sum has none, so a
/// lane gives it the eight neighbours that it has loaded, of A and of B in the same order.
template <typename T>
struct FragmentLane {
  const bf16* b[T::kRows];
  uint4 vectors[T::kLoads][T::kRows];
  float accumulators[2][2][4] = {};  // [16 rows of B][8 rows of A]

  __device__ __forceinline__ void load(int k0, int k) {
#pragma unroll
    for (int i = 0; i < T::kLoads; ++i) {
#pragma unroll
      for (int r = 0; r < T::kRows; ++r) {
        vectors[i][r] = uint4{0, 0, 0, 0};
        if (k0 + i * T::kLane < k)
          vectors[i][r] =
              ptx::ld_global_no_allocate(reinterpret_cast<const uint4*>(b[r] + k0 + i * T::kLane));
      }
    }
  }
  __device__ __forceinline__ void multiply(const bf16* a, int rows, int k0, int k) {
    const int row = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int i = 0; i < T::kLoads; ++i) {
      const int column = k0 + i * T::kLane;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint4 of_a{0, 0, 0, 0};
        if (column < k)
          of_a = ptx::ld_global(
              reinterpret_cast<const uint4*>(a + offset(std::min(half * 8 + row, rows - 1), column, k)));
        const std::uint32_t first[2] = {of_a.x, of_a.y};
        const std::uint32_t second[2] = {of_a.z, of_a.w};
#pragma unroll
        for (int block = 0; block < 2; ++block) {
          const uint4& upper = vectors[i][2 * block];
          const uint4& lower = vectors[i][2 * block + 1];
          const std::uint32_t left[4] = {upper.x, lower.x, upper.y, lower.y};
          const std::uint32_t right[4] = {upper.z, lower.z, upper.w, lower.w};
          ptx::mma_m16n8k16_bf16(accumulators[block][half], left, first);
          ptx::mma_m16n8k16_bf16(accumulators[block][half], right, second);
        }
      }
    }
  }
  /// Calls store(row of A, row of B, sum) for each of the CTA's. All threads of the CTA call it.
  template <typename Store>
  __device__ __forceinline__ void deliver(const Store& store) const {
    __shared__ float partials[T::kWarps][T::kM][T::kN];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int block = 0; block < 2; ++block) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          ptx::st_shared(&partials[warp][half * 8 + lane % 4 * 2 + i % 2][block * 16 + i / 2 * 8 + lane / 4],
                         accumulators[block][half][i]);
      }
    }
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < T::kM * T::kN; at += T::kThreads) {
      float sum = 0;
      for (int slice = 0; slice < T::kWarps; ++slice)  // always in the same order
        sum += ptx::ld_shared(&partials[slice][at / T::kN][at % T::kN]);
      store(at / T::kN, at % T::kN, sum);
    }
  }
};

}  // namespace gemm
