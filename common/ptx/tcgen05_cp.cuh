// tcgen05.cp, tcgen05.shift: the tensor cores copy shared memory to tensor memory, and move rows there.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.cp, tcgen05.shift"; "Data Movement Shape". One
// thread issues, and goes on. Completion is that of tcgen05.mma: a tcgen05.commit behind it. Behind a
// tcgen05.cp or a tcgen05.shift the multiplications of the same thread need no wait ("Pipelined tcgen05
// Instructions"); a tcgen05.shift needs none behind multiplications. Everything else does.
//
// A row of the source is a row of the tile that the descriptor describes: 32 bytes of it in a shape of 256
// bits, 16 bytes in one of 128. It becomes 8 or 4 columns of a lane of tensor memory.
//
// "Optional Decompression": with .b8x16.b4x16_p64, 16 bytes of the source are 16 elements of 4 bits and 8
// bytes of padding; with .b8x16.b6x16_p32, they are 16 elements of 6 bits and 4 bytes of padding. Each
// element becomes a byte, as A of .kind::mxf8f6f4 has it in tensor memory ("Packing format used for matrix A
// by .kind::mxf8f6f4 in Tensor Memory"). Where in its byte an element is, the PTX ISA shows in figures.
// According to CUTLASS (cp_narrow_a_to_tmem_mma.py), it has the middle bits: 2 to 5, or 1 to 6. That the
// other bits become 0, and that element i is bits 4 i or 6 i of the source and later ones are higher, is
// inferred from the same example and from "Packing formats" of shared memory.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// tcgen05_cp_NAME: tcgen05.cp.cta_group::{1,2}.FORM. With cta_group::2 each CTA of the pair copies from its
/// own shared memory, at the same place, to its own tensor memory.
#define GEMM_TCGEN05_CP(NAME, FORM)                                                                          \
  template <int kCtaGroup = 1>                                                                               \
  __device__ __forceinline__ void tcgen05_cp_##NAME(std::uint32_t address, std::uint64_t descriptor) {       \
    static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");                                     \
    if constexpr (kCtaGroup == 2) {                                                                          \
      asm volatile("tcgen05.cp.cta_group::2." FORM " [%0], %1;" ::"r"(address), "l"(descriptor) : "memory"); \
    } else {                                                                                                 \
      asm volatile("tcgen05.cp.cta_group::1." FORM " [%0], %1;" ::"r"(address), "l"(descriptor) : "memory"); \
    }                                                                                                        \
  }

/// The three formats of a source: bytes as they are, and 16 elements of 4 or of 6 bits in each 16 bytes.
#define GEMM_TCGEN05_CP_EACH_FORMAT(NAME, FORM)                    \
  GEMM_TCGEN05_CP(NAME, FORM)                                      \
  GEMM_TCGEN05_CP(NAME##_b8x16_b4x16_p64, FORM ".b8x16.b4x16_p64") \
  GEMM_TCGEN05_CP(NAME##_b8x16_b6x16_p32, FORM ".b8x16.b6x16_p32")

// Row i to lane i, 8 columns, or 4.
GEMM_TCGEN05_CP_EACH_FORMAT(128x256b, "128x256b")
GEMM_TCGEN05_CP_EACH_FORMAT(128x128b, "128x128b")
// Row i to lane 32 i, 8 columns.
GEMM_TCGEN05_CP_EACH_FORMAT(4x256b, "4x256b")
// Row i to lanes i and 64 + i, 4 columns.
GEMM_TCGEN05_CP_EACH_FORMAT(64x128b_warpx2_02_13, "64x128b.warpx2::02_13")
// Rows 0 to 31 to lanes i and 32 + i, the others to lanes 32 + i and 64 + i, 4 columns.
GEMM_TCGEN05_CP_EACH_FORMAT(64x128b_warpx2_01_23, "64x128b.warpx2::01_23")
// Row i to lanes i, 32 + i, 64 + i and 96 + i, 4 columns.
GEMM_TCGEN05_CP_EACH_FORMAT(32x128b_warpx4, "32x128b.warpx4")
#undef GEMM_TCGEN05_CP_EACH_FORMAT
#undef GEMM_TCGEN05_CP

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
