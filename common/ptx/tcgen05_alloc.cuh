// Tensor memory: 512 columns of 128 lanes of 32 bits in each SM, which the CTAs of the SM share.
//
// PTX ISA, "Tensor Memory"; "TensorCore 5th Generation Instructions: tcgen05.alloc, tcgen05.dealloc,
// tcgen05.relinquish_alloc_permit". A whole warp executes each of these. The number of columns is a power of
// 2 from 32 to 512, and no later allocation of the CTA is larger than an earlier one. What was allocated is
// deallocated before the kernel ends.
//
// kCtaGroup: 1, or 2 for a pair, two CTAs of a cluster whose ranks differ in the last bit. A warp of each
// executes the instruction then, and the first may wait for the second ("Issue Granularity"). All tcgen05
// instructions of a kernel have the same group.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/shared.cuh"

namespace gemm::ptx {

/// tcgen05.alloc.cta_group::{1,2}.sync.aligned.shared::cta.b32: writes the address of `columns` columns to
/// *address, in shared memory. Waits while the SM has none that are free.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_alloc(std::uint32_t* address, std::uint32_t columns) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile(
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)),
        "r"(columns)
        : "memory");
  } else {
    asm volatile(
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)),
        "r"(columns)
        : "memory");
  }
}

/// tcgen05.dealloc.cta_group::{1,2}.sync.aligned.b32: gives the columns of an allocation back.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_dealloc(std::uint32_t address, std::uint32_t columns) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns)
                 : "memory");
  } else {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns)
                 : "memory");
  }
}

/// tcgen05.relinquish_alloc_permit.cta_group::{1,2}.sync.aligned: this CTA allocates nothing any more.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit() {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
  } else {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
  }
}

}  // namespace gemm::ptx
