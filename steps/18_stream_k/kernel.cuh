// Step 18: the K axis is cut too, so that all CTAs finish together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_18 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
};

// Lesson: a work tile that is not the last of its tile stores its accumulators as partials, in fp32 and as
// the registers hold them, in a slot of the workspace, and raises the slot's flag. The last work tile does
// the fix-up: it adds the slots of its peers in ascending order of k, always the same, so that the result is
// the same bit for bit in every run. Each warpgroup does this for its own rows. The release and the acquire
// carry what all 128 threads wrote: a barrier stands before the release and after the acquire.
template <typename T>
struct Partials {
  static constexpr int kVectors = T::kBlocks * T::kN / 2 / 4;  // per thread
  float4* values;                                              // [slot][warpgroup][vector][thread]
  std::uint32_t* flags;  // [slot][warpgroup]; 1: the partials are there. Zero between launches

  static constexpr std::size_t kBytesPerSlot =
      T::kM * T::kN * sizeof(float) + T::kWarpgroups * sizeof(std::uint32_t);

  __device__ __forceinline__ Partials(void* workspace, int slots)
      : values(static_cast<float4*>(workspace)),
        flags(
            reinterpret_cast<std::uint32_t*>(values + static_cast<std::size_t>(slots) * T::kM * T::kN / 4)) {}

  __device__ __forceinline__ float4* vector(int slot, int warpgroup, int i) const {
    const int index = (slot * T::kWarpgroups + warpgroup) * kVectors + i;
    return values + static_cast<std::size_t>(index) * 128 + threadIdx.x % 128;
  }

  __device__ __forceinline__ void store_partials(const WarpgroupTile<T>& tile, int slot,
                                                 int warpgroup) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float* accumulators = &tile.accumulators[i / (T::kN / 8)][i % (T::kN / 8) * 4];
      ptx::st_global(vector(slot, warpgroup, i),
                     make_float4(accumulators[0], accumulators[1], accumulators[2], accumulators[3]));
    }
    // ANCHOR: publish_partials
    ptx::bar_sync(1 + warpgroup, 128);
    if (threadIdx.x % 128 == 0) ptx::st_release_gpu(&flags[slot * T::kWarpgroups + warpgroup], 1);
    // ANCHOR_END: publish_partials
  }

  __device__ __forceinline__ void fixup(WarpgroupTile<T>& tile, int slot, int warpgroup) const {
    // ANCHOR: await_partials
    if (threadIdx.x % 128 == 0) {
      std::uint32_t* const flag = &flags[slot * T::kWarpgroups + warpgroup];
      while (ptx::ld_acquire_gpu(flag) == 0) {
      }
      ptx::st_relaxed_gpu(flag, 0);  // for the next launch
    }
    ptx::bar_sync(1 + warpgroup, 128);
    // ANCHOR_END: await_partials
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float4 more = ptx::ld_global(vector(slot, warpgroup, i));
      float* accumulators = &tile.accumulators[i / (T::kN / 8)][i % (T::kN / 8) * 4];
      accumulators[0] += more.x;
      accumulators[1] += more.y;
      accumulators[2] += more.z;
      accumulators[3] += more.w;
    }
  }
};

template <typename T, int kStages>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    stream_k_kernel(Shape shape, Raster raster, Decomposition decomposition, void* workspace,
                    const __grid_constant__ ptx::TensorMap a_map,
                    const __grid_constant__ ptx::TensorMap b_map,
                    const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>(shape);
  const int worker = static_cast<int>(blockIdx.x);
  TileScheduler scheduler(decomposition, worker);
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
      for (WorkTile work; scheduler.next(work);) {
        const TilePosition tile = tile_at(work.tile, tiles, raster);
        for (int i = 0; i < work.count(); ++i) {
          ring.producer_acquire(fill, i);
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.m * T::kM,
                        tile.n * T::kN, work.k_tile(i) * T::kK);
          fill.advance();
        }
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const bool releases = threadIdx.x % 128 == 0;
    const Partials<T> partials(workspace, decomposition.slots());
    WarpgroupTile<T> warpgroup;
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      if (releases) ring.consumer_release(release);
      release.advance();
    };
    // ANCHOR: work_loop
    for (WorkTile work; scheduler.next(work);) {
      // ANCHOR_END: work_loop
      for (int i = 0; i < work.count(); ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) release_stage();
      }
      // ANCHOR: fix_up
      const TilePosition tile = tile_at(work.tile, tiles, raster);
      warpgroup.template wait<0>();
      release_stage();
      if (work.slot >= 0) {
        partials.store_partials(warpgroup, work.slot, warp / 4);
        continue;
      }
      const SlotRange peers = peers_of(decomposition, work, worker);
      for (int slot = peers.first; slot < peers.end; ++slot) partials.fixup(warpgroup, slot, warp / 4);
      store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, tile.m * T::kM, tile.n * T::kN);
      // ANCHOR_END: fix_up
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

// Lesson: the fix-up waits for other CTAs, so the launch asks that all of them are on an SM at the same time:
// as many as the GPU holds, and co-resident. What they hand on lies in a workspace, of which each stream has
// its own, because two launches on one stream never overlap and two on different streams may.
template <typename T, int kStages, Split kSplit, int kSplits>
struct StreamKCtas {
  using Tile = T;
  static SharedTilesPlan plan(const void* kernel, const Shape& shape) {
    const auto launch = persistent_launch(
        kernel,
        {.block = {Roles<T>::kThreads}, .shared_bytes = sizeof(Shared<T, kStages>), .co_resident = true});
    const auto workers = static_cast<int>(launch.grid.x);
    return shared_tiles_plan<Partials<T>>(
        launch, decompose(kSplit, tile_grid<T>(shape).count(), ceil_div(shape.k, T::kK), workers, kSplits));
  }
};

template <typename T, int kStages, Split kSplit, int kSplits = 1>
Variant variant(const char* name, const char* summary) {
  return variant_of<stream_k_kernel<T, kStages>, StreamKCtas<T, kStages, kSplit, kSplits>>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>()},
      [](const Gemm& gemm, const SharedTilesPlan& plan) {
        return with_tile_maps<T>(gemm, gemm.shape, Raster{RasterOrder::kGrouped, 16}, plan.decomposition,
                                 StreamMemory(plan.workspace_bytes));
      });
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using enum Split;

inline const Step kStep{
    .name = "18_stream_k",
    .title = "the K axis is cut too, so that all CTAs finish together",
    .builds_on = "15_tma_store",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<Tile128x256, 4, kHybrid>("hybrid", "whole waves data-parallel, the rest stream-K"),
                 variant<Tile128x256, 4, kDataParallel>("data_parallel", "whole tiles"),
                 variant<Tile128x256, 4, kSplitK, 2>("split_k2", "every tile in two work tiles"),
                 variant<Tile128x256, 4, kSplitK, 4>("split_k4", "every tile in four work tiles"),
                 variant<Tile128x256, 4, kStreamK>("stream_k", "all tiles are stream-K tiles")}};

}  // namespace gemm::step_18
