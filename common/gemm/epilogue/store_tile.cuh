// What step 15 taught: a warpgroup's part of D leaves through shared memory, with stmatrix and TMA stores.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// Two subtiles of D on their way out: 128-byte rows, 128-byte swizzle.
struct alignas(1024) StoreBuffers {
  bf16 d[2][64][64];  // [buffer][m][n]
};

/// The map of D, a dense [m][n] bf16 matrix, written in boxes of 64 x 64 from StoreBuffers.
inline ptx::TensorMap store_map(bf16* d, int m, int n) {
  return ptx::make_tensor_map(ptx::matrix_spec(d, m, n, 64, 64, ptx::Swizzle::k128B));
}

/// Two neighbours of a row, rounded to D's type, the left one in the lower bits; fp16 saturates.
template <typename D>
__device__ __forceinline__ std::uint32_t rounded_pair(float left, float right) {
  if constexpr (std::is_same_v<D, fp16>) {
    return ptx::cvt_rn_satfinite_f16x2_f32(left, right);
  } else {
    return ptx::cvt_rn_bf16x2_f32(left, right);
  }
}

/// Whether this thread issues the stores of its warpgroup, and therefore waits for them.
__device__ __forceinline__ bool stores_tile() {
  return threadIdx.x % 128 == 0;
}

/// One subtile, to a matrix or to one of several.
__device__ __forceinline__ void store_subtile(const ptx::TensorMap* d_map, int column, int row,
                                              const void* subtile) {
  ptx::cp_async_bulk_tensor_2d_store(d_map, column, row, subtile);
}
__device__ __forceinline__ void store_subtile(const ptx::TensorMap* d_map, int column, int row, int batch,
                                              const void* subtile) {
  ptx::cp_async_bulk_tensor_3d_store(d_map, column, row, batch, subtile);
}

// Step 15's tile has an even number of subtiles, so that a tile always begins with the buffer that was read
// longer ago. Here it may be odd, and then the first subtile waits for all stores before.

/// Rounds the warpgroup's part of the tile at (tile_row, tile_column) to D's type, bf16 or fp16, and issues
/// its stores, 64 x 64 elements each; what lies outside D is clipped. Uses named barrier 1 + (number of the
/// warpgroup). `d_map` is a store_map; with a number of a matrix behind the column, its third dimension
/// counts matrices (step 52). The buffers may be in use by the stores of the tile before.
template <typename T, typename D = bf16, typename... Batch>
__device__ __forceinline__ void store_tile(const WarpgroupTile<T>& warpgroup, StoreBuffers& buffers,
                                           const ptx::TensorMap* d_map, int tile_row, int tile_column,
                                           Batch... batch) {
  const int warp = warp_index();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane % 16;
  const auto barrier = static_cast<std::uint32_t>(1 + warp / 4);
  int buffer = 0;
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
    for (int column = 0; column < T::kN; column += 64) {
      if (stores_tile()) {
        // An odd number of subtiles: the tile before ended with the buffer that this one begins with.
        constexpr bool kOdd = T::kBlocks * T::kN / 64 % 2 != 0;
        if (kOdd && block == 0 && column == 0) {
          ptx::cp_async_bulk_wait_group_read<0>();
        } else {
          ptx::cp_async_bulk_wait_group_read<1>();
        }
      }
      // ANCHOR: convert_and_store
      ptx::bar_sync(barrier, 128);
#pragma unroll
      for (int unit = 0; unit < 8; unit += 2) {
        const float* accumulators = &warpgroup.accumulators[block][(column / 8 + unit) * 4];
        const std::uint32_t pairs[4] = {rounded_pair<D>(accumulators[0], accumulators[1]),
                                        rounded_pair<D>(accumulators[2], accumulators[3]),
                                        rounded_pair<D>(accumulators[4], accumulators[5]),
                                        rounded_pair<D>(accumulators[6], accumulators[7])};
        const int place = ((unit + lane / 16) ^ row % 8) * 8;
        ptx::stmatrix_x4(&buffers.d[buffer][row][place], pairs);
        // ANCHOR_END: convert_and_store
      }
      // ANCHOR: wait_and_store
      ptx::fence_proxy_async_shared_cta();
      ptx::bar_sync(barrier, 128);
      if (stores_tile()) {
        store_subtile(d_map, tile_column + column, tile_row + warpgroup.row + block * 64, batch...,
                      buffers.d[buffer]);
        ptx::cp_async_bulk_commit_group();
      }
      // ANCHOR_END: wait_and_store
      buffer ^= 1;
    }
  }
}

}  // namespace gemm
