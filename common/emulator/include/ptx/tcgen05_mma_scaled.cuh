// tcgen05.mma with .block_scale: blocks of a row of A and of B have scales, which are in tensor memory. The
// emulator's counterparts; the GPU header explains.
//
// PTX ISA, "TensorCore 5th Generation Instructions: tcgen05.mma"; "Block Scaling".
#pragma once

#include <cstdint>

#include "emulator/async/tcgen05.h"
#include "ptx/core.cuh"
#include "ptx/tcgen05_scaled_descriptor.h"
#include "ptx/trace.cuh"

namespace gemm::ptx {

#define GEMM_TCGEN05_SCALED_FUNCTION(NAME, ADDRESS)                                                  \
  __device__ __forceinline__ void tcgen05_mma_##NAME(                                                \
      std::uint32_t d, ADDRESS a, std::uint64_t b, std::uint32_t instruction, std::uint32_t scale_a, \
      std::uint32_t scale_b, bool accumulate, Where where = Where::here())
#define GEMM_TCGEN05_SCALED(NAME, KIND, A_IN_TENSOR_MEMORY)                                             \
  trace_state(TraceState::kMultiply, where);                                                            \
  emulator::tcgen05("tcgen05_mma_" #NAME, where)                                                        \
      .multiply_scaled("tcgen05_mma_" #NAME, kCtaGroup, KIND, d, a, A_IN_TENSOR_MEMORY, b, instruction, \
                       {scale_a, scale_b}, accumulate, where)

/// tcgen05.mma.cta_group::{1,2}.kind::mxf8f6f4.block_scale.scale_vec::1X
template <int kCtaGroup = 1>
GEMM_TCGEN05_SCALED_FUNCTION(mxf8f6f4_ss, std::uint64_t) {
  GEMM_TCGEN05_SCALED(mxf8f6f4_ss, ScaledKind::kMxf8f6f4, false);
}
template <int kCtaGroup = 1>
GEMM_TCGEN05_SCALED_FUNCTION(mxf8f6f4_ts, std::uint32_t) {
  GEMM_TCGEN05_SCALED(mxf8f6f4_ts, ScaledKind::kMxf8f6f4, true);
}

/// tcgen05.mma.cta_group::{1,2}.kind::mxf4.block_scale.scale_vec::2X
template <int kCtaGroup = 1>
GEMM_TCGEN05_SCALED_FUNCTION(mxf4_ss, std::uint64_t) {
  GEMM_TCGEN05_SCALED(mxf4_ss, ScaledKind::kMxf4, false);
}

/// tcgen05.mma.cta_group::{1,2}.kind::mxf4nvf4.block_scale.scale_vec::{2X,4X}
template <int kScales, int kCtaGroup = 1>
GEMM_TCGEN05_SCALED_FUNCTION(mxf4nvf4_ss, std::uint64_t) {
  static_assert(kScales == 2 || kScales == 4, "scales of 32 elements, or of 16");
  GEMM_TCGEN05_SCALED(mxf4nvf4_ss, kScales == 4 ? ScaledKind::kMxf4Nvf4x4 : ScaledKind::kMxf4Nvf4x2, false);
}
#undef GEMM_TCGEN05_SCALED
#undef GEMM_TCGEN05_SCALED_FUNCTION

}  // namespace gemm::ptx
