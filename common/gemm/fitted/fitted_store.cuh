// What step 21 taught about the epilogue: tiles of any width that is a multiple of 8, and tiles whose rows
// are columns of D.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/swizzle_mode.h"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// Columns of a tile that one TMA store takes; fewer at the tile's right end.
inline constexpr int kChunkN = 64;

/// Chunks of a warpgroup on their way out: 128-byte rows, 128-byte swizzle.
template <int kCount>
struct alignas(1024) SomeChunkBuffers {
  bf16 d[kCount][64]
        [kChunkN];  // [buffer][m][n], of D; where the tile is transposed, its rows are D's columns
};
using ChunkBuffers = SomeChunkBuffers<2>;

/// The map of D, a dense [m][n] bf16 matrix, that writes boxes of 64 x 64 from ChunkBuffers.
inline ptx::TensorMap edge_map(bf16* d, int m, int n) {
  return ptx::make_tensor_map(ptx::matrix_spec(d, m, n, 64, kChunkN, ptx::Swizzle::k128B));
}

/// The same in tiles kN columns wide: dimension 2 counts them, so that a box that hangs over its tile is
/// clipped there. Only whole tiles are in it. `transposed`: columns of the tiles are rows of D.
// ANCHOR: tile_map
template <int kN>
ptx::TensorMap tile_map(bf16* d, int m, int n, bool transposed) {
  auto spec = ptx::matrix_spec(d, m, n, 64, kChunkN, ptx::Swizzle::k128B);
  const int axis = transposed ? 1 : 0;
  const int columns = transposed ? m : n;
  spec.rank = 3;
  spec.extent[axis] = static_cast<std::uint64_t>(std::min(kN, columns));
  spec.extent[2] = static_cast<std::uint64_t>(std::max(1, columns / kN));
  // ANCHOR_END: tile_map
  spec.stride_bytes[2] =
      static_cast<std::uint64_t>(kN) * 2 * (transposed ? static_cast<std::uint64_t>(n) : 1);
  spec.box[2] = 1;
  return ptx::make_tensor_map(spec);
}

/// Where 64 rows of a chunk go.
struct ChunkTarget {
  const ptx::TensorMap* tiles;  // a tile_map
  const ptx::TensorMap* edge;   // an edge_map
  int row;                      // the first of them in the tiles' matrix, D or D transposed
  int tile;                     // the tile's number along the columns
  bool whole;                   // no part of the tile lies outside D
};

/// Rounds 64 rows of `columns` accumulators, a multiple of 8, to bf16 and issues their store. `begin`: the
/// chunk's first column in the tile. A warpgroup calls it with the next of its kBuffers buffers: of the
/// stores before, kBuffers - 1 may still be reading. Uses named barrier 1 + (number of the warpgroup in the
/// CTA).
template <int kN, bool kTransposed, int kBuffers = 2>
__device__ __forceinline__ void store_chunk(const float* accumulators, int columns,
                                            bf16 (&buffer)[64][kChunkN], const ChunkTarget& target,
                                            int begin) {
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto barrier = 1 + threadIdx.x / 128;
  const bool issues = threadIdx.x % 128 == 0;
  if (issues) ptx::cp_async_bulk_wait_group_read<kBuffers - 1>();
  ptx::bar_sync(barrier, 128);
#pragma unroll
  for (int c = 0; c < kChunkN; c += 16) {
    if (c >= columns) break;
    // Lesson: four 8 x 8 matrices: rows 0 and 8 of columns c and c + 8. Transposed, the lanes name rows of D,
    // which are columns of the tile.
    const int c8 = c + lane / 16 * 8;
    const int row = kTransposed ? c8 + lane % 8 : warp * 16 + lane % 16;
    const int unit = kTransposed ? warp * 2 + lane / 8 % 2 : c8 / 8;
    const int place = (unit ^ row % 8) * 8;
    bf16* const address = &buffer[row][place];
    const float* const pair = accumulators + c / 2;
    const std::uint32_t left[2] = {ptx::cvt_rn_bf16x2_f32(pair[0], pair[1]),
                                   ptx::cvt_rn_bf16x2_f32(pair[2], pair[3])};
    if (c + 8 == columns) {
      if constexpr (kTransposed) ptx::stmatrix_x2_trans(address, left);
      if constexpr (!kTransposed) ptx::stmatrix_x2(address, left);
      break;
    }
    const std::uint32_t both[4] = {left[0], left[1], ptx::cvt_rn_bf16x2_f32(pair[4], pair[5]),
                                   ptx::cvt_rn_bf16x2_f32(pair[6], pair[7])};
    if constexpr (kTransposed) ptx::stmatrix_x4_trans(address, both);
    if constexpr (!kTransposed) ptx::stmatrix_x4(address, both);
  }
  ptx::fence_proxy_async_shared_cta();
  ptx::bar_sync(barrier, 128);
  if (!issues) return;
  // ANCHOR: which_map
  if (target.whole) {
    const int x = kTransposed ? target.row : begin;
    const int y = kTransposed ? begin : target.row;
    ptx::cp_async_bulk_tensor_3d_store(target.tiles, x, y, target.tile, buffer);
  } else {
    const int column = target.tile * kN + begin;
    const int x = kTransposed ? target.row : column;
    const int y = kTransposed ? column : target.row;
    ptx::cp_async_bulk_tensor_2d_store(target.edge, x, y, buffer);
  }
  // ANCHOR_END: which_map
  ptx::cp_async_bulk_commit_group();
}

/// Rounds the warpgroup's part of a tile and issues its stores. `target.row` is the tile's first row.
template <bool kTransposed, typename T, int kBuffers>
__device__ __forceinline__ void store_fitted(const WarpgroupTile<T>& tile,
                                             SomeChunkBuffers<kBuffers>& buffers, ChunkTarget target) {
  constexpr int kChunks = (T::kN + kChunkN - 1) / kChunkN;
  target.row += tile.row;
  // An odd number of chunks: the tile before ended with the buffer that this one begins with.
  if (T::kBlocks * kChunks % kBuffers != 0 && threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int begin = chunk * kChunkN;
      const int columns = T::kN - begin < kChunkN ? T::kN - begin : kChunkN;
      store_chunk<T::kN, kTransposed, kBuffers>(&tile.accumulators[block][begin / 2], columns,
                                                buffers.d[(block * kChunks + chunk) % kBuffers], target,
                                                begin);
    }
    target.row += 64;
  }
}

}  // namespace gemm
