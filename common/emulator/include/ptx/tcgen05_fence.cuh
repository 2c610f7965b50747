// tcgen05.fence: orders the asynchronous tcgen05 instructions of two threads around what synchronises them.
// The emulator's counterparts; the GPU header explains.
//
// PTX ISA, "TensorCore 5th Generation Specialized Synchronization Operations: tcgen05.fence".
#pragma once

#include <cstdint>

#include "emulator/async/tcgen05.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// tcgen05.fence::before_thread_sync
__device__ __forceinline__ void tcgen05_fence_before_thread_sync(Where where = Where::here()) {
  emulator::tcgen05("tcgen05_fence_before_thread_sync", where).fence_before(where);
}

/// tcgen05.fence::after_thread_sync
__device__ __forceinline__ void tcgen05_fence_after_thread_sync(Where where = Where::here()) {
  emulator::tcgen05("tcgen05_fence_after_thread_sync", where).fence_after(where);
}

}  // namespace gemm::ptx
