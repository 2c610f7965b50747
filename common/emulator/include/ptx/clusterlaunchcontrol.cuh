// clusterlaunchcontrol: a CTA that runs takes the place in the grid of a cluster that does not run yet. The
// emulator's counterparts; the GPU header explains.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.try_cancel,
// clusterlaunchcontrol.query_cancel".
#pragma once

#include <cstdint>

#include "emulator/async/launch_control.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// Instantiated by a request, so that the machine knows of it before any kernel runs.
template <typename>
inline const bool kCancelsClusters = emulator::expect_launch_control();

/// clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128
template <typename T = void>
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel(uint4* response, std::uint64_t* barrier,
                                                                Where where = Where::here()) {
  constexpr const char* kWhat = "clusterlaunchcontrol_try_cancel";
  static_cast<void>(&kCancelsClusters<T>);
  emulator::launch_control(kWhat, where).try_cancel(kWhat, response, barrier, false, where);
}

/// clusterlaunchcontrol.try_cancel...multicast::cluster::all.b128
template <typename T = void>
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel_multicast(uint4* response,
                                                                          std::uint64_t* barrier,
                                                                          Where where = Where::here()) {
  constexpr const char* kWhat = "clusterlaunchcontrol_try_cancel_multicast";
  static_cast<void>(&kCancelsClusters<T>);
  emulator::launch_control(kWhat, where).try_cancel(kWhat, response, barrier, true, where);
}

/// clusterlaunchcontrol.query_cancel.is_canceled.pred.b128
__device__ __forceinline__ bool clusterlaunchcontrol_query_cancel_is_canceled(uint4 response,
                                                                              Where where = Where::here()) {
  constexpr const char* kWhat = "clusterlaunchcontrol_query_cancel_is_canceled";
  return emulator::launch_control(kWhat, where).is_canceled(kWhat, &response, where);
}

/// clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128
__device__ __forceinline__ std::uint32_t clusterlaunchcontrol_query_cancel_get_first_ctaid_x(
    uint4 response, Where where = Where::here()) {
  constexpr const char* kWhat = "clusterlaunchcontrol_query_cancel_get_first_ctaid_x";
  return emulator::launch_control(kWhat, where).first_ctaid(kWhat, &response, where).x;
}

/// clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128
__device__ __forceinline__ uint3
clusterlaunchcontrol_query_cancel_get_first_ctaid(uint4 response, Where where = Where::here()) {
  constexpr const char* kWhat = "clusterlaunchcontrol_query_cancel_get_first_ctaid";
  return emulator::launch_control(kWhat, where).first_ctaid(kWhat, &response, where);
}

}  // namespace gemm::ptx
