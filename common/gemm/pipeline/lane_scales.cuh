// Step 44's scales of B, in the lanes of each warp.
#pragma once

#include <algorithm>
#include <numeric>

#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm {

// Lesson: all threads multiply with the same scale of B, so 32 lanes hold those of 32 k-tiles, and a shuffle
// gives all the one that they need. The next 32 are loaded while the last of these multiply, and the first of
// a tile while the tile before is stored. A tile of 176 columns begins anywhere in a block, and may reach
// into the second one behind it: of 16 columns all have one scale, but which one is known at run time only.
template <int kN>
struct LaneScales {
  static constexpr int kColumns = std::gcd(kN, kScaleBlock);  // of a tile that surely have one scale
  static constexpr int kBlocks = ceil_div(kScaleBlock - kColumns + kN, kScaleBlock);
  float mine[kBlocks] = {};  // [block], of k-tile i / 32 * 32 + lane

  template <typename Scales>
  __device__ __forceinline__ void load(const Scales& scales, int tile_n, int k_tile, int k_tiles) {
    const int mine_is = std::min(k_tile + static_cast<int>(threadIdx.x) % 32, k_tiles - 1);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block)
      mine[block] = ptx::ld_global(scales.of_row(tile_n * kN + block * kScaleBlock) + mine_is);
  }
  __device__ __forceinline__ float at(int block, int k_tile) const {
    return __shfl_sync(0xffffffffu, mine[block], k_tile % 32);
  }
  /// Whether a part of `columns` columns at `column` can have columns of this block.
  static constexpr bool reaches(int column, int columns, int block) {
    return block >= column / kScaleBlock &&
           block <= (kScaleBlock - kColumns + column + columns - 1) / kScaleBlock;
  }
  /// Which of `scale` is that of column `column` of a tile that begins at column `first` of its first block.
  __device__ __forceinline__ static float of(const float (&scale)[kBlocks], int first, int column) {
    const int block = (kColumns == kScaleBlock ? column : first + column / kColumns * kColumns) / kScaleBlock;
    float found = scale[0];
#pragma unroll
    for (int other = 1; other < kBlocks; ++other) found = block == other ? scale[other] : found;
    return found;
  }
};

}  // namespace gemm
