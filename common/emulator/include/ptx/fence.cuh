// Fences: between ordinary accesses and the asynchronous engines, and between threads. The emulator's
// counterparts.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: membar/fence"; "Memory Consistency
// Model: Proxies". The emulator counts a proxy fence only for the accesses of the thread that executes it: it
// belongs to the writer, before the barrier.
#pragma once

#include "emulator/async/hopper.h"
#include "emulator/memory/atomics.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// fence.proxy.async
__device__ __forceinline__ void fence_proxy_async(Where where = Where::here()) {
  emulator::fence_proxy_async("fence_proxy_async", true, true, where);
}

/// fence.proxy.async.shared::cta
__device__ __forceinline__ void fence_proxy_async_shared_cta(Where where = Where::here()) {
  emulator::fence_proxy_async("fence_proxy_async_shared_cta", true, false, where);
}

/// fence.proxy.async.global
__device__ __forceinline__ void fence_proxy_async_global(Where where = Where::here()) {
  emulator::fence_proxy_async("fence_proxy_async_global", false, true, where);
}

/// fence.mbarrier_init.release.cluster
__device__ __forceinline__ void fence_mbarrier_init_release_cluster(Where where = Where::here()) {
  emulator::fence_mbarrier_init(where);
}

/// fence.acq_rel.cta
__device__ __forceinline__ void fence_acq_rel_cta(Where where = Where::here()) {
  emulator::fence(emulator::Scope::kCta, "fence_acq_rel_cta", where);
}

/// fence.acq_rel.cluster: the emulator knows no scope between a CTA's and the device's.
__device__ __forceinline__ void fence_acq_rel_cluster(Where where = Where::here()) {
  emulator::fence(emulator::Scope::kDevice, "fence_acq_rel_cluster", where);
}

/// fence.acq_rel.gpu
__device__ __forceinline__ void fence_acq_rel_gpu(Where where = Where::here()) {
  emulator::fence(emulator::Scope::kDevice, "fence_acq_rel_gpu", where);
}

/// fence.acq_rel.sys
__device__ __forceinline__ void fence_acq_rel_sys(Where where = Where::here()) {
  emulator::fence(emulator::Scope::kSystem, "fence_acq_rel_sys", where);
}

}  // namespace gemm::ptx
