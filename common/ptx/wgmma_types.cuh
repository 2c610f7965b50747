// wgmma.mma_async with operands that are not bf16, both in shared memory. The instruction and its operands
// are explained in wgmma.cuh, the macros in wgmma_statement.cuh.
//
// In every type an instruction takes 32 bytes of each row: 16 elements of K in fp16, 8 in tf32, 32 in fp8 and
// int8. There is no bit to transpose an operand in 32 or 8 bits: both are K-major.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/wgmma_statement.cuh"

namespace gemm::ptx {

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk16_f32_f16_ss(float (&d)[kN / 2], std::uint64_t a,
                                                          std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS, "k16.f32.f16.f16", "+f", ", 1, 1, 0, 0")
}

/// wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk8_f32_tf32_ss(float (&d)[kN / 2], std::uint64_t a,
                                                          std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS, "k8.f32.tf32.tf32", "+f", ", 1, 1")
}

/// wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk32_f32_e4m3_e4m3_ss(float (&d)[kN / 2], std::uint64_t a,
                                                                std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS, "k32.f32.e4m3.e4m3", "+f", ", 1, 1")
}

/// wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e5m2
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk32_f32_e4m3_e5m2_ss(float (&d)[kN / 2], std::uint64_t a,
                                                                std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS, "k32.f32.e4m3.e5m2", "+f", ", 1, 1")
}

/// wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e4m3
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk32_f32_e5m2_e4m3_ss(float (&d)[kN / 2], std::uint64_t a,
                                                                std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS, "k32.f32.e5m2.e4m3", "+f", ", 1, 1")
}

/// wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e5m2
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk32_f32_e5m2_e5m2_ss(float (&d)[kN / 2], std::uint64_t a,
                                                                std::uint64_t b, int scale_d) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS, "k32.f32.e5m2.e5m2", "+f", ", 1, 1")
}

/// wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8
template <int kN>
__device__ __forceinline__ void wgmma_m64nNk32_s32_s8_ss(std::int32_t (&d)[kN / 2], std::uint64_t a,
                                                         std::uint64_t b, int scale_d) {
  static_assert(kN == 8 || kN == 24 || (kN % 16 == 0 && kN >= 16 && kN <= 256),
                "a wgmma into integers is 8, 24 or a multiple of 16 to 256 columns wide");
  GEMM_WGMMA_EACH_INTEGER_WIDTH(GEMM_WGMMA_SS, "k32.s32.s8.s8", "+r", "")
}

}  // namespace gemm::ptx
