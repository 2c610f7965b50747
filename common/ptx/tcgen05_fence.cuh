// tcgen05.fence: orders the asynchronous tcgen05 instructions of two threads around what synchronises them.
//
// PTX ISA, "TensorCore 5th Generation Specialized Synchronization Operations: tcgen05.fence"; "Canonical
// synchronization patterns". mbarriers and __syncthreads order the execution of threads. tcgen05 instructions
// run behind their threads' backs, so the thread that was there first executes the one fence before it
// synchronises, and the other thread the other fence behind. tcgen05.commit contains the first one. ptxas
// makes at most a NOP of them: they stop the compiler.
#pragma once

#include "ptx/core.cuh"

namespace gemm::ptx {

/// tcgen05.fence::before_thread_sync
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

/// tcgen05.fence::after_thread_sync
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

}  // namespace gemm::ptx
