// Fences: between ordinary accesses and the asynchronous engines, and between threads.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: membar/fence"; "Memory Consistency
// Model: Proxies". wgmma and the bulk copies reach memory through the async proxy: bytes that a thread wrote
// with ordinary stores (st, stmatrix, cp.async) are not theirs to see until that thread has executed a proxy
// fence.
#pragma once

#include "ptx/core.cuh"

namespace gemm::ptx {

/// fence.proxy.async: orders this thread's ordinary accesses and the async proxy's, in every state space.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

/// fence.proxy.async.shared::cta: the same for this CTA's shared memory alone.
__device__ __forceinline__ void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// fence.proxy.async.global: the same for global memory alone.
__device__ __forceinline__ void fence_proxy_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

/// fence.mbarrier_init.release.cluster: this thread's earlier mbarrier_init are seen by the cluster, and by
/// bulk copies, once they synchronise with it.
__device__ __forceinline__ void fence_mbarrier_init_release_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// fence.acq_rel.cta
__device__ __forceinline__ void fence_acq_rel_cta() {
  asm volatile("fence.acq_rel.cta;" ::: "memory");
}

/// fence.acq_rel.cluster
__device__ __forceinline__ void fence_acq_rel_cluster() {
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
}

/// fence.acq_rel.gpu
__device__ __forceinline__ void fence_acq_rel_gpu() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/// fence.acq_rel.sys: as other GPUs (and the host) see it, too.
__device__ __forceinline__ void fence_acq_rel_sys() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

}  // namespace gemm::ptx
