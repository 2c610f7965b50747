// Step 17: two consumers take alternate tiles: while one stores its tile, the other one multiplies.
#pragma once

#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/cluster_tile.cuh"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_17 {

inline constexpr int kConsumers = 2;

enum OrderedStage { kMainloop, kEpilogue, kOrderedStages };

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[kConsumers];
  std::uint64_t order[kOrderedStages][kConsumers];  // this consumer may enter; count 4, the other's warps
};

// Lesson: each consumer warpgroup owns a whole tile, and an ordered barrier lets one consumer at a time enter
// the main loop, so that the tensor cores get one tile after the other and not two at half speed, and one at
// a time enter the epilogue. A consumer enters when the other one has arrived; consumer 0 goes first, so it
// starts with phase 1, like a producer. The order of the main loops is more than tuning: a consumer that
// waits for `full` by parity must know that the phase before has passed. It does once the other consumer has
// waited for all of its own k-tiles.
template <typename T, int kStages>
struct OrderedBarrier {
  Shared<T, kStages>& shared;
  int consumer;
  std::uint32_t phase[kOrderedStages];

  __device__ __forceinline__ OrderedBarrier(Shared<T, kStages>& memory, int me)
      : shared(memory), consumer(me) {
    for (std::uint32_t& first : phase) first = me == 0 ? 1 : 0;
  }
  // ANCHOR: ordered_wait
  __device__ __forceinline__ void wait(OrderedStage at, int stage, int k_tile) {
    ptx::mbarrier_wait_parity(
        &shared.order[at][consumer], phase[at],
        {"consumer", at == kMainloop ? "mainloop order" : "epilogue order", stage, k_tile});
    phase[at] ^= 1;
  }
  __device__ __forceinline__ void arrive(OrderedStage at) {
    __syncwarp();  // lane 0 arrives for the whole warp, so every lane must have finished its waits
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&shared.order[at][1 - consumer]);
    // ANCHOR_END: ordered_wait
  }
};

template <typename T, int kStages, typename C>
__global__ void __launch_bounds__(Roles<T, kConsumers>::kThreads, 1)
    ping_pong_kernel(Shape shape, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                     const __grid_constant__ ptx::TensorMap b_map,
                     const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const C cluster;
  const TileGrid tiles = cluster_grid<T, C>(shape);  // in clusters; their last tiles may lie outside D
  const int first = static_cast<int>(blockIdx.x) / C::kCtas;
  const int step = static_cast<int>(gridDim.x) / C::kCtas;
  const int k_tiles = ceil_div(shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(C::kPeers);  // one consumer of each
    for (auto& consumers : shared.order) {
      for (std::uint64_t& one : consumers) ptx::mbarrier_init(&one, 4);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  ptx::barrier_cluster_arrive();  // no CTA may signal a peer's barrier before it is initialised
  ptx::barrier_cluster_wait();

  if (warp >= Roles<T, kConsumers>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T, kConsumers>::kProducerRegisters>();
    if (warp == Roles<T, kConsumers>::kProducerWarp && ptx::elect_sync()) {
      PipelineState<kStages> fill{0, 1};
      for (int index = first; index < tiles.count(); index += step) {
        const TilePosition tile = cluster_tile(tile_at(index, tiles, raster), cluster);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          load_shares<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.m * T::kM,
                         tile.n * T::kN, i * T::kK, cluster);
          fill.advance();
        }
      }
    }
  } else {
    ptx::setmaxnreg_inc<Roles<T, kConsumers>::kConsumerRegisters>();
    const int consumer = warp / 4;
    WarpgroupTile<T> warpgroup;
    OrderedBarrier<T, kStages> order(shared, consumer);
    PipelineState<kStages> read{0, 0};
    if (consumer == 1) read.advance(k_tiles);  // the first tile belongs to the other consumer
    PipelineState<kStages> release = read;
    // ANCHOR: consumer
    for (int index = first + consumer * step; index < tiles.count(); index += kConsumers * step) {
      order.wait(kMainloop, read.stage, 0);
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) {
          release_to_peers(&ring.empty[release.stage], cluster);
          release.advance();
        }
      }
      order.arrive(kMainloop);
      const TilePosition tile = cluster_tile(tile_at(index, tiles, raster), cluster);
      warpgroup.template wait<0>();
      release_to_peers(&ring.empty[release.stage], cluster);
      release.advance();
      read.advance(k_tiles);  // past the other consumer's k-tiles
      release.advance(k_tiles);
      order.wait(kEpilogue, read.stage, k_tiles - 1);
      store_tile<T>(warpgroup, shared.d[consumer], &d_map, tile.m * T::kM, tile.n * T::kN);
      order.arrive(kEpilogue);
      // ANCHOR_END: consumer
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
  __syncwarp();  // the producer's other lanes arrived here long ago
  // No CTA exits while a peer may still write to, or signal, its shared memory.
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}

template <typename T, int kStages, typename C, RasterOrder kOrder, int kGroup = 1>
Variant variant(const char* name, const char* summary) {
  using Grid = PersistentCtas<T, Shared<T, kStages>, Roles<T, kConsumers>::kThreads, C>;
  return variant_of<ping_pong_kernel<T, kStages, C>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>(C::kM, C::kN)},
      [](const Gemm& gemm) {
        return with_tile_maps<T, C>(gemm, gemm.shape, Raster{kOrder, kGroup});
      });
}

using Tile128x128 = WgmmaTiling<128, 128, 64, 1>;
using Tile128x192 = WgmmaTiling<128, 192, 64, 1>;
using Tile64x256 = WgmmaTiling<64, 256, 64, 1>;
using enum RasterOrder;

inline const Step kStep{
    .name = "17_ping_pong",
    .title = "two consumers on alternate tiles: one multiplies while the other stores",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x192, 4, Cluster<2, 1>, kGrouped, 8>("128x192_2x1_group8", "two CTAs share B"),
        variant<Tile128x192, 4, Cluster<1, 2>, kGrouped, 16>("128x192_1x2_group16", "two CTAs share A"),
        variant<Tile128x192, 4, Cluster<1, 1>, kGrouped, 16>("128x192_group16", "no cluster"),
        variant<Tile128x128, 6, Cluster<2, 1>, kGrouped, 8>("128x128_2x1_group8", "128 x 128, 6 stages"),
        variant<Tile128x128, 6, Cluster<1, 1>, kGrouped, 16>("128x128_group16", "128 x 128, no cluster"),
        variant<Tile128x128, 4, Cluster<2, 1>, kGrouped, 8>("128x128_stages4_2x1_group8", "4 stages"),
        variant<Tile64x256, 4, Cluster<2, 1>, kGrouped, 16>("64x256_2x1_group16", "64 x 256")}};

}  // namespace gemm::step_17
