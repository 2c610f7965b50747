// clusterlaunchcontrol: a CTA that runs takes the place in the grid of a cluster that does not run yet.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.try_cancel,
// clusterlaunchcontrol.query_cancel". The grid is launched with a cluster for each piece of work. A request
// to cancel one that has not started is answered asynchronously: 16 opaque bytes, written to shared memory
// through the async proxy and counted by an mbarrier, which expects them. They say whether a cluster was
// cancelled, and which: nobody else will do its work. A request may fail although clusters are left; these
// start by themselves. Behind a failure that it has seen a CTA requests nothing more.
//
// Before the 16 bytes are requested again, every thread that has read them executes fence.proxy.async.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/jitter.cuh"
#include "ptx/shared.cuh"

namespace gemm::ptx {

/// clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128: the answer comes to
/// *response, in this CTA, and *barrier counts its 16 bytes.
template <typename = void>
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel(uint4* response, std::uint64_t* barrier) {
  jitter();
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(
          shared_address(response)),
      "r"(shared_address(barrier))
      : "memory");
}

/// clusterlaunchcontrol.try_cancel...multicast::cluster::all.b128: one request, answered in every CTA of the
/// cluster, at this place, on the mbarrier at this place. All of them are still there.
template <typename = void>
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel_multicast(uint4* response,
                                                                          std::uint64_t* barrier) {
  jitter();
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all"
      ".b128 [%0], [%1];" ::"r"(shared_address(response)),
      "r"(shared_address(barrier))
      : "memory");
}

/// clusterlaunchcontrol.query_cancel.is_canceled.pred.b128: whether a cluster was cancelled.
__device__ __forceinline__ bool clusterlaunchcontrol_query_cancel_is_canceled(uint4 response) {
  std::uint32_t canceled;
  asm volatile(
      "{\n"
      ".reg .b128 response;\n"
      ".reg .b64 low, high;\n"
      ".reg .pred canceled;\n"
      "mov.b64 low, {%1, %2};\n"
      "mov.b64 high, {%3, %4};\n"
      "mov.b128 response, {low, high};\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 canceled, response;\n"
      "selp.b32 %0, 1, 0, canceled;\n"
      "}"
      : "=r"(canceled)
      : "r"(response.x), "r"(response.y), "r"(response.z), "r"(response.w));
  return canceled != 0;
}

/// clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128: blockIdx.x of the first CTA of the
/// cancelled cluster. Undefined where none was.
__device__ __forceinline__ std::uint32_t clusterlaunchcontrol_query_cancel_get_first_ctaid_x(uint4 response) {
  std::uint32_t x;
  asm volatile(
      "{\n"
      ".reg .b128 response;\n"
      ".reg .b64 low, high;\n"
      "mov.b64 low, {%1, %2};\n"
      "mov.b64 high, {%3, %4};\n"
      "mov.b128 response, {low, high};\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, response;\n"
      "}"
      : "=r"(x)
      : "r"(response.x), "r"(response.y), "r"(response.z), "r"(response.w));
  return x;
}

/// clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128: all of its blockIdx.
__device__ __forceinline__ uint3 clusterlaunchcontrol_query_cancel_get_first_ctaid(uint4 response) {
  uint3 id;
  asm volatile(
      "{\n"
      ".reg .b128 response;\n"
      ".reg .b64 low, high;\n"
      "mov.b64 low, {%3, %4};\n"
      "mov.b64 high, {%5, %6};\n"
      "mov.b128 response, {low, high};\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %2, _}, response;\n"
      "}"
      : "=r"(id.x), "=r"(id.y), "=r"(id.z)
      : "r"(response.x), "r"(response.y), "r"(response.z), "r"(response.w));
  return id;
}

}  // namespace gemm::ptx
