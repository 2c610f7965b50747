// mma.sync: the warp multiplies small matrices held in its registers.
//
// PTX ISA, "Warp Level Matrix Instructions: mma". All lanes of the warp execute the same instruction;
// volatile keeps the compiler from moving it to where some lanes are absent. No memory is touched.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: d[16][8] += a[16][16] * b[8][16]^T.
///
/// With g = lane / 4 and t = lane % 4, a lane holds (two bf16 a register, the lower k in the low half)
///   a[0]: row g, k 2t and 2t+1    a[1]: row g+8    a[2]: row g, k 2t+8 and 2t+9    a[3]: row g+8, k as a[2]
///   b[0]: column g, k 2t and 2t+1    b[1]: column g, k 2t+8 and 2t+9
///   d[0], d[1]: row g, columns 2t and 2t+1    d[2], d[3]: row g+8
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace gemm::ptx
