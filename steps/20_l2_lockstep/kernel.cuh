// Step 20: the producers of all CTAs keep to the same k, so that the L2 reads a line once for all of them.
#pragma once

#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/work_queue.cuh"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_20 {

/// How often the producers of all CTAs wait for each other. `counters` has the arrivals at all barriers of
/// the launch, and the CTAs that are done; both are zero between launches.
struct LockstepPlan {
  std::uint32_t* counters;
  int period;    // k-tiles between two barriers, at least 2; 0: no producer waits for another
  int barriers;  // how often the CTA with the most k-tiles arrives
};

// Lesson: the L2 reads a line once for all CTAs that request it at about the same time. A later request costs
// another read, perhaps of DRAM. CTAs that start together drift apart, because nothing holds them together.
// So every few k-tiles the producers wait for each other at a grid-wide barrier, while the stages that are
// full keep the tensor cores busy. Each producer arrives one k-tile before it waits, so that the others know
// in time. Bytes that are not moved save power, and at the power limit that raises the clock.
class Lockstep {
 public:
  __device__ __forceinline__ explicit Lockstep(const LockstepPlan& plan) : plan_(plan) {}

  /// Before every k-tile that the producer loads.
  // ANCHOR: before_k_tile
  __device__ __forceinline__ void before_k_tile() {
    if (plan_.period == 0) return;
    --until_;
    if (until_ == 1) {
      ++arrived_;
      ptx::red_add_relaxed_gpu(&plan_.counters[0], 1);
    }
    if (until_ > 0) return;
    until_ = plan_.period;
    while (ptx::ld_relaxed_gpu(&plan_.counters[0]) < static_cast<std::uint32_t>(arrived_) * gridDim.x) {
    }
  }
  // ANCHOR_END: before_k_tile
  /// The producer calls it after its last k-tile. It arrives at all later barriers at once, so that no CTA
  /// waits for this one. The last CTA sets the counters back for the next launch.
  // ANCHOR: leave
  __device__ __forceinline__ void leave() {
    if (plan_.period == 0) return;
    ptx::red_add_relaxed_gpu(&plan_.counters[0], static_cast<std::uint32_t>(plan_.barriers - arrived_));
    if (ptx::atom_add_acq_rel_gpu(&plan_.counters[1], 1) + 1 < gridDim.x) return;
    ptx::st_relaxed_gpu(&plan_.counters[0], 0);
    ptx::st_relaxed_gpu(&plan_.counters[1], 0);
  }
  // ANCHOR_END: leave

 private:
  LockstepPlan plan_;
  int until_ = 2;  // k-tiles to the next barrier
  int arrived_ = 0;
};

struct alignas(8) TileCorner {
  int row, column;
};

template <typename T, int kStages, int kGroups>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[kGroups * T::kWarpgroups];
  OrderedBarrierStorage<kGroups> order;
  WorkQueue<TileCorner> queue;
};

template <typename T, int kStages, int kGroups>
__global__ void __launch_bounds__(Roles<T, kGroups * T::kWarpgroups>::kThreads, 1)
    lockstep_kernel(int tiles, int k_tiles, GroupedRaster raster, LockstepPlan plan,
                    const __grid_constant__ ptx::TensorMap a_map,
                    const __grid_constant__ ptx::TensorMap b_map,
                    const __grid_constant__ ptx::TensorMap d_map) {
  using R = Roles<T, kGroups * T::kWarpgroups>;
  using Queue = WorkQueue<TileCorner>;
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kGroups>>();
  auto& ring = shared.ring;
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);  // one group reads a stage
    shared.queue.init(4 * T::kWarpgroups);
    shared.order.init(4 * T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    if (warp == R::kProducerWarp && ptx::elect_sync()) {
      Lockstep lockstep(plan);
      typename Queue::State entry{0, 1};
      PipelineState<kStages> fill{0, 1};
      for (int index = static_cast<int>(blockIdx.x); index < tiles; index += static_cast<int>(gridDim.x)) {
        // ANCHOR: corner
        const TilePosition tile = raster.at(index);
        const TileCorner corner{tile.m * T::kM, tile.n * T::kN};
        // ANCHOR_END: corner
        shared.queue.enqueue(entry, {k_tiles, PackedState::filled_next(fill)}, corner);
        // ANCHOR: load_in_lockstep
        for (int i = 0; i < k_tiles; ++i) {
          lockstep.before_k_tile();
          ring.producer_acquire(fill, i);
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, corner.row,
                        corner.column, i * T::kK);
          fill.advance();
          // ANCHOR_END: load_in_lockstep
        }
      }
      lockstep.leave();
      for (int group = 0; group < kGroups; ++group) shared.queue.enqueue(entry, {}, {});
    }
  } else {
    ptx::setmaxnreg_inc<R::kConsumerRegisters>();
    const int group = warp / 4 / T::kWarpgroups;
    WarpgroupTile<T> warpgroup;
    OrderedBarrier<kGroups> order(shared.order, group);
    typename Queue::State entry{group, 0};
    for (QueuedMainloop work; (work = shared.queue.front(entry)).k_tiles > 0;) {
      PipelineState<kStages> read = work.at.state<kStages>();
      PipelineState<kStages> release = read;
      const auto release_stage = [&] {
        if (threadIdx.x % 128 == 0) ring.consumer_release(release);
        release.advance();
      };
      order.wait(kMainloop, read.stage, 0);
      for (int i = 0; i < work.k_tiles; ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) release_stage();
      }
      order.arrive(kMainloop);
      warpgroup.template wait<0>();
      release_stage();
      order.wait(kEpilogue, release.stage, work.k_tiles - 1);
      const TileCorner corner = shared.queue.dequeue(entry, kGroups);
      store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, corner.row, corner.column);
      order.arrive(kEpilogue);
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename T, int kStages, int kGroups, int kPeriod>
Variant variant(const char* name, const char* summary) {
  constexpr int kCounterBytes = kPeriod > 0 ? 2 * sizeof(*LockstepPlan::counters) : 0;
  using Grid = ResidentCtas<T, Shared<T, kStages, kGroups>, Roles<T, kGroups * T::kWarpgroups>::kThreads,
                            (kPeriod > 0), kCounterBytes>;
  return variant_of<lockstep_kernel<T, kStages, kGroups>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>()},
      [](const Gemm& gemm, const WorkspacePlan& plan) {
        const TileGrid tiles = tile_grid<T>(gemm.shape);
        const int k_tiles = ceil_div(gemm.shape.k, T::kK);
        // The first CTA has the most k-tiles.
        const int most = ceil_div(tiles.count(), static_cast<int>(plan.launch.grid.x)) * k_tiles;
        const int barriers = kPeriod == 0 ? 0 : ceil_div(most, std::max(kPeriod, 1));
        const auto lockstep = [=, memory = StreamMemory(plan.workspace_bytes)](ptx::Stream stream) {
          return LockstepPlan{static_cast<std::uint32_t*>(memory(stream)), kPeriod, barriers};
        };
        return with_tile_maps<T>(gemm, tiles.count(), k_tiles, GroupedRaster(tiles, 16), lockstep);
      });
}

using Tile192x256 = WgmmaTiling<192, 256, 64, 3>;
using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using Tile128x192 = WgmmaTiling<128, 192, 64, 1>;

inline const Step kStep{
    .name = "20_l2_lockstep",
    .title = "all producers keep to the same k, so that the L2 reads a line once for everybody",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile192x256, 3, 1, 16>("192x256_lockstep",
                                       "three warpgroups share a tile, barriers every 16"),
        variant<Tile192x256, 3, 1, 4>("192x256_lockstep4", "the same, barriers every 4 k-tiles"),
        variant<Tile192x256, 3, 1, 0>("192x256", "the same, no barriers"),
        variant<Tile128x256, 4, 1, 16>("128x256_lockstep", "two warpgroups share a tile"),
        variant<Tile128x256, 4, 1, 0>("128x256", "the same, no barriers"),
        variant<Tile128x192, 4, 2, 16>("128x192_ping_pong_lockstep", "two groups on alternate tiles")}};

}  // namespace gemm::step_20
