// tcgen05.ld, tcgen05.st: a warp moves data between tensor memory and its registers, asynchronously.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.ld, tcgen05.st, tcgen05.wait"; "Access
// restrictions". All lanes of the warp execute the same instruction with the same address. Warp w of the CTA
// reaches the 32 lanes of tensor memory from 32 (w % 4) on, and no others. In the shape .32x32b a thread gets
// (or gives) one 32-bit word of each of the columns, of the lane of tensor memory that is its own in the
// warp.
//
// Until tcgen05_wait_ld() the registers belong to the load, and the tensor memory may not be overwritten;
// until tcgen05_wait_st() what is stored is not there.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// tcgen05.ld.sync.aligned.32x32b.x8.b32: 8 columns of the lane.
__device__ __forceinline__ void tcgen05_ld_32x32b_x8(float (&r)[8], std::uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]),
                 "=f"(r[7])
               : "r"(address));
}

/// tcgen05.ld.sync.aligned.32x32b.x16.b32: 16 columns of the lane.
__device__ __forceinline__ void tcgen05_ld_32x32b_x16(float (&r)[16], std::uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15}, [%16];"
      : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]),
        "=f"(r[8]), "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]), "=f"(r[14]), "=f"(r[15])
      : "r"(address));
}

/// tcgen05.ld.sync.aligned.32x32b.x32.b32: 32 columns of the lane.
__device__ __forceinline__ void tcgen05_ld_32x32b_x32(float (&r)[32], std::uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]),
        "=f"(r[8]), "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]), "=f"(r[14]), "=f"(r[15]),
        "=f"(r[16]), "=f"(r[17]), "=f"(r[18]), "=f"(r[19]), "=f"(r[20]), "=f"(r[21]), "=f"(r[22]),
        "=f"(r[23]), "=f"(r[24]), "=f"(r[25]), "=f"(r[26]), "=f"(r[27]), "=f"(r[28]), "=f"(r[29]),
        "=f"(r[30]), "=f"(r[31])
      : "r"(address));
}

/// tcgen05.st.sync.aligned.32x32b.x8.b32: 8 columns of the lane.
__device__ __forceinline__ void tcgen05_st_32x32b_x8(std::uint32_t address, const std::uint32_t (&r)[8]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7])
               : "memory");
}

/// tcgen05.st.sync.aligned.32x32b.x16.b32: 16 columns of the lane.
__device__ __forceinline__ void tcgen05_st_32x32b_x16(std::uint32_t address, const std::uint32_t (&r)[16]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16};" ::"r"(address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]), "r"(r[8]),
      "r"(r[9]), "r"(r[10]), "r"(r[11]), "r"(r[12]), "r"(r[13]), "r"(r[14]), "r"(r[15])
      : "memory");
}

/// tcgen05.st.sync.aligned.32x32b.x32.b32: 32 columns of the lane.
__device__ __forceinline__ void tcgen05_st_32x32b_x32(std::uint32_t address, const std::uint32_t (&r)[32]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x32.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32};" ::"r"(
          address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]), "r"(r[8]),
      "r"(r[9]), "r"(r[10]), "r"(r[11]), "r"(r[12]), "r"(r[13]), "r"(r[14]), "r"(r[15]), "r"(r[16]),
      "r"(r[17]), "r"(r[18]), "r"(r[19]), "r"(r[20]), "r"(r[21]), "r"(r[22]), "r"(r[23]), "r"(r[24]),
      "r"(r[25]), "r"(r[26]), "r"(r[27]), "r"(r[28]), "r"(r[29]), "r"(r[30]), "r"(r[31])
      : "memory");
}

/// tcgen05.wait::ld.sync.aligned: all loads of the thread from tensor memory are complete.
__device__ __forceinline__ void tcgen05_wait_ld() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

/// tcgen05.wait::st.sync.aligned: all stores of the thread to tensor memory are complete.
__device__ __forceinline__ void tcgen05_wait_st() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

}  // namespace gemm::ptx
