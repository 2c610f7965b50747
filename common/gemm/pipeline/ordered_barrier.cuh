// What step 17 taught: an ordered barrier. Two consumer groups alternate, at the main loop and at the
// epilogue.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"

namespace gemm {

/// What the consumer groups do one after the other.
enum OrderedStage { kMainloop, kEpilogue, kOrderedStages };

/// In shared memory. With one consumer group there is no order to keep, and nothing happens.
template <int kGroups>
struct OrderedBarrierStorage {
  static_assert(kGroups == 1 || kGroups == 2, "the order alternates between two consumer groups");
  std::uint64_t order[kOrderedStages][kGroups];  // this group may enter; count: the warps of the other group

  /// One thread calls it; a fence and a barrier of the CTA (or the cluster) must follow.
  __device__ __forceinline__ void init(int warps_of_a_group) {
    if constexpr (kGroups == 2) {
      for (auto& groups : order) {
        for (std::uint64_t& one : groups)
          ptx::mbarrier_init(&one, static_cast<std::uint32_t>(warps_of_a_group));
      }
    }
  }
};

// Step 17 keeps a phase for the main loop and one for the epilogue. Each is entered once a tile, so here one
// phase does for both, and a register is free; and a group may be two warpgroups, or the only one.

/// A consumer group's view of them. Group 0 begins. The wait before the main loop also makes sure that every
/// stage the other group has read was filled: `full` barriers cannot be a phase behind.
template <int kGroups>
class OrderedBarrier {
 public:
  __device__ __forceinline__ OrderedBarrier(OrderedBarrierStorage<kGroups>& storage, int group)
      : storage_(storage), group_(group), phase_(group == 0 ? 1 : 0) {}

  /// Returns when this group may enter. `stage` and `k_tile` are for reports.
  __device__ __forceinline__ void wait(OrderedStage at, int stage, int k_tile) {
    if constexpr (kGroups == 2) {
      ptx::mbarrier_wait_parity(
          &storage_.order[at][group_], phase_,
          {"consumer", at == kMainloop ? "mainloop order" : "epilogue order", stage, k_tile});
    }
  }
  /// Lets the other group enter.
  __device__ __forceinline__ void arrive(OrderedStage at) {
    if constexpr (kGroups == 2) {
      __syncwarp();  // lane 0 arrives for its warp: every lane has waited for what the warp waited for
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&storage_.order[at][1 - group_]);
      if (at == kEpilogue) phase_ ^= 1;
    }
  }

 private:
  OrderedBarrierStorage<kGroups>& storage_;
  int group_;
  std::uint32_t phase_;  // of both: each is entered once a tile
};

}  // namespace gemm
