// What step 11 taught: a ring of stages with full and empty barriers, and the pipeline state: where a role is
// in it.
#pragma once

#include <cstdint>

#include "gemm/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"

namespace gemm {

/// kStages k-tiles in shared memory and their barriers.
template <typename T, int kStages>
struct Ring {
  WgmmaTiles<T> stage[kStages];
  std::uint64_t full[kStages];   // the bytes of the stage's k-tile have arrived; count 1, the producer
  std::uint64_t empty[kStages];  // every reader of the stage has read it
};

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

/// Initialises the barriers. One thread calls it; a fence and a barrier of the CTA (or the cluster) must
/// follow.
template <typename T, int kStages>
__device__ __forceinline__ void init_ring(Ring<T, kStages>& ring, int readers) {
  for (int i = 0; i < kStages; ++i) {
    ptx::mbarrier_init(&ring.full[i], 1);
    ptx::mbarrier_init(&ring.empty[i], static_cast<std::uint32_t>(readers));
  }
}

}  // namespace gemm
