// Warps of a CTA that have multiplied different k-tiles of the same tile of D, and sum up what they have.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/tile/mma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"

namespace gemm {

template <typename T, int kWarps>
struct WarpSums {
  float partials[kWarps][T::kM][T::kN];  // [warp][m][n]

  /// Warps 0 to kWarps - 1 call it. The sums are always in the same order. They are multiplied by `scale`,
  /// rounded and stored at (tile_row, tile_column) of D, [m][n]; columns from column_end on are another's.
  /// Uses named barrier 1.
  __device__ __forceinline__ void store(const WarpTile<T>& mine, const Gemm& gemm, int tile_row,
                                        int tile_column, int column_end, float scale) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row = mine.lane / 4;
#pragma unroll
    for (int f = 0; f < T::kFragmentsN; ++f) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        ptx::st_shared(reinterpret_cast<float2*>(&partials[warp][half * 8 + row][f * 8 + mine.lane % 4 * 2]),
                       float2{mine.accumulators[0][f][2 * half], mine.accumulators[0][f][2 * half + 1]});
    }
    ptx::bar_sync(1, 32 * kWarps);
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < T::kM * T::kN; i += 32 * kWarps) {
      float sum = 0;
#pragma unroll
      for (auto& part : partials) sum += ptx::ld_shared(&part[i / T::kN][i % T::kN]);
      const int d_row = tile_row + i / T::kN;
      const int d_column = tile_column + i % T::kN;
      if (d_row < gemm.shape.m && d_column < column_end)
        ptx::st_global(gemm.d + offset(d_row, d_column, gemm.shape.n), ptx::cvt_rn_bf16_f32(sum * scale));
    }
  }
  static_assert(T::kFragmentsM == 1, "a warp has the whole tile, 16 rows high");
};

}  // namespace gemm
