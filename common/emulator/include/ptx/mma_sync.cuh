// mma.sync: the warp multiplies small matrices held in its registers. The emulator's counterpart; the GPU
// header says which lane holds which elements.
//
// PTX ISA, "Warp Level Matrix Instructions: mma". All lanes of the warp execute the same instruction.
#pragma once

#include <cstdint>

#include "emulator/async/matrix.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: d[16][8] += a[16][16] * b[8][16]^T.
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2],
                                                  emulator::Where where = emulator::Where::here()) {
  emulator::mma_m16n8k16_bf16(d, a, b, where);
}

}  // namespace gemm::ptx
