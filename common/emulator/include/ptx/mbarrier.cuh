// mbarrier: a barrier in shared memory that counts arriving threads and arriving bytes. The emulator's
// counterparts; the GPU header explains phases and parities.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
#pragma once

#include <cstdint>

#include "emulator/sync/mbarrier.h"
#include "ptx/core.cuh"
#include "ptx/shared.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// mbarrier.init.shared::cta.b64
__device__ __forceinline__ void mbarrier_init(std::uint64_t* barrier, std::uint32_t count,
                                              Where where = Where::here()) {
  emulator::mbarrier_init(barrier, count, where);
}

/// mbarrier.inval.shared::cta.b64
__device__ __forceinline__ void mbarrier_inval(std::uint64_t* barrier, Where where = Where::here()) {
  emulator::mbarrier_inval(barrier, where);
}

/// mbarrier.arrive.release.cta.shared::cta.b64
__device__ __forceinline__ void mbarrier_arrive(std::uint64_t* barrier, Where where = Where::here()) {
  emulator::mbarrier_arrive(barrier, {.what = "mbarrier_arrive"}, where);
}

/// mbarrier.arrive.expect_tx.release.cta.shared::cta.b64
__device__ __forceinline__ void mbarrier_arrive_expect_tx(std::uint64_t* barrier, std::uint32_t bytes,
                                                          Where where = Where::here()) {
  trace_state(TraceState::kIssue, where);
  emulator::mbarrier_arrive(
      barrier, {.what = "mbarrier_arrive_expect_tx", .expected_bytes = bytes, .expects = true}, where);
}

/// mbarrier.expect_tx.relaxed.cta.shared::cta.b64
__device__ __forceinline__ void mbarrier_expect_tx(std::uint64_t* barrier, std::uint32_t bytes,
                                                   Where where = Where::here()) {
  emulator::mbarrier_arrive(
      barrier, {.what = "mbarrier_expect_tx", .arrives = false, .expected_bytes = bytes, .expects = true},
      where);
}

/// mbarrier.complete_tx.relaxed.cta.shared::cta.b64
__device__ __forceinline__ void mbarrier_complete_tx(std::uint64_t* barrier, std::uint32_t bytes,
                                                     Where where = Where::here()) {
  emulator::mbarrier_complete_tx_by_thread("mbarrier_complete_tx", barrier, bytes, where);
}

/// mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64
__device__ __forceinline__ void mbarrier_complete_tx_cluster(std::uint32_t barrier, std::uint32_t bytes,
                                                             Where where = Where::here()) {
  emulator::mbarrier_complete_tx_remote("mbarrier_complete_tx_cluster", barrier, bytes, where);
}

/// mbarrier.arrive.noComplete.release.cta.shared::cta.b64
__device__ __forceinline__ std::uint64_t mbarrier_arrive_no_complete(std::uint64_t* barrier,
                                                                     std::uint32_t count,
                                                                     Where where = Where::here()) {
  return emulator::mbarrier_arrive_state(
      barrier, {.what = "mbarrier_arrive_no_complete", .count = count, .completes = false}, where);
}

/// mbarrier.pending_count.b64
__device__ __forceinline__ std::uint32_t mbarrier_pending_count(std::uint64_t state,
                                                                Where where = Where::here()) {
  return emulator::mbarrier_pending_count(state, where);
}

/// mbarrier.arrive.shared::cluster.b64
__device__ __forceinline__ void mbarrier_arrive_cluster(std::uint32_t barrier, Where where = Where::here()) {
  emulator::mbarrier_arrive_remote(barrier, {.what = "mbarrier_arrive_cluster"}, where);
}

/// mbarrier.arrive.release.cluster.shared::cluster.b64
__device__ __forceinline__ void mbarrier_arrive_release_cluster(std::uint32_t barrier,
                                                                Where where = Where::here()) {
  emulator::mbarrier_arrive_remote(
      barrier, {.what = "mbarrier_arrive_release_cluster", .releases_cluster = true}, where);
}

/// mbarrier.arrive.relaxed.cluster.shared::cluster.b64
__device__ __forceinline__ void mbarrier_arrive_relaxed_cluster(std::uint32_t barrier,
                                                                Where where = Where::here()) {
  emulator::mbarrier_arrive_remote(
      barrier, {.what = "mbarrier_arrive_relaxed_cluster", .releases = false, .orders_tensor = true}, where);
}

/// mbarrier.arrive.expect_tx.shared::cluster.b64
__device__ __forceinline__ void mbarrier_arrive_expect_tx_cluster(std::uint32_t barrier, std::uint32_t bytes,
                                                                  Where where = Where::here()) {
  emulator::mbarrier_arrive_remote(
      barrier, {.what = "mbarrier_arrive_expect_tx_cluster", .expected_bytes = bytes, .expects = true},
      where);
}

/// mbarrier.test_wait.parity.acquire.cta.shared::cta.b64
__device__ __forceinline__ bool mbarrier_test_wait_parity(std::uint64_t* barrier, std::uint32_t parity,
                                                          Where where = Where::here()) {
  return emulator::mbarrier_test_wait("mbarrier_test_wait_parity", barrier, parity, where);
}

/// mbarrier.try_wait.parity.acquire.cta.shared::cta.b64: gives up when the seed says so, which the kernel
/// must expect.
__device__ __forceinline__ bool mbarrier_try_wait_parity(std::uint64_t* barrier, std::uint32_t parity,
                                                         Where where = Where::here()) {
  return emulator::mbarrier_try_wait("mbarrier_try_wait_parity", barrier, parity, false, where);
}

/// mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64
__device__ __forceinline__ bool mbarrier_try_wait_parity_cluster(std::uint64_t* barrier, std::uint32_t parity,
                                                                 Where where = Where::here()) {
  return emulator::mbarrier_try_wait("mbarrier_try_wait_parity_cluster", barrier, parity, true, where);
}

/// mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64
__device__ __forceinline__ bool mbarrier_try_wait_parity_relaxed_cluster(std::uint64_t* barrier,
                                                                         std::uint32_t parity,
                                                                         Where where = Where::here()) {
  return emulator::mbarrier_try_wait("mbarrier_try_wait_parity_relaxed_cluster", barrier, parity,
                                     emulator::Acquires::kTensor, where);
}

/// cp.async.mbarrier.arrive.noinc.shared::cta.b64
__device__ __forceinline__ void cp_async_mbarrier_arrive_noinc(std::uint64_t* barrier,
                                                               Where where = Where::here()) {
  emulator::cp_async_mbarrier_arrive("cp_async_mbarrier_arrive_noinc", barrier, false, where);
}

}  // namespace gemm::ptx
