// Waiting for a phase of an mbarrier. The emulator's counterpart.
#pragma once

#include <cstdint>

#include "emulator/sync/mbarrier.h"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/trace.cuh"
#include "ptx/wait_info.h"

namespace gemm::ptx {

/// mbarrier.try_wait.parity in a loop. The emulator's reports about the thread repeat what `info` says.
__device__ __forceinline__ void mbarrier_wait_parity(std::uint64_t* barrier, std::uint32_t parity,
                                                     const WaitInfo& info, Where where = Where::here()) {
  emulator::note_activity({info.role, info.barrier, info.stage, info.k_tile}, where);
  trace_state(wait_state(info), info.stage, info.k_tile, info.role[0], where);
  while (!emulator::mbarrier_try_wait("mbarrier_wait_parity", barrier, parity, false, where)) {
  }
  trace_state(TraceState::kNone, where);
}

/// The same with acquire at cluster scope.
__device__ __forceinline__ void mbarrier_wait_parity_cluster(std::uint64_t* barrier, std::uint32_t parity,
                                                             const WaitInfo& info,
                                                             Where where = Where::here()) {
  emulator::note_activity({info.role, info.barrier, info.stage, info.k_tile}, where);
  trace_state(wait_state(info), info.stage, info.k_tile, info.role[0], where);
  while (!emulator::mbarrier_try_wait("mbarrier_wait_parity_cluster", barrier, parity, true, where)) {
  }
  trace_state(TraceState::kNone, where);
}

/// The same without any order of accesses to memory, for tcgen05 instructions.
__device__ __forceinline__ void mbarrier_wait_parity_relaxed_cluster(std::uint64_t* barrier,
                                                                     std::uint32_t parity,
                                                                     const WaitInfo& info,
                                                                     Where where = Where::here()) {
  emulator::note_activity({info.role, info.barrier, info.stage, info.k_tile}, where);
  trace_state(wait_state(info), info.stage, info.k_tile, info.role[0], where);
  while (!emulator::mbarrier_try_wait("mbarrier_wait_parity_relaxed_cluster", barrier, parity,
                                      emulator::Acquires::kTensor, where)) {
  }
  trace_state(TraceState::kNone, where);
}

}  // namespace gemm::ptx
