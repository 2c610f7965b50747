// What step 17 taught: the CTA's tiles go to two consumers in turn, and an ordered barrier lets one multiply
// while the other one does its epilogue. Without clusters.
#pragma once

#include <cstdint>

#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// The tiles of a persistent CTA: first, first + step, ... below count.
template <typename T>
struct CtaTiles {
  TileGrid grid;
  Raster raster;
  int first = static_cast<int>(blockIdx.x);
  int step = static_cast<int>(gridDim.x);

  __device__ __forceinline__ CtaTiles(const Shape& shape, Raster order)
      : grid{ceil_div(shape.m, T::kM), ceil_div(shape.n, T::kN)}, raster(order) {}
  __device__ __forceinline__ int count() const { return grid.count(); }
  /// The corner of a tile in D.
  __device__ __forceinline__ TilePosition corner(int index) const {
    const TilePosition tile = tile_at(index, grid, raster);
    return {tile.m * T::kM, tile.n * T::kN};
  }
};

/// The producer loads all k-tiles of all tiles into one ring. `loaded(n)` is called when the first n k-tiles
/// of the CTA are on their way. One thread calls it.
template <typename T, int kStages, typename Loaded>
__device__ __forceinline__ void produce_tiles(Ring<T, kStages>& ring, const CtaTiles<T>& tiles, int k_tiles,
                                              const ptx::TensorMap* a_map, const ptx::TensorMap* b_map,
                                              const Loaded& loaded) {
  PipelineState<kStages> fill{0, 1};
  int issued = 0;
  for (int index = tiles.first; index < tiles.count(); index += tiles.step) {
    const TilePosition corner = tiles.corner(index);
    for (int i = 0; i < k_tiles; ++i) {
      ring.producer_acquire(fill, i);
      load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], a_map, b_map, corner.m, corner.n,
                    i * T::kK);
      fill.advance();
      loaded(++issued);
    }
  }
}

/// Nothing but A and B is loaded.
struct NoLoader {
  static constexpr bool kLoads = false;
  __device__ void init() const {}
  __device__ void loaded(int) const {}
  __device__ void run() const {}
};

/// The roles of a persistent CTA of two consumers: initialises `shared.ring` and `shared.order`, runs the
/// producer, and calls consume(me) in consumer `me`. All threads of the CTA call it. A loader (see
/// subtile_loader.cuh) runs in a warp of its own, and is told how many k-tiles the producer has issued.
template <typename T, typename S, typename Consume, typename Loader = NoLoader>
__device__ __forceinline__ void run_ping_pong(S& shared, const CtaTiles<T>& tiles, int k_tiles,
                                              const ptx::TensorMap* a_map, const ptx::TensorMap* b_map,
                                              const Consume& consume, const Loader& loader = {}) {
  using R = Roles<T, 2>;
  const int warp = warp_index();
  if (threadIdx.x == 0) {
    shared.ring.init(T::kWarpgroups);  // as many multiply a tile
    shared.order.init(4);
    loader.init();
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    if (warp == R::kProducerWarp && ptx::elect_sync())
      produce_tiles(shared.ring, tiles, k_tiles, a_map, b_map, [&](int issued) { loader.loaded(issued); });
    if constexpr (Loader::kLoads) {
      if (warp == R::kProducerWarp + 1 && ptx::elect_sync()) loader.run();
    }
  } else {
    ptx::setmaxnreg_inc<R::kConsumerRegisters>();
    consume(warp / 4);
  }
}

/// One of the two consumers: where it is in the ring and in the order.
template <typename T, int kStages>
class PingPongConsumer {
 public:
  static constexpr int kConsumers = 2;
  static constexpr int kTurns = kConsumers;  // every second tile is this consumer's
  using Storage = OrderedBarrierStorage<kConsumers>;

  __device__ __forceinline__ PingPongConsumer(Ring<T, kStages>& ring,
                                              OrderedBarrierStorage<kConsumers>& storage, int consumer,
                                              int k_tiles)
      : order(storage, consumer), ring_(ring), k_tiles_(k_tiles) {
    if (consumer == 1) read_.advance(k_tiles);  // the first tile belongs to the other consumer
    release_ = read_;
  }

  /// Multiplies the next tile of this consumer when it is its turn; the accumulators may be read then.
  __device__ __forceinline__ void multiply(WarpgroupTile<T>& warpgroup) {
    warpgroup.forget();  // so an epilogue has the registers of all elements that it has stored
    order.wait(kMainloop, read_.stage, 0);
    for (int i = 0; i < k_tiles_; ++i) {
      ring_.consumer_wait(read_, i);
      warpgroup.issue(ring_.stage[read_.stage], i == 0);
      read_.advance();
      warpgroup.template wait<1>();
      if (i > 0) release();
    }
    order.arrive(kMainloop);
    warpgroup.template wait<0>();
    release();
    read_.advance(k_tiles_);  // past the other consumer's k-tiles
    release_.advance(k_tiles_);
  }

  OrderedBarrier<kConsumers> order;

 private:
  __device__ __forceinline__ void release() {
    if (threadIdx.x % 128 == 0) ring_.consumer_release(release_);
    release_.advance();
  }

  Ring<T, kStages>& ring_;
  int k_tiles_;
  PipelineState<kStages> read_{0, 0};
  PipelineState<kStages> release_{0, 0};
};

}  // namespace gemm
