// TMA: one thread issues the copy of a whole tile between global and shared memory.
//
// PTX ISA, "Data Movement and Conversion Instructions: Tensor copy", cp.async.bulk.tensor,
// cp.async.bulk.commit_group, cp.async.bulk.wait_group, prefetch.tensormap.
//
// A tensor map (tensor_map.h) describes the tensor and the box; the coordinates, innermost first, say where
// the box starts, in elements. They may lie outside: a load fills what is outside with zeros, a store leaves
// it alone. The innermost coordinate is a multiple of 16 bytes: an H200 answers others with an illegal
// instruction. So it does a store with a coordinate below 0; and a store writes whole 16-byte units, so that
// rows of a tensor that is stored to are a multiple of 16 bytes long (both seen there). The tile in shared
// memory is 128-byte aligned, or to period_bytes(swizzle) with a swizzle.
//
// A load signals an mbarrier with the bytes of the whole box, outside or not. The executing CTA's shared
// addresses are valid in the cluster's window, which is what the destination's state space says. A store
// reads shared memory through the async proxy: every thread that wrote the tile executes
// fence_proxy_async_shared_cta() before the barrier after which one thread issues the store.
//
// One thread executes these. The map must be in parameter (const __grid_constant__), constant or global
// memory.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/jitter.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes: a plain copy of `bytes` bytes. Both
/// addresses and the size are multiples of 16. PTX ISA, "Data Movement and Conversion Instructions:
/// cp.async.bulk".
__device__ __forceinline__ void cp_async_bulk(void* shared, const void* global, std::uint32_t bytes,
                                              std::uint64_t* barrier) {
  jitter();
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(shared)),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/// cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_1d(void* shared, const TensorMap* map, int c0,
                                                        std::uint64_t* barrier) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], "
      "[%3];" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(shared_address(barrier))
      : "memory");
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_2d(void* shared, const TensorMap* map, int c0, int c1,
                                                        std::uint64_t* barrier) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(shared_address(barrier))
      : "memory");
}

/// createpolicy.fractional.L2::evict_first: an L2 policy for what is read once; it makes room first.
/// PTX ISA, "Data Movement and Conversion Instructions: createpolicy".
__device__ __forceinline__ std::uint64_t createpolicy_fractional_l2_evict_first() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint: with a
/// policy for the L2, from createpolicy.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_cache_hint(void* shared, const TensorMap* map, int c0,
                                                                   int c1, std::uint64_t* barrier,
                                                                   std::uint64_t policy) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

/// cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_3d(void* shared, const TensorMap* map, int c0, int c1,
                                                        int c2, std::uint64_t* barrier) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4}], "
      "[%5];" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(shared_address(barrier))
      : "memory");
}

/// cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_4d(void* shared, const TensorMap* map, int c0, int c1,
                                                        int c2, int c3, std::uint64_t* barrier) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4, %5}], "
      "[%6];" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(shared_address(barrier))
      : "memory");
}

/// cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_5d(void* shared, const TensorMap* map, int c0, int c1,
                                                        int c2, int c3, int c4, std::uint64_t* barrier) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4, %5, "
      "%6}], [%7];" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(shared_address(barrier))
      : "memory");
}

/// cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes: channels from `c` on
/// of the pixels from (w, n) on, as many of each as the map says, each read `offset_w` further on. The map
/// comes from a TensorMapSpec with Im2col.
__device__ __forceinline__ void cp_async_bulk_tensor_3d_im2col(void* shared, const TensorMap* map, int c,
                                                               int w, int n, std::uint64_t* barrier,
                                                               std::uint16_t offset_w) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4}], [%5], {%6};" ::"r"(shared_address(shared)),
      "l"(map), "r"(c), "r"(w), "r"(n), "r"(shared_address(barrier)), "h"(offset_w)
      : "memory");
}

/// cp.async.bulk.tensor.4d....im2col, as cp_async_bulk_tensor_3d_im2col.
__device__ __forceinline__ void cp_async_bulk_tensor_4d_im2col(void* shared, const TensorMap* map, int c,
                                                               int w, int h, int n, std::uint64_t* barrier,
                                                               std::uint16_t offset_w,
                                                               std::uint16_t offset_h) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4, %5}], [%6], {%7, %8};" ::"r"(shared_address(shared)),
      "l"(map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(shared_address(barrier)), "h"(offset_w), "h"(offset_h)
      : "memory");
}

/// cp.async.bulk.tensor.5d....im2col, as cp_async_bulk_tensor_3d_im2col.
__device__ __forceinline__ void cp_async_bulk_tensor_5d_im2col(void* shared, const TensorMap* map, int c,
                                                               int w, int h, int d, int n,
                                                               std::uint64_t* barrier, std::uint16_t offset_w,
                                                               std::uint16_t offset_h,
                                                               std::uint16_t offset_d) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4, %5, %6}], [%7], {%8, %9, %10};" ::"r"(shared_address(shared)),
      "l"(map), "r"(c), "r"(w), "r"(h), "r"(d), "r"(n), "r"(shared_address(barrier)), "h"(offset_w),
      "h"(offset_h), "h"(offset_d)
      : "memory");
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster: the
/// tile goes to the same offset in every CTA whose bit is set in `ctas`, and signals the barrier at the same
/// offset there.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(void* shared, const TensorMap* map, int c0,
                                                                  int c1, std::uint64_t* barrier,
                                                                  std::uint16_t ctas) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, "
      "{%2, %3}], [%4], %5;" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(shared_address(barrier)), "h"(ctas)
      : "memory");
}

/// cp.async.bulk.tensor.2d....multicast::cluster.L2::cache_hint: the same with a policy for the L2, from
/// createpolicy.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast_cache_hint(void* shared,
                                                                             const TensorMap* map, int c0,
                                                                             int c1, std::uint64_t* barrier,
                                                                             std::uint16_t ctas,
                                                                             std::uint64_t policy) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster."
      "L2::"
      "cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(shared_address(barrier)), "h"(ctas), "l"(policy)
      : "memory");
}

/// cp.async.bulk.tensor.3d....multicast::cluster, as cp_async_bulk_tensor_2d_multicast.
__device__ __forceinline__ void cp_async_bulk_tensor_3d_multicast(void* shared, const TensorMap* map, int c0,
                                                                  int c1, int c2, std::uint64_t* barrier,
                                                                  std::uint16_t ctas) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, "
      "{%2, %3, %4}], [%5], %6;" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(shared_address(barrier)), "h"(ctas)
      : "memory");
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 (sm_100a): a
/// tile for this CTA, whose bytes an mbarrier of its pair counts. `barrier` is an address in the cluster's
/// window, from mapa(), in this CTA or in its peer: the one whose rank differs in the last bit.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_cta_group_2(void* shared, const TensorMap* map,
                                                                    int c0, int c1, std::uint32_t barrier) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(shared_address(shared)),
      "l"(map), "r"(c0), "r"(c1), "r"(barrier)
      : "memory");
}

/// cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group: stores a tile. Complete when its group is.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_store(const TensorMap* map, int c0, int c1,
                                                              const void* shared) {
  jitter();
  if constexpr (kTraces) trace_state(TraceState::kStore);
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(c0), "r"(c1), "r"(shared_address(shared))
               : "memory");
}

/// cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group
__device__ __forceinline__ void cp_async_bulk_tensor_3d_store(const TensorMap* map, int c0, int c1, int c2,
                                                              const void* shared) {
  jitter();
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
      "r"(c0), "r"(c1), "r"(c2), "r"(shared_address(shared))
      : "memory");
}

/// cp.async.bulk.global.shared::cta.bulk_group: stores `bytes` bytes. Both addresses and the size are
/// multiples of 16. Complete when its group is. PTX ISA, "Data Movement and Conversion Instructions:
/// cp.async.bulk".
__device__ __forceinline__ void cp_async_bulk_store(void* global, const void* shared, std::uint32_t bytes) {
  jitter();
  if constexpr (kTraces) trace_state(TraceState::kStore);
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(global)),
      "r"(shared_address(shared)), "r"(bytes)
      : "memory");
}

/// cp.async.bulk.commit_group: this thread's stores since the last commit form a group.
__device__ __forceinline__ void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  if constexpr (kTraces) trace_state(TraceState::kNone);
}

/// cp.async.bulk.wait_group: waits until at most kPending of this thread's latest groups are under way; the
/// others have written global memory.
template <int kPending>
__device__ __forceinline__ void cp_async_bulk_wait_group() {
  static_assert(kPending >= 0, "a number of groups");
  if constexpr (kTraces) trace_state(TraceState::kWaitStore);
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
  if constexpr (kTraces) trace_state(TraceState::kNone);
}

/// cp.async.bulk.wait_group.read: as above, but the others have only been read: their shared memory may be
/// reused.
template <int kPending>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
  static_assert(kPending >= 0, "a number of groups");
  if constexpr (kTraces) trace_state(TraceState::kWaitStore);
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
  if constexpr (kTraces) trace_state(TraceState::kEpilogue);
}

/// prefetch.tensormap: brings the map into the descriptor cache before its first use.
__device__ __forceinline__ void prefetch_tensormap(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace gemm::ptx
