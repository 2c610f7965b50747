// What step 15 taught: both consumers multiply the same tile, each its own rows, and then both store it.
#pragma once

#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/pipeline/ring_reader.cuh"

namespace gemm {

/// One of the two consumers of a tile: where it is in the ring. With a tiling of two warpgroups it takes the
/// place of PingPongConsumer under run_ping_pong.
template <typename T, int kStages>
class CooperativeConsumer {
 public:
  static constexpr int kConsumers = 2;
  static constexpr int kTurns = 1;  // each tile is every consumer's
  static_assert(T::kWarpgroups == kConsumers, "each consumer has its part of a tile's rows");

  __device__ __forceinline__ CooperativeConsumer(Ring<T, kStages>& ring,
                                                 OrderedBarrierStorage<kTurns>& storage, int, int k_tiles)
      : order(storage, 0), reader_{ring}, k_tiles_(k_tiles) {}

  /// Multiplies this consumer's rows of the next tile; the accumulators may be read then.
  __device__ __forceinline__ void multiply(WarpgroupTile<T>& warpgroup) {
    reader_.multiply(warpgroup, k_tiles_);
    reader_.finish(warpgroup);
  }

  OrderedBarrier<kTurns> order;  // of one: nobody waits

 private:
  RingReader<T, kStages> reader_;
  int k_tiles_;
};

}  // namespace gemm
