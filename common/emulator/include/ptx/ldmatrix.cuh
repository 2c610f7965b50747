// ldmatrix: a warp loads 8 x 8 matrices of 16-bit elements from shared memory, spread over its lanes as
// mma.sync wants them. The emulator's counterparts; the GPU header says which lane hands in which row and
// receives which elements.
//
// PTX ISA, "Warp Level Matrix Load Instruction: ldmatrix". All lanes of the warp execute the same
// instruction.
#pragma once

#include <cstdint>

#include "emulator/async/matrix.h"
#include "ptx/core.cuh"
#include "ptx/shared.cuh"

namespace gemm::ptx {

/// ldmatrix.sync.aligned.m8n8.x1.shared.b16
__device__ __forceinline__ void ldmatrix_x1(std::uint32_t (&r)[1], const void* row,
                                            Where where = Where::here()) {
  emulator::ldmatrix("ldmatrix_x1", r, 1, false, row, where);
}

/// ldmatrix.sync.aligned.m8n8.x2.shared.b16
__device__ __forceinline__ void ldmatrix_x2(std::uint32_t (&r)[2], const void* row,
                                            Where where = Where::here()) {
  emulator::ldmatrix("ldmatrix_x2", r, 2, false, row, where);
}

/// ldmatrix.sync.aligned.m8n8.x4.shared.b16
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], const void* row,
                                            Where where = Where::here()) {
  emulator::ldmatrix("ldmatrix_x4", r, 4, false, row, where);
}

/// ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x1_trans(std::uint32_t (&r)[1], const void* row,
                                                  Where where = Where::here()) {
  emulator::ldmatrix("ldmatrix_x1_trans", r, 1, true, row, where);
}

/// ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row,
                                                  Where where = Where::here()) {
  emulator::ldmatrix("ldmatrix_x2_trans", r, 2, true, row, where);
}

/// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row,
                                                  Where where = Where::here()) {
  emulator::ldmatrix("ldmatrix_x4_trans", r, 4, true, row, where);
}

}  // namespace gemm::ptx
