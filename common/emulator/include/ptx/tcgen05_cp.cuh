// tcgen05.cp, tcgen05.shift: the tensor cores copy shared memory to tensor memory, and move rows there. The
// emulator's counterparts; the GPU header explains.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.cp, tcgen05.shift"; "Data Movement Shape".
#pragma once

#include <cstdint>

#include "emulator/async/tcgen05.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

#define GEMM_TCGEN05_CP(NAME, SHAPE, FORMAT)                                                               \
  template <int kCtaGroup = 1>                                                                             \
  __device__ __forceinline__ void tcgen05_cp_##NAME(std::uint32_t address, std::uint64_t descriptor,       \
                                                    Where where = Where::here()) {                         \
    emulator::tcgen05("tcgen05_cp_" #NAME, where)                                                          \
        .copy("tcgen05_cp_" #NAME, kCtaGroup,                                                              \
              {emulator::TensorCopyShape::SHAPE, emulator::TensorCopyFormat::FORMAT}, address, descriptor, \
              where);                                                                                      \
  }

#define GEMM_TCGEN05_CP_EACH_FORMAT(NAME, SHAPE)         \
  GEMM_TCGEN05_CP(NAME, SHAPE, kBytes)                   \
  GEMM_TCGEN05_CP(NAME##_b8x16_b4x16_p64, SHAPE, k4Bits) \
  GEMM_TCGEN05_CP(NAME##_b8x16_b6x16_p32, SHAPE, k6Bits)

GEMM_TCGEN05_CP_EACH_FORMAT(128x256b, k128x256b)
GEMM_TCGEN05_CP_EACH_FORMAT(128x128b, k128x128b)
GEMM_TCGEN05_CP_EACH_FORMAT(4x256b, k4x256b)
GEMM_TCGEN05_CP_EACH_FORMAT(64x128b_warpx2_02_13, k64x128bWarps02And13)
GEMM_TCGEN05_CP_EACH_FORMAT(64x128b_warpx2_01_23, k64x128bWarps01And23)
GEMM_TCGEN05_CP_EACH_FORMAT(32x128b_warpx4, k32x128bWarps0123)
#undef GEMM_TCGEN05_CP_EACH_FORMAT
#undef GEMM_TCGEN05_CP

/// tcgen05.shift.cta_group::{1,2}.down
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_shift_down(std::uint32_t address, Where where = Where::here()) {
  emulator::tcgen05("tcgen05_shift_down", where).shift("tcgen05_shift_down", kCtaGroup, address, where);
}

}  // namespace gemm::ptx
