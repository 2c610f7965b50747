// What step 15 taught: both consumers multiply the same tile, each its own rows, and then both store it.
#pragma once

#include <type_traits>

#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/pipeline/ping_pong.cuh"
#include "gemm/pipeline/ring_reader.cuh"

namespace gemm {

/// In the place of an ordered barrier and of its storage: consumers of the same tile wait for nobody.
struct NoOrder {
  __device__ void init(int) {}
  __device__ void wait(OrderedStage, int, int) {}
  __device__ void arrive(OrderedStage) {}
};

/// One of the two consumers of a tile: where it is in the ring. With a tiling of two warpgroups it takes the
/// place of PingPongConsumer under run_ping_pong.
template <typename T, int kStages>
class CooperativeConsumer {
 public:
  static constexpr int kConsumers = 2;
  static constexpr int kTurns = 1;  // each tile is every consumer's
  using Storage = NoOrder;
  static_assert(T::kWarpgroups == kConsumers, "each consumer has its part of a tile's rows");

  /// The storage may be that of another kind of consumer: it is not used.
  template <typename AnyStorage>
  __device__ __forceinline__ CooperativeConsumer(Ring<T, kStages>& ring, AnyStorage&, int, int k_tiles)
      : reader_{ring}, k_tiles_(k_tiles) {}

  /// Multiplies this consumer's rows of the next tile; the accumulators may be read then.
  __device__ __forceinline__ void multiply(WarpgroupTile<T>& warpgroup) {
    reader_.multiply(warpgroup, k_tiles_);
    reader_.finish(warpgroup);
  }

  [[no_unique_address]] NoOrder order;

 private:
  RingReader<T, kStages> reader_;
  int k_tiles_;
};

/// With a tiling of one warpgroup each consumer has tiles of its own, in turn; with two, both have each tile.
template <typename T, int kStages>
using EitherConsumer =
    std::conditional_t<T::kWarpgroups == 1, PingPongConsumer<T, kStages>, CooperativeConsumer<T, kStages>>;

}  // namespace gemm
