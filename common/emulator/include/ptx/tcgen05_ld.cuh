// tcgen05.ld, tcgen05.st: a warp moves data between tensor memory and its registers, asynchronously. The
// emulator's counterparts; the GPU header explains.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.ld, tcgen05.st, tcgen05.wait".
#pragma once

#include <cstdint>

#include "emulator/async/tcgen05.h"
#include "ptx/core.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// tcgen05.ld.sync.aligned.32x32b.x8.b32
__device__ __forceinline__ void tcgen05_ld_32x32b_x8(float (&r)[8], std::uint32_t address,
                                                     Where where = Where::here()) {
  emulator::tcgen05("tcgen05_ld_32x32b_x8", where).load("tcgen05_ld_32x32b_x8", r, 8, address, where);
}

/// tcgen05.ld.sync.aligned.32x32b.x16.b32
__device__ __forceinline__ void tcgen05_ld_32x32b_x16(float (&r)[16], std::uint32_t address,
                                                      Where where = Where::here()) {
  emulator::tcgen05("tcgen05_ld_32x32b_x16", where).load("tcgen05_ld_32x32b_x16", r, 16, address, where);
}

/// tcgen05.ld.sync.aligned.32x32b.x32.b32
__device__ __forceinline__ void tcgen05_ld_32x32b_x32(float (&r)[32], std::uint32_t address,
                                                      Where where = Where::here()) {
  emulator::tcgen05("tcgen05_ld_32x32b_x32", where).load("tcgen05_ld_32x32b_x32", r, 32, address, where);
}

/// tcgen05.st.sync.aligned.32x32b.x8.b32
__device__ __forceinline__ void tcgen05_st_32x32b_x8(std::uint32_t address, const std::uint32_t (&r)[8],
                                                     Where where = Where::here()) {
  emulator::tcgen05("tcgen05_st_32x32b_x8", where).store("tcgen05_st_32x32b_x8", r, 8, address, where);
}

/// tcgen05.st.sync.aligned.32x32b.x16.b32
__device__ __forceinline__ void tcgen05_st_32x32b_x16(std::uint32_t address, const std::uint32_t (&r)[16],
                                                      Where where = Where::here()) {
  emulator::tcgen05("tcgen05_st_32x32b_x16", where).store("tcgen05_st_32x32b_x16", r, 16, address, where);
}

/// tcgen05.st.sync.aligned.32x32b.x32.b32
__device__ __forceinline__ void tcgen05_st_32x32b_x32(std::uint32_t address, const std::uint32_t (&r)[32],
                                                      Where where = Where::here()) {
  emulator::tcgen05("tcgen05_st_32x32b_x32", where).store("tcgen05_st_32x32b_x32", r, 32, address, where);
}

/// tcgen05.wait::ld.sync.aligned
__device__ __forceinline__ void tcgen05_wait_ld(Where where = Where::here()) {
  emulator::tcgen05("tcgen05_wait_ld", where).wait(false, where);
}

/// tcgen05.wait::st.sync.aligned
__device__ __forceinline__ void tcgen05_wait_st(Where where = Where::here()) {
  emulator::tcgen05("tcgen05_wait_st", where).wait(true, where);
}

}  // namespace gemm::ptx
