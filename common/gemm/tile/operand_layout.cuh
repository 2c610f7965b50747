// What step 40 taught: a k-tile of 16-bit operands that lie either way round, 64 of K deep.
#pragma once

#include <cstdint>

#include "gemm/problem/bf16.h"
#include "gemm/problem/types.h"
#include "ptx/core.cuh"
#include "ptx/descriptor.h"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// 64 rows of a tile, whichever way round: 64 lines of 128 bytes.
inline constexpr int kPanelBytes = 64 * 128;

/// Loads kRows rows from `row` on, K-major as [row][k], MN-major as panels [k][64 rows], through a
/// layout_map. One thread calls it.
template <Major kMajor, int kRows>
__device__ __forceinline__ void load_operand(bf16 (&tile)[kRows][64], const ptx::TensorMap* map, int row,
                                             int k, std::uint64_t* full) {
  if constexpr (kMajor == Major::kK) {
    ptx::cp_async_bulk_tensor_2d(tile, map, k, row, full);
  } else {
#pragma unroll
    for (int panel = 0; panel < kRows; panel += 64)
      ptx::cp_async_bulk_tensor_2d(tile[panel], map, row + panel, k, full);
  }
}

/// How far the descriptor of a tile advances for 16 of K.
template <Major kMajor>
inline constexpr int kSlabStep = kMajor == Major::kK ? 32 : 16 * 128;

template <Major kMajor>
__device__ __forceinline__ std::uint64_t operand_descriptor(const bf16* tile) {
  const std::uint32_t address = ptx::shared_address(tile);
  return kMajor == Major::kK ? ptx::k_major_descriptor(address, ptx::Swizzle::k128B)
                             : ptx::mn_major_descriptor(address, ptx::Swizzle::k128B, kPanelBytes);
}

}  // namespace gemm
