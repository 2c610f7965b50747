// What step 09 taught: tensor maps of the operands, and one thread that issues the copies of a k-tile.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// The map of an operand, a dense [rows][k] bf16 matrix, read in boxes of box_rows x T::kPanelK into the
/// swizzled panels of WgmmaTiles<T>. `promotion`: what the L2 reads of DRAM at once.
template <typename T>
ptx::TensorMap operand_map(const bf16* matrix, int rows, int k, int box_rows,
                           ptx::L2Promotion promotion = ptx::L2Promotion::k128B) {
  auto spec = ptx::matrix_spec(matrix, rows, k, box_rows, T::kPanelK, kPanelSwizzle<T::kPanelK>);
  spec.l2_promotion = promotion;
  return ptx::make_tensor_map(spec);
}

/// Issues the copies of the k-tile at column k0 and expects their bytes on `full`. One thread of the CTA
/// calls it.
// ANCHOR: load_tiles
template <typename T>
__device__ __forceinline__ void load_tiles(WgmmaTiles<T>& tiles, std::uint64_t* full,
                                           const ptx::TensorMap* a_map, const ptx::TensorMap* b_map,
                                           int tile_row, int tile_column, int k0) {
  // ANCHOR: copies
  ptx::mbarrier_arrive_expect_tx(full, WgmmaTiles<T>::kBytes);
#pragma unroll
  for (int panel = 0; panel < T::kPanels; ++panel) {
    ptx::cp_async_bulk_tensor_2d(tiles.a[panel], a_map, k0 + panel * T::kPanelK, tile_row, full);
    ptx::cp_async_bulk_tensor_2d(tiles.b[panel], b_map, k0 + panel * T::kPanelK, tile_column, full);
    // ANCHOR_END: copies
  }
}
// ANCHOR_END: load_tiles

}  // namespace gemm
