// What step 21 taught: a kernel that multiplies with tiles of any width, either operand as rows, in clusters
// of any shape, with stream-K tiles and in lockstep.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/fitted/fetched_partials.cuh"
#include "gemm/fitted/fitted_cluster.cuh"
#include "gemm/fitted/fitted_launch.cuh"
#include "gemm/fitted/fitted_plan.h"
#include "gemm/fitted/fitted_store.cuh"
#include "gemm/pipeline/lockstep.cuh"
#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/work_queue.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/partials.cuh"
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

namespace gemm {

/// What becomes of the accumulators of a work tile. Either they are partials, and go to a slot. Or they
/// finish the tile, with the partials of peers added. It is packed into two words, so that an entry of the
/// queue stays as wide as one load.
class Destination {
 public:
  Destination() = default;
  __device__ __forceinline__ static Destination in_slot(int number) { return {number, 0}; }
  /// `fetched`: the peers' partials come through the ring. Otherwise the consumer group reads them itself.
  __device__ __forceinline__ static Destination in_tile(const SlotRange& peers, bool fetched) {
    return {~peers.first, fetched ? peers.count() : -peers.count()};
  }
  __device__ __forceinline__ bool is_slot() const { return first_ >= 0; }
  __device__ __forceinline__ int slot() const { return first_; }
  /// How many peers' partials come through the ring: none where this is negative.
  __device__ __forceinline__ int fetched() const { return peers_; }
  __device__ __forceinline__ bool reads_peers() const { return peers_ < 0; }
  /// The slots that the consumer group reads by itself.
  __device__ __forceinline__ SlotRange read_slots() const { return {~first_, ~first_ - peers_}; }

 private:
  __device__ __forceinline__ Destination(int first, int peers) : first_(first), peers_(peers) {}
  int first_;  // the slot; for a tile ~ the slot of the first peer, which is negative
  int peers_;  // how many peers a tile has; negative where the group reads them
};

struct alignas(16) FittedEpilogue {
  int row;     // the first row of the tile
  int column;  // the number of the tile along the columns
  Destination destination;
};

/// In clusters the producer has more to remember than in the steps before. It gets 56 registers.
template <typename T, int kGroups, BuiltFor kBuiltFor>
struct FittedRoles : Roles<T, kGroups * T::kWarpgroups> {
  using Usual = Roles<T, kGroups * T::kWarpgroups>;
  static constexpr bool kClusters = kBuiltFor >= BuiltFor::kWholeInClusters;
  static constexpr int kProducerRegisters = kClusters ? 56 : Usual::kProducerRegisters;
  static constexpr int kConsumerRegisters = !kClusters            ? Usual::kConsumerRegisters
                                            : T::kWarpgroups == 3 ? 152
                                                                  : std::min(224, Usual::kConsumerRegisters);
  static constexpr int kMostAccumulators = T::kWarpgroups == 1 ? 192 : T::kWarpgroups == 2 ? 168 : 120;
  static_assert(!kClusters || T::kBlocks * T::kN / 2 <= kMostAccumulators, "no register is spilled");
};

template <typename T, int kStages, int kGroups>
struct FittedShared {
  Ring<T, kStages> ring;
  SomeChunkBuffers<kChunkBuffers<T, kGroups * T::kWarpgroups>> d[kGroups * T::kWarpgroups];
  OrderedBarrierStorage<kGroups> order;
  WorkQueue<FittedEpilogue> queue;
};

template <typename T, int kStages, int kGroups, bool kTransposed, BuiltFor kBuiltFor>
__global__ void __launch_bounds__(Roles<T, kGroups * T::kWarpgroups>::kThreads, 1)
    fitted_kernel(FittedWork passed, LockstepPlan lockstep_plan, void* workspace,
                  const __grid_constant__ FittedMaps maps) {
  using R = FittedRoles<T, kGroups, kBuiltFor>;
  const FittedWork given = narrowed<kTransposed, kBuiltFor>(passed);
  auto& shared = ptx::dynamic_shared<FittedShared<T, kStages, kGroups>>();
  auto& ring = shared.ring;
  const Decomposition& all = given.decomposition;
  FittedCluster cluster = given.cluster;
  if (cluster.shape.ctas() > 1) cluster.rank = static_cast<int>(ptx::cluster_ctarank());
  const int warp = warp_index();

  if (warp == R::kProducerWarp) {
    if (ptx::elect_sync()) {
      ring.init(T::kWarpgroups *
                cluster.peers());  // one consumer group reads a stage, and those of the peers
      shared.order.init(4 * T::kWarpgroups);
      shared.queue.init(4 * T::kWarpgroups);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncwarp();
  } else if (threadIdx.x == 0) {
    for (const ptx::TensorMap* map :
         {&maps.rows, &maps.columns, &maps.row_edge, &maps.column_edge, &maps.tiles, &maps.edge})
      ptx::prefetch_tensormap(map);
  }

  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    const int worker = static_cast<int>(blockIdx.x) / given.cluster.shape.ctas();
    TileScheduler scheduler(all, worker);
    // Lesson: the warp that initialises the barriers is the one that needs them first. It does not wait for
    // the consumers, and has loads under way when they arrive.
    cluster.start<R::kThreads>(false);
    if (warp == R::kProducerWarp && ptx::elect_sync()) {
      Lockstep lockstep(lockstep_plan);
      PipelineState<kQueueEntries> entry{0, 1};
      PipelineState<kStages> fill{0, 1};
      for (WorkTile work; scheduler.next(work);) {
        const TilePosition tile = cluster.tile(given.raster.at(work.tile));
        const TileRows<T::kM> rows({.first = tile.m * T::kM,
                                    .all = given.rows,
                                    .share = cluster.row_share(),
                                    .maps = {&maps.rows, &maps.row_edge}});
        const TileRows<T::kN> columns({.first = tile.n * T::kN,
                                       .all = given.columns,
                                       .share = cluster.column_share(),
                                       .maps = {&maps.columns, &maps.column_edge}});
        SlotRange peers;
        if (all.stream_k_tiles > 0 && work.slot < 0) peers = peers_of(all, work, worker);
        // In front of the other group's k-tiles, partials would hold that group up. In a cluster no k-tile
        // may follow them: a peer that loads one does not hear when fetched stages are free
        // (release_to_itself).
        const bool fetches = scheduler.done() || (kGroups == 1 && cluster.shape.ctas() == 1);
        const int fetched = fetches ? peers.count() : 0;
        shared.queue.enqueue(
            entry, {work.count(), PackedState::filled_next(fill)},
            {tile.m * T::kM, tile.n,
             work.slot < 0 ? Destination::in_tile(peers, fetches) : Destination::in_slot(work.slot)});
        load_work_tile<kBuiltFor>(ring, fill, lockstep, work, rows, columns, cluster);
        for (int i = 0; all.stream_k_tiles > 0 && i < fetched; ++i) {
          FetchedPartials<T>::fetch(ring, fill,
                                    FetchedPartials<T>::in(workspace, all, given.cluster.shape.ctas()),
                                    cluster.rank * all.slots() + worker - fetched + i);
        }
      }
      lockstep.leave();
      for (int group = 0; group < kGroups; ++group) shared.queue.enqueue(entry, {}, {});
      // Lesson: no CTA may exit while a peer still arrives at its barriers. A barrier of the cluster would
      // see to that, but one that publishes costs a fence of the whole GPU, behind the stores of D. The
      // peers' last arrivals are those that the producer waits for here.
      if (cluster.shape.ctas() > 1) ring.producer_tail(fill, all.k_tiles);
    }
  } else {
    ptx::setmaxnreg_inc<R::kConsumerRegisters>();
    cluster.start<R::kThreads>(true);
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
      const FittedEpilogue last = shared.queue.dequeue(entry, kGroups);
      const Destination& destination = last.destination;
      const auto release_fetched = [&] {
        release_to_itself(&ring.empty[release.stage], cluster);
        release.advance();
      };
      for (int i = 0; all.stream_k_tiles > 0 && i < destination.fetched(); ++i)
        FetchedPartials<T>::add(warpgroup, warp / 4 % T::kWarpgroups, ring, read, release_fetched);
      order.wait(kEpilogue, release.stage, work.k_tiles - 1);
      const ChunkTarget target{&maps.tiles, &maps.edge, last.row, last.column,
                               last.column < given.whole_columns};
      // Worked out anew where it is needed: no register holds it meanwhile.
      const auto partials = [&] {
        return FetchedPartials<T>::in(workspace, all, given.cluster.shape.ctas());
      };
      const auto slot = [&](int number) {  // the workers' slots of this rank lie together
        return static_cast<int>(ptx::cluster_ctarank()) * all.slots() + number;
      };
      if (all.stream_k_tiles > 0 && destination.is_slot()) {
        partials().template store_partials<true>(warpgroup, slot(destination.slot()),
                                                 warp / 4 % T::kWarpgroups);
      } else {
        if (all.stream_k_tiles > 0 && destination.reads_peers()) {
          const SlotRange peers = destination.read_slots();
          partials().fixup(warpgroup, SlotRange{slot(peers.first), slot(peers.end)},
                           warp / 4 % T::kWarpgroups);
        }
        if (given.transposed) {
          store_fitted<true>(warpgroup, shared.d[warp / 4], target);
        } else {
          store_fitted<false>(warpgroup, shared.d[warp / 4], target);
        }
      }
      order.arrive(kEpilogue);
    }
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
}

}  // namespace gemm
