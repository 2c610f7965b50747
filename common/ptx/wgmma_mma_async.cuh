// wgmma.mma_async in bf16. The instruction and its operands are explained in wgmma.cuh, the macros in
// wgmma_statement.cuh.
//
// N = 8, 16 ... 256, with A from shared memory (ss) or from registers (rs). scale_d = 0 computes d = a * b,
// anything else d += a * b. Both operands K-major, neither negated.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/wgmma_statement.cuh"

namespace gemm::ptx {

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16: d[64][N] (+)= a[64][16] * b[N][16]^T, a and b in
/// shared memory, by descriptor (descriptor.h).
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk16_f32_bf16_ss(float (&d)[kN / 2], std::uint64_t a,
                                                           std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS, "k16.f32.bf16.bf16", "+f", ", 1, 1, 0, 0")
}

/// The same with a in registers.
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk16_f32_bf16_rs(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                                           std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_RS, "k16.f32.bf16.bf16", "+f", ", 1, 1, 0")
}

}  // namespace gemm::ptx
