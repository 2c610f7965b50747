// ldmatrix and mma.sync: what the lanes of a warp do together.
#pragma once

#include <cstdint>

#include "emulator/machine/where.h"

namespace emulator {

/// Loads `matrices` (1, 2, 4) 8 x 8 matrices of 16-bit elements; `row` is the calling lane's row address,
/// registers get the calling lane's elements. PTX ISA, "Warp Level Matrix Load Instruction: ldmatrix".
void ldmatrix(const char* what, std::uint32_t* registers, unsigned matrices, bool transposed, const void* row,
              Where where);

/// d[16][8] += a[16][16] * b[8][16]^T, bf16 to fp32. PTX ISA, "Warp Level Matrix Instructions: mma".
void mma_m16n8k16_bf16(float* d, const std::uint32_t* a, const std::uint32_t* b, Where where);

}  // namespace emulator
