// What the tests of tcgen05 share: K-major tiles with a 128-byte swizzle, their descriptors, and the lanes of
// a warp.
#pragma once

#include <cstdint>

#include "hopper_test.h"
#include "ptx/cluster.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_ld.cuh"
#include "ptx/tcgen05_mma.cuh"

namespace emulator_test {

inline constexpr int kK = 64;

inline void __device__ fill(bf16* tile, const bf16* source, int rows) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kK; i += static_cast<int>(blockDim.x)) {
    const std::uint32_t at = ptx::swizzled(static_cast<std::uint32_t>(2 * i), ptx::Swizzle::k128B);
    ptx::st_shared(tile + at / 2, ptx::ld_global(source + i));
  }
}

inline std::uint64_t __device__ descriptor(const bf16* tile, int k) {
  return ptx::advanced(ptx::tcgen05_k_major_descriptor(ptx::shared_address(tile), ptx::Swizzle::k128B),
                       static_cast<std::uint32_t>(2 * k));
}

inline std::uint32_t __device__ lane_address(std::uint32_t address) {
  return ptx::tensor_memory_address(address, threadIdx.x / 32 % 4 * 32, 0);
}

}  // namespace emulator_test
