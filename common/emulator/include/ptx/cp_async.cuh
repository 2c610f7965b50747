// cp.async: copies from global to shared memory that the thread does not wait for. The emulator's
// counterparts; the GPU header says what the instructions do.
//
// Here a copy lands late and out of order, its destination holds NaNs until then, and touching the
// destination before its thread has waited is reported. PTX ISA, "Data Movement and Conversion Instructions:
// Asynchronous copy".
#pragma once

#include <cstdint>

#include "emulator/async/cp_async.h"
#include "ptx/core.cuh"
#include "ptx/shared.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// cp.async.ca.shared.global [shared], [global], 4, source_bytes
__device__ __forceinline__ void cp_async_ca_4(void* shared, const void* global, int source_bytes = 4,
                                              Where where = Where::here()) {
  emulator::cp_async_engine("cp_async_ca_4", where)
      .issue("cp_async_ca_4", shared, global, 4, source_bytes, where);
}

/// cp.async.ca.shared.global [shared], [global], 8, source_bytes
__device__ __forceinline__ void cp_async_ca_8(void* shared, const void* global, int source_bytes = 8,
                                              Where where = Where::here()) {
  emulator::cp_async_engine("cp_async_ca_8", where)
      .issue("cp_async_ca_8", shared, global, 8, source_bytes, where);
}

/// cp.async.ca.shared.global [shared], [global], 16, source_bytes
__device__ __forceinline__ void cp_async_ca_16(void* shared, const void* global, int source_bytes = 16,
                                               Where where = Where::here()) {
  emulator::cp_async_engine("cp_async_ca_16", where)
      .issue("cp_async_ca_16", shared, global, 16, source_bytes, where);
}

/// cp.async.cg.shared.global [shared], [global], 16, source_bytes
__device__ __forceinline__ void cp_async_cg_16(void* shared, const void* global, int source_bytes = 16,
                                               Where where = Where::here()) {
  emulator::cp_async_engine("cp_async_cg_16", where)
      .issue("cp_async_cg_16", shared, global, 16, source_bytes, where);
}

/// cp.async.commit_group: the thread's copies since the last commit form a group (an empty one is legal).
__device__ __forceinline__ void cp_async_commit_group(Where where = Where::here()) {
  emulator::cp_async_engine("cp_async_commit_group", where).commit(where);
  trace_state(TraceState::kCommit, where);
}

/// cp.async.wait_group: waits until at most kPending of the thread's latest groups are still under way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group(Where where = Where::here()) {
  static_assert(kPending >= 0, "a number of groups");
  trace_state(TraceState::kWaitFull, where);
  if (emulator::timeline_on())
    emulator::log_together(emulator::OperationKind::kCpAsyncWait, kPending, 0, 0, where);
  emulator::cp_async_engine("cp_async_wait_group", where).wait_groups(kPending, where);
}

/// cp.async.wait_all: waits for all copies of the thread, committed or not.
__device__ __forceinline__ void cp_async_wait_all(Where where = Where::here()) {
  emulator::cp_async_engine("cp_async_wait_all", where).wait_all(where);
}

}  // namespace gemm::ptx
