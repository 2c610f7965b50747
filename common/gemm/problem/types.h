// The types of operands and results beside bf16, as plain bit patterns: for the host, the GPU and the
// emulator.
//
// Everything here is constexpr, so nvcc (--expt-relaxed-constexpr) compiles it for the device as well.
// Formats: PTX ISA, "Types: Alternate Floating-Point Data Formats"; conversions: the same, "cvt".
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "gemm/problem/bf16.h"

namespace gemm {

/// IEEE binary16: 5 bits of exponent, 10 of fraction.
struct fp16 {
  std::uint16_t bits;
};
/// A binary32 in memory. The tensor cores look at its 8 bits of exponent and the upper 10 of its fraction,
/// and not at the other 13.
struct tf32 {
  std::uint32_t bits;
};
/// 4 bits of exponent, 3 of fraction, up to 448; no infinities, and one NaN of each sign, all ones.
struct e4m3 {
  std::uint8_t bits;
};
/// 5 bits of exponent, 2 of fraction, up to 57344: the upper half of a binary16.
struct e5m2 {
  std::uint8_t bits;
};
/// 2 bits of exponent, 1 of fraction, up to 6; like the next two without infinities and NaN. In the lower
/// bits.
struct e2m1 {
  std::uint8_t bits;
};
/// 2 bits of exponent, 3 of fraction, up to 7.5.
struct e2m3 {
  std::uint8_t bits;
};
/// 3 bits of exponent, 2 of fraction, up to 28.
struct e3m2 {
  std::uint8_t bits;
};
/// A scale: 8 bits of exponent and nothing else, 2^-127 to 2^127; all ones are NaN.
struct ue8m0 {
  std::uint8_t bits;
};
/// A scale: an e4m3 without a sign. The highest bit says nothing.
struct ue4m3 {
  std::uint8_t bits;
};
using int8 = std::int8_t;
/// Two integers of 4 bits, -8 to 7, in one byte.
struct int4x2 {
  std::uint8_t bits;
};
/// The same where another integer than 0 stands for zero: each row and group has a zero point.
struct asymmetric_int4x2 {
  std::uint8_t bits;
};
/// Two e2m1 in one byte, that of the lower K in the lower half.
struct e2m1x2 {
  std::uint8_t bits;
};

/// What the elements of a matrix are.
enum class Type { kBf16, kFp16, kTf32, kE4m3, kE5m2, kInt8, kInt4, kE2m1, kFp32 };

constexpr int bits_of(Type type) {
  switch (type) {
    case Type::kInt4:
    case Type::kE2m1:
      return 4;
    case Type::kE4m3:
    case Type::kE5m2:
    case Type::kInt8:
      return 8;
    case Type::kBf16:
    case Type::kFp16:
      return 16;
    default:
      return 32;
  }
}
/// 0 for types of 4 bits, of which two share a byte.
constexpr int bytes_of(Type type) {
  return bits_of(type) / 8;
}

constexpr const char* name_of(Type type) {
  switch (type) {
    case Type::kBf16:
      return "bf16";
    case Type::kFp16:
      return "fp16";
    case Type::kTf32:
      return "tf32";
    case Type::kE4m3:
      return "e4m3";
    case Type::kE5m2:
      return "e5m2";
    case Type::kInt8:
      return "int8";
    case Type::kInt4:
      return "int4";
    case Type::kE2m1:
      return "e2m1";
    case Type::kFp32:
      return "fp32";
  }
  return "?";
}

constexpr bool is_fp8(Type type) {
  return type == Type::kE4m3 || type == Type::kE5m2;
}

/// The Type of elements of a C++ type.
template <typename T>
inline constexpr Type kTypeOf = Type::kBf16;
template <>
inline constexpr Type kTypeOf<fp16> = Type::kFp16;
template <>
inline constexpr Type kTypeOf<tf32> = Type::kTf32;
template <>
inline constexpr Type kTypeOf<e4m3> = Type::kE4m3;
template <>
inline constexpr Type kTypeOf<e5m2> = Type::kE5m2;
template <>
inline constexpr Type kTypeOf<int8> = Type::kInt8;
template <>
inline constexpr Type kTypeOf<int4x2> = Type::kInt4;
template <>
inline constexpr Type kTypeOf<asymmetric_int4x2> = Type::kInt4;
template <>
inline constexpr Type kTypeOf<e2m1x2> = Type::kE2m1;
template <>
inline constexpr Type kTypeOf<float> = Type::kFp32;

/// Which index of an operand is contiguous in memory: that of K, [m][k] and [n][k], or that of its rows,
/// [k][m] and [k][n].
enum class Major { kK, kMn };

/// What has a scale.
enum class Scaling {
  kTensor,  // each operand, and D
  kBlocks,  // of A each 1 x 128 elements along K, of B each 128 x 128; D has none
  kMx,      // of A and of B each 1 x 32 elements along K, a ue8m0; D has none
  kNv,      // of A and of B each 1 x 16 elements along K, a ue4m3, and what kTensor has
};
inline constexpr int kScaleBlock = 128;
inline constexpr int kMxBlock = 32;
inline constexpr int kNvBlock = 16;

/// Of the operands and of the result: what their elements are, and which way round the operands lie.
struct Types {
  Type a = Type::kBf16;
  Type b = Type::kBf16;
  Type d = Type::kBf16;
  Major major_a = Major::kK;
  Major major_b = Major::kK;
  // Of fp8 operands: after so many elements of K a kernel adds what the tensor cores hold to binary32 sums.
  // 0: never. What a kernel promises; two that differ in it solve the same problem.
  int promotion = 0;
  Scaling scaling = Scaling::kTensor;
  // Of weights: B's elements of K that share a scale. 0: B has no such scales.
  int group = 0;
  // Of weights: whether each scale has a zero point beside it, the integer that stands for zero.
  bool zero_points = false;
  // Of weights: whether a weight times its scale is rounded to bf16 before it is multiplied. What a kernel
  // promises, like promotion.
  bool rounds_weights = false;
  bool operator==(const Types&) const = default;

  constexpr bool same_elements(const Types& other) const {
    return a == other.a && b == other.b && d == other.d && major_a == other.major_a &&
           major_b == other.major_b && scaling == other.scaling && group == other.group &&
           zero_points == other.zero_points;
  }
  constexpr bool has_weights() const { return group > 0; }
  /// Of weights: lines of N numbers for each group, its scales and its zero points.
  constexpr int scale_lines() const { return zero_points ? 2 : 1; }
  constexpr bool are_k_major() const { return major_a == Major::kK && major_b == Major::kK; }
  constexpr bool have_blocks() const { return scaling == Scaling::kBlocks; }
  /// Whether the elements of D are e2m1, and 16 neighbours in a row share a ue4m3.
  constexpr bool quantise_d() const { return d == Type::kE2m1; }
  constexpr bool are_mx() const { return scaling == Scaling::kMx; }
  constexpr bool are_nv() const { return scaling == Scaling::kNv; }
  /// Whether rows of both operands have scales that the tensor cores apply.
  constexpr bool have_scale_pieces() const { return are_mx() || are_nv(); }
  /// Elements along K that share a scale; 0 where each matrix has one.
  constexpr int scale_block() const {
    return have_blocks() ? kScaleBlock : are_mx() ? kMxBlock : are_nv() ? kNvBlock : 0;
  }
  /// Those of the main ladder, K-major.
  constexpr bool are_bf16() const { return *this == Types{}; }
};

/// Whether the tensor cores read operands of this type MN-major: they transpose 16-bit elements, and no
/// others.
constexpr bool can_be_mn_major(Type type) {
  return bytes_of(type) == 2;
}

namespace narrow {

/// 2^exponent, for exponents of normal binary32 numbers.
constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// The magnitude that these bits stand for, if they are no infinity and no NaN.
template <int kExponentBits, int kFractionBits>
constexpr float widen(std::uint32_t magnitude) {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  const auto exponent = static_cast<int>(magnitude >> kFractionBits);
  const std::uint32_t fraction = magnitude & ((1u << kFractionBits) - 1);
  if (exponent == 0) return static_cast<float>(fraction) * power_of_two(1 - kBias - kFractionBits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent - kBias + 127) << 23 |
                              fraction << (23 - kFractionBits));
}

/// The bits of a finite magnitude, rounded to nearest, ties to even, as if exponents had no upper end.
template <int kExponentBits, int kFractionBits>
constexpr std::uint32_t round_magnitude(float magnitude) {
  constexpr int kLowest = 2 - (1 << (kExponentBits - 1));  // the exponent of the smallest normal number
  const auto bits = std::bit_cast<std::uint32_t>(magnitude);
  const int exponent = static_cast<int>(bits >> 23) - 127;
  if (exponent < -126) return 0;  // far below the smallest of any of these types
  const int shift = 23 - kFractionBits + std::max(0, kLowest - exponent);
  if (shift > 24) return 0;  // less than half of the smallest
  const std::uint32_t significand = (bits & 0x7fffffu) | 0x800000u;
  const std::uint32_t below = (1u << (shift - 1)) - 1;
  const std::uint32_t rounded = (significand + below + (significand >> shift & 1u)) >> shift;
  // The significand's leading 1, or a carry into its place, counts as one more exponent.
  return rounded + (static_cast<std::uint32_t>(std::max(exponent, kLowest) - kLowest) << kFractionBits);
}

/// Sign and magnitude, which is at most `largest`.
template <int kExponentBits, int kFractionBits>
constexpr std::uint32_t saturate(float value, std::uint32_t largest, std::uint32_t nan) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return nan;
  const std::uint32_t sign = bits >> 31 << (kExponentBits + kFractionBits);
  if (magnitude == 0x7f800000u) return sign | largest;
  return sign |
         std::min(largest, round_magnitude<kExponentBits, kFractionBits>(std::bit_cast<float>(magnitude)));
}

constexpr float with_sign(bool negative, float magnitude) {
  return negative ? -magnitude : magnitude;
}

}  // namespace narrow

// To binary32, which holds every number of every type.

constexpr float to_float(fp16 value) {
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  const bool negative = (value.bits & 0x8000u) != 0;
  if (magnitude >= 0x7c00u)
    return std::bit_cast<float>((negative ? 0xff800000u : 0x7f800000u) | (magnitude & 0x3ffu) << 13);
  return narrow::with_sign(negative, narrow::widen<5, 10>(magnitude));
}
constexpr float to_float(e5m2 value) {
  return to_float(fp16{static_cast<std::uint16_t>(value.bits << 8)});
}
constexpr float to_float(e4m3 value) {
  const std::uint32_t magnitude = value.bits & 0x7fu;
  if (magnitude == 0x7fu) return std::bit_cast<float>(0x7fc00000u);
  return narrow::with_sign((value.bits & 0x80u) != 0, narrow::widen<4, 3>(magnitude));
}
constexpr float to_float(e2m1 value) {
  return narrow::with_sign((value.bits & 0x8u) != 0, narrow::widen<2, 1>(value.bits & 0x7u));
}
constexpr float to_float(e2m3 value) {
  return narrow::with_sign((value.bits & 0x20u) != 0, narrow::widen<2, 3>(value.bits & 0x1fu));
}
constexpr float to_float(e3m2 value) {
  return narrow::with_sign((value.bits & 0x20u) != 0, narrow::widen<3, 2>(value.bits & 0x1fu));
}
constexpr float to_float(ue8m0 value) {
  if (value.bits == 0xffu) return std::bit_cast<float>(0x7fc00000u);
  // 2^-127 is a subnormal binary32.
  return value.bits == 0 ? std::bit_cast<float>(0x400000u)
                         : std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 23);
}
constexpr float to_float(ue4m3 value) {
  return to_float(e4m3{static_cast<std::uint8_t>(value.bits & 0x7fu)});
}
/// What the tensor cores see.
constexpr float to_float(tf32 value) {
  return std::bit_cast<float>(value.bits & 0xffffe000u);
}
constexpr float to_float(int8 value) {
  return static_cast<float>(value);
}
constexpr float to_float(float value) {
  return value;
}
/// An integer of 4 bits in two's complement, in the lower bits.
constexpr float int4_to_float(std::uint32_t bits) {
  return static_cast<float>(static_cast<int>((bits & 0xfu) ^ 8u) - 8);
}

// From binary32, rounded to nearest, ties to even. What is too large, infinity included, becomes the largest
// number of its sign: `.satfinite`. A NaN stays one, all ones below the sign, which is the largest number of
// a type without NaN; as int8 it is 0, as `cvt.rni.sat` has it.

constexpr fp16 to_fp16(float value) {
  return {static_cast<std::uint16_t>(narrow::saturate<5, 10>(value, 0x7bff, 0x7fff))};
}
constexpr e4m3 to_e4m3(float value) {
  return {static_cast<std::uint8_t>(narrow::saturate<4, 3>(value, 0x7e, 0x7f))};
}
constexpr e5m2 to_e5m2(float value) {
  return {static_cast<std::uint8_t>(narrow::saturate<5, 2>(value, 0x7b, 0x7f))};
}
constexpr e2m1 to_e2m1(float value) {
  return {static_cast<std::uint8_t>(narrow::saturate<2, 1>(value, 0x7, 0x7))};
}
constexpr e2m3 to_e2m3(float value) {
  return {static_cast<std::uint8_t>(narrow::saturate<2, 3>(value, 0x1f, 0x1f))};
}
constexpr e3m2 to_e3m2(float value) {
  return {static_cast<std::uint8_t>(narrow::saturate<3, 2>(value, 0x1f, 0x1f))};
}
constexpr int8 to_int8(float value) {
  if (value != value) return 0;
  const float clamped = std::clamp(value, -128.0f, 127.0f);
  const auto below = static_cast<int>(clamped + 128.0f) - 128;  // the floor: the sum is not negative
  const float above = clamped - static_cast<float>(below);
  const bool up = above > 0.5f || (above == 0.5f && below % 2 != 0);
  return static_cast<int8>(below + (up ? 1 : 0));
}
/// In the lower 4 bits.
constexpr std::uint32_t to_int4(float value) {
  return static_cast<std::uint32_t>(to_int8(std::clamp(value, -8.0f, 7.0f))) & 0xfu;
}

}  // namespace gemm
