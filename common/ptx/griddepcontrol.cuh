// Grids that depend on each other and overlap (programmatic dependent launch).
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: griddepcontrol" (sm_90 and newer). A
// grid whose launch says `dependent` may start when every CTA of the grid before it in the stream has
// executed griddepcontrol.launch_dependents, or has exited. What that grid writes is there only behind
// griddepcontrol.wait. Both do nothing where the launch is not dependent.
#pragma once

#include "ptx/core.cuh"

namespace gemm::ptx {

/// griddepcontrol.wait: this thread waits until the grids that its grid depends on have completed, and their
/// memory is visible.
__device__ __forceinline__ void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// griddepcontrol.launch_dependents: as far as this CTA is concerned, the dependent grid may start. It orders
/// no memory. A CTA that never executes it does so when it exits.
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace gemm::ptx
