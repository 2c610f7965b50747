// Step 21: a tile whose width suits the shape, whichever operand is the wide one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gemm/fitted/fitted_cluster.cuh"
#include "gemm/fitted/fitted_launch.cuh"
#include "gemm/fitted/fitted_store.cuh"
#include "gemm/fitted/reduction.cuh"
#include "gemm/pipeline/lockstep.cuh"
#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/work_queue.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_21 {

inline constexpr int kFinished = -1;

struct alignas(16) Epilogue {
  int row;     // the first row of the tile
  int column;  // the number of the tile along the columns
  int slot;    // where partials go in the workspace; kFinished, below 0: all of K is in the accumulators
  int tile;    // the number of the tile
};

/// The producer has more to remember than in the steps before. It gets 56 registers, and a consumer has 8
/// fewer, so 184 accumulators per thread spill. 176 fit, or 168 where two warpgroups share a tile.
template <typename T, int kGroups>
struct FittedRoles : Roles<T, kGroups * T::kWarpgroups> {
  static constexpr int kProducerRegisters = 56;
  static constexpr int kConsumerRegisters =
      std::min(224, Roles<T, kGroups * T::kWarpgroups>::kConsumerRegisters);
  static_assert(T::kWarpgroups <= 2 && T::kBlocks * T::kN / 2 <= (T::kWarpgroups == 1 ? 176 : 168),
                "no register is spilled");
};

template <typename T, int kStages, int kGroups>
struct Shared {
  Ring<T, kStages> ring;
  ChunkBuffers d[kGroups * T::kWarpgroups];
  OrderedBarrierStorage<kGroups> order;
  WorkQueue<Epilogue> queue;
};

template <typename T, int kStages, int kGroups>
__global__ void __launch_bounds__(Roles<T, kGroups * T::kWarpgroups>::kThreads, 1)
    fitted_kernel(FittedWork given, LockstepPlan lockstep_plan, void* workspace,
                  const __grid_constant__ FittedMaps maps) {
  using R = FittedRoles<T, kGroups>;
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kGroups>>();
  auto& ring = shared.ring;
  const Decomposition& all = given.decomposition;
  FittedCluster cluster = given.cluster;
  if (cluster.shape.ctas() > 1) cluster.rank = static_cast<int>(ptx::cluster_ctarank());
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups * cluster.peers());  // one consumer group reads a stage, and those of the peers
    shared.order.init(4 * T::kWarpgroups);
    shared.queue.init(4 * T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (threadIdx.x == 32 * R::kProducerWarp) {
    ptx::prefetch_tensormap(&maps.rows);
    ptx::prefetch_tensormap(&maps.columns);
    ptx::prefetch_tensormap(&maps.tiles);
  }
  cluster.sync();

  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    if (warp == R::kProducerWarp && ptx::elect_sync()) {
      const int worker = static_cast<int>(blockIdx.x) / given.cluster.shape.ctas();
      TileScheduler scheduler(all, worker);
      Lockstep lockstep(lockstep_plan);
      PipelineState<kQueueEntries> entry{0, 1};
      PipelineState<kStages> fill{0, 1};
      for (WorkTile work; scheduler.next(work);) {
        // ANCHOR: rows
        const TilePosition tile = cluster.tile(given.raster.at(work.tile));
        const TileRows<T::kM> rows({.first = tile.m * T::kM,
                                    .all = given.rows,
                                    .share = cluster.row_share(),
                                    .maps = {&maps.rows, &maps.row_edge}});
        const TileRows<T::kN> columns({.first = tile.n * T::kN,
                                       .all = given.columns,
                                       .share = cluster.column_share(),
                                       .maps = {&maps.columns, &maps.column_edge}});
        // ANCHOR_END: rows
        const int slot = work.count() < all.k_tiles ? FixUp<T>::slot(all, worker, work.tile) : kFinished;
        shared.queue.enqueue(entry, {work.count(), PackedState::filled_next(fill)},
                             {tile.m * T::kM, tile.n, slot, work.tile});
        load_work_tile<BuiltFor::kAnyPlan>(ring, fill, lockstep, work, rows, columns, cluster);
      }
      lockstep.leave();
      for (int group = 0; group < kGroups; ++group) shared.queue.enqueue(entry, {}, {});
    }
  } else {
    ptx::setmaxnreg_inc<R::kConsumerRegisters>();
    const int group = warp / 4 / T::kWarpgroups;
    const bool arrives = cluster.is_peer(static_cast<int>(threadIdx.x) % 128);
    WarpgroupTile<T> warpgroup;
    OrderedBarrier<kGroups> order(shared.order, group);
    PipelineState<kQueueEntries> entry{group, 0};
    for (QueuedMainloop work; (work = shared.queue.front(entry)).k_tiles > 0;) {
      PipelineState<kStages> read = work.at.state<kStages>();
      PipelineState<kStages> release = read;
      const auto release_stage = [&] {
        release_to_writers(&ring.empty[release.stage], cluster, arrives);
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
      const ChunkTarget target{&maps.tiles, &maps.edge, last.row, last.column,
                               last.column < given.whole_columns};
      if (last.slot >= 0) {
        const FixUp<T> reduction(workspace, given.cluster.shape.ctas());
        // Read anew: no register holds it meanwhile.
        const int rank = cluster.shape.ctas() > 1 ? static_cast<int>(ptx::cluster_ctarank()) : 0;
        reduction.store_partials(warpgroup, last.slot, last.tile, rank, warp / 4 % T::kWarpgroups);
      } else if (given.transposed) {
        store_fitted<true>(warpgroup, shared.d[warp / 4], target);
      } else {
        store_fitted<false>(warpgroup, shared.d[warp / 4], target);
      }
      order.arrive(kEpilogue);
    }
    if (all.stream_k_tiles > 0) {
      constexpr int kWarpgroups = kGroups * T::kWarpgroups;
      const FixUp<T> reduction(workspace, given.cluster.shape.ctas());
      const ChunkTarget target{&maps.tiles, &maps.edge, 0, 0, false};
      const auto position = [&](int number, int rank) {
        const TilePosition corner = given.raster.at(number);
        const int n = rank / given.cluster.shape.m;
        return TilePosition{corner.m * given.cluster.shape.m + rank - n * given.cluster.shape.m,
                            corner.n * given.cluster.shape.n + n};
      };
      const int index = static_cast<int>(blockIdx.x) * kWarpgroups + warp / 4;
      const int count = static_cast<int>(gridDim.x) * kWarpgroups;
      if (given.transposed) {
        reduction.template reduce<true>(all, position, given.whole_columns, index, count, shared.d[warp / 4],
                                        target);
      } else {
        reduction.template reduce<false>(all, position, given.whole_columns, index, count, shared.d[warp / 4],
                                         target);
      }
    }
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
  if (given.cluster.shape.ctas() > 1) {
    __syncwarp();
    cluster.sync();  // no CTA exits while a peer may still write to, or signal, its shared memory
  }
}

template <int kM, int kN, int kWarpgroups, int kGroups, int kClusterM, int kClusterN,
          bool kTransposed = false>
// ANCHOR: fitted
struct Fitted {
  using T = WgmmaTiling<kM, kN, 64, kWarpgroups>;
  static constexpr int kStages = kMostStages<T, kGroups * kWarpgroups>;
  // ANCHOR_END: fitted
  using Launch = FittedLaunch<fitted_kernel<T, kStages, kGroups>, T, Shared<T, kStages, kGroups>,
                              Roles<T, kGroups * kWarpgroups>::kThreads>;

  static constexpr TileShape tile() {
    TileShape of_d{kM, kN, T::kK};
    if (kTransposed) std::swap(of_d.m, of_d.n);
    return of_d;
  }
  static FittedPlan plan(const Shape& shape) {
    FittedPlan all{
        .transposed = kTransposed, .cluster = {kClusterM, kClusterN}, .raster_group = 16 / kClusterM};
    all.stream_k_tiles = decompose(Split::kHybrid, Launch::grid(shape, all).count(), ceil_div(shape.k, T::kK),
                                   Launch::workers(all))
                             .stream_k_tiles;
    return all;
  }
  static Variant variant(const char* name, const char* summary) {
    return {.name = name,
            .summary = summary,
            .tile = tile(),
            .stages = kStages,
            .traffic = wgmma_tile_traffic<T>(kClusterM, kClusterN),
            .kernel = ptx::kernel_handle(fitted_kernel<T, kStages, kGroups>),
            .launch_shape = [](const Shape& shape) { return Launch::launch_shape(plan(shape)); },
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
    .variants = {
        Fitted<128, 176, 1, 2, 1, 1>::variant("128x176_ping_pong", "two groups, tiles 176 wide"),
        Fitted<128, 176, 1, 2, 2, 1>::variant("128x176_ping_pong_2x1", "two CTAs share B"),
        Fitted<256, 96, 2, 1, 1, 1>::variant("256x96", "two warpgroups share a tile"),
        Fitted<256, 96, 2, 1, 1, 1, true>::variant("96x256", "the tile's rows are columns of D"),
        Fitted<64, 72, 1, 2, 1, 1, true>::variant("72x64_ping_pong", "few rows: no wider than they are"),
        Fitted<64, 64, 1, 2, 4, 2, true>::variant("64x64_ping_pong_2x4", "few rows, clusters of eight")}};

}  // namespace gemm::step_21
