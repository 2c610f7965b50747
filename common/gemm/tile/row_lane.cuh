// What step 50 taught: a lane's share of some rows of A and B, many loads of B in flight.
#pragma once

#include <bit>
#include <cstdint>

#include "gemm/problem/gemm.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm {

/// A warp computes kRows columns of D, which are rows of B, for kM rows of A; kLoads loads of 16 bytes are in
/// flight for each row of B.
template <int kRowsOfA, int kRowsOfB, int kLoadsOfARow>
struct RowTile {
  static constexpr int kM = kRowsOfA;
  static constexpr int kRows = kRowsOfB;
  static constexpr int kLoads = kLoadsOfARow;
  static constexpr int kThreads = 256;
  static constexpr int kN = kThreads / 32 * kRows;
  static constexpr int kLane = 32 * 8;           // elements from a lane's load of a row to its next one
  static constexpr int kK = kLane * kLoads;      // of a round
  static constexpr int kCtas = kM == 1 ? 3 : 2;  // on an SM
};

/// Eight multiply-adds: a bf16 is the upper half of an fp32.
__device__ __forceinline__ void multiply_add(float& accumulator, uint4 a, uint4 b) {
  const std::uint32_t a_words[4] = {a.x, a.y, a.z, a.w};
  const std::uint32_t b_words[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    accumulator += std::bit_cast<float>(a_words[i] << 16) * std::bit_cast<float>(b_words[i] << 16);
    accumulator +=
        std::bit_cast<float>(a_words[i] & 0xffff0000u) * std::bit_cast<float>(b_words[i] & 0xffff0000u);
  }
}

template <typename T>
struct RowLane {
  const bf16* b[T::kRows];
  uint4 vectors[T::kLoads][T::kRows];  // of B, on their way or there
  float accumulators[T::kM][T::kRows] = {};

  /// Issues the loads of a round of B; beyond K there are zeros.
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
  /// Multiplies it with the same round of kM rows of A, of which `rows` exist.
  __device__ __forceinline__ void multiply(const bf16* a, int rows, int k0, int k) {
#pragma unroll
    for (int i = 0; i < T::kLoads; ++i) {
      const int column = k0 + i * T::kLane;
#pragma unroll
      for (int m = 0; m < T::kM; ++m) {
        uint4 vector{0, 0, 0, 0};
        if (column < k)
          vector =
              ptx::ld_global(reinterpret_cast<const uint4*>(a + offset(m < rows ? m : rows - 1, column, k)));
#pragma unroll
        for (int r = 0; r < T::kRows; ++r) multiply_add(accumulators[m][r], vector, vectors[i][r]);
      }
    }
  }
  /// The sum of all lanes, for every lane.
  __device__ __forceinline__ float sum(int m, int r) const {
    float sum = accumulators[m][r];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    return sum;
  }
};

}  // namespace gemm
