// bf16 as a plain 16-bit pattern: one type for the host, the GPU and the emulator.
//
// Everything here is constexpr, so nvcc (--expt-relaxed-constexpr) compiles it for the device as well.
#pragma once

#include <bit>
#include <cstdint>

namespace gemm {

/// A bfloat16 value: 1 sign bit, 8 exponent bits, 7 fraction bits; the upper half of a binary32.
struct bf16 {
  std::uint16_t bits;
};
static_assert(sizeof(bf16) == 2, "operands are moved as raw 2-byte elements");

/// Exact: every bf16 is a binary32.
constexpr float to_float(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Round to nearest, ties to even; NaN becomes the quiet NaN 0x7fff (what cvt.rn.bf16.f32 returns).
/// Source: PTX ISA, "Data Movement and Conversion Instructions: cvt".
constexpr bf16 to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  const std::uint32_t round = 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>((bits + round) >> 16)};
}

}  // namespace gemm
