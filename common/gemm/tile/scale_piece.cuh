// What step 77 taught: a piece of block scales, on its way from shared to tensor memory.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_cp.cuh"
#include "ptx/tcgen05_descriptor.h"

namespace gemm {

/// The scales of 128 rows and 4 blocks of K: 32 rows of 16 bytes (ptx::scale_offset), and so many columns of
/// tensor memory.
inline constexpr int kPieceRows = 128;
inline constexpr int kPieceBytes = 512;
inline constexpr std::uint32_t kPieceColumns = 4;

/// Issues the copy of a piece to all four quarters of the lanes. No swizzle: 8 rows are 128 contiguous bytes.
__device__ __forceinline__ void copy_scale_piece(std::uint32_t columns, const unsigned char* piece) {
  ptx::tcgen05_cp_32x128b_warpx4(columns, ptx::tcgen05_encode({.address = ptx::shared_address(piece),
                                                               .leading_bytes = 16,  // ignored
                                                               .stride_bytes = 128}));
}

}  // namespace gemm
