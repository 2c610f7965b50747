// setmaxnreg: warps give registers back to the CTA's pool and take them from it. The emulator's counterparts:
// a pool for the CTA of what the launch's ctas_per_sm leaves it, as __launch_bounds__(threads, CTAs an SM)
// does.
//
// PTX ISA, "Miscellaneous Instructions: setmaxnreg". All warps of a warpgroup execute the same one.
#pragma once

#include "emulator/sync/warps.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// setmaxnreg.dec.sync.aligned.u32: every thread keeps kRegisters and releases the rest.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_dec(Where where = Where::here()) {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "24 to 256, in steps of 8");
  emulator::set_max_registers("setmaxnreg_dec", kRegisters, false, where);
}

/// setmaxnreg.inc.sync.aligned.u32: waits until the pool can raise every thread to kRegisters.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_inc(Where where = Where::here()) {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "24 to 256, in steps of 8");
  emulator::set_max_registers("setmaxnreg_inc", kRegisters, true, where);
}

}  // namespace gemm::ptx
