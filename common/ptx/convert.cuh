// Conversions, one function per PTX instruction.
#pragma once

#include <cstdint>

#include "gemm/bf16.h"
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

}  // namespace gemm::ptx
