// Waiting for a phase of an mbarrier. The emulator's twin.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/wait_info.h"

namespace ptx {

/// mbarrier.try_wait.parity in a loop; `info` is for the GPU's bounded-wait build, the emulator knows who
/// waits where.
__device__ __forceinline__ void mbarrier_wait_parity(std::uint64_t* barrier, std::uint32_t parity,
                                                     [[maybe_unused]] const WaitInfo& info,
                                                     emulator::Where where = emulator::Where::here()) {
  while (!mbarrier_try_wait_parity(barrier, parity, where)) {
  }
}

}  // namespace ptx
