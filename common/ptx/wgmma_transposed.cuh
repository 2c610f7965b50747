// wgmma.mma_async with 16-bit operands that may be MN-major. The instruction and its operands are explained
// in wgmma.cuh, the macros in wgmma_statement.cuh.
//
// tnspA and tnspB are immediates of the instruction, and template arguments here. 0: K-major, as in the
// functions without them. 1: MN-major; descriptor.h says what the descriptor's offsets mean then. A in
// registers (rs) has no tnspA: its fragments are what they are.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/wgmma_statement.cuh"

namespace gemm::ptx {

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16: d[64][N] (+)= a[64][16] * b[N][16]^T, a and b in
/// shared memory.
template <int kN, int kTnspA, int kTnspB>
__device__ __forceinline__ void wgmma_m64nNk16_f32_bf16_ss(float (&d)[kN / 2], std::uint64_t a,
                                                           std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS_TRANSPOSED, "k16.f32.bf16.bf16")
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16: d[64][N] (+)= a[64][16] * b[N][16]^T, a in registers,
/// b in shared memory.
template <int kN, int kTnspB>
__device__ __forceinline__ void wgmma_m64nNk16_f32_bf16_rs(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                                           std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_RS_TRANSPOSED, "k16.f32.bf16.bf16")
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16: d[64][N] (+)= a[64][16] * b[N][16]^T, a and b in shared
/// memory.
template <int kN, int kTnspA, int kTnspB>
__device__ __forceinline__ void wgmma_m64nNk16_f32_f16_ss(float (&d)[kN / 2], std::uint64_t a,
                                                          std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS_TRANSPOSED, "k16.f32.f16.f16")
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16: d[64][N] (+)= a[64][16] * b[N][16]^T, a in registers, b
/// in shared memory.
template <int kN, int kTnspB>
__device__ __forceinline__ void wgmma_m64nNk16_f32_f16_rs(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                                          std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_RS_TRANSPOSED, "k16.f32.f16.f16")
}

}  // namespace gemm::ptx
