// What step 44 taught: a part is multiplied on its own, and its accumulators are added to sums as often as
// the scales of their row and their block say.
#pragma once

#include <cstdint>

#include "gemm/problem/types.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/typed_slab.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/descriptor.h"
#include "ptx/memory.cuh"
#include "ptx/trace.cuh"
#include "ptx/wgmma.cuh"

namespace gemm {

// Step 44 may promote twice in a k-tile, so its functions take a depth and another source of B's scales.

/// Issues the multiplication of a part as one wgmma group: rows from `row` on, columns from `column` on, and
/// one k-tile deep.
template <typename Tiles, int kCount>
__device__ __forceinline__ void issue_part(float (&accumulators)[kCount], const Tiles& stage, int row,
                                           int column) {
  ptx::wgmma_fence_operand(accumulators);
  ptx::wgmma_fence();
  const std::uint64_t a = tile_descriptor<64>(stage.a[0][row]);
  const std::uint64_t b = tile_descriptor<64>(stage.b[0][column]);
#pragma unroll
  for (int byte = 0; byte < kRowBytes; byte += 32)
    multiply_slab<e4m3, e4m3, 2 * kCount>(accumulators, ptx::advanced(a, byte), ptx::advanced(b, byte),
                                          byte > 0);
  ptx::wgmma_commit_group();
}

/// The scales of a thread's accumulators in a part of kColumns columns, [block of B][row]. `scales_a`: those
/// of the thread's two rows in k-tile `k_tile`, whose scales of B are in the lanes.
template <int kColumns, typename Blocks>
__device__ __forceinline__ void scale_part(float (&scales)[Blocks::kBlocks][2], const float (&scales_a)[2],
                                           int column, const Blocks& scales_b, int k_tile) {
#pragma unroll
  for (int block = column / kScaleBlock; block <= Blocks::last(column + kColumns); ++block) {
    const float b = scales_b.at(block, k_tile);
    scales[block][0] = scales_a[0] * b;
    scales[block][1] = scales_a[1] * b;
  }
}

/// The promotion: adds the accumulators of a part to its sums, each as often as its scale says. `first`: the
/// column of a block of B in which the tile begins.
template <typename Blocks, int kSums, int kCount>
__device__ __forceinline__ void promote(float (&sums)[kSums], const float (&accumulators)[kCount],
                                        const float (&scales)[Blocks::kBlocks][2], int column, int first) {
  ptx::trace_arithmetic(kCount);
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const int block = Blocks::block_of(column + j / 4 * 8, first);
    const int row = j / 2 % 2;
    sums[column / 2 + j] +=
        (block == 0 ? scales[0][row] : scales[Blocks::kBlocks - 1][row]) * accumulators[j];
  }
}

/// A's scales of a thread's two rows: row_scale's and the one 8 rows below.
__device__ __forceinline__ void read_row_scales(float (&scales)[2], const float* row_scale) {
  scales[0] = ptx::ld_shared(row_scale);
  scales[1] = ptx::ld_shared(row_scale + 8);
}

}  // namespace gemm
