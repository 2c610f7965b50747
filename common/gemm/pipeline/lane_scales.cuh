// Step 44's scales of B, in the lanes of each warp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm {

/// Scales of B, one for 128 x 128 elements, in device memory.
struct BlockScales {
  const float* values;  // [n / 128][pitch], k / 128
  std::int64_t pitch;
  int n;

  /// The scales of row `row` of B, [k / 128]. A tile may hang over N, where there are none.
  __device__ __forceinline__ const float* row_scales(int row) const {
    return values + (row < n ? row : n - 1) / kScaleBlock * pitch;
  }
};

/// Columns of one multiplication: a block of B's scales where the tile has whole ones, or else all of it.
constexpr int part_columns(int tile_columns) {
  return tile_columns % kScaleBlock == 0 ? kScaleBlock : tile_columns;
}

// Lesson: all threads multiply with the same scale of B, so 32 lanes hold those of 32 k-tiles, and a shuffle
// gives all the one that they need. The next 32 are loaded while the last of these multiply, and the first of
// a tile while the tile before is stored. A tile of 192 columns begins with a block or in its middle: it has
// two scales either way, and of its middle columns only the kernel knows which.
template <int kN>
struct LaneScales {
  static constexpr int kColumns = std::gcd(kN, kScaleBlock);  // of a tile, that surely have one scale
  static constexpr int kBlocks = ceil_div(kScaleBlock - kColumns + kN, kScaleBlock);
  static_assert(kBlocks <= 2, "a choice between two scales is one instruction");
  float mine[kBlocks] = {};  // [block], of k-tile i / 32 * 32 + lane
  /// Of k-tiles from number `k_tile` on in the order in which they are multiplied, which may be backwards.
  template <typename Scales>
  __device__ __forceinline__ void load(const Scales& scales, int column, int k_tile, int k_tiles,
                                       bool backwards = false) {
    const int number = std::min(k_tile + static_cast<int>(threadIdx.x) % 32, k_tiles - 1);
    const int mine_is = backwards ? k_tiles - 1 - number : number;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block)
      mine[block] = ptx::ld_global(scales.row_scales(column + block * kScaleBlock) + mine_is);
  }
  __device__ __forceinline__ float at(int block, int k_tile) const {
    return __shfl_sync(0xffffffffu, mine[block], k_tile % 32);
  }
  /// The last block that columns before this one may be of.
  static constexpr int last(int end) {
    return (kScaleBlock - kColumns + end - 1) / kScaleBlock;
  }
  /// The block of a column of the tile, which begins at column `first` of its first block.
  __device__ __forceinline__ static int block_of(int column, int first) {
    return (kColumns == kScaleBlock ? column : first + column / kColumns * kColumns) / kScaleBlock;
  }
};

}  // namespace gemm
