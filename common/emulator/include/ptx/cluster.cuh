// Thread block clusters: this CTA's rank, a neighbour's shared memory, and the cluster's barrier. The
// emulator's counterparts.
#pragma once

#include <cstdint>

#include "emulator/sync/cluster.h"
#include "ptx/core.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// %cluster_ctarank. PTX ISA, "Special Registers".
__device__ __forceinline__ std::uint32_t cluster_ctarank(Where where = Where::here()) {
  return emulator::cluster_ctarank(where);
}

/// %cluster_nctarank. PTX ISA, "Special Registers".
__device__ __forceinline__ std::uint32_t cluster_nctarank(Where where = Where::here()) {
  return emulator::cluster_nctarank(where);
}

/// mapa.shared::cluster.u32. PTX ISA, "Data Movement and Conversion Instructions: mapa".
__device__ __forceinline__ std::uint32_t mapa(std::uint32_t address, std::uint32_t rank,
                                              Where where = Where::here()) {
  return emulator::mapa(address, rank, where);
}

/// barrier.cluster.arrive.release.aligned.
/// PTX ISA, "Parallel Synchronization and Communication Instructions: barrier.cluster".
__device__ __forceinline__ void barrier_cluster_arrive(Where where = Where::here()) {
  trace_state(TraceState::kNone, where);
  emulator::barrier_cluster_arrive(true, where);
}

/// barrier.cluster.arrive.relaxed.aligned: an arrival that publishes nothing.
__device__ __forceinline__ void barrier_cluster_arrive_relaxed(Where where = Where::here()) {
  emulator::barrier_cluster_arrive(false, where);
}

/// barrier.cluster.wait.acquire.aligned
__device__ __forceinline__ void barrier_cluster_wait(Where where = Where::here()) {
  emulator::barrier_cluster_wait(where);
}

/// st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32
__device__ __forceinline__ void st_async(std::uint32_t address, float4 value, std::uint32_t barrier,
                                         Where where = Where::here()) {
  emulator::st_async(address, &value, sizeof value, barrier, where);
}

}  // namespace gemm::ptx
