// Step 52: groups of one size, whose matrices lie at equal distances in memory: a strided batch. The maps
// have a third dimension, which counts the products, so there is nothing to search for and TMA clips each D.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/groups.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/ring_reader.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_52 {

template <typename T, int kStages>
struct StridedShared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
};

/// The map of a matrix of each product: `batch` matrices of [rows][columns], whose first rows lie `distance`
/// rows apart, in boxes of box_rows rows of one of them.
// ANCHOR: batch_map
inline ptx::TensorMap batch_map(const bf16* first, int batch, int rows, int columns, std::int64_t distance,
                                int box_rows) {
  auto spec = ptx::matrix_spec(first, rows, columns, box_rows, 64, ptx::Swizzle::k128B);
  spec.rank = 3;
  spec.extent[2] = static_cast<std::uint64_t>(batch);
  spec.stride_bytes[2] = static_cast<std::uint64_t>(distance) * spec.stride_bytes[1];
  spec.box[2] = 1;
  return ptx::make_tensor_map(spec);
}
// ANCHOR_END: batch_map

/// A work tile: the product that it is in, and its place there.
struct BatchTile {
  int batch;
  int row;
  int column;
};

// Lesson: all products have equally many tiles, so a division finds the product of a tile. The raster runs
// inside a product, as in a group.
template <typename T>
__device__ __forceinline__ BatchTile batch_tile(int index, TileGrid tiles, Raster raster) {
  // ANCHOR: batch_tile
  const int batch = index / tiles.count();
  const TilePosition at = tile_at(index - batch * tiles.count(), tiles, raster);
  return {batch, at.m * T::kM, at.n * T::kN};
  // ANCHOR_END: batch_tile
}

template <typename T, int kStages>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    strided_kernel(Shape shape, int batch, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                   const __grid_constant__ ptx::TensorMap b_map,
                   const __grid_constant__ ptx::TensorMap d_map) {
  static_assert(T::kPanels == 1, "a k-tile is one box of A and one of B");
  auto& shared = ptx::dynamic_shared<StridedShared<T, kStages>>();
  auto& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>(shape);
  const int all = batch * tiles.count();
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      PipelineState<kStages> fill{0, 1};
      for (int index = first; index < all; index += step) {
        const BatchTile tile = batch_tile<T>(index, tiles, raster);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          // ANCHOR: batch_copies
          auto& stage = ring.stage[fill.stage];
          std::uint64_t* const full = &ring.full[fill.stage];
          ptx::mbarrier_arrive_expect_tx(full, WgmmaTiles<T>::kBytes);
          ptx::cp_async_bulk_tensor_3d(stage.a[0], &a_map, i * T::kK, tile.row, tile.batch, full);
          ptx::cp_async_bulk_tensor_3d(stage.b[0], &b_map, i * T::kK, tile.column, tile.batch, full);
          // ANCHOR_END: batch_copies
          fill.advance();
        }
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    WarpgroupTile<T> warpgroup;
    RingReader<T, kStages> reader{ring};
    for (int index = first; index < all; index += step) {
      reader.multiply(warpgroup, k_tiles);
      const BatchTile tile = batch_tile<T>(index, tiles, raster);
      reader.finish(warpgroup);
      // ANCHOR: batch_store
      store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, tile.row, tile.column, tile.batch);
      // ANCHOR_END: batch_store
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename T, int kStages, RasterOrder kOrder, int kGroup = 1>
Variant variant(const char* name, const char* summary) {
  using Grid = GroupedCtas<T, StridedShared<T, kStages>, Roles<T>::kThreads>;
  return variant_of<strided_kernel<T, kStages>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .groups = GroupForm::kStrided},
      [](const Problem& problem) {
        const std::vector<GroupRows> groups = groups_of(problem);
        const auto batch = static_cast<int>(groups.size());
        const Shape one{groups[0].count(), problem.shape.n, problem.shape.k};
        // A batch of one has no second product, so its distance may be any.
        const int distance = batch > 1 ? groups[1].begin - groups[0].begin : one.m;
        const std::int64_t begin = groups[0].begin;
        return std::tuple(one, batch, Raster{kOrder, kGroup},
                          batch_map(problem.a + begin * one.k, batch, one.m, one.k, distance, T::kM),
                          batch_map(problem.b, batch, one.n, one.k, one.n, T::kN),
                          batch_map(problem.d + begin * one.n, batch, one.m, one.n, distance, 64));
      });
}

}  // namespace gemm::step_52
