// What step 74 taught about accumulators: a pair's lie in two tensor memories, and one thread issues for
// both.
#pragma once

#include <cstdint>

#include "gemm/pipeline/accumulators.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/tile/pair_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_fence.cuh"

namespace gemm {

/// Accumulators between two CTAs: `full` is in both, and `empty` in the leader.
template <typename T, int kAccumulators>
struct PairAccumulators : Accumulators<T, kAccumulators> {
  using State = PipelineState<kAccumulators>;

  /// The leader's commit arrives in this CTA, too: what it tells of the other is acquired at cluster scope.
  __device__ __forceinline__ void wait(State at, int k_tile) {
    ptx::mbarrier_wait_parity_cluster(&this->full[at.stage], at.phase,
                                      {"epilogue", "accumulator_full", at.stage, k_tile});
    ptx::tcgen05_fence_after_thread_sync();
  }

  /// Only tensor memory is handed back: relaxed, between the two fences of tcgen05. The warp calls it.
  __device__ __forceinline__ void release(State at) {
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      ptx::mbarrier_arrive_relaxed_cluster(ptx::mapa(ptx::shared_address(&this->empty[at.stage]), kLeader));
  }
  __device__ __forceinline__ void acquire(State at) {
    ptx::mbarrier_wait_parity_relaxed_cluster(&this->empty[at.stage], at.phase,
                                              {"issuer", "accumulator_empty", at.stage, 0});
    ptx::tcgen05_fence_after_thread_sync();
  }
};

}  // namespace gemm
