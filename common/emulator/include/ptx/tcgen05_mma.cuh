// tcgen05.mma: one thread has the tensor cores multiply tiles in shared memory into tensor memory. The
// emulator's counterparts; the GPU header explains.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.mma, tcgen05.commit"; "Issue Granularity".
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/async/tcgen05.h"
#include "ptx/core.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// tcgen05.mma.cta_group::{1,2}.kind::f16, A and B in shared memory
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_mma_f16_ss(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                                   std::uint32_t instruction, bool accumulate,
                                                   Where where = Where::here()) {
  trace_state(TraceState::kMultiply, where);
  emulator::tcgen05("tcgen05_mma_f16_ss", where)
      .multiply("tcgen05_mma_f16_ss", kCtaGroup, d, a, false, b, instruction, accumulate, where);
}

/// The same with A in tensor memory
__device__ __forceinline__ void tcgen05_mma_f16_ts(std::uint32_t d, std::uint32_t a, std::uint64_t b,
                                                   std::uint32_t instruction, bool accumulate,
                                                   Where where = Where::here()) {
  trace_state(TraceState::kMultiply, where);
  emulator::tcgen05("tcgen05_mma_f16_ts", where)
      .multiply("tcgen05_mma_f16_ts", 1, d, a, true, b, instruction, accumulate, where);
}

/// tcgen05.commit.cta_group::{1,2}.mbarrier::arrive::one.shared::cluster.b64
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_commit(std::uint64_t* barrier, Where where = Where::here()) {
  emulator::tcgen05("tcgen05_commit", where)
      .commit("tcgen05_commit", kCtaGroup, barrier, std::nullopt, where);
}

/// tcgen05.commit...multicast::cluster
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_commit_multicast(std::uint64_t* barrier, std::uint16_t ctas,
                                                         Where where = Where::here()) {
  emulator::tcgen05("tcgen05_commit_multicast", where)
      .commit("tcgen05_commit_multicast", kCtaGroup, barrier, ctas, where);
}

}  // namespace gemm::ptx
