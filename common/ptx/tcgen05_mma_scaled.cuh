// tcgen05.mma with .block_scale: blocks of a row of A and of B have scales, which are in tensor memory.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.mma"; "Block Scaling". D = (A * scale_A) * (B *
// scale_B)^T, with `accumulate` D += that. One thread issues; completion, the accumulator and the order are
// those of tcgen05_mma_f16_ss. The scales come with tcgen05.cp, and behind a tcgen05.cp of the same thread a
// multiplication needs no wait ("Pipelined tcgen05 Instructions"). The other way round it does: as of PTX ISA
// 9.2 nothing orders a tcgen05.cp behind multiplications that read what it overwrites.
//
// Elements of 8 bits are what they are. Of 4 and of 6 bits .kind::mxf8f6f4 has 16 in 16 bytes, the packed
// bits first and the padding behind them; the 4-bit kinds have two in a byte, that of the lower K in the
// lower half, and no padding ("Packing formats").
//
// scale_a, scale_b: the addresses of the first columns, in lane 0. tcgen05_scaled_descriptor.h says where in
// them a scale is.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/tcgen05_scaled_descriptor.h"
#include "ptx/trace.cuh"

namespace gemm::ptx {

// _ss: A is in shared memory. _ts: it is in tensor memory, in the lanes of its rows, where elements of 4 and
// of 6 bits of .kind::mxf8f6f4 have a byte each, as tcgen05_cp.cuh says. With cta_group::2, each CTA of the
// pair has its half of A's rows and of B's, as with .kind::f16, and in its own tensor memory the scales of
// its rows of A and those of all rows of B. (CUTLASS does it so; the PTX ISA does not say it.)
#define GEMM_TCGEN05_SCALED_FUNCTION(NAME, ADDRESS)                                                    \
  __device__ __forceinline__ void tcgen05_mma_##NAME(std::uint32_t d, ADDRESS a, std::uint64_t b,      \
                                                     std::uint32_t instruction, std::uint32_t scale_a, \
                                                     std::uint32_t scale_b, bool accumulate)
#define GEMM_TCGEN05_SCALED_STATEMENT(GROUP, KIND, A, REGISTER)          \
  asm volatile(                                                          \
      "{\n"                                                              \
      ".reg .pred accumulate;\n"                                         \
      "setp.ne.b32 accumulate, %6, 0;\n"                                 \
      "tcgen05.mma.cta_group::" GROUP ".kind::" KIND " [%0], " A         \
      ", %2, %3, [%4], [%5], accumulate;\n"                              \
      "}" ::"r"(d),                                                      \
      REGISTER(a), "l"(b), "r"(instruction), "r"(scale_a), "r"(scale_b), \
      "r"(static_cast<std::uint32_t>(accumulate))                        \
      : "memory")
#define GEMM_TCGEN05_SCALED(...)                                       \
  static_assert(kCtaGroup == 1 || kCtaGroup == 2, "a CTA, or a pair"); \
  if constexpr (kTraces) trace_state(TraceState::kMultiply);           \
  if constexpr (kCtaGroup == 2) {                                      \
    GEMM_TCGEN05_SCALED_STATEMENT("2", __VA_ARGS__);                   \
  } else {                                                             \
    GEMM_TCGEN05_SCALED_STATEMENT("1", __VA_ARGS__);                   \
  }

/// tcgen05.mma.cta_group::{1,2}.kind::mxf8f6f4.block_scale.scale_vec::1X: 32 elements of K, one scale.
template <int kCtaGroup = 1>
GEMM_TCGEN05_SCALED_FUNCTION(mxf8f6f4_ss, std::uint64_t) {
  GEMM_TCGEN05_SCALED("mxf8f6f4.block_scale.scale_vec::1X", "%1", "l")
}
template <int kCtaGroup = 1>
GEMM_TCGEN05_SCALED_FUNCTION(mxf8f6f4_ts, std::uint32_t) {
  GEMM_TCGEN05_SCALED("mxf8f6f4.block_scale.scale_vec::1X", "[%1]", "r")
}

/// tcgen05.mma.cta_group::{1,2}.kind::mxf4.block_scale.scale_vec::2X: 64 elements of K, two scales.
template <int kCtaGroup = 1>
GEMM_TCGEN05_SCALED_FUNCTION(mxf4_ss, std::uint64_t) {
  GEMM_TCGEN05_SCALED("mxf4.block_scale.scale_vec::2X", "%1", "l")
}

/// tcgen05.mma.cta_group::{1,2}.kind::mxf4nvf4.block_scale.scale_vec::{2X,4X}: 64 elements of K, two or four
/// scales.
template <int kScales, int kCtaGroup = 1>
GEMM_TCGEN05_SCALED_FUNCTION(mxf4nvf4_ss, std::uint64_t) {
  static_assert(kScales == 2 || kScales == 4, "scales of 32 elements, or of 16");
  if constexpr (kScales == 4) {
    GEMM_TCGEN05_SCALED("mxf4nvf4.block_scale.scale_vec::4X", "%1", "l")
  } else {
    GEMM_TCGEN05_SCALED("mxf4nvf4.block_scale.scale_vec::2X", "%1", "l")
  }
}
#undef GEMM_TCGEN05_SCALED
#undef GEMM_TCGEN05_SCALED_STATEMENT
#undef GEMM_TCGEN05_SCALED_FUNCTION

}  // namespace gemm::ptx
