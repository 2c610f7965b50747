// Arithmetic for which C++ has no operator, one function per PTX instruction.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// tanh.approx.f32: relative error at most 2^-11. PTX ISA, "Floating Point Instructions: tanh".
__device__ __forceinline__ float tanh_approx_f32(float value) {
  float result;
  asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

/// ex2.approx.ftz.f32: 2 to the power `value`, at most 2 units in the last place from the correctly rounded
/// result; subnormal numbers become zero. PTX ISA, "Floating Point Instructions: ex2".
__device__ __forceinline__ float ex2_approx_ftz_f32(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

/// rcp.approx.ftz.f32: 1 / value, off by at most 1 unit in the last place; subnormal numbers become zero.
/// PTX ISA, "Floating Point Instructions: rcp".
__device__ __forceinline__ float rcp_approx_ftz_f32(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

/// max.NaN.f32: the larger one; NaN if one of them is NaN, which fmaxf would hide. PTX ISA, "Floating Point
/// Instructions: max".
__device__ __forceinline__ float max_nan_f32(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// fma.rn.bf16x2: a * b + c in each half, rounded once, subnormal numbers kept. PTX ISA, "Half Precision
/// Floating Point Instructions: fma".
__device__ __forceinline__ std::uint32_t fma_rn_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

/// fma.rn.f16x2: the same for fp16; what is too large becomes infinity.
__device__ __forceinline__ std::uint32_t fma_rn_f16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

/// lop3.b32 with the table of (a & b) | c, bit by bit. In C++ a compiler that knows b and c may take an
/// instruction for each operator, because one has room for one immediate only. PTX ISA, "Logic and Shift
/// Instructions: lop3".
__device__ __forceinline__ std::uint32_t lop3_and_or(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

}  // namespace gemm::ptx
