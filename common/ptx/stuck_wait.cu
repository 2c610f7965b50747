#include "ptx/stuck_wait.h"

#include "ptx/core.cuh"

namespace gemm::ptx {

StuckWait* stuck_wait_buffer() {
#ifdef GEMM_STEPS_BOUNDED_WAIT
  static StuckWait* const buffer = [] {
    StuckWait* host = nullptr;
    if (cudaHostAlloc(&host, sizeof(StuckWait), cudaHostAllocMapped) != cudaSuccess) return host;
    *host = StuckWait{};
    return host;
  }();
  return buffer;
#else
  return nullptr;
#endif
}

}  // namespace gemm::ptx
