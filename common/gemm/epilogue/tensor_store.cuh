// What step 76 taught: a tile leaves tensor memory through swizzled shared memory and TMA stores, and the
// accumulator is handed back as soon as it is in registers.
#pragma once

#include <cstdint>

#include "gemm/launch/tensor_maps.cuh"
#include "gemm/problem/gemm.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_ld.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

inline constexpr int kStoredColumns = 64;  // of a subtile: 128 bytes of D, the span of the swizzle

/// Two subtiles of D on their way out.
template <typename T>
struct TensorStoreBuffers {
  alignas(1024) bf16 d[2][T::kM][kStoredColumns];  // [buffer][m][n], 128-byte rows, swizzled

  /// The map of D, whose boxes are such subtiles.
  static ptx::TensorMap map_of(const Gemm& gemm) {
    return ptx::make_tensor_map(
        ptx::matrix_spec(gemm.d, gemm.shape.m, gemm.shape.n, T::kM, kStoredColumns, ptx::Swizzle::k128B));
  }
};

/// Stores the accumulator at `d` as the part of D that begins at (tile_row, tile_column). The CTA's first
/// four warps call it, behind tcgen05_fence_after_thread_sync(), and meet at named barrier 1. A warp calls
/// hand_back() when its part of the accumulator is in registers. Thread 0 must wait for the stores before the
/// CTA ends (cp_async_bulk_wait_group<0>).
template <typename T, typename Handback>
__device__ __forceinline__ void store_through_shared(TensorStoreBuffers<T>& buffers,
                                                     const ptx::TensorMap* d_map, std::uint32_t d,
                                                     int tile_row, int tile_column,
                                                     const Handback& hand_back) {
  constexpr std::uint32_t kBarrier = 1;
  constexpr std::uint32_t kThreads = 128;
  const int row = static_cast<int>(threadIdx.x);  // in the tile, and the lane of tensor memory
  const std::uint32_t lanes = ptx::tensor_memory_address(d, static_cast<std::uint32_t>(row) / 32 * 32, 0);
  const bool stores = threadIdx.x == 0;
  static_assert(T::kN / kStoredColumns % 2 == 0, "a tile begins with the buffer that was stored longer ago");
  int buffer = 0;
#pragma unroll 1
  for (int column = 0; column < T::kN; column += kStoredColumns) {
    float values[2][32];
    ptx::tcgen05_ld_32x32b_x32(values[0], lanes + static_cast<std::uint32_t>(column));
    ptx::tcgen05_ld_32x32b_x32(values[1], lanes + static_cast<std::uint32_t>(column) + 32);
    ptx::tcgen05_wait_ld();
    if (column + kStoredColumns == T::kN) hand_back();

    if (stores) ptx::cp_async_bulk_wait_group_read<1>();
    ptx::bar_sync(kBarrier, kThreads);  // the buffer is free
#pragma unroll
    for (int unit = 0; unit < 8; ++unit) {  // a unit is 8 columns wide
      const float* from = &values[unit / 4][unit % 4 << 3];
      const uint4 eight = {ptx::cvt_rn_bf16x2_f32(from[0], from[1]), ptx::cvt_rn_bf16x2_f32(from[2], from[3]),
                           ptx::cvt_rn_bf16x2_f32(from[4], from[5]),
                           ptx::cvt_rn_bf16x2_f32(from[6], from[7])};
      const int place = (unit ^ row % 8) * 8;
      ptx::st_shared(reinterpret_cast<uint4*>(&buffers.d[buffer][row][place]), eight);
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync(kBarrier, kThreads);  // the subtile is written
    if (stores) {
      ptx::cp_async_bulk_tensor_2d_store(d_map, tile_column + column, tile_row, buffers.d[buffer]);
      ptx::cp_async_bulk_commit_group();
    }
    buffer ^= 1;
  }
}

}  // namespace gemm
