// Step 13: two or three consumer warpgroups share one tile that is too large for the registers of one.
#pragma once

#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_13 {

// Lesson: a larger tile moves fewer bytes for each multiply-add, but all of its accumulators must be in
// registers: 128 x 256 are 256 for each of 128 threads, one more than a thread can have. So the tile is split
// along M: every consumer warpgroup multiplies its own rows of A with the same B. `empty` counts them all.
template <typename T, int kStages>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    cooperative_kernel(Gemm gemm, const __grid_constant__ ptx::TensorMap a_map,
                       const __grid_constant__ ptx::TensorMap b_map) {
  auto& ring = ptx::dynamic_shared<Ring<T, kStages>>();
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    // ANCHOR: init
    ring.init(T::kWarpgroups);
    // ANCHOR_END: init
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      // ANCHOR: producer
      PipelineState<kStages> fill{0, 1};
      for (int i = 0; i < k_tiles; ++i) {
        ring.producer_acquire(fill, i);
        load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile_row, tile_column,
                      i * T::kK);
        fill.advance();
        // ANCHOR_END: producer
      }
    }
  } else {  // a consumer warpgroup
    // ANCHOR: consumer
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const bool releases = threadIdx.x % 128 == 0;
    WarpgroupTile<T> warpgroup;
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    // ANCHOR: consume_and_store
    for (int i = 0; i < k_tiles; ++i) {
      ring.consumer_wait(read, i);
      warpgroup.issue(ring.stage[read.stage], i == 0);
      read.advance();
      warpgroup.template wait<1>();
      if (i > 0) {  // k-tile i - 1 has been read by all four warps: a wgmma group finishes for all of them
        if (releases) ring.consumer_release(release);
        // ANCHOR_END: consumer
        release.advance();
      }
    }
    warpgroup.template wait<0>();
    warpgroup.store(gemm, tile_row, tile_column);
    // ANCHOR_END: consume_and_store
  }
}

template <typename T, int kStages>
Variant variant(const char* name, const char* summary) {
  using Grid = TileCtas<T, Ring<T, kStages>, Roles<T>::kThreads, T::kCtasPerSm>;
  return variant_of<cooperative_kernel<T, kStages>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>()},
      [](const Gemm& gemm) { return with_operand_maps<T>(gemm, gemm); });
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using Tile256x128 = WgmmaTiling<256, 128, 64, 2>;
using Tile192x192 = WgmmaTiling<192, 192, 64, 3>;

inline const Step kStep{
    .name = "13_cooperative",
    .title = "two or three consumer warpgroups share one large tile",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<Tile256x128, 4>("256x128_stages4", "two consumers of 128 x 128, 192 KB"),
                 variant<Tile256x128, 3>("256x128_stages3", "144 KB"),
                 variant<Tile128x256, 4>("128x256_stages4", "two consumers of 64 x 256, 192 KB"),
                 variant<Tile128x256, 3>("128x256_stages3", "144 KB"),
                 variant<Tile192x192, 4>("192x192_stages4", "three consumers of 64 x 192, 192 KB"),
                 variant<WgmmaTiling<256, 128, 128, 2>, 2>("256x128x128_stages2", "k-tile of 128, 192 KB")}};

}  // namespace gemm::step_13
