// Conversions, one function per PTX instruction: the emulator's counterparts.
#pragma once

#include <cstdint>

#include "emulator/machine/poison.h"
#include "gemm/bf16.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// cvt.rn.bf16.f32: round to nearest even. PTX ISA, "Data Movement and Conversion Instructions: cvt".
__device__ __forceinline__ gemm::bf16 cvt_rn_bf16_f32(float value,
                                                      emulator::Where where = emulator::Where::here()) {
  emulator::check_poison("cvt_rn_bf16_f32", value, where);
  return gemm::to_bf16(value);
}

/// cvt.rn.bf16x2.f32: two conversions at once; `low` lands in bits 0-15, which is the lower address in
/// memory. PTX ISA, "Data Movement and Conversion Instructions: cvt" (the first source operand is the upper
/// half).
__device__ __forceinline__ std::uint32_t cvt_rn_bf16x2_f32(float low, float high,
                                                           emulator::Where where = emulator::Where::here()) {
  emulator::check_poison("cvt_rn_bf16x2_f32", low, where);
  emulator::check_poison("cvt_rn_bf16x2_f32", high, where);
  return static_cast<std::uint32_t>(gemm::to_bf16(high).bits) << 16 | gemm::to_bf16(low).bits;
}

}  // namespace gemm::ptx
