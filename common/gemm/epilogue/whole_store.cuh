// What step 46 taught: D's part of a warpgroup leaves through buffers for all of it. Beside it stands the
// store of rows that a TMA store would write past: those of a group's last tile.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/trace.cuh"

namespace gemm {

/// A warpgroup rounds its 64 rows of sums to bf16 and stores them from (row, column) of D on. All its threads
/// call it; named barrier 1 + its number is used. Its first thread waits for the stores before the kernel
/// ends.
template <int kSums, int kBuffers>
__device__ __forceinline__ void store_whole_tile(const float (&sums)[kSums],
                                                 unsigned char (&buffers)[kBuffers][64][kRowBytes],
                                                 const ptx::TensorMap* d_map, int row_of_d, int column_of_d) {
  static_assert(kSums == 32 * kBuffers, "a buffer for each subtile of 64 x 64 elements");
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp_index() % 4 * 16 + lane % 16;
  const auto barrier = static_cast<std::uint32_t>(1 + warp_index() / 4);
  const bool stores = threadIdx.x % 128 == 0;
  if (stores) ptx::cp_async_bulk_wait_group_read<0>();
  ptx::bar_sync(barrier, 128);
#pragma unroll
  for (int i = 0; i < kBuffers * 4; ++i) {  // 16 columns of a subtile
    const float* const from = &sums[i * 8];
    const int place = ((i % 4 * 2 + lane / 16) ^ row % 8) * 16;
    const std::uint32_t four[4] = {
        ptx::cvt_rn_bf16x2_f32(from[0], from[1]), ptx::cvt_rn_bf16x2_f32(from[2], from[3]),
        ptx::cvt_rn_bf16x2_f32(from[4], from[5]), ptx::cvt_rn_bf16x2_f32(from[6], from[7])};
    ptx::stmatrix_x4(&buffers[i / 4][row][place], four);
  }
  ptx::fence_proxy_async_shared_cta();
  ptx::bar_sync(barrier, 128);
  if (stores) {
#pragma unroll
    for (int i = 0; i < kBuffers; ++i)
      ptx::cp_async_bulk_tensor_2d_store(d_map, column_of_d + i * 64, row_of_d, buffers[i]);
    ptx::cp_async_bulk_commit_group();
  }
}

/// The same for 64 rows of which only those before row `end` of D, a dense [m][n] matrix, are to be written:
/// each thread writes what it has of its two rows.
template <int kSums>
__device__ __forceinline__ void store_rows_before(const float (&sums)[kSums], bf16* d, int end, int n,
                                                  int row_of_d, int column_of_d) {
  if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kStore);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row_of_d + warp_index() % 4 * 16 + half * 8 + lane / 4;
    if (row >= end) continue;
#pragma unroll
    for (int j = 0; j < kSums / 4; ++j) {
      const int column = column_of_d + j * 8 + lane % 4 * 2;
      if (column >= n) continue;
      ptx::st_global(reinterpret_cast<std::uint32_t*>(d + offset(row, column, n)),
                     ptx::cvt_rn_bf16x2_f32(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]));
    }
  }
  if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kNone);
}

}  // namespace gemm
