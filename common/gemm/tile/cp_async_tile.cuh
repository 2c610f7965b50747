// What step 06 taught: the threads of a CTA issue the copies of a k-tile with cp.async.
#pragma once

#include "gemm/problem/gemm.h"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tile_source.cuh"
#include "ptx/core.cuh"
#include "ptx/cp_async.cuh"

namespace gemm {

/// Issues the copies of this thread's vectors of the k-tile at column k0, zeros outside the matrix. Does not
/// commit.
template <typename T, int kRows>
__device__ __forceinline__ void copy_async(SwizzledTile<T, kRows>& tile, const TileSource<T, kRows>& source,
                                           int k0) {
  const int count = source.count(k0);
  bf16* destination = source.in_tile(tile);
#pragma unroll
  for (int i = 0; i < source.kVectors; ++i) {
    ptx::cp_async_cg_16(destination + i * source.kTileStep, source.address(i, k0), i < count ? 16 : 0);
  }
}

}  // namespace gemm
