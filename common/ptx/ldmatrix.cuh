// ldmatrix: a warp loads 8 x 8 matrices of 16-bit elements from shared memory, spread over its lanes as
// mma.sync wants them.
//
// A row is 16 bytes in shared memory, 16-byte aligned; rows need not be neighbours. Lane i hands in the
// address of one row: lanes 0-7 the rows of the first matrix, 8-15 of the second, 16-23 of the third, 24-31
// of the fourth. x1 and x2 use the addresses of the first 8 and 16 lanes only. Lane i receives of each matrix
// the elements (i / 4, 2 * (i % 4)) in the low and (i / 4, 2 * (i % 4) + 1) in the high half of a register.
// With trans the matrix is transposed on the way: elements (2 * (i % 4), i / 4) and (2 * (i % 4) + 1, i / 4).
//
// PTX ISA, "Warp Level Matrix Load Instruction: ldmatrix". All lanes of the warp execute the same
// instruction. The clobber keeps the load behind the barrier that made the tile visible.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/shared.cuh"

namespace gemm::ptx {

/// ldmatrix.sync.aligned.m8n8.x1.shared.b16
__device__ __forceinline__ void ldmatrix_x1(std::uint32_t (&r)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(shared_address(row))
               : "memory");
}

/// ldmatrix.sync.aligned.m8n8.x2.shared.b16
__device__ __forceinline__ void ldmatrix_x2(std::uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

/// ldmatrix.sync.aligned.m8n8.x4.shared.b16
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x1_trans(std::uint32_t (&r)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(shared_address(row))
               : "memory");
}

/// ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

/// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

}  // namespace gemm::ptx
