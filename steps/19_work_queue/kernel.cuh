// Step 19: the producer alone decides what comes next, and enqueues it for the consumer groups.
#pragma once

#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/partials.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_19 {

/// A stage of the ring and the parity to wait for there, in one word: a group reads it with one load, and
/// keeps it in one register.
struct PackedState {
  int word;  // 2 * stage + parity

  /// Where the producer fills next, as a consumer waits for it: with the other parity.
  template <int kStages>
  static __device__ __forceinline__ PackedState filled_next(const PipelineState<kStages>& fill) {
    return {2 * fill.stage + static_cast<int>(fill.phase ^ 1)};
  }
  template <int kStages>
  __device__ __forceinline__ PipelineState<kStages> state() const {
    return {word / 2, static_cast<std::uint32_t>(word % 2)};
  }
};

// Lesson: in step 18 each role computes for itself what comes next, with divisions, in registers that the
// accumulators need. Here only the producer does, and it enqueues every work tile in shared memory for a
// consumer group, the warpgroups that share a tile. A group reads first what it needs to multiply. It reads
// the rest after the main loop; until then the rest takes no register.
// ANCHOR: queued
struct alignas(8) QueuedMainloop {
  int k_tiles;     // 0: there is no more work
  PackedState at;  // where the first k-tile is
};
struct alignas(16) QueuedEpilogue {
  int row, column;  // where the tile begins in D
  int slot;         // the first peer's; its own where the group stores partials
  int peers;        // how many partials to add; kStoresPartials: this is not the tile's last work tile
};
// ANCHOR_END: queued

inline constexpr int kStoresPartials = -1;
inline constexpr int kQueueEntries = 4;

struct WorkQueue {
  using State = PipelineState<kQueueEntries>;

  QueuedMainloop mainloop[kQueueEntries];
  QueuedEpilogue epilogue[kQueueEntries];
  std::uint64_t enqueued[kQueueEntries];  // count 1, the producer
  std::uint64_t dequeued[kQueueEntries];  // count: the warps of a consumer group

  __device__ __forceinline__ void init(int warps_of_a_group) {
    for (int i = 0; i < kQueueEntries; ++i) {
      ptx::mbarrier_init(&enqueued[i], 1);
      ptx::mbarrier_init(&dequeued[i], static_cast<std::uint32_t>(warps_of_a_group));
    }
  }
  /// The producer's thread. Its state begins with phase 1.
  // ANCHOR: enqueue
  __device__ __forceinline__ void enqueue(State& at, QueuedMainloop first, QueuedEpilogue last) {
    ptx::mbarrier_wait_parity(&dequeued[at.stage], at.phase, {"producer", "dequeued", at.stage, 0});
    ptx::st_shared(&mainloop[at.stage], first);
    ptx::st_shared(&epilogue[at.stage], last);
    ptx::mbarrier_arrive(&enqueued[at.stage]);
    at.advance();
  }
  // ANCHOR_END: enqueue
  /// Waits for the next work tile. Its numbers are warp-uniform, and the compiler knows that they are.
  // ANCHOR: front
  __device__ __forceinline__ QueuedMainloop front(const State& at) {
    ptx::mbarrier_wait_parity(&enqueued[at.stage], at.phase, {"consumer", "enqueued", at.stage, 0});
    const QueuedMainloop first = ptx::ld_shared(&mainloop[at.stage]);
    return {warp_uniform(first.k_tiles), {warp_uniform(first.at.word)}};
  }
  // ANCHOR_END: front
  /// Reads the rest and frees the entry. Each of the `groups` consumer groups takes every `groups`-th entry.
  // ANCHOR: dequeue
  __device__ __forceinline__ QueuedEpilogue dequeue(State& at, int groups) {
    const QueuedEpilogue last = ptx::ld_shared(&epilogue[at.stage]);
    __syncwarp();  // lane 0 arrives for its warp: every lane has read
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&dequeued[at.stage]);
    at.advance(groups);
    return last;
  }
  // ANCHOR_END: dequeue
};

template <typename T, int kStages, int kGroups>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[kGroups * T::kWarpgroups];
  OrderedBarrierStorage<kGroups> order;
  WorkQueue queue;
};

template <typename T, int kStages, int kGroups>
__global__ void __launch_bounds__(Roles<T, kGroups * T::kWarpgroups>::kThreads, 1)
    work_queue_kernel(Decomposition decomposition, GroupedRaster raster, void* workspace,
                      const __grid_constant__ ptx::TensorMap a_map,
                      const __grid_constant__ ptx::TensorMap b_map,
                      const __grid_constant__ ptx::TensorMap d_map) {
  using R = Roles<T, kGroups * T::kWarpgroups>;
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
      const int worker = static_cast<int>(blockIdx.x);
      TileScheduler scheduler(decomposition, worker);
      WorkQueue::State entry{0, 1};
      PipelineState<kStages> fill{0, 1};
      for (WorkTile work; scheduler.next(work);) {
        const TilePosition tile = raster.at(work.tile);
        QueuedEpilogue last{tile.m * T::kM, tile.n * T::kN, work.slot, kStoresPartials};
        if (work.slot < 0) {
          const SlotRange peers = peers_of(decomposition, work, worker);
          last = {last.row, last.column, peers.first, peers.count()};
        }
        shared.queue.enqueue(entry, {work.count(), PackedState::filled_next(fill)}, last);
        // ANCHOR: load_work
        for (int i = 0; i < work.count(); ++i) {
          ring.producer_acquire(fill, i);
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, last.row, last.column,
                        work.k_tile(i) * T::kK);
          fill.advance();
          // ANCHOR_END: load_work
        }
      }
      for (int group = 0; group < kGroups; ++group) shared.queue.enqueue(entry, {}, {});
    }
  } else {
    ptx::setmaxnreg_inc<R::kConsumerRegisters>();
    const int group = warp / 4 / T::kWarpgroups;
    const int member = warp / 4 % T::kWarpgroups;
    WarpgroupTile<T> warpgroup;
    OrderedBarrier<kGroups> order(shared.order, group);
    WorkQueue::State entry{group, 0};
    // ANCHOR: work_loop
    for (QueuedMainloop work; (work = shared.queue.front(entry)).k_tiles > 0;) {
      PipelineState<kStages> read = work.at.state<kStages>();
      PipelineState<kStages> release = read;
      // ANCHOR_END: work_loop
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
      // ANCHOR: fix_up
      warpgroup.template wait<0>();
      release_stage();
      order.wait(kEpilogue, release.stage, work.k_tiles - 1);
      const Partials<T> partials(workspace, decomposition.slots());
      const QueuedEpilogue last = shared.queue.dequeue(entry, kGroups);
      if (last.peers == kStoresPartials) {
        partials.store_partials(warpgroup, last.slot, member);
      } else {
        for (int i = 0; i < last.peers; ++i) partials.fixup(warpgroup, last.slot + i, member);
        store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, last.row, last.column);
        // ANCHOR_END: fix_up
      }
      order.arrive(kEpilogue);
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename T, int kStages, int kGroups, Split kSplit>
Variant variant(const char* name, const char* summary) {
  using Grid = SharedTileCtas<T, Shared<T, kStages, kGroups>, Roles<T, kGroups * T::kWarpgroups>::kThreads,
                              Partials<T>, kSplit>;
  return variant_of<work_queue_kernel<T, kStages, kGroups>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>()},
      [](const Gemm& gemm, const SharedTilesPlan& plan) {
        return with_tile_maps<T>(gemm, plan.decomposition, GroupedRaster(tile_grid<T>(gemm.shape), 16),
                                 StreamMemory(plan.workspace_bytes));
      });
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using Tile128x192 = WgmmaTiling<128, 192, 64, 1>;
using enum Split;

inline const Step kStep{
    .name = "19_work_queue",
    .title = "the producer decides what comes next, and enqueues it for the consumer groups",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x192, 4, 2, kHybrid>("128x192_ping_pong", "two groups, stream-K tiles"),
        variant<Tile128x192, 4, 2, kDataParallel>("128x192_ping_pong_whole", "the same, whole tiles only"),
        variant<WgmmaTiling<128, 128, 64, 1>, 6, 2, kHybrid>("128x128_ping_pong", "smaller tiles"),
        variant<Tile128x256, 4, 1, kHybrid>("128x256", "two warpgroups are one group"),
        variant<Tile128x256, 4, 1, kDataParallel>("128x256_whole", "the same, whole tiles only")}};

}  // namespace gemm::step_19
