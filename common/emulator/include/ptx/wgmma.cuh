// wgmma: four warps multiply matrices straight from shared memory, asynchronously. The emulator's
// counterparts; the GPU header has the order of a warpgroup's life and the layout of the accumulators.
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.mma_async, wgmma.fence,
// wgmma.commit_group, wgmma.wait_group".
#pragma once

#include <cstdint>

#include "emulator/async/wgmma.h"
#include "ptx/core.cuh"
#include "ptx/trace.cuh"
#include "ptx/wgmma_mma_async.cuh"

namespace gemm::ptx {

inline constexpr bool kHasWgmma = true;

/// wgmma.fence.sync.aligned
__device__ __forceinline__ void wgmma_fence(Where where = Where::here()) {
  trace_state(TraceState::kMultiply, where);
  emulator::wgmma_fence(where);
}

/// wgmma.commit_group.sync.aligned
__device__ __forceinline__ void wgmma_commit_group(Where where = Where::here()) {
  emulator::wgmma_commit_group(where);
}

/// wgmma.wait_group.sync.aligned: waits until at most kPending of the latest groups are still running.
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group(Where where = Where::here()) {
  static_assert(kPending >= 0 && kPending <= 7, "the instruction encodes 0 to 7 groups");
  if constexpr (kPending == 0) trace_state(TraceState::kDrain, where);
  emulator::wgmma_wait_group(kPending, where);
  trace_state(TraceState::kNone, where);
}

/// A word to the GPU's compiler. Here it says where accumulators are: they are watched from now on.
template <int kCount>
__device__ __forceinline__ void wgmma_fence_operand(float (&d)[kCount], Where where = Where::here()) {
  emulator::wgmma_fence_operand(d, kCount, where);
}
template <int kCount>
__device__ __forceinline__ void wgmma_fence_operand(std::int32_t (&d)[kCount], Where where = Where::here()) {
  emulator::wgmma_fence_operand(d, kCount, where);
}
/// Of a fragment of A.
template <int kCount>
__device__ __forceinline__ void wgmma_fence_operand(std::uint32_t (&)[kCount]) {}

}  // namespace gemm::ptx
