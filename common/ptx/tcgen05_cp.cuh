// tcgen05.cp, tcgen05.shift: the tensor cores copy shared memory to tensor memory, and move rows there.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.cp, tcgen05.shift"; "Data Movement Shape". One
// thread issues, and goes on. Completion is that of tcgen05.mma: a tcgen05.commit behind it. Behind a
// tcgen05.cp or a tcgen05.shift the multiplications of the same thread need no wait ("Pipelined tcgen05
// Instructions"); a tcgen05.shift needs none behind multiplications. Everything else does.
//
// A row of the source is a row of the tile that the descriptor describes: 32 bytes of it in a shape of 256
// bits, 16 bytes in one of 128. It becomes 8 or 4 columns of a lane of tensor memory.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// tcgen05.cp.cta_group::{1,2}.128x256b: row i to lane i, 8 columns. With cta_group::2 each CTA of the pair
/// copies from its own shared memory, at the same place, to its own tensor memory; here and below.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_128x256b(std::uint32_t address, std::uint64_t descriptor) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.cp.cta_group::2.128x256b [%0], %1;" ::"r"(address), "l"(descriptor) : "memory");
  } else {
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(address), "l"(descriptor) : "memory");
  }
}

/// tcgen05.cp.cta_group::{1,2}.128x128b: row i to lane i, 4 columns.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_128x128b(std::uint32_t address, std::uint64_t descriptor) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.cp.cta_group::2.128x128b [%0], %1;" ::"r"(address), "l"(descriptor) : "memory");
  } else {
    asm volatile("tcgen05.cp.cta_group::1.128x128b [%0], %1;" ::"r"(address), "l"(descriptor) : "memory");
  }
}

/// tcgen05.cp.cta_group::{1,2}.4x256b: row i to lane 32 i, 8 columns.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_4x256b(std::uint32_t address, std::uint64_t descriptor) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.cp.cta_group::2.4x256b [%0], %1;" ::"r"(address), "l"(descriptor) : "memory");
  } else {
    asm volatile("tcgen05.cp.cta_group::1.4x256b [%0], %1;" ::"r"(address), "l"(descriptor) : "memory");
  }
}

/// tcgen05.cp.cta_group::{1,2}.64x128b.warpx2::02_13: row i to lanes i and 64 + i, 4 columns.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_64x128b_warpx2_02_13(std::uint32_t address,
                                                                std::uint64_t descriptor) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.cp.cta_group::2.64x128b.warpx2::02_13 [%0], %1;" ::"r"(address), "l"(descriptor)
                 : "memory");
  } else {
    asm volatile("tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%0], %1;" ::"r"(address), "l"(descriptor)
                 : "memory");
  }
}

/// tcgen05.cp.cta_group::{1,2}.64x128b.warpx2::01_23: rows 0 to 31 to lanes i and 32 + i, the others to lanes
/// 32 + i and 64 + i.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_64x128b_warpx2_01_23(std::uint32_t address,
                                                                std::uint64_t descriptor) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.cp.cta_group::2.64x128b.warpx2::01_23 [%0], %1;" ::"r"(address), "l"(descriptor)
                 : "memory");
  } else {
    asm volatile("tcgen05.cp.cta_group::1.64x128b.warpx2::01_23 [%0], %1;" ::"r"(address), "l"(descriptor)
                 : "memory");
  }
}

/// tcgen05.cp.cta_group::{1,2}.32x128b.warpx4: row i to lanes i, 32 + i, 64 + i and 96 + i, 4 columns.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_cp_32x128b_warpx4(std::uint32_t address, std::uint64_t descriptor) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(address), "l"(descriptor)
                 : "memory");
  } else {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(address), "l"(descriptor)
                 : "memory");
  }
}

/// tcgen05.shift.cta_group::{1,2}.down: of 32 lanes, the first of which the address names, 8 columns of each
/// but the last move to the lane behind it.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_shift_down(std::uint32_t address) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.shift.cta_group::2.down [%0];" ::"r"(address) : "memory");
  } else {
    asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(address) : "memory");
  }
}

}  // namespace gemm::ptx
