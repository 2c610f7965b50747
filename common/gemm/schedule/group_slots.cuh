// What step 54 taught about its slots: what a group needs for itself lies in one of a few, which the groups
// of a CTA take in turn, as k-tiles take the stages of a ring.
#pragma once

#include "gemm/pipeline/ring.cuh"
#include "ptx/core.cuh"

namespace gemm {

/// Where a role is in the slots. Every role keeps its own.
template <int kSlots>
struct GroupSlots {
  int group = -1;   // of the tile
  int before = -1;  // the group whose slot is the one before, or -1
  PipelineState<kSlots> at{kSlots - 1, 1};

  /// Whether the tile is in another group than the one before: then on to the next slot.
  __device__ __forceinline__ bool enter(int next) {
    if (next == group) return false;
    before = group;
    group = next;
    at.advance();
    return true;
  }
  __device__ __forceinline__ int stage_before() const { return (at.stage + kSlots - 1) % kSlots; }
};

}  // namespace gemm
