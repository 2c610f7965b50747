// What step 11 taught: a ring of stages with full and empty barriers, and the pipeline state: where a role is
// in it. The methods have the names of CUTLASS's pipelines.
#pragma once

#include <cstdint>

#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/where.cuh"

namespace gemm {

/// A stage, and the parity of the phase to wait for there. Every role keeps its own. The producer starts with
/// phase 1 (a fresh `empty` barrier lets it pass), a consumer with phase 0.
template <int kStages>
struct PipelineState {
  int stage = 0;
  std::uint32_t phase = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
  /// As often as that, at once.
  __device__ __forceinline__ void advance(int k_tiles) {
    const int target = stage + k_tiles;
    phase ^= static_cast<std::uint32_t>(target / kStages) & 1;
    stage = target % kStages;
  }
};

// Step 11 writes out the waits and arrivals that are methods here; they take a place (Where), because a
// report shall name the line in the kernel.

/// kStages k-tiles in shared memory and their barriers. No method advances a state: whoever calls it does.
template <typename T, int kStages, typename Tiles = WgmmaTiles<T>>
struct Ring {
  using State = PipelineState<kStages>;
  using Where = ptx::Where;

  Tiles stage[kStages];
  std::uint64_t full[kStages];   // the bytes of the stage's k-tile have arrived; count 1, the producer
  std::uint64_t empty[kStages];  // every reader of the stage has read it

  /// Initialises the barriers. One thread calls it; a fence and a barrier of the CTA (or the cluster) must
  /// follow.
  __device__ __forceinline__ void init(int readers) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], static_cast<std::uint32_t>(readers));
    }
  }

  /// The producer waits until every reader has released the stage; then it may be filled. `k_tile`, here and
  /// below, is what reports call the wait.
  __device__ __forceinline__ void producer_acquire(State at, int k_tile, Where where = Where::here()) {
    ptx::mbarrier_wait_parity(&empty[at.stage], at.phase, {"producer", "empty", at.stage, k_tile}, where);
  }

  /// Behind its last k-tile the producer waits until every stage is free. Releases that come without a thread
  /// of this CTA, from the tensor cores or from another CTA, must find its barriers.
  __device__ __forceinline__ void producer_tail(State at, int k_tile, Where where = Where::here()) {
    for (int i = 0; i < kStages; ++i) {
      producer_acquire(at, k_tile + i, where);
      at.advance();
    }
  }

  /// A consumer waits until the k-tile in the stage has arrived.
  __device__ __forceinline__ void consumer_wait(State at, int k_tile, Where where = Where::here()) {
    ptx::mbarrier_wait_parity(&full[at.stage], at.phase, {"consumer", "full", at.stage, k_tile}, where);
  }

  /// Has it arrived already? Where the answer is yes, consumer_wait is not needed.
  __device__ __forceinline__ bool consumer_try_wait(State at, Where where = Where::here()) {
    return ptx::mbarrier_try_wait_parity(&full[at.stage], at.phase, where);
  }

  /// One of the readers has read the stage. One thread calls it for all whose reads it has waited for.
  __device__ __forceinline__ void consumer_release(State at, Where where = Where::here()) {
    ptx::mbarrier_arrive(&empty[at.stage], where);
  }
};

}  // namespace gemm
