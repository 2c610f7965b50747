// wgmma: four warps multiply matrices straight from shared memory, asynchronously.
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.mma_async, wgmma.fence,
// wgmma.commit_group, wgmma.wait_group". A warpgroup is four consecutive warps, the first with a number
// divisible by 4; all its threads execute the same instruction.
//
// The order of a warpgroup's life:
//   wgmma_fence()            registers accessed so far (accumulators, A fragments) may be used by wgmma
//   wgmma_m64nNk16_...()     issued, any number of times
//   wgmma_commit_group()     the instructions since the last commit form a group
//   wgmma_wait_group<P>()    at most the latest P groups are still running; the accumulators of the others
//                            may be read and their shared memory overwritten
// Between issue and wait no thread touches the accumulators, the A fragments or the tiles in shared memory.
// Accumulators of several wgmma in flight may be the same registers: the hardware adds in order.
//
// The accumulator of m64nN: with w = warp in the warpgroup, g = lane / 4, t = lane % 4, a thread holds for
// every j < N / 8
//   d[4j], d[4j+1]: row 16w + g, columns 8j + 2t and + 1    d[4j+2], d[4j+3]: row 16w + g + 8
// and an A fragment in registers is laid out as mma_m16n8k16_bf16's, warp w holding rows 16w to 16w + 15.
// Operands of other types: wgmma_types.cuh.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/trace.cuh"
#include "ptx/wgmma_mma_async.cuh"

namespace gemm::ptx {

/// Whether the target of this compilation has wgmma: sm_90a does, and no other.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
inline constexpr bool kHasWgmma = true;
#else
inline constexpr bool kHasWgmma = false;
#endif

/// wgmma.fence.sync.aligned: before the first wgmma, and whenever other instructions accessed (read or
/// wrote) its registers since: accumulators or A fragments.
__device__ __forceinline__ void wgmma_fence() {
  if constexpr (kTraces) trace_state(TraceState::kMultiply);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// wgmma.commit_group.sync.aligned
__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// wgmma.wait_group.sync.aligned: waits until at most kPending of the latest groups are still running.
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group() {
  static_assert(kPending >= 0 && kPending <= 7, "the instruction encodes 0 to 7 groups");
  if constexpr (kTraces && kPending == 0) trace_state(TraceState::kDrain);
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
  if constexpr (kTraces) trace_state(TraceState::kNone);
}

/// No instruction: tells the compiler that these registers change here. The waits above name no registers, so
/// without this it may copy an accumulator before the wait, where the hardware still writes it, and ptxas
/// then serialises every wgmma. Call it on the accumulators before wgmma_fence() and after
/// wgmma_wait_group().
template <int kCount>
__device__ __forceinline__ void wgmma_fence_operand(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void wgmma_fence_operand(std::int32_t (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(d[i])::"memory");
}
/// The same for a fragment of A.
template <int kCount>
__device__ __forceinline__ void wgmma_fence_operand(std::uint32_t (&a)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

}  // namespace gemm::ptx
