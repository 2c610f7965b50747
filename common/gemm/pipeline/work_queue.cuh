// What step 19 taught: a queue in shared memory, from the producer to the consumer groups.
#pragma once

#include <cstdint>

#include "gemm/pipeline/ring.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/shared.cuh"

namespace gemm {

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

/// The part of a work tile that its consumer group needs first.
struct alignas(8) QueuedMainloop {
  int k_tiles;     // 0: there is no more work
  PackedState at;  // of the first k-tile
};

inline constexpr int kQueueEntries = 4;

// Step 19's queue knows its epilogue; here each kernel says what a group must know behind the main loop.

/// Work tiles on their way from the producer to the consumer groups, which take turns. `Epilogue`: what a
/// group must know when it has multiplied; read no sooner, it takes no register until then.
template <typename Epilogue>
struct WorkQueue {
  using State = PipelineState<kQueueEntries>;

  QueuedMainloop mainloop[kQueueEntries];
  Epilogue epilogue[kQueueEntries];
  std::uint64_t enqueued[kQueueEntries];  // count 1, the producer
  std::uint64_t dequeued[kQueueEntries];  // count: the warps of a consumer group

  /// One thread calls it; a fence and a barrier of the CTA (or the cluster) must follow.
  __device__ __forceinline__ void init(int warps_of_a_group) {
    for (int i = 0; i < kQueueEntries; ++i) {
      ptx::mbarrier_init(&enqueued[i], 1);
      ptx::mbarrier_init(&dequeued[i], static_cast<std::uint32_t>(warps_of_a_group));
    }
  }

  /// The producer's thread. Its state begins with phase 1.
  __device__ __forceinline__ void enqueue(State& at, const QueuedMainloop& first, const Epilogue& last) {
    ptx::mbarrier_wait_parity(&dequeued[at.stage], at.phase, {"producer", "dequeued", at.stage, 0});
    ptx::st_shared(&mainloop[at.stage], first);
    ptx::st_shared(&epilogue[at.stage], last);
    ptx::mbarrier_arrive(&enqueued[at.stage]);
    at.advance();
  }

  /// Waits for the next work tile. Its numbers are warp-uniform, and the compiler knows that they are.
  __device__ __forceinline__ QueuedMainloop front(const State& at) {
    ptx::mbarrier_wait_parity(&enqueued[at.stage], at.phase, {"consumer", "enqueued", at.stage, 0});
    const QueuedMainloop first = ptx::ld_shared(&mainloop[at.stage]);
    return {warp_uniform(first.k_tiles), {warp_uniform(first.at.word)}};
  }

  /// Reads the rest and frees the entry. `groups`: of consumers; each takes every so manieth entry.
  __device__ __forceinline__ Epilogue dequeue(State& at, int groups) {
    const Epilogue last = ptx::ld_shared(&epilogue[at.stage]);
    __syncwarp();  // lane 0 arrives for its warp: every lane has read
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&dequeued[at.stage]);
    at.advance(groups);
    return last;
  }
};

}  // namespace gemm
