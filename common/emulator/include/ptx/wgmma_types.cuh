// wgmma.mma_async with operands that are not bf16, both in shared memory. The emulator's counterparts.
#pragma once

#include <cstdint>

#include "emulator/async/wgmma.h"
#include "gemm/problem/types.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16
template <int kN>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk16_f32_f16_ss(float (&d)[kN / 2], std::uint64_t a,
                                                          std::uint64_t b, int scale_d,
                                                          Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk16_f32_f16_ss", kN, d, a, nullptr, b, scale_d != 0, where,
                      {Type::kFp16, Type::kFp16});
}

/// wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32
template <int kN>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk8_f32_tf32_ss(float (&d)[kN / 2], std::uint64_t a,
                                                          std::uint64_t b, int scale_d,
                                                          Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk8_f32_tf32_ss", kN, d, a, nullptr, b, scale_d != 0, where,
                      {Type::kTf32, Type::kTf32});
}

/// wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3
template <int kN>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk32_f32_e4m3_e4m3_ss(float (&d)[kN / 2], std::uint64_t a,
                                                                std::uint64_t b, int scale_d,
                                                                Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk32_f32_e4m3_e4m3_ss", kN, d, a, nullptr, b, scale_d != 0, where,
                      {Type::kE4m3, Type::kE4m3});
}

/// wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e5m2
template <int kN>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk32_f32_e4m3_e5m2_ss(float (&d)[kN / 2], std::uint64_t a,
                                                                std::uint64_t b, int scale_d,
                                                                Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk32_f32_e4m3_e5m2_ss", kN, d, a, nullptr, b, scale_d != 0, where,
                      {Type::kE4m3, Type::kE5m2});
}

/// wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e4m3
template <int kN>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk32_f32_e5m2_e4m3_ss(float (&d)[kN / 2], std::uint64_t a,
                                                                std::uint64_t b, int scale_d,
                                                                Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk32_f32_e5m2_e4m3_ss", kN, d, a, nullptr, b, scale_d != 0, where,
                      {Type::kE5m2, Type::kE4m3});
}

/// wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e5m2
template <int kN>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk32_f32_e5m2_e5m2_ss(float (&d)[kN / 2], std::uint64_t a,
                                                                std::uint64_t b, int scale_d,
                                                                Where where = Where::here()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "a wgmma is 8 to 256 columns wide, in steps of 8");
  emulator::wgmma_mma("wgmma_m64nNk32_f32_e5m2_e5m2_ss", kN, d, a, nullptr, b, scale_d != 0, where,
                      {Type::kE5m2, Type::kE5m2});
}

/// wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8: wraps around, as it does without .satfinite
template <int kN>
// NOLINTNEXTLINE(readability-identifier-naming): the opcode's name
__device__ __forceinline__ void wgmma_m64nNk32_s32_s8_ss(std::int32_t (&d)[kN / 2], std::uint64_t a,
                                                         std::uint64_t b, int scale_d,
                                                         Where where = Where::here()) {
  static_assert((kN % 16 == 0 || kN == 8 || kN == 24) && kN >= 8 && kN <= 256,
                "an integer wgmma is 8, 16 or 24 columns wide, or 32 to 256 in steps of 16");
  emulator::wgmma_mma("wgmma_m64nNk32_s32_s8_ss", kN, d, a, nullptr, b, scale_d != 0, where,
                      {Type::kInt8, Type::kInt8});
}

}  // namespace gemm::ptx
