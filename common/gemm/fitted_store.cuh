// What step 21 taught about the epilogue: tiles of any width that is a multiple of 16, and tiles whose rows
// are columns of D.
#pragma once

#include <cstdint>

#include "gemm/gemm.h"
#include "gemm/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/swizzle_mode.h"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// Columns of a tile that is kN wide which one TMA store takes: as many as divide the width, at most 64.
template <int kN>
inline constexpr int kSubtileN = kN % 64 == 0   ? 64
                                 : kN % 32 == 0 ? 32
                                                : 16;

/// Columns of a tile that pass through shared memory together, in one subtile or several.
inline constexpr int kChunkN = 64;

/// Two chunks of a warpgroup, 64 rows each, on their way out.
struct alignas(1024) ChunkBuffers {
  bf16 d[2][64 * kChunkN];  // [buffer][subtile][m][n], or [buffer][subtile][n][m] where D is transposed
};

/// The swizzle of a subtile whose rows are this many elements long.
constexpr ptx::Swizzle subtile_swizzle(int elements) {
  return elements == 64 ? ptx::Swizzle::k128B : elements == 32 ? ptx::Swizzle::k64B : ptx::Swizzle::k32B;
}

/// The map of D, a dense [m][n] bf16 matrix, written in subtiles of 64 rows of a tile that is kN wide.
/// `transposed`: the tile's rows are columns of D.
template <int kN>
ptx::TensorMap subtile_map(bf16* d, int m, int n, bool transposed) {
  constexpr int kColumns = kSubtileN<kN>;
  return transposed
             ? ptx::make_tensor_map(ptx::matrix_spec(d, m, n, kColumns, 64, ptx::Swizzle::k128B))
             : ptx::make_tensor_map(ptx::matrix_spec(d, m, n, 64, kColumns, subtile_swizzle(kColumns)));
}

/// Rounds 64 rows of `columns` accumulators to bf16 and issues their stores; (row, column) is their corner in
/// the tile's matrix, D or D transposed. A warpgroup calls it with its buffer, which the store before the
/// last may still be reading. Uses named barrier 1 + (number of the warpgroup in the CTA).
template <int kN, bool kTransposed>
__device__ __forceinline__ void store_chunk(const float* accumulators, int columns, bf16* buffer,
                                            const ptx::TensorMap* d_map, int row, int column) {
  constexpr int kColumns = kSubtileN<kN>;
  constexpr ptx::Swizzle kSwizzle = kTransposed ? ptx::Swizzle::k128B : subtile_swizzle(kColumns);
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto barrier = 1 + threadIdx.x / 128;
  const bool issues = threadIdx.x % 128 == 0;
  if (issues) ptx::cp_async_bulk_wait_group_read<1>();
  ptx::bar_sync(barrier, 128);
#pragma unroll
  for (int c = 0; c < kChunkN; c += 16) {
    if (c >= columns) break;
    const float* const pair = accumulators + c / 2;
    const std::uint32_t values[4] = {
        ptx::cvt_rn_bf16x2_f32(pair[0], pair[1]), ptx::cvt_rn_bf16x2_f32(pair[2], pair[3]),
        ptx::cvt_rn_bf16x2_f32(pair[4], pair[5]), ptx::cvt_rn_bf16x2_f32(pair[6], pair[7])};
    bf16* const subtile = buffer + c / kColumns * 64 * kColumns;
    const int begin = c % kColumns;  // in the subtile
    if constexpr (kTransposed) {
      const auto offset = static_cast<std::uint32_t>((begin + lane / 16 * 8 + lane % 8) * 128 +
                                                     (warp * 16 + lane / 8 % 2 * 8) * 2);
      ptx::stmatrix_x4_trans(subtile + ptx::swizzled(offset, kSwizzle) / 2, values);
    } else {
      const auto offset =
          static_cast<std::uint32_t>((warp * 16 + lane % 16) * kColumns * 2 + (begin + lane / 16 * 8) * 2);
      ptx::stmatrix_x4(subtile + ptx::swizzled(offset, kSwizzle) / 2, values);
    }
  }
  ptx::fence_proxy_async_shared_cta();
  ptx::bar_sync(barrier, 128);
  if (!issues) return;
#pragma unroll
  for (int c = 0; c < kChunkN; c += kColumns) {
    if (c >= columns) break;
    const bf16* const subtile = buffer + c * 64;
    if constexpr (kTransposed) {
      ptx::cp_async_bulk_tensor_2d_store(d_map, row, column + c, subtile);
    } else {
      ptx::cp_async_bulk_tensor_2d_store(d_map, column + c, row, subtile);
    }
  }
  ptx::cp_async_bulk_commit_group();
}

/// Rounds the warpgroup's part of the tile at (tile_row, tile_column) and issues its stores.
template <typename T, bool kTransposed>
__device__ __forceinline__ void store_fitted(const WarpgroupTile<T>& tile, ChunkBuffers& buffers,
                                             const ptx::TensorMap* d_map, int tile_row, int tile_column) {
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
    for (int c = 0; c < T::kN; c += kChunkN) {
      constexpr int kChunks = (T::kN + kChunkN - 1) / kChunkN;
      const int columns = T::kN - c < kChunkN ? T::kN - c : kChunkN;
      // Chunks are counted on from tile to tile only where a tile has an even number of them.
      if constexpr (T::kBlocks * kChunks % 2 != 0) {
        if (block == 0 && c == 0 && threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
      }
      store_chunk<T::kN, kTransposed>(&tile.accumulators[block][c / 2], columns,
                                      buffers.d[(block * kChunks + c / kChunkN) % 2], d_map,
                                      tile_row + tile.row + block * 64, tile_column + c);
    }
  }
}

}  // namespace gemm
