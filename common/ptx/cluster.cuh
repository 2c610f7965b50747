// Thread block clusters: this CTA's rank, a neighbour's shared memory, and the cluster's barrier.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// %cluster_ctarank: the rank of this CTA in its cluster. PTX ISA, "Special Registers".
__device__ __forceinline__ std::uint32_t cluster_ctarank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// %cluster_nctarank: the number of CTAs in the cluster. PTX ISA, "Special Registers".
__device__ __forceinline__ std::uint32_t cluster_nctarank() {
  std::uint32_t count;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}

/// mapa.shared::cluster.u32: where CTA `rank` keeps the variable whose address in this CTA's shared memory is
/// `address` (from shared_address). PTX ISA, "Data Movement and Conversion Instructions: mapa".
__device__ __forceinline__ std::uint32_t mapa(std::uint32_t address, std::uint32_t rank) {
  std::uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

/// barrier.cluster.arrive.release.aligned: every thread of the cluster arrives once before it waits.
/// PTX ISA, "Parallel Synchronization and Communication Instructions: barrier.cluster".
__device__ __forceinline__ void barrier_cluster_arrive() {
  if constexpr (kTraces) trace_state(TraceState::kNone);
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

/// barrier.cluster.arrive.relaxed.aligned: an arrival that publishes nothing; use a fence for what must be
/// seen.
__device__ __forceinline__ void barrier_cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

/// barrier.cluster.wait.acquire.aligned: waits until every thread of the cluster has arrived.
__device__ __forceinline__ void barrier_cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32: stores 16 bytes at `address` in the
/// shared memory of a CTA of the cluster, some time; the mbarrier at `barrier`, in the same CTA, counts them.
/// Both are addresses in the cluster's window, from mapa(). A thread that waits with acquire at cluster scope
/// for that phase of the mbarrier may read them: mbarrier_wait_parity_cluster. PTX ISA, "Data Movement and
/// Conversion Instructions: st.async".
__device__ __forceinline__ void st_async(std::uint32_t address, float4 value, std::uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          address),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
      : "memory");
}

}  // namespace gemm::ptx
