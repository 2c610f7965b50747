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

/// tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X
__device__ __forceinline__ void tcgen05_mma_mxf8f6f4_ss(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                                        std::uint32_t instruction, std::uint32_t scale_a,
                                                        std::uint32_t scale_b, bool accumulate,
                                                        Where where = Where::here()) {
  trace_state(TraceState::kMultiply, where);
  emulator::tcgen05("tcgen05_mma_mxf8f6f4_ss", where)
      .multiply_scaled("tcgen05_mma_mxf8f6f4_ss", ScaledKind::kMxf8f6f4, d, a, b, instruction,
                       {scale_a, scale_b}, accumulate, where);
}

/// tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X
__device__ __forceinline__ void tcgen05_mma_mxf4_ss(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                                    std::uint32_t instruction, std::uint32_t scale_a,
                                                    std::uint32_t scale_b, bool accumulate,
                                                    Where where = Where::here()) {
  trace_state(TraceState::kMultiply, where);
  emulator::tcgen05("tcgen05_mma_mxf4_ss", where)
      .multiply_scaled("tcgen05_mma_mxf4_ss", ScaledKind::kMxf4, d, a, b, instruction, {scale_a, scale_b},
                       accumulate, where);
}

/// tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::{2X,4X}
template <int kScales>
__device__ __forceinline__ void tcgen05_mma_mxf4nvf4_ss(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                                        std::uint32_t instruction, std::uint32_t scale_a,
                                                        std::uint32_t scale_b, bool accumulate,
                                                        Where where = Where::here()) {
  static_assert(kScales == 2 || kScales == 4, "scales of 32 elements, or of 16");
  trace_state(TraceState::kMultiply, where);
  emulator::tcgen05("tcgen05_mma_mxf4nvf4_ss", where)
      .multiply_scaled("tcgen05_mma_mxf4nvf4_ss",
                       kScales == 4 ? ScaledKind::kMxf4Nvf4x4 : ScaledKind::kMxf4Nvf4x2, d, a, b, instruction,
                       {scale_a, scale_b}, accumulate, where);
}

}  // namespace gemm::ptx
