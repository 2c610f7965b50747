// What step 43 taught: two warpgroups that promote take turns to issue, so that the tensor cores multiply for
// one while the other one adds.
#pragma once

#include <cstdint>

#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/named_barrier.cuh"

namespace gemm {

/// In which order the two warpgroups issue multiplications.
enum class Phase { kOut, kIn, kAny };

/// Two named barriers pass the turn; 128 threads arrive and 128 wait.
template <Phase kPhase>
struct IssueOrder {
  static constexpr std::uint32_t kFirst = 3;  // 0 is __syncthreads', 1 and 2 are the stores'
  static constexpr std::uint32_t kThreads = 256;
  std::uint32_t me = static_cast<std::uint32_t>(warp_index()) / 4;

  /// Before the first turn, of warpgroup 0.
  __device__ __forceinline__ void begin() const {
    if (kPhase == Phase::kOut && me == 1) pass();
  }
  __device__ __forceinline__ void wait() const {
    if constexpr (kPhase == Phase::kOut) ptx::bar_sync(kFirst + me, kThreads);
    if constexpr (kPhase == Phase::kIn) ptx::bar_sync(kFirst, kThreads);
  }
  __device__ __forceinline__ void pass() const {
    if constexpr (kPhase == Phase::kOut) ptx::bar_arrive(kFirst + 1 - me, kThreads);
  }
  /// After the last turn, of warpgroup 1: nobody leaves a barrier half full.
  __device__ __forceinline__ void end() const {
    if (kPhase == Phase::kOut && me == 0) wait();
  }
};

}  // namespace gemm
