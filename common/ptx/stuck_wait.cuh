// The device's side of stuck_wait.h: where a kernel of a bounded-wait build writes its report.
#pragma once

#include <stdexcept>

#include "ptx/core.cuh"
#include "ptx/stuck_wait.h"

namespace gemm::ptx {

#ifdef GEMM_STEPS_BOUNDED_WAIT

/// One in every translation unit that has kernels.
[[maybe_unused]] static __device__ StuckWait* stuck_wait = nullptr;

/// Called by launch(): tells this translation unit's kernels where to report.
[[maybe_unused]] static void connect_stuck_wait() {
  static const bool connected = [] {
    StuckWait* const buffer = stuck_wait_buffer();
    return buffer != nullptr && cudaMemcpyToSymbol(stuck_wait, &buffer, sizeof buffer) == cudaSuccess;
  }();
  if (!connected) throw std::runtime_error("the memory for reports of stuck waits could not be set up");
}

#else

inline void connect_stuck_wait() {}

#endif

}  // namespace gemm::ptx
