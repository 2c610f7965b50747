// Floating-point numbers of 16 bits, bf16 and half, as CUDA's headers have them, and pairs of them. What
// CUDA's functions do with them is in emulator/cuda/narrow_functions.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "emulator/instrument/rounding.h"
#include "gemm/problem/bf16.h"

namespace emulator {

struct Bfloat16Format {
  static float widen(std::uint16_t bits) { return gemm::to_float(gemm::bf16{bits}); }
  static std::uint16_t narrow(float value) { return gemm::to_bf16(value).bits; }
  static double rounded(double x, Rounding rounding) {
    return bounded(rounded_to<7, -126>(x, rounding), 0x1.fep127, rounding);
  }
};

/// IEEE binary16: 5 bits of exponent, 10 of fraction.
struct HalfFormat {
  static float widen(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t exponent = bits >> 10 & 31u;
    const std::uint32_t fraction = bits & 0x3ffu;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
      const float value = std::ldexp(static_cast<float>(fraction), -24);
      return sign ? -value : value;
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  }
  static std::uint16_t narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00;  // rounds to more than 65504
    if (magnitude < 0x38800000u) {                       // subnormal: a multiple of 2^-24
      const float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
      return sign | static_cast<std::uint16_t>(std::nearbyint(scaled));
    }
    const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
  }
  static double rounded(double x, Rounding rounding) {
    return bounded(rounded_to<10, -14>(x, rounding), 65504, rounding);
  }
};

/// What CUDA's headers call __half_raw and __half2_raw, __nv_bfloat16_raw and __nv_bfloat162_raw.
template <typename Format>
struct alignas(2) RawNarrowFloat {
  std::uint16_t x;
};
template <typename Format>
struct alignas(4) RawNarrowPair {
  std::uint16_t x, y;
};

// NOLINTBEGIN(google-explicit-constructor): conversions as CUDA has them
template <typename Format>
struct alignas(2) NarrowFloat {
  using Raw = RawNarrowFloat<Format>;
  std::uint16_t bits;

  NarrowFloat() = default;
  template <typename T>
  requires std::is_arithmetic_v<T> NarrowFloat(T value) {
    if constexpr (std::is_same_v<T, float>) {
      bits = Format::narrow(value);
    } else if constexpr (std::is_integral_v<T>) {
      *this = rounded(integer_to_odd(value), Rounding::kNearest);
    } else {
      *this = rounded(static_cast<double>(value), Rounding::kNearest);
    }
  }
  constexpr NarrowFloat(Raw raw) : bits(raw.x) {}
  template <typename Other>
  requires(!std::is_same_v<Other, Format>) explicit NarrowFloat(NarrowFloat<Other> other)
      : NarrowFloat(static_cast<float>(other)) {}
  static constexpr NarrowFloat of_bits(std::uint16_t bits) { return Raw{bits}; }
  static NarrowFloat rounded(double value, Rounding rounding) {
    return of_bits(Format::narrow(static_cast<float>(Format::rounded(value, rounding))));
  }

  operator float() const { return Format::widen(bits); }
  operator Raw() const { return {bits}; }
  template <typename T>
  requires std::is_integral_v<T>
  operator T() const {
    if constexpr (std::is_same_v<T, bool>) {
      return (bits & 0x7fffu) != 0;
    } else {
      return integer_of<T>(float(*this), Rounding::kZero);
    }
  }

  NarrowFloat& operator+=(NarrowFloat other) { return *this = *this + other; }
  NarrowFloat& operator-=(NarrowFloat other) { return *this = *this - other; }
  NarrowFloat& operator*=(NarrowFloat other) { return *this = *this * other; }
  NarrowFloat& operator/=(NarrowFloat other) { return *this = *this / other; }
  NarrowFloat& operator++() { return *this += NarrowFloat(1.0f); }
  NarrowFloat& operator--() { return *this -= NarrowFloat(1.0f); }
  NarrowFloat operator++(int) {
    const NarrowFloat before = *this;
    ++*this;
    return before;
  }
  NarrowFloat operator--(int) {
    const NarrowFloat before = *this;
    --*this;
    return before;
  }
  NarrowFloat operator+() const { return *this; }
  NarrowFloat operator-() const { return of_bits(bits ^ 0x8000u); }
  // Sums and products of binary32, rounded once more, are those rounded once; quotients need a binary64.
  friend NarrowFloat operator+(NarrowFloat a, NarrowFloat b) { return float(a) + float(b); }
  friend NarrowFloat operator-(NarrowFloat a, NarrowFloat b) { return float(a) - float(b); }
  friend NarrowFloat operator*(NarrowFloat a, NarrowFloat b) { return float(a) * float(b); }
  friend NarrowFloat operator/(NarrowFloat a, NarrowFloat b) { return double(float(a)) / double(float(b)); }
  friend bool operator<(NarrowFloat a, NarrowFloat b) { return float(a) < float(b); }
  friend bool operator>(NarrowFloat a, NarrowFloat b) { return float(a) > float(b); }
  friend bool operator<=(NarrowFloat a, NarrowFloat b) { return float(a) <= float(b); }
  friend bool operator>=(NarrowFloat a, NarrowFloat b) { return float(a) >= float(b); }
  friend bool operator==(NarrowFloat a, NarrowFloat b) { return float(a) == float(b); }
  friend bool operator!=(NarrowFloat a, NarrowFloat b) { return float(a) != float(b); }
};

template <typename T>
struct NarrowPair;
template <typename Format>
struct alignas(4) NarrowPair<NarrowFloat<Format>> {
  using Element = NarrowFloat<Format>;
  using Raw = RawNarrowPair<Format>;
  Element x, y;

  NarrowPair() = default;
  constexpr NarrowPair(Element low, Element high) : x(low), y(high) {}
  constexpr NarrowPair(Raw raw) : x(Element::of_bits(raw.x)), y(Element::of_bits(raw.y)) {}
  operator Raw() const { return {x.bits, y.bits}; }

  NarrowPair& operator+=(NarrowPair other) { return *this = *this + other; }
  NarrowPair& operator-=(NarrowPair other) { return *this = *this - other; }
  NarrowPair& operator*=(NarrowPair other) { return *this = *this * other; }
  NarrowPair& operator/=(NarrowPair other) { return *this = *this / other; }
  NarrowPair& operator++() { return *this = {++x, ++y}; }
  NarrowPair& operator--() { return *this = {--x, --y}; }
  NarrowPair operator++(int) { return {x++, y++}; }
  NarrowPair operator--(int) { return {x--, y--}; }
  NarrowPair operator+() const { return *this; }
  NarrowPair operator-() const { return {-x, -y}; }
  friend NarrowPair operator+(NarrowPair a, NarrowPair b) { return {a.x + b.x, a.y + b.y}; }
  friend NarrowPair operator-(NarrowPair a, NarrowPair b) { return {a.x - b.x, a.y - b.y}; }
  friend NarrowPair operator*(NarrowPair a, NarrowPair b) { return {a.x * b.x, a.y * b.y}; }
  friend NarrowPair operator/(NarrowPair a, NarrowPair b) { return {a.x / b.x, a.y / b.y}; }
  // Both elements; != is true when both differ, or are unordered.
  friend bool operator<(NarrowPair a, NarrowPair b) { return a.x < b.x && a.y < b.y; }
  friend bool operator>(NarrowPair a, NarrowPair b) { return a.x > b.x && a.y > b.y; }
  friend bool operator<=(NarrowPair a, NarrowPair b) { return a.x <= b.x && a.y <= b.y; }
  friend bool operator>=(NarrowPair a, NarrowPair b) { return a.x >= b.x && a.y >= b.y; }
  friend bool operator==(NarrowPair a, NarrowPair b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(NarrowPair a, NarrowPair b) { return a.x != b.x && a.y != b.y; }
};
// NOLINTEND(google-explicit-constructor)

template <typename T>
inline constexpr bool kIsNarrowFloat = false;
template <typename Format>
inline constexpr bool kIsNarrowFloat<NarrowFloat<Format>> = true;
template <typename T>
inline constexpr bool kIsNarrowPair = false;
template <typename T>
inline constexpr bool kIsNarrowPair<NarrowPair<T>> = true;
template <typename T>
concept AnyNarrowFloat = kIsNarrowFloat<T>;
template <typename T>
concept AnyNarrowPair = kIsNarrowPair<T>;

}  // namespace emulator
