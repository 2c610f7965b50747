// Grids that depend on each other and overlap: the emulator's counterparts.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: griddepcontrol". Grids run one behind
// the other here, but what a grid does before its wait is compared with what the grids did that it may
// overlap.
#pragma once

#include "emulator/sync/dependent_launch.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// griddepcontrol.wait: this thread waits until the grids that its grid depends on have completed, and their
/// memory is visible.
__device__ __forceinline__ void griddepcontrol_wait(Where where = Where::here()) {
  emulator::wait_for_prerequisites("griddepcontrol_wait", where);
}

/// griddepcontrol.launch_dependents: as far as this CTA is concerned, the dependent grid may start. It orders
/// no memory. A CTA that never executes it does so when it exits.
__device__ __forceinline__ void griddepcontrol_launch_dependents(Where where = Where::here()) {
  emulator::launch_dependents("griddepcontrol_launch_dependents", where);
}

}  // namespace gemm::ptx
