// tcgen05.cp, tcgen05.shift: the tensor cores copy shared memory to tensor memory, and move rows there. The
// emulator's counterparts; the GPU header explains.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.cp, tcgen05.shift"; "Data Movement Shape".
#pragma once

#include <cstdint>

#include "emulator/async/tcgen05.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// tcgen05.cp.cta_group::{1,2}.128x256b
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_128x256b(std::uint32_t address, std::uint64_t descriptor,
                                                    Where where = Where::here()) {
  emulator::tcgen05("tcgen05_cp_128x256b", where)
      .copy("tcgen05_cp_128x256b", kCtaGroup, emulator::TensorCopyShape::k128x256b, address, descriptor,
            where);
}

/// tcgen05.cp.cta_group::{1,2}.128x128b
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_128x128b(std::uint32_t address, std::uint64_t descriptor,
                                                    Where where = Where::here()) {
  emulator::tcgen05("tcgen05_cp_128x128b", where)
      .copy("tcgen05_cp_128x128b", kCtaGroup, emulator::TensorCopyShape::k128x128b, address, descriptor,
            where);
}

/// tcgen05.cp.cta_group::{1,2}.4x256b
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_4x256b(std::uint32_t address, std::uint64_t descriptor,
                                                  Where where = Where::here()) {
  emulator::tcgen05("tcgen05_cp_4x256b", where)
      .copy("tcgen05_cp_4x256b", kCtaGroup, emulator::TensorCopyShape::k4x256b, address, descriptor, where);
}

/// tcgen05.cp.cta_group::{1,2}.64x128b.warpx2::02_13
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_64x128b_warpx2_02_13(std::uint32_t address,
                                                                std::uint64_t descriptor,
                                                                Where where = Where::here()) {
  emulator::tcgen05("tcgen05_cp_64x128b_warpx2_02_13", where)
      .copy("tcgen05_cp_64x128b_warpx2_02_13", kCtaGroup, emulator::TensorCopyShape::k64x128bWarps02And13,
            address, descriptor, where);
}

/// tcgen05.cp.cta_group::{1,2}.64x128b.warpx2::01_23
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_64x128b_warpx2_01_23(std::uint32_t address,
                                                                std::uint64_t descriptor,
                                                                Where where = Where::here()) {
  emulator::tcgen05("tcgen05_cp_64x128b_warpx2_01_23", where)
      .copy("tcgen05_cp_64x128b_warpx2_01_23", kCtaGroup, emulator::TensorCopyShape::k64x128bWarps01And23,
            address, descriptor, where);
}

/// tcgen05.cp.cta_group::{1,2}.32x128b.warpx4
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_32x128b_warpx4(std::uint32_t address, std::uint64_t descriptor,
                                                          Where where = Where::here()) {
  emulator::tcgen05("tcgen05_cp_32x128b_warpx4", where)
      .copy("tcgen05_cp_32x128b_warpx4", kCtaGroup, emulator::TensorCopyShape::k32x128bWarps0123, address,
            descriptor, where);
}

/// tcgen05.shift.cta_group::{1,2}.down
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_shift_down(std::uint32_t address, Where where = Where::here()) {
  emulator::tcgen05("tcgen05_shift_down", where).shift("tcgen05_shift_down", kCtaGroup, address, where);
}

}  // namespace gemm::ptx
