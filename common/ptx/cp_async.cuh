// cp.async: copies from global to shared memory that the thread does not wait for, and that pass no register.
//
// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy", cp.async, cp.async.commit_group,
// cp.async.wait_group, cp.async.wait_all. In SASS: LDGSTS, LDGDEPBAR, DEPBAR.
//
// Both addresses are multiples of the copy size. Only the first `source_bytes` are read; the rest of the
// destination is filled with zeros, so a copy with source_bytes = 0 reads nothing (its address may point past
// the end of the matrix). .ca caches in L1 and L2, .cg in L2 only, which exists for 16 bytes alone.
//
// wait_group makes the copies of the executing thread visible to that thread; the other threads of the CTA
// see them after a barrier. The clobber keeps ordinary accesses of the same bytes on their side of the copy.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/shared.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// cp.async.ca.shared.global [shared], [global], 4, source_bytes
__device__ __forceinline__ void cp_async_ca_4(void* shared, const void* global, int source_bytes = 4) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
               : "memory");
}

/// cp.async.ca.shared.global [shared], [global], 8, source_bytes
__device__ __forceinline__ void cp_async_ca_8(void* shared, const void* global, int source_bytes = 8) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
               : "memory");
}

/// cp.async.ca.shared.global [shared], [global], 16, source_bytes
__device__ __forceinline__ void cp_async_ca_16(void* shared, const void* global, int source_bytes = 16) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
               : "memory");
}

/// cp.async.cg.shared.global [shared], [global], 16, source_bytes
__device__ __forceinline__ void cp_async_cg_16(void* shared, const void* global, int source_bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
               : "memory");
}

/// cp.async.commit_group: the thread's copies since the last commit form a group (an empty one is legal).
__device__ __forceinline__ void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
  if constexpr (kTraces) trace_state(TraceState::kCommit);
}

/// cp.async.wait_group: waits until at most kPending of the thread's latest groups are still under way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
  static_assert(kPending >= 0, "a number of groups");
  if constexpr (kTraces) trace_state(TraceState::kWaitFull);
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// cp.async.wait_all: waits for all copies of the thread, committed or not.
__device__ __forceinline__ void cp_async_wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

}  // namespace gemm::ptx
