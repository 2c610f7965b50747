// stmatrix: a warp stores 8 x 8 matrices of 16-bit elements, spread over its lanes as mma.sync leaves them,
// to shared memory. The mirror image of ldmatrix: the same lanes hand in the row addresses, the same lanes
// hold the elements.
//
// PTX ISA, "Warp Level Matrix Store Instruction: stmatrix". All lanes of the warp execute the same
// instruction.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/shared.cuh"

namespace gemm::ptx {

/// stmatrix.sync.aligned.m8n8.x1.shared.b16
__device__ __forceinline__ void stmatrix_x1(void* row, const std::uint32_t (&r)[1]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(shared_address(row)), "r"(r[0])
               : "memory");
}

/// stmatrix.sync.aligned.m8n8.x2.shared.b16
__device__ __forceinline__ void stmatrix_x2(void* row, const std::uint32_t (&r)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(row)),
               "r"(r[0]), "r"(r[1])
               : "memory");
}

/// stmatrix.sync.aligned.m8n8.x4.shared.b16
__device__ __forceinline__ void stmatrix_x4(void* row, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

/// stmatrix.sync.aligned.m8n8.x1.trans.shared.b16
__device__ __forceinline__ void stmatrix_x1_trans(void* row, const std::uint32_t (&r)[1]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(shared_address(row)),
               "r"(r[0])
               : "memory");
}

/// stmatrix.sync.aligned.m8n8.x2.trans.shared.b16
__device__ __forceinline__ void stmatrix_x2_trans(void* row, const std::uint32_t (&r)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(row)),
               "r"(r[0]), "r"(r[1])
               : "memory");
}

/// stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
__device__ __forceinline__ void stmatrix_x4_trans(void* row, const std::uint32_t (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

}  // namespace gemm::ptx
