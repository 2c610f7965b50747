// The producers of step 45: packed weights, activations, and for each group of K its scales.
#pragma once

#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/weights.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/weight_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// Loads the k-tiles of all work tiles of the CTA into the ring; the rows of the shape are those of the
/// weights, and a k-tile of the work tiles is a group. One thread.
template <typename T, int kStages>
__device__ __forceinline__ void produce_weight_tiles(Ring<T, kStages>& ring, const Shape& shape,
                                                     const Raster& raster, TileScheduler scheduler,
                                                     const ptx::TensorMap* w_map, const ptx::TensorMap* x_map,
                                                     const ptx::TensorMap* s_map) {
  using Stage = WgmmaTiles<T>;
  constexpr int kLines = T::kBlockBytes / kWeightLine;  // of a block of 64 rows
  const TileGrid tiles = tile_grid<T>(shape);
  PipelineState<kStages> fill{0, 1};
  for (WorkTile work; scheduler.next(work);) {
    const TilePosition tile = tile_at(work.tile, tiles, raster);
    for (int i = 0; i < T::kHalves * work.count(); ++i) {
      const int group = work.k_tile(i / T::kHalves);
      const int k_tile = group * T::kHalves + i % T::kHalves;
      const int block = k_tile * (shape.m / kWeightRows) + tile.m * T::kWarpgroups;
      const bool begins = i % T::kHalves == 0;
      ring.producer_acquire(fill, i / T::kHalves);
      auto& stage = ring.stage[fill.stage];
      std::uint64_t* const full = &ring.full[fill.stage];
      ptx::mbarrier_arrive_expect_tx(full, Stage::kTileBytes + (begins ? Stage::kScaleBytes : 0));
      ptx::cp_async_bulk_tensor_2d(stage.weights, w_map, 0, block * kLines, full);
      ptx::cp_async_bulk_tensor_2d(stage.activations, x_map, k_tile * T::kK, tile.n * T::kN, full);
      if (begins)
        ptx::cp_async_bulk_tensor_2d(stage.scales, s_map, tile.m * T::kM,
                                     group * kScaleLines<typename T::Weight>, full);
      fill.advance();
    }
  }
}

/// Loads groups `first` to first + count - 1 of one tile into the ring, a group in a stage. One thread.
template <typename T, int kStages>
__device__ __forceinline__ void produce_groups(Ring<T, kStages>& ring, int row, int column, int first,
                                               int count, const ptx::TensorMap* w_map,
                                               const ptx::TensorMap* x_map, const ptx::TensorMap* s_map) {
  constexpr int kLines = T::kBlockBytes / kWeightLine;  // of a block of 64 rows
  PipelineState<kStages> fill{0, 1};
  for (int i = 0; i < count; ++i) {
    ring.producer_acquire(fill, i);
    auto& stage = ring.stage[fill.stage];
    std::uint64_t* const full = &ring.full[fill.stage];
    ptx::mbarrier_arrive_expect_tx(full, WgmmaTiles<T>::kTileBytes);
    const int k_tile = (first + i) * T::kPanels;
    ptx::cp_async_bulk_tensor_3d(stage.weights, w_map, 0, row / kWeightRows * kLines, k_tile, full);
    ptx::cp_async_bulk_tensor_3d(stage.activations, x_map, 0, column, k_tile, full);
    ptx::cp_async_bulk_tensor_2d(stage.scales, s_map, row, (first + i) * kScaleLines<typename T::Weight>,
                                 full);
    fill.advance();
  }
}

}  // namespace gemm
