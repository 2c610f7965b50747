// What step 73 taught: accumulators in tensor memory that an issuer and an epilogue hand to and fro.
#pragma once

#include <cstdint>

#include "gemm/pipeline/ring.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/tcgen05_fence.cuh"

namespace gemm {

/// The issuer is the producer of this ring, and the epilogue's four warps are its consumer. A phase of each
/// barrier is a tile.
template <typename T, int kAccumulators>
struct Accumulators {
  using State = PipelineState<kAccumulators>;
  static constexpr std::uint32_t kColumns = kAccumulators * T::kColumns;
  static_assert(kColumns * T::kCtasPerSm <= 512, "the CTAs of an SM share its 512 columns");

  std::uint64_t full[kAccumulators];   // the tile is multiplied; count 1: tcgen05.commit
  std::uint64_t empty[kAccumulators];  // the tile has been read, by so many warps
  std::uint32_t base;                  // tcgen05.alloc writes it here

  __device__ __forceinline__ void init(int warps) {
    for (int i = 0; i < kAccumulators; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], static_cast<std::uint32_t>(warps));
    }
  }

  /// The issuer may overwrite the accumulator: every warp of the epilogue has read it.
  __device__ __forceinline__ void acquire(State at) {
    ptx::mbarrier_wait_parity(&empty[at.stage], at.phase, {"issuer", "accumulator_empty", at.stage, 0});
    ptx::tcgen05_fence_after_thread_sync();
  }

  /// The epilogue may read the accumulator: every multiplication of the tile is done.
  __device__ __forceinline__ void wait(State at, int k_tile) {
    ptx::mbarrier_wait_parity(&full[at.stage], at.phase, {"epilogue", "accumulator_full", at.stage, k_tile});
    ptx::tcgen05_fence_after_thread_sync();
  }

  /// The warp has read the accumulator: it calls this behind its last tcgen05_wait_ld.
  __device__ __forceinline__ void release(State at) {
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();  // lane 0 arrives for its warp
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&empty[at.stage]);
  }
};

}  // namespace gemm
