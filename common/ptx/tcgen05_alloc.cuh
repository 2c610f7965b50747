// Tensor memory: 512 columns of 128 lanes of 32 bits in each SM, which the CTAs of the SM share.
//
// PTX ISA, "Tensor Memory"; "TensorCore 5th Generation Instructions: tcgen05.alloc, tcgen05.dealloc,
// tcgen05.relinquish_alloc_permit". A whole warp executes each of these. The number of columns is a power of
// 2 from 32 to 512, and no later allocation of the CTA is larger than an earlier one. What was allocated is
// deallocated before the kernel ends.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/shared.cuh"

namespace gemm::ptx {

/// tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32: writes the address of `columns` columns to
/// *address, in shared memory. Waits while the SM has none that are free.
__device__ __forceinline__ void tcgen05_alloc(std::uint32_t* address, std::uint32_t columns) {
  asm volatile(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)),
      "r"(columns)
      : "memory");
}

/// tcgen05.dealloc.cta_group::1.sync.aligned.b32: gives the columns of an allocation back.
__device__ __forceinline__ void tcgen05_dealloc(std::uint32_t address, std::uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns)
               : "memory");
}

/// tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned: this CTA allocates nothing any more.
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

}  // namespace gemm::ptx
