// Arithmetic for which C++ has no operator, one function per PTX instruction: the emulator's counterparts.
//
// An approximation may be off by what the PTX ISA documents, and here it is: the seed decides by how much for
// each operand, always the same for the same operand. So whoever compares bits with another implementation of
// tanh fails here as on the next GPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "emulator/machine/options.h"
#include "emulator/machine/poison.h"
#include "emulator/machine/random.h"
#include "gemm/problem/bf16.h"
#include "gemm/problem/types.h"
#include "ptx/core.cuh"

namespace emulator {

/// What the seed draws for an operand of an approximation.
inline Random approximation(float operand, std::uint64_t instruction) {
  return Random(options().seed * 0x2545f4914f6cdd1du +
                (instruction << 32 | std::bit_cast<std::uint32_t>(operand)));
}

/// Subnormal numbers become zero, as .ftz has it.
inline float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

/// `steps` representable numbers above or below a finite one.
inline float stepped(float value, int steps) {
  const float towards =
      steps < 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  for (int i = 0; i < std::abs(steps) && std::isfinite(value); ++i) value = std::nextafterf(value, towards);
  return value;
}

/// a * b + c of numbers of 16 bits, for a rounding to 16 bits. The product is exact in binary64, and what its
/// sum with c, and then binary32, cannot hold is kept as an odd last bit: so only the last rounding is one to
/// nearest.
inline float fma_for_rounding(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const auto addend = static_cast<double>(c);
  double sum = product + addend;
  if (std::isfinite(sum)) {
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (addend - part);
    if (lost != 0 && (std::bit_cast<std::uint64_t>(sum) & 1u) == 0)
      sum = std::nextafter(
          sum, lost > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
  }
  auto narrow = static_cast<float>(sum);
  if (std::isfinite(narrow) && static_cast<double>(narrow) != sum &&
      (std::bit_cast<std::uint32_t>(narrow) & 1u) == 0)
    narrow =
        std::nextafterf(narrow, static_cast<double>(narrow) < sum ? std::numeric_limits<float>::infinity()
                                                                  : -std::numeric_limits<float>::infinity());
  return narrow;
}

inline std::uint16_t fma_bf16(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  const auto wide = [](std::uint16_t bits) { return gemm::to_float(gemm::bf16{bits}); };
  return gemm::to_bf16(fma_for_rounding(wide(a), wide(b), wide(c))).bits;
}

/// What is too large becomes infinity.
inline std::uint16_t fma_f16(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  const auto wide = [](std::uint16_t bits) { return gemm::to_float(gemm::fp16{bits}); };
  const float value = fma_for_rounding(wide(a), wide(b), wide(c));
  constexpr float kRoundsToInfinity = 65520;
  if (std::abs(value) >= kRoundsToInfinity) return std::signbit(value) ? 0xfc00 : 0x7c00;
  return gemm::to_fp16(value).bits;
}

/// `fma` of the lower halves, and of the upper ones.
inline std::uint32_t fma_of_halves(std::uint16_t (*fma)(std::uint16_t, std::uint16_t, std::uint16_t),
                                   std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const auto half = [&](int shift) {
    return fma(static_cast<std::uint16_t>(a >> shift), static_cast<std::uint16_t>(b >> shift),
               static_cast<std::uint16_t>(c >> shift));
  };
  return static_cast<std::uint32_t>(half(16)) << 16 | half(0);
}

}  // namespace emulator

namespace gemm::ptx {

/// tanh.approx.f32: relative error at most 2^-11. PTX ISA, "Floating Point Instructions: tanh".
__device__ __forceinline__ float tanh_approx_f32(float value, Where where = Where::here()) {
  emulator::check_poison("tanh_approx_f32", value, where);
  if (value == 0 || !std::isfinite(value)) return std::tanh(value);
  constexpr int kDraws = 1 << 20;
  // Less than all of it, because the result is rounded.
  constexpr double kMost = 0x1p-11 - 0x1p-23;
  const auto drawn = static_cast<double>(emulator::approximation(value, 1).below(2 * kDraws + 1)) - kDraws;
  return static_cast<float>(std::tanh(static_cast<double>(value)) * (1 + kMost * drawn / kDraws));
}

/// ex2.approx.ftz.f32: 2 to the power `value`, at most 2 units in the last place from the correctly rounded
/// result; subnormal numbers become zero. PTX ISA, "Floating Point Instructions: ex2".
__device__ __forceinline__ float ex2_approx_ftz_f32(float value, Where where = Where::here()) {
  emulator::check_poison("ex2_approx_ftz_f32", value, where);
  value = emulator::flushed(value);
  const auto exact = static_cast<float>(std::exp2(static_cast<double>(value)));
  if (value == 0 || exact == 0 || !std::isfinite(exact)) return exact;
  const auto steps = static_cast<int>(emulator::approximation(value, 2).below(5)) - 2;
  return emulator::flushed(emulator::stepped(exact, steps));
}

/// rcp.approx.ftz.f32: 1 / value, off by at most 1 unit in the last place; subnormal numbers become zero.
/// PTX ISA, "Floating Point Instructions: rcp".
__device__ __forceinline__ float rcp_approx_ftz_f32(float value, Where where = Where::here()) {
  emulator::check_poison("rcp_approx_ftz_f32", value, where);
  value = emulator::flushed(value);
  if (value == 0) return std::copysign(std::numeric_limits<float>::infinity(), value);
  const double exact = 1 / static_cast<double>(value);
  const auto nearest = static_cast<float>(exact);
  if (nearest == 0 || !std::isfinite(nearest)) return nearest;
  // The number below the exact one and the number above it are both less than a unit off.
  const auto rounded = static_cast<double>(nearest);
  int steps = 0;
  if (rounded != exact && emulator::approximation(value, 3).below(2) == 1) steps = rounded < exact ? 1 : -1;
  return emulator::flushed(emulator::stepped(nearest, steps));
}

/// max.NaN.f32: the larger one; NaN if one of them is NaN, which fmaxf would hide. PTX ISA, "Floating Point
/// Instructions: max".
__device__ __forceinline__ float max_nan_f32(float a, float b, Where where = Where::here()) {
  emulator::check_poison("max_nan_f32", a, where);
  emulator::check_poison("max_nan_f32", b, where);
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  return std::fmax(a, b);
}

/// fma.rn.bf16x2: a * b + c in each half, rounded once, subnormal numbers kept. PTX ISA, "Half Precision
/// Floating Point Instructions: fma".
__device__ __forceinline__ std::uint32_t fma_rn_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                                       Where where = Where::here()) {
  for (const std::uint32_t operand : {a, b, c})
    emulator::check_poison("fma_rn_bf16x2", std::bit_cast<float>(operand), where);
  return emulator::fma_of_halves(emulator::fma_bf16, a, b, c);
}

/// fma.rn.f16x2: the same for fp16; what is too large becomes infinity.
__device__ __forceinline__ std::uint32_t fma_rn_f16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                                      Where where = Where::here()) {
  for (const std::uint32_t operand : {a, b, c})
    emulator::check_poison("fma_rn_f16x2", std::bit_cast<float>(operand), where);
  return emulator::fma_of_halves(emulator::fma_f16, a, b, c);
}

/// lop3.b32 with the table of (a & b) | c, bit by bit. In C++ a compiler that knows b and c may take an
/// instruction for each operator, because one has room for one immediate only. PTX ISA, "Logic and Shift
/// Instructions: lop3".
__device__ __forceinline__ std::uint32_t lop3_and_or(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return (a & b) | c;  // no look for poison: packed integers may have any bits
}

}  // namespace gemm::ptx
