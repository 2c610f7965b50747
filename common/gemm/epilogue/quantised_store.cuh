// An epilogue that quantises D to nvfp4, so that it can be A of the next product: e2m1, two in a byte, and a
// ue4m3 scale for 16 neighbours of a row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"
#include "gemm/tile/scale_piece.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_ld.cuh"
#include "ptx/tcgen05_scaled_descriptor.h"

namespace gemm {

/// 16 elements and their scale, a ue4m3 in the lowest byte.
struct QuantisedBlock {
  std::uint32_t elements[2];
  std::uint32_t scale;
};

// Lesson: the largest magnitude of the block becomes 6, the largest e2m1. The elements are multiplied with
// the reciprocal of the scale as rounded, because the next product multiplies with the rounded scale. A NaN
// makes the scale NaN: an e2m1 cannot be one.
__device__ __forceinline__ QuantisedBlock quantise(const float* values) {
  // ANCHOR: quantise
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kNvBlock; ++i) largest = ptx::max_nan_f32(largest, fabsf(values[i]));
  QuantisedBlock block{};
  block.scale = ptx::cvt_rn_satfinite_e4m3x2_f32(largest * (1.0f / 6), 0);
  const float scale = to_float(ue4m3{static_cast<std::uint8_t>(block.scale)});
  const float inverse = scale == 0 ? 0 : 1 / scale;  // a block that is too small becomes zeros
#pragma unroll
  for (int i = 0; i < kNvBlock; i += 2)
    block.elements[i / 8] |= ptx::cvt_rn_satfinite_e2m1x2_f32(values[i] * inverse, values[i + 1] * inverse)
                             << 4 * (i % 8);
  return block;
  // ANCHOR_END: quantise
}

/// Where the scales of D go: [rows / 128][columns / 64] pieces, all bytes of which are written.
struct QuantisedStore {
  std::uint8_t* scales;

  /// Loads the accumulator at `d` and writes what lies inside D, times `scale`, quantised, and the scales.
  /// Four warps call it, the first with a number divisible by 4, behind tcgen05_fence_after_thread_sync().
  template <typename T>
  __device__ __forceinline__ void store(const Gemm& gemm, std::uint32_t d, int tile_row, int tile_column,
                                        float scale) const {
    constexpr int kPieceN = 4 * kNvBlock;  // a word of scales
    static_assert(T::kM == kPieceRows && T::kN % kPieceN == 0, "a tile has whole pieces");
    const auto [m, n, k] = gemm.shape;
    const int row = static_cast<int>(threadIdx.x) % kPieceRows;
    const std::uint32_t lanes = ptx::tensor_memory_address(d, static_cast<std::uint32_t>(row) / 32 * 32, 0);
    auto* const elements = reinterpret_cast<std::uint8_t*>(gemm.d);
    std::uint8_t* const piece_row = scales +
                                    offset(tile_row / kPieceRows, 0, ceil_div(n, kPieceN)) * kPieceBytes +
                                    ptx::scale_offset(row, 0);
#pragma unroll 1
    // ANCHOR: store_quantised
    // Lesson: a thread has a row, so it finds the largest magnitude of 16 neighbours alone. Four blocks are a
    // word of the piece. The next product reads all of it, so blocks that D does not have get the scale 0.
    for (int column = tile_column; column < std::min(tile_column + T::kN, n); column += kPieceN) {
      std::uint32_t word = 0;
#pragma unroll
      for (int half = 0; half < kPieceN; half += 32) {
        float values[32];
        ptx::tcgen05_ld_32x32b_x32(values, lanes + static_cast<std::uint32_t>(column - tile_column + half));
        ptx::tcgen05_wait_ld();
#pragma unroll
        for (float& value : values) value *= scale;
        if (tile_row + row >= m || column + half >= n) continue;
        const QuantisedBlock left = quantise(values);
        const QuantisedBlock right = quantise(values + kNvBlock);
        word |= (left.scale | right.scale << 8) << half / 2;
        ptx::st_global(reinterpret_cast<uint4*>(elements + offset(tile_row + row, column + half, n) / 2),
                       {left.elements[0], left.elements[1], right.elements[0], right.elements[1]});
      }
      ptx::st_global(reinterpret_cast<std::uint32_t*>(piece_row + offset(column / kPieceN, 0, kPieceBytes)),
                     word);
    }
    // ANCHOR_END: store_quantised
  }
};

}  // namespace gemm
