// Conversions, one function per PTX instruction.
#pragma once

#include <cstdint>

#include "gemm/problem/bf16.h"
#include "gemm/problem/types.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// cvt.rn.bf16.f32: round to nearest even. PTX ISA, "Data Movement and Conversion Instructions: cvt".
__device__ __forceinline__ gemm::bf16 cvt_rn_bf16_f32(float value) {
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return {bits};
}

/// cvt.rn.bf16x2.f32: two conversions at once; `low` lands in bits 0-15, which is the lower address in
/// memory. PTX ISA, "Data Movement and Conversion Instructions: cvt" (the first source operand is the upper
/// half).
__device__ __forceinline__ std::uint32_t cvt_rn_bf16x2_f32(float low, float high) {
  std::uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

/// cvt.rn.satfinite.f16x2.f32: the same for fp16; what is too large becomes the largest number, +-65504.
__device__ __forceinline__ std::uint32_t cvt_rn_satfinite_f16x2_f32(float low, float high) {
  std::uint32_t bits;
  asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

/// cvt.rn.satfinite.e4m3x2.f32: two bytes; too large becomes +-448.
__device__ __forceinline__ std::uint16_t cvt_rn_satfinite_e4m3x2_f32(float low, float high) {
  std::uint16_t bits;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
  return bits;
}

/// cvt.rn.satfinite.e5m2x2.f32: two bytes; too large becomes +-57344.
__device__ __forceinline__ std::uint16_t cvt_rn_satfinite_e5m2x2_f32(float low, float high) {
  std::uint16_t bits;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
  return bits;
}

/// cvt.rn.satfinite.e2m1x2.f32: two numbers of 4 bits in the lowest byte, `low` in its lower half; too large
/// becomes +-6, and so does NaN. sm_100a and later.
__device__ __forceinline__ std::uint32_t cvt_rn_satfinite_e2m1x2_f32(float low, float high) {
  std::uint32_t bits;
  asm("{\n"
      ".reg .b8 pair;\n"
      "cvt.rn.satfinite.e2m1x2.f32 pair, %1, %2;\n"
      "mov.b32 %0, {pair, 0, 0, 0};\n"
      "}"
      : "=r"(bits)
      : "f"(high), "f"(low));
  return bits;
}

/// cvt.rni.sat.s8.f32: the nearest integer, ties to even, from -128 to 127; 0 for a NaN.
__device__ __forceinline__ gemm::int8 cvt_rni_sat_s8_f32(float value) {
  std::int32_t integer;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(integer) : "f"(value));
  return static_cast<gemm::int8>(integer);
}

/// cvt.rn.f32.s32: exact up to 2^24, rounded beyond.
__device__ __forceinline__ float cvt_rn_f32_s32(std::int32_t value) {
  float result;
  asm("cvt.rn.f32.s32 %0, %1;" : "=f"(result) : "r"(value));
  return result;
}

}  // namespace gemm::ptx
