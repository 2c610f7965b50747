// What step 42 taught: accumulators are scaled and rounded to D's type, saturating, and stored by TMA in
// subtiles with rows of 128 bytes, whatever the type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/typed_slab.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// Scaled and rounded to D's type, saturating: two neighbours of a row, the left one in the lower bits.
template <typename D, typename S>
__device__ __forceinline__ auto packed_pair(S low, S high, float scale) {
  const float x = scaled(low, scale);
  const float y = scaled(high, scale);
  if constexpr (std::is_same_v<D, bf16>) return ptx::cvt_rn_bf16x2_f32(x, y);
  if constexpr (std::is_same_v<D, fp16>) return ptx::cvt_rn_satfinite_f16x2_f32(x, y);
  if constexpr (std::is_same_v<D, e4m3>) return ptx::cvt_rn_satfinite_e4m3x2_f32(x, y);
  if constexpr (std::is_same_v<D, float>) return make_float2(x, y);
  if constexpr (std::is_same_v<D, int8>)
    return static_cast<std::uint16_t>(static_cast<std::uint8_t>(ptx::cvt_rni_sat_s8_f32(y)) << 8 |
                                      static_cast<std::uint8_t>(ptx::cvt_rni_sat_s8_f32(x)));
}

/// A warpgroup stores its 64 x kColumns part of D through its two buffers of 64 rows of 128 bytes:
/// issue(column, buffer) issues the store of the subtile that begins at this column of the part. All its
/// threads call it; named barrier 1 + its number is used. Its first thread waits for the stores before the
/// kernel ends.
template <typename D, int kN, typename S, typename Issue>
__device__ __forceinline__ void store_typed_subtiles(const S (&sums)[kN], float scale,
                                                     unsigned char (&buffers)[2][64][kRowBytes],
                                                     const Issue& issue) {
  constexpr int kColumns = kRowBytes / static_cast<int>(sizeof(D));  // of a subtile
  // The next tile begins with the first buffer, which after an odd number of subtiles is the latest one.
  constexpr int kPending = ceil_div(2 * kN, kColumns) % 2 == 0 ? 1 : 0;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = warp_index() % 4 * 16;
  const auto barrier = static_cast<std::uint32_t>(1 + warp_index() / 4);
  const bool stores = threadIdx.x % 128 == 0;
  int buffer = 0;
#pragma unroll
  for (int column = 0; column < 2 * kN; column += kColumns) {
    if (stores) ptx::cp_async_bulk_wait_group_read<kPending>();
    ptx::bar_sync(barrier, 128);
#pragma unroll
    for (int j = 0; j < kColumns / 8; j += 2) {  // 16 columns
      if (column + 8 * j >= 2 * kN) break;
      const S* from = &sums[(column / 8 + j) * 4];
      if constexpr (sizeof(D) == 2) {
        const int row = first_row + lane % 16;
        const int place = ((j + lane / 16) ^ row % 8) * 16;
        auto* const to = &buffers[buffer][row][place];
        const std::uint32_t left[2] = {packed_pair<D>(from[0], from[1], scale),
                                       packed_pair<D>(from[2], from[3], scale)};
        if (column + 8 * j + 8 == 2 * kN) {  // the last 8 columns of an odd number
          ptx::stmatrix_x2(to, left);
        } else {
          const std::uint32_t both[4] = {left[0], left[1], packed_pair<D>(from[4], from[5], scale),
                                         packed_pair<D>(from[6], from[7], scale)};
          ptx::stmatrix_x4(to, both);
        }
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int first = 2 * i;
          const auto pair = packed_pair<D>(from[first], from[first + 1], scale);
          const int row = first_row + lane / 4 + i % 2 * 8;
          const int byte = ((j + i / 2) * 8 + lane % 4 * 2) * static_cast<int>(sizeof(D));
          auto* const to = &buffers[buffer][row][(byte / 16 ^ row % 8) * 16 + byte % 16];
          ptx::st_shared(reinterpret_cast<std::remove_const_t<decltype(pair)>*>(to), pair);
        }
      }
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync(barrier, 128);
    if (stores) {
      issue(column, buffers[buffer]);
      ptx::cp_async_bulk_commit_group();
    }
    buffer ^= 1;
  }
}

/// Stores the part of D that begins at (row, column), a whole number of subtiles.
template <typename D, int kN, typename S>
__device__ __forceinline__ void store_typed_tile(const S (&sums)[kN], float scale,
                                                 unsigned char (&buffers)[2][64][kRowBytes],
                                                 const ptx::TensorMap* d_map, int row_of_d, int column_of_d) {
  static_assert(sizeof(D) * 2 * kN % kRowBytes == 0,
                "a subtile that hangs over its tile overwrites the next");
  store_typed_subtiles<D>(sums, scale, buffers, [&](int column, const unsigned char(&buffer)[64][kRowBytes]) {
    ptx::cp_async_bulk_tensor_2d_store(d_map, column_of_d + column, row_of_d, buffer);
  });
}

/// Stores the part of tile `tile_n` of D's rows, of any width. `tiles`: a typed_tile_map. `edge`: a
/// typed_map, for the tile that hangs over D.
template <typename D, int kN, typename S>
__device__ __forceinline__ void store_fitted_tile(const S (&sums)[kN], float scale,
                                                  unsigned char (&buffers)[2][64][kRowBytes],
                                                  const ptx::TensorMap* tiles, const ptx::TensorMap* edge,
                                                  int n, int row_of_d, int tile_n) {
  store_typed_subtiles<D>(sums, scale, buffers, [&](int column, const unsigned char(&buffer)[64][kRowBytes]) {
    constexpr bool kHangsOver = sizeof(D) * 2 * kN % kRowBytes != 0;
    if (kHangsOver && (tile_n + 1) * 2 * kN <= n) {
      ptx::cp_async_bulk_tensor_3d_store(tiles, column, row_of_d, tile_n, buffer);
    } else {
      ptx::cp_async_bulk_tensor_2d_store(edge, tile_n * 2 * kN + column, row_of_d, buffer);
    }
  });
}

}  // namespace gemm
