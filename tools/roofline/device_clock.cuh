// Reading the clocks of the GPU around a piece of a kernel.
#pragma once

#include <cstdint>

#include "bench.h"
#include "ptx/core.cuh"

namespace roofline {

/// %globaltimer: nanoseconds, the same for all SMs. PTX ISA, "Special Registers". Ticks every 32 ns on
/// Hopper.
__device__ __forceinline__ std::uint64_t global_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

/// Times a part of a kernel that all threads of the CTA enter and leave. The barriers at both ends make the
/// interval that of the whole CTA.
class CtaStopwatch {
 public:
  __device__ __forceinline__ CtaStopwatch() {
    __syncthreads();
    start_ns_ = global_ns();
    start_ = clock64();
  }
  /// Writes the time since the construction to times[blockIdx.x].
  __device__ __forceinline__ void stop(CtaTime* times) const {
    __syncthreads();
    const std::int64_t end = clock64();
    const std::uint64_t end_ns = global_ns();
    if (threadIdx.x == 0) times[blockIdx.x] = {end - start_, start_ns_, end_ns};
  }

 private:
  std::uint64_t start_ns_;
  std::int64_t start_;
};

/// 32 bits that look random. Constants of the murmur3 finalizer (Appleby).
__device__ __forceinline__ std::uint32_t mixed(std::uint32_t bits) {
  bits ^= bits >> 16;
  bits *= 0x85ebca6bu;
  bits ^= bits >> 13;
  bits *= 0xc2b2ae35u;
  return bits ^ bits >> 16;
}

/// Uniform in [-1, 1): multipliers draw less power on zeros than on data.
__device__ __forceinline__ float random_float(std::uint32_t index) {
  return static_cast<float>(static_cast<std::int32_t>(mixed(index))) * 0x1p-31f;
}

}  // namespace roofline
