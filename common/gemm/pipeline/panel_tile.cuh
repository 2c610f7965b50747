// What steps 04, 09 and 11 taught about a k-tile that is wider than a swizzle span: it lies in panels, each
// of them a box of TMA, and comes into the next stage of a ring.
#pragma once

#include <cstdint>

#include "gemm/pipeline/ring.cuh"
#include "gemm/tile/mma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// A k-tile of one operand, kRows x (kPanels * T::kK).
template <typename T, int kPanels, int kRows>
struct alignas(1024) PanelTile {
  static constexpr int kK = kPanels * T::kK;
  SwizzledTile<T, kRows> panel[kPanels];  // [panel][row][k]

  /// Issues the copies of the k-tile at column k0 and expects their bytes on `full`. One thread calls it.
  __device__ __forceinline__ void load(std::uint64_t* full, const ptx::TensorMap* map, int k0, int row) {
    ptx::mbarrier_arrive_expect_tx(full, sizeof panel);
#pragma unroll
    for (int i = 0; i < kPanels; ++i)
      ptx::cp_async_bulk_tensor_2d(panel[i].element, map, k0 + i * T::kK, row, full);
  }
};

/// Loads k-tile number i of an operand into the next stage of its ring.
template <typename T, int kStages, typename Tile>
__device__ __forceinline__ void load_next(Ring<T, kStages, Tile>& ring, PipelineState<kStages>& fill,
                                          const ptx::TensorMap* map, int i, int row) {
  ring.producer_acquire(fill, i);
  ring.stage[fill.stage].load(&ring.full[fill.stage], map, i * Tile::kK, row);
  fill.advance();
}

}  // namespace gemm
