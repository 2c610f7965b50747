// stmatrix: a warp stores 8 x 8 matrices of 16-bit elements, spread over its lanes as mma.sync leaves them,
// to shared memory. The emulator's counterparts.
//
// PTX ISA, "Warp Level Matrix Store Instruction: stmatrix". All lanes of the warp execute the same
// instruction.
#pragma once

#include <cstdint>

#include "emulator/async/matrix.h"
#include "ptx/core.cuh"
#include "ptx/shared.cuh"

namespace gemm::ptx {

/// stmatrix.sync.aligned.m8n8.x1.shared.b16
__device__ __forceinline__ void stmatrix_x1(void* row, const std::uint32_t (&r)[1],
                                            Where where = Where::here()) {
  emulator::stmatrix("stmatrix_x1", r, 1, false, row, where);
}

/// stmatrix.sync.aligned.m8n8.x2.shared.b16
__device__ __forceinline__ void stmatrix_x2(void* row, const std::uint32_t (&r)[2],
                                            Where where = Where::here()) {
  emulator::stmatrix("stmatrix_x2", r, 2, false, row, where);
}

/// stmatrix.sync.aligned.m8n8.x4.shared.b16
__device__ __forceinline__ void stmatrix_x4(void* row, const std::uint32_t (&r)[4],
                                            Where where = Where::here()) {
  emulator::stmatrix("stmatrix_x4", r, 4, false, row, where);
}

/// stmatrix.sync.aligned.m8n8.x1.trans.shared.b16
__device__ __forceinline__ void stmatrix_x1_trans(void* row, const std::uint32_t (&r)[1],
                                                  Where where = Where::here()) {
  emulator::stmatrix("stmatrix_x1_trans", r, 1, true, row, where);
}

/// stmatrix.sync.aligned.m8n8.x2.trans.shared.b16
__device__ __forceinline__ void stmatrix_x2_trans(void* row, const std::uint32_t (&r)[2],
                                                  Where where = Where::here()) {
  emulator::stmatrix("stmatrix_x2_trans", r, 2, true, row, where);
}

/// stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
__device__ __forceinline__ void stmatrix_x4_trans(void* row, const std::uint32_t (&r)[4],
                                                  Where where = Where::here()) {
  emulator::stmatrix("stmatrix_x4_trans", r, 4, true, row, where);
}

}  // namespace gemm::ptx
