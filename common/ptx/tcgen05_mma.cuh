// tcgen05.mma: one thread has the tensor cores multiply tiles in shared memory into tensor memory.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.mma, tcgen05.commit"; "Issue Granularity". One
// thread issues, and goes on. Multiplications of one thread with one shape into one accumulator are executed
// in order; nothing else is. tcgen05_commit() has an mbarrier count one arrival when everything is done that
// this thread (no other) has issued before.
//
// D has 32-bit columns: column j of D is column `d` + j of tensor memory. With M = 128 row i of D is lane i.
// With M = 64 it is lane 32 (i / 16) + i % 16 (PTX ISA, "Data Path Layout Organization": layouts D and F).
//
// kCtaGroup = 2: one thread of a pair of CTAs multiplies for both, and commits for both. The descriptors say
// where in each CTA's shared memory its half of A's rows is, and its half of B's. With M = 256 rows 0 to 127
// of D are the lanes of the CTA with the even rank, and the other rows those of its peer (layout A).
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/jitter.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// tcgen05.mma.cta_group::{1,2}.kind::f16, A and B in shared memory: D = A * B^T, with `accumulate`
/// D += A * B^T, 16 elements of K deep.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_mma_f16_ss(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                                   std::uint32_t instruction, bool accumulate) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  if constexpr (kTraces) trace_state(TraceState::kMultiply);
  if constexpr (kCtaGroup == 2) {
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %4, 0;\n"
        "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, accumulate;\n"
        "}" ::"r"(d),
        "l"(a), "l"(b), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate))
        : "memory");
  } else {
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, accumulate;\n"
        "}" ::"r"(d),
        "l"(a), "l"(b), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate))
        : "memory");
  }
}

/// The same with A in tensor memory, two elements of K in each of 8 columns.
__device__ __forceinline__ void tcgen05_mma_f16_ts(std::uint32_t d, std::uint32_t a, std::uint64_t b,
                                                   std::uint32_t instruction, bool accumulate) {
  if constexpr (kTraces) trace_state(TraceState::kMultiply);
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, accumulate;\n"
      "}" ::"r"(d),
      "r"(a), "l"(b), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate))
      : "memory");
}

/// tcgen05.commit.cta_group::{1,2}.mbarrier::arrive::one.shared::cluster.b64
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_commit(std::uint64_t* barrier) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  jitter();
  if constexpr (kCtaGroup == 2) {
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                     shared_address(barrier))
                 : "memory");
  } else {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                     shared_address(barrier))
                 : "memory");
  }
}

/// tcgen05.commit...multicast::cluster: the same for the mbarrier at this place in every CTA of the cluster
/// whose bit in `ctas` is set, by rank.
template <int kCtaGroup = 1>
__device__ __forceinline__ void tcgen05_commit_multicast(std::uint64_t* barrier, std::uint16_t ctas) {
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair");
  jitter();
  if constexpr (kCtaGroup == 2) {
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], "
        "%1;" ::"r"(shared_address(barrier)),
        "h"(ctas)
        : "memory");
  } else {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], "
        "%1;" ::"r"(shared_address(barrier)),
        "h"(ctas)
        : "memory");
  }
}

}  // namespace gemm::ptx
