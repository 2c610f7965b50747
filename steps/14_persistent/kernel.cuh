// Step 14: only as many CTAs are launched as fit on the GPU. Each takes one tile after the other, in an
// L2-friendly order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_14 {

// Lesson: a CTA that ends leaves its SM empty until the next one has set itself up and filled its ring. Here
// a CTA stays: it takes tile blockIdx.x, then every gridDim.x-th tile. All roles compute the same sequence
// for themselves, so no role has to be told. The ring does not notice where a tile ends: while the consumers
// store a tile, the producer already loads the next one.
template <typename T, int kStages>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    persistent_kernel(Gemm gemm, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                      const __grid_constant__ ptx::TensorMap b_map) {
  auto& ring = ptx::dynamic_shared<Ring<T, kStages>>();
  const TileGrid tiles = tile_grid<T>(gemm.shape);
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      // ANCHOR: producer
      PipelineState<kStages> fill{0, 1};
      for (int index = first; index < tiles.count(); index += step) {
        const TilePosition tile = tile_at(index, tiles, raster);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.m * T::kM,
                        tile.n * T::kN, i * T::kK);
          fill.advance();
          // ANCHOR_END: producer
        }
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const bool releases = threadIdx.x % 128 == 0;
    WarpgroupTile<T> warpgroup;
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      if (releases) ring.consumer_release(release);
      release.advance();
    };
    // ANCHOR: consumer
    for (int index = first; index < tiles.count(); index += step) {
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) release_stage();
      }
      const TilePosition tile = tile_at(index, tiles, raster);
      warpgroup.template wait<0>();
      release_stage();  // the last k-tile's stage must be released now: the next tile will reuse it
      // ANCHOR: store
      warpgroup.store(gemm, tile.m * T::kM, tile.n * T::kN);
      // ANCHOR_END: store
      // ANCHOR_END: consumer
    }
  }
}

template <typename T, int kStages>
ptx::LaunchShape launch_shape(const Shape& shape) {
  ptx::LaunchShape launch{.block = {Roles<T>::kThreads}, .shared_bytes = sizeof(Ring<T, kStages>)};
  const unsigned at_once = ptx::resident_ctas(ptx::kernel_handle(persistent_kernel<T, kStages>), launch);
  launch.grid.x = std::min(static_cast<unsigned>(tile_grid<T>(shape).count()), at_once);
  return launch;
}

template <typename T, int kStages, RasterOrder kOrder, int kGroup>
Launcher prepare(const Gemm& gemm) {
  const auto [m, n, k] = gemm.shape;
  return [gemm, a_map = operand_map<T>(gemm.a, m, k, T::kM), b_map = operand_map<T>(gemm.b, n, k, T::kN),
          launch = launch_shape<T, kStages>(gemm.shape)](ptx::Stream stream) {
    ptx::launch(persistent_kernel<T, kStages>, launch, stream, gemm, Raster{kOrder, kGroup}, a_map, b_map);
  };
}

template <typename T, int kStages, RasterOrder kOrder, int kGroup = 1>
Variant variant(const char* name, const char* summary) {
  return {.name = name,
          .summary = summary,
          .tile = {T::kM, T::kN, T::kK},
          .stages = kStages,
          .traffic = wgmma_tile_traffic<T>(),
          .kernel = ptx::kernel_handle(persistent_kernel<T, kStages>),
          .launch_shape = launch_shape<T, kStages>,
          .prepare = prepare<T, kStages, kOrder, kGroup>};
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using Tile256x128 = WgmmaTiling<256, 128, 64, 2>;
using enum RasterOrder;

inline const Step kStep{
    .name = "14_persistent",
    .title = "one CTA per SM takes tile after tile, in an L2-friendly order",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x256, 4, kGrouped, 16>("128x256_group16", "raster groups of 16 tiles of M"),
        variant<Tile128x256, 4, kAlongN>("128x256_along_n", "row by row"),
        variant<Tile128x256, 4, kAlongM>("128x256_along_m", "column by column"),
        variant<Tile128x256, 4, kGrouped, 2>("128x256_group2", "raster groups of 2 tiles of M"),
        variant<Tile128x256, 4, kGrouped, 4>("128x256_group4", "raster groups of 4 tiles of M"),
        variant<Tile128x256, 4, kGrouped, 8>("128x256_group8", "raster groups of 8 tiles of M"),
        variant<Tile128x256, 4, kHilbert>("128x256_hilbert", "along a Hilbert curve"),
        variant<Tile256x128, 4, kGrouped, 8>("256x128_group8", "256 x 128, raster groups of 8 tiles of M"),
        variant<Tile256x128, 4, kHilbert>("256x128_hilbert", "256 x 128, along a Hilbert curve")}};

}  // namespace gemm::step_14
