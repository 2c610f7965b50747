// wgmma.mma_async with 16-bit operands that may be MN-major. The emulator's counterparts.
#pragma once

#include <cstdint>

#include "emulator/async/wgmma.h"
#include "gemm/problem/types.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16: d[64][N] (+)= a[64][16] * b[N][16]^T, a and b in
/// shared memory.
template <int kN, int kTnspA, int kTnspB>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk16_f32_bf16_ss(float (&d)[kN / 2], std::uint64_t a,
                                                           std::uint64_t b, int scale_d,
                                                           Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk16_f32_bf16_ss", kN, d, a, nullptr, b, scale_d != 0, where, {},
                      {kTnspA != 0, kTnspB != 0});
}

/// The same with a in registers.
template <int kN, int kTnspB>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk16_f32_bf16_rs(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                                           std::uint64_t b, int scale_d,
                                                           Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk16_f32_bf16_rs", kN, d, 0, a, b, scale_d != 0, where, {},
                      {false, kTnspB != 0});
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16
template <int kN, int kTnspA, int kTnspB>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk16_f32_f16_ss(float (&d)[kN / 2], std::uint64_t a,
                                                          std::uint64_t b, int scale_d,
                                                          Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk16_f32_f16_ss", kN, d, a, nullptr, b, scale_d != 0, where,
                      {Type::kFp16, Type::kFp16}, {kTnspA != 0, kTnspB != 0});
}

/// The same with a in registers.
template <int kN, int kTnspB>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk16_f32_f16_rs(float (&d)[kN / 2], const std::uint32_t (&a)[4],
                                                          std::uint64_t b, int scale_d,
                                                          Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk16_f32_f16_rs", kN, d, 0, a, b, scale_d != 0, where,
                      {Type::kFp16, Type::kFp16}, {false, kTnspB != 0});
}

}  // namespace gemm::ptx
