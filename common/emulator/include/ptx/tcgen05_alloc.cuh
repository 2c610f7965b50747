// Tensor memory: 512 columns of 128 lanes of 32 bits in each SM. The emulator's counterparts; the GPU header
// explains.
//
// PTX ISA, "Tensor Memory"; "TensorCore 5th Generation Instructions: tcgen05.alloc, tcgen05.dealloc,
// tcgen05.relinquish_alloc_permit".
#pragma once

#include <cstdint>

#include "emulator/async/tcgen05.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// tcgen05.alloc.cta_group::{1,2}.sync.aligned.shared::cta.b32
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_alloc(std::uint32_t* address, std::uint32_t columns,
                                              Where where = Where::here()) {
  emulator::tcgen05("tcgen05_alloc", where).alloc(kCtaGroup, address, columns, where);
}

/// tcgen05.dealloc.cta_group::{1,2}.sync.aligned.b32
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_dealloc(std::uint32_t address, std::uint32_t columns,
                                                Where where = Where::here()) {
  emulator::tcgen05("tcgen05_dealloc", where).dealloc(kCtaGroup, address, columns, where);
}

/// tcgen05.relinquish_alloc_permit.cta_group::{1,2}.sync.aligned
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit(Where where = Where::here()) {
  emulator::tcgen05("tcgen05_relinquish_alloc_permit", where).relinquish(kCtaGroup, where);
}

}  // namespace gemm::ptx
