// Step 21: a tile whose width suits the shape, whichever operand is the wide one.
#pragma once

#include <cstdint>

#include "gemm/cluster_tile.cuh"
#include "gemm/decomposition.h"
#include "gemm/fitted_launch.cuh"
#include "gemm/fitted_store.cuh"
#include "gemm/gemm.h"
#include "gemm/lockstep.cuh"
#include "gemm/ordered_barrier.cuh"
#include "gemm/raster.h"
#include "gemm/reduction.cuh"
#include "gemm/ring.cuh"
#include "gemm/roles.h"
#include "gemm/step.h"
#include "gemm/tma_tile.cuh"
#include "gemm/wgmma_tile.cuh"
#include "gemm/work_queue.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_21 {

struct alignas(16) Epilogue {
  int row, column;  // of the tile
  int slot;         // of the workspace, for partials; -1: the tile is finished
  int tile;         // its number
};

template <typename T, int kStages, int kGroups>
struct Shared {
  Ring<T, kStages> ring;
  ChunkBuffers d[kGroups * T::kWarpgroups];
  OrderedBarrierStorage<kGroups> order;
  WorkQueue<Epilogue> queue;
};

template <typename T, int kStages, int kGroups, typename C>
__global__ void __launch_bounds__(Roles<T, kGroups * T::kWarpgroups>::kThreads, 1)
    fitted_kernel(FittedWork plan, LockstepPlan lockstep_plan, void* workspace,
                  const __grid_constant__ ptx::TensorMap row_map,
                  const __grid_constant__ ptx::TensorMap column_map,
                  const __grid_constant__ ptx::TensorMap d_map) {
  using R = Roles<T, kGroups * T::kWarpgroups>;
  constexpr bool kClusters = C::kCtas > 1;
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kGroups>>();
  auto& ring = shared.ring;
  const Decomposition& all = plan.decomposition;
  const int worker = static_cast<int>(blockIdx.x) / C::kCtas;
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups * C::kPeers);  // one consumer group reads a stage, and those of the peers
    shared.order.init(4 * T::kWarpgroups);
    shared.queue.init(4 * T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (threadIdx.x == 32 * R::kProducerWarp) {
    ptx::prefetch_tensormap(&row_map);
    ptx::prefetch_tensormap(&column_map);
    ptx::prefetch_tensormap(&d_map);
  }
  sync_cluster<C>();

  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    if (warp == R::kProducerWarp && ptx::elect_sync()) {
      TileScheduler scheduler(all, worker);
      Lockstep lockstep(lockstep_plan);
      const std::uint64_t policy = ptx::createpolicy_fractional_l2_evict_first();
      PipelineState<kQueueEntries> entry{0, 1};
      PipelineState<kStages> fill{0, 1};
      for (WorkTile work; scheduler.next(work);) {
        const TilePosition tile = tile_of<C>(plan.raster.at(work.tile));
        const int row = tile.m * T::kM;
        const int column = tile.n * T::kN;
        const int slot = work.count() < all.k_tiles
                             ? 2 * worker + (all.range_begin(worker) / all.k_tiles != work.tile)
                             : -1;
        shared.queue.enqueue(entry, {work.count(), 2 * fill.stage + static_cast<int>(fill.phase ^ 1)},
                             {row, column, slot, work.tile});
        for (int i = 0; i < work.count(); ++i) {
          lockstep.before_k_tile();
          ring.producer_acquire(fill, i);
          const int k = work.k_tile(i) * T::kK;
          if constexpr (kClusters) {
            load_shares<T>(ring.stage[fill.stage], &ring.full[fill.stage], &row_map, &column_map, row, column,
                           k, C());
          } else if (plan.streams) {
            load_streamed<T>(ring.stage[fill.stage], &ring.full[fill.stage], &row_map, &column_map, row,
                             column, k, policy);
          } else {
            load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &row_map, &column_map, row, column,
                          k);
          }
          fill.advance();
        }
      }
      lockstep.leave();
      for (int group = 0; group < kGroups; ++group) shared.queue.enqueue(entry, {}, {});
    }
  } else {
    ptx::setmaxnreg_inc<R::kConsumerRegisters>();
    const int group = warp / 4 / T::kWarpgroups;
    const int member = warp / 4 % T::kWarpgroups;
    const bool releases = threadIdx.x % 128 == 0;
    const Reduction<T, C::kCtas> reduction(workspace);
    WarpgroupTile<T> warpgroup;
    OrderedBarrier<kGroups> order(shared.order, group);
    PipelineState<kQueueEntries> entry{group, 0};
    for (QueuedMainloop work; (work = shared.queue.front(entry)).k_tiles > 0;) {
      PipelineState<kStages> read{work.at / 2, static_cast<std::uint32_t>(work.at % 2)};
      PipelineState<kStages> release = read;
      const auto release_stage = [&] {
        if constexpr (kClusters) {
          release_to_peers(&ring.empty[release.stage], C());
        } else {
          if (releases) ring.consumer_release(release);
        }
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
      const Epilogue last = shared.queue.dequeue(entry, kGroups);
      if (last.slot >= 0) {
        reduction.store(warpgroup, last.slot, last.tile, cluster_rank<C>(), member);
      } else if (plan.transposed) {
        store_fitted<T, true>(warpgroup, shared.d[warp / 4], &d_map, last.row, last.column);
      } else {
        store_fitted<T, false>(warpgroup, shared.d[warp / 4], &d_map, last.row, last.column);
      }
      order.arrive(kEpilogue);
    }
    if (all.stream_k_tiles > 0) {
      constexpr int kWarpgroups = kGroups * T::kWarpgroups;
      const auto tile_at = [&](int number, int rank) {
        const TilePosition tile = plan.raster.at(number);
        return TilePosition{tile.m * C::kM + rank, tile.n};
      };
      const int index = static_cast<int>(blockIdx.x) * kWarpgroups + warp / 4;
      const int count = static_cast<int>(gridDim.x) * kWarpgroups;
      if (plan.transposed) {
        reduction.template reduce<true>(all, tile_at, index, count, shared.d[warp / 4], &d_map);
      } else {
        reduction.template reduce<false>(all, tile_at, index, count, shared.d[warp / 4], &d_map);
      }
    }
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
  if constexpr (kClusters) {
    __syncwarp();
    sync_cluster<C>();  // no CTA exits while a peer may still write to, or signal, its shared memory
  }
}

template <int kM, int kN, int kWarpgroups, int kGroups, int kCluster, bool kTransposed = false>
struct Fitted {
  using T = WgmmaTiling<kM, kN, 64, kWarpgroups>;
  using C = Cluster<kCluster, 1>;
  static constexpr int kStages = kMostStages<T, kGroups * kWarpgroups>;
  using Launch = FittedLaunch<fitted_kernel<T, kStages, kGroups, C>, T, Shared<T, kStages, kGroups>,
                              Roles<T, kGroups * kWarpgroups>::kThreads, C>;

  static FittedPlan plan(const Shape& shape) {
    const int tiles = Launch::grid(shape, kTransposed).count();
    const Decomposition all = decompose(Split::kHybrid, tiles, ceil_div(shape.k, T::kK), Launch::workers());
    return {.transposed = kTransposed, .stream_k_tiles = all.stream_k_tiles, .raster_group = 16 / kCluster};
  }
  static Variant variant(const char* name, const char* summary) {
    return {.name = name,
            .summary = summary,
            .tile = kTransposed ? TileShape{kN, kM, T::kK} : TileShape{kM, kN, T::kK},
            .stages = kStages,
            .traffic = wgmma_tile_traffic<T>(kCluster, 1),
            .kernel = ptx::kernel_handle(fitted_kernel<T, kStages, kGroups, C>),
            .launch_shape = [](const Shape&) { return Launch::launch_shape(); },
            .prepare = [](const Gemm& gemm) { return Launch::prepare(gemm, plan(gemm.shape)); },
            .workspace_bytes = [](const Shape& shape) { return Launch::workspace_bytes(shape, plan(shape)); },
            .busiest_tiles =
                [](const Shape& shape) {
                  return busiest_k_tiles(Launch::decomposition(shape, plan(shape))) /
                         ceil_div(shape.k, T::kK);
                }};
  }
};

inline const Step kStep{
    .name = "21_fitted_tiles",
    .title = "a tile whose width suits the shape, whichever operand is the wide one",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {Fitted<128, 176, 1, 2, 1>::variant("128x176_ping_pong", "two groups"),
                 Fitted<256, 112, 2, 1, 1>::variant("256x112", "two warpgroups share a tile"),
                 Fitted<256, 112, 2, 1, 2>::variant("256x112_2x1", "the same in clusters of two"),
                 Fitted<256, 112, 2, 1, 1, true>::variant("112x256", "rows of B are rows of the tile"),
                 Fitted<128, 176, 1, 2, 2, true>::variant("176x128_ping_pong_1x2", "clusters of two share A"),
                 Fitted<128, 32, 1, 1, 1, true>::variant("32x128", "few rows")}};

}  // namespace gemm::step_21
