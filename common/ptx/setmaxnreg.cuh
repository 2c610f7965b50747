// setmaxnreg: warps give registers back to the CTA's pool, and take them from it.
//
// PTX ISA, "Miscellaneous Instructions: setmaxnreg". All warps of a warpgroup execute the same one. ptxas
// ignores it (note C7508) unless the register count at entry is known: __launch_bounds__(threads, CTAs an
// SM).
#pragma once

#include "ptx/core.cuh"

namespace gemm::ptx {

/// setmaxnreg.dec.sync.aligned.u32: every thread keeps kRegisters and releases the rest.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_dec() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "24 to 256, in steps of 8");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// setmaxnreg.inc.sync.aligned.u32: waits until the pool can raise every thread to kRegisters.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_inc() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "24 to 256, in steps of 8");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace gemm::ptx
