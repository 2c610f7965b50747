// Waiting for a phase of an mbarrier, in a way that can say which thread waits for what.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/jitter.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/stuck_wait.cuh"
#include "ptx/trace.cuh"
#include "ptx/wait_info.h"
#include "ptx/where.cuh"

namespace gemm::ptx {

#ifdef GEMM_STEPS_BOUNDED_WAIT
/// Reports a wait that lasted too long, and ends the kernel. The report is written without a function call:
/// printf would make ptxas serialise every wgmma of the kernel.
__device__ __forceinline__ void report_stuck_wait(std::uint32_t parity, const WaitInfo& info) {
  StuckWait* const report = stuck_wait;
  if (report != nullptr && atomicCAS_system(&report->reported, 0, 1) == 0) {
    report->cta[0] = blockIdx.x;
    report->cta[1] = blockIdx.y;
    report->cta[2] = blockIdx.z;
    report->thread = threadIdx.x;
    report->parity = parity;
    report->stage = info.stage;
    report->k_tile = info.k_tile;
    for (int i = 0; i + 1 < StuckWait::kNameLength && info.role[i] != 0; ++i) report->role[i] = info.role[i];
    for (int i = 0; i + 1 < StuckWait::kNameLength && info.barrier[i] != 0; ++i)
      report->barrier[i] = info.barrier[i];
    __threadfence_system();
  }
  asm volatile("trap;");
}
#endif

/// Calls try_wait() until it is true. In the bounded-wait build (GEMM_STEPS_BOUNDED_WAIT) a wait of more than
/// two seconds says which thread waits for what (stuck_wait.h) and traps, so that a hang becomes a message
/// and a failed launch.
template <typename TryWait>
__device__ __forceinline__ void wait_until(TryWait try_wait, [[maybe_unused]] std::uint32_t parity,
                                           [[maybe_unused]] const WaitInfo& info) {
  jitter();
  if constexpr (kTraces) trace_state(wait_state(info), info.stage, info.k_tile, info.role[0]);
#ifdef GEMM_STEPS_BOUNDED_WAIT
  constexpr long long kLimitClocks = 4'000'000'000;  // two seconds at 2 GHz
  const long long start = clock64();
  while (!try_wait()) {
    if (clock64() - start > kLimitClocks) report_stuck_wait(parity, info);
  }
#else
  while (!try_wait()) {
  }
#endif
  if constexpr (kTraces) trace_state(TraceState::kNone);
}

/// Returns once the phase of this parity is complete (mbarrier.try_wait.parity in a loop).
__device__ __forceinline__ void mbarrier_wait_parity(std::uint64_t* barrier, std::uint32_t parity,
                                                     const WaitInfo& info, Where = {}) {
  wait_until([&] { return mbarrier_try_wait_parity(barrier, parity); }, parity, info);
}

/// The same with acquire at cluster scope: for what other CTAs of the cluster have stored.
__device__ __forceinline__ void mbarrier_wait_parity_cluster(std::uint64_t* barrier, std::uint32_t parity,
                                                             const WaitInfo& info, Where = {}) {
  wait_until([&] { return mbarrier_try_wait_parity_cluster(barrier, parity); }, parity, info);
}

/// The same without any order of accesses to memory, for what tcgen05 instructions do in another CTA of the
/// cluster: mbarrier_try_wait_parity_relaxed_cluster.
__device__ __forceinline__ void mbarrier_wait_parity_relaxed_cluster(std::uint64_t* barrier,
                                                                     std::uint32_t parity,
                                                                     const WaitInfo& info, Where = {}) {
  wait_until([&] { return mbarrier_try_wait_parity_relaxed_cluster(barrier, parity); }, parity, info);
}

}  // namespace gemm::ptx
