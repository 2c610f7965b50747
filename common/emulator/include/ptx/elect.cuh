// elect.sync: one lane of the warp is chosen. The emulator's counterpart.
#pragma once

#include "emulator/sync/warps.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// elect.sync over all 32 lanes: true in exactly one of them, the same one every time; which one is the
/// seed's choice. PTX ISA, "Parallel Synchronization and Communication Instructions: elect.sync".
__device__ __forceinline__ bool elect_sync(Where where = Where::here()) {
  return emulator::elect(where);
}

}  // namespace gemm::ptx
