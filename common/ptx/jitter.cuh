// Pseudo-random delays before arrives, waits and copies: the `jitter` build (GEMM_STEPS_JITTER) widens every
// window in which two roles can meet in the wrong order. Nothing in other builds.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// Sleeps between 0 and about 2 microseconds, differently for every thread, place and time. Half of the calls
/// do not sleep at all. PTX ISA, "Miscellaneous Instructions: nanosleep".
__device__ __forceinline__ void jitter() {
#ifdef GEMM_STEPS_JITTER
  std::uint32_t bits = static_cast<std::uint32_t>(clock64()) * 2654435761u;
  bits ^= (threadIdx.x * 40503u + blockIdx.x * 69069u + blockIdx.y * 1640531527u) >> 3;
  bits ^= bits >> 15;
  bits *= 2246822519u;
  bits ^= bits >> 13;
  if ((bits & 1u) != 0) asm volatile("nanosleep.u32 %0;" ::"r"(bits >> 22 << 1) : "memory");
#endif
}

}  // namespace gemm::ptx
