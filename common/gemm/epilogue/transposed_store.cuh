// What step 45 teaches: the accumulators of a kernel whose operands have changed places hold D transposed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/problem/bf16.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// Of a tile whose columns are rows of D: a warpgroup's columns on their way out, 64 at most at a time.
template <typename T>
struct alignas(1024) TransposedBuffers {
  static constexpr int kRows = std::min(T::kN, 64);
  static constexpr int kCount = T::kN > 64 ? 2 : 1;
  static_assert(T::kWarpgroupM == 64, "a row of 128 bytes of D is a warpgroup's 64 rows of the tile");
  static_assert(T::kN % 16 == 0, "stmatrix.x4 stores 16 rows of D");
  static_assert(T::kN / kRows % kCount == 0, "each tile begins with the first buffer");

  bf16 d[kCount][kRows][64];  // [buffer][row of D][column of D], swizzled
};

/// Stores a warpgroup's 64 rows of the tile as columns of D from `column` on, its columns as rows from `row`
/// on. stmatrix.trans transposes each 8 x 8 matrix on its way into the buffer: a lane hands in a row of D, of
/// 8 columns. Uses named barrier 1 + (number of the warpgroup).
template <typename T>
__device__ __forceinline__ void store_transposed(const WarpgroupTile<T>& tile, TransposedBuffers<T>& buffers,
                                                 const ptx::TensorMap* d_map, int row, int column) {
  using Buffers = TransposedBuffers<T>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int unit = warp_index() % 4 * 2 + lane / 8 % 2;  // of 8 columns of D
  const auto barrier = static_cast<std::uint32_t>(1 + warp_index() / 4);
#pragma unroll
  for (int first = 0; first < T::kN; first += Buffers::kRows) {
    auto& buffer = buffers.d[first / Buffers::kRows % Buffers::kCount];
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<Buffers::kCount - 1>();
    ptx::bar_sync(barrier, 128);
#pragma unroll
    for (int m = 0; m < Buffers::kRows; m += 16) {
      const float* from = &tile.accumulators[0][(first + m) / 2];
      const std::uint32_t pairs[4] = {
          ptx::cvt_rn_bf16x2_f32(from[0], from[1]), ptx::cvt_rn_bf16x2_f32(from[2], from[3]),
          ptx::cvt_rn_bf16x2_f32(from[4], from[5]), ptx::cvt_rn_bf16x2_f32(from[6], from[7])};
      const int line = m + lane / 16 * 8 + lane % 8;
      ptx::stmatrix_x4_trans(&buffer[line][(unit ^ line % 8) * 8], pairs);
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync(barrier, 128);
    if (threadIdx.x % 128 == 0) {
      ptx::cp_async_bulk_tensor_2d_store(d_map, column, row + first, buffer);
      ptx::cp_async_bulk_commit_group();
    }
  }
}

}  // namespace gemm
