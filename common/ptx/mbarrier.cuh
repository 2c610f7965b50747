// mbarrier: a barrier in shared memory that counts arriving threads and arriving bytes.
//
// The object is an opaque, 8-byte aligned 64-bit word. A phase completes when as many threads have arrived as
// mbarrier_init said and all expected bytes have come; the next phase starts by itself with the same count.
//
// Waiting by parity: mbarrier_try_wait_parity(barrier, p) is true once the phase with parity p is complete.
// The first phase has parity 0, so waiting for parity 1 on a fresh barrier returns true at once.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". Without qualifiers an arrive
// releases and a successful wait acquires at CTA scope. mbarrier_arrive_release_cluster releases, and
// mbarrier_try_wait_parity_cluster acquires, at cluster scope; the other arrivals at a barrier of the cluster
// release at CTA scope only. Every function orders memory, so every one clobbers it.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/jitter.cuh"
#include "ptx/shared.cuh"
#include "ptx/trace.cuh"
#include "ptx/where.cuh"

namespace gemm::ptx {

/// mbarrier.init.shared::cta.b64: `count` arrivals complete a phase, 1 to 2^20 - 1. Other threads may use the
/// barrier after a barrier of their own (CTA: __syncthreads; cluster: fence_mbarrier_init_release_cluster and
/// a cluster barrier; before a bulk copy signals it: fence_mbarrier_init_release_cluster or
/// fence_proxy_async).
__device__ __forceinline__ void mbarrier_init(std::uint64_t* barrier, std::uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}

/// mbarrier.inval.shared::cta.b64: ends the object's life; its memory may be used for anything again.
__device__ __forceinline__ void mbarrier_inval(std::uint64_t* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/// mbarrier.arrive.release.cta.shared::cta.b64: one arrival on a barrier of this CTA.
__device__ __forceinline__ void mbarrier_arrive(std::uint64_t* barrier, Where = {}) {
  jitter();
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// mbarrier.arrive.expect_tx.release.cta.shared::cta.b64: expects `bytes` more in this phase, then arrives.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(std::uint64_t* barrier, std::uint32_t bytes) {
  if constexpr (kTraces) trace_state(TraceState::kIssue);
  jitter();
  asm volatile(
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/// mbarrier.expect_tx.relaxed.cta.shared::cta.b64: expects `bytes` more in this phase; no arrival.
__device__ __forceinline__ void mbarrier_expect_tx(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

/// mbarrier.complete_tx.relaxed.cta.shared::cta.b64: `bytes` of what the phase expects need not come any
/// more. No copy is involved, and nothing is ordered.
__device__ __forceinline__ void mbarrier_complete_tx(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

/// mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64: the same for the barrier of any CTA of the
/// cluster, `barrier` being an address in the cluster's window, from mapa().
__device__ __forceinline__ void mbarrier_complete_tx_cluster(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// mbarrier.arrive.noComplete.release.cta.shared::cta.b64: `count` arrivals, of which none may end the phase.
/// The state is that of before, for mbarrier_pending_count.
__device__ __forceinline__ std::uint64_t mbarrier_arrive_no_complete(std::uint64_t* barrier,
                                                                     std::uint32_t count) {
  std::uint64_t state;
  asm volatile("mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %0, [%1], %2;"
               : "=l"(state)
               : "r"(shared_address(barrier)), "r"(count)
               : "memory");
  return state;
}

/// mbarrier.pending_count.b64: the arrivals that were missing before the arrival that returned the state.
/// Only for states of mbarrier_arrive_no_complete.
__device__ __forceinline__ std::uint32_t mbarrier_pending_count(std::uint64_t state) {
  std::uint32_t count;
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
  return count;
}

/// mbarrier.arrive.shared::cluster.b64: one arrival on the barrier of any CTA of the cluster, `barrier` being
/// an address in the cluster's window, from mapa(). Releases at CTA scope only: enough to hand back memory
/// that this thread has read, not to publish what it wrote.
__device__ __forceinline__ void mbarrier_arrive_cluster(std::uint32_t barrier) {
  jitter();
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// mbarrier.arrive.release.cluster.shared::cluster.b64: the same, and what this thread wrote is visible to
/// threads of the cluster that wait with mbarrier_try_wait_parity_cluster. Costs a fence of the whole GPU
/// (MEMBAR.ALL.GPU).
__device__ __forceinline__ void mbarrier_arrive_release_cluster(std::uint32_t barrier) {
  jitter();
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// mbarrier.arrive.relaxed.cluster.shared::cluster.b64: as mbarrier_arrive_cluster, and orders no accesses to
/// memory. Between tcgen05_fence_before_thread_sync() and a wait in the other thread it orders what tcgen05
/// instructions do ("tcgen05 Memory Consistency Model: Canonical synchronization patterns").
__device__ __forceinline__ void mbarrier_arrive_relaxed_cluster(std::uint32_t barrier) {
  jitter();
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// mbarrier.arrive.expect_tx.shared::cluster.b64: expects `bytes` more there, then arrives; as
/// mbarrier_arrive_cluster.
__device__ __forceinline__ void mbarrier_arrive_expect_tx_cluster(std::uint32_t barrier,
                                                                  std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// mbarrier.test_wait.parity.acquire.cta.shared::cta.b64: is the phase of this parity complete? Never waits.
__device__ __forceinline__ bool mbarrier_test_wait_parity(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t complete;
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 complete, [%1], %2;\n"
      "selp.b32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return complete != 0;
}

/// mbarrier.try_wait.parity.acquire.cta.shared::cta.b64: waits for the phase of this parity, but not longer
/// than the hardware likes; false means "ask again".
__device__ __forceinline__ bool mbarrier_try_wait_parity(std::uint64_t* barrier, std::uint32_t parity,
                                                         Where = {}) {
  std::uint32_t complete;
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 complete, [%1], %2;\n"
      "selp.b32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return complete != 0;
}

/// mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64: as mbarrier_try_wait_parity, and what threads of
/// other CTAs of the cluster did before they arrived is visible as well.
__device__ __forceinline__ bool mbarrier_try_wait_parity_cluster(std::uint64_t* barrier,
                                                                 std::uint32_t parity) {
  std::uint32_t complete;
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], %2;\n"
      "selp.b32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return complete != 0;
}

/// mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64: as mbarrier_try_wait_parity, and orders no
/// accesses to memory: behind it and tcgen05_fence_after_thread_sync() come tcgen05 instructions only.
__device__ __forceinline__ bool mbarrier_try_wait_parity_relaxed_cluster(std::uint64_t* barrier,
                                                                         std::uint32_t parity) {
  std::uint32_t complete;
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 complete, [%1], %2;\n"
      "selp.b32 %0, 1, 0, complete;\n"
      "}"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return complete != 0;
}

/// cp.async.mbarrier.arrive.noinc.shared::cta.b64: arrives once all earlier cp.async of this thread are
/// complete. noinc: the arrival counts against mbarrier_init's count like any other.
__device__ __forceinline__ void cp_async_mbarrier_arrive_noinc(std::uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

}  // namespace gemm::ptx
