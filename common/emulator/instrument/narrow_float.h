// Floating-point numbers of 16 bits, bf16 and half, as CUDA's headers have them, and pairs of them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gemm/problem/bf16.h"

namespace emulator {

struct Bfloat16Format {
  static float widen(std::uint16_t bits) { return gemm::to_float(gemm::bf16{bits}); }
  static std::uint16_t narrow(float value) { return gemm::to_bf16(value).bits; }
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
};

template <typename Format>
struct alignas(2) NarrowFloat {
  std::uint16_t bits;

  NarrowFloat() = default;
  template <typename T>
  requires std::is_arithmetic_v<T> NarrowFloat(
      T value)  // NOLINT(google-explicit-constructor): as CUDA has it
      : bits(Format::narrow(static_cast<float>(value))) {}
  static NarrowFloat of_bits(std::uint16_t bits) {
    NarrowFloat result;
    result.bits = bits;
    return result;
  }
  operator float() const {
    return Format::widen(bits);
  }  // NOLINT(google-explicit-constructor): as CUDA has it
  NarrowFloat& operator+=(NarrowFloat other) { return *this = *this + other; }
  NarrowFloat& operator-=(NarrowFloat other) { return *this = *this - other; }
  NarrowFloat& operator*=(NarrowFloat other) { return *this = *this * other; }
  NarrowFloat operator-() const { return of_bits(bits ^ 0x8000u); }
  friend NarrowFloat operator+(NarrowFloat a, NarrowFloat b) { return float(a) + float(b); }
  friend NarrowFloat operator-(NarrowFloat a, NarrowFloat b) { return float(a) - float(b); }
  friend NarrowFloat operator*(NarrowFloat a, NarrowFloat b) { return float(a) * float(b); }
  friend NarrowFloat operator/(NarrowFloat a, NarrowFloat b) { return float(a) / float(b); }
  friend bool operator<(NarrowFloat a, NarrowFloat b) { return float(a) < float(b); }
  friend bool operator>(NarrowFloat a, NarrowFloat b) { return float(a) > float(b); }
  friend bool operator==(NarrowFloat a, NarrowFloat b) { return float(a) == float(b); }
};

template <typename T>
struct alignas(4) NarrowPair {
  T x, y;
  friend NarrowPair operator+(NarrowPair a, NarrowPair b) { return {a.x + b.x, a.y + b.y}; }
  friend NarrowPair operator-(NarrowPair a, NarrowPair b) { return {a.x - b.x, a.y - b.y}; }
  friend NarrowPair operator*(NarrowPair a, NarrowPair b) { return {a.x * b.x, a.y * b.y}; }
};

}  // namespace emulator

// CUDA Math API: for half, bf16 and their pairs.
template <typename F>
inline emulator::NarrowFloat<F> __hadd(emulator::NarrowFloat<F> a, emulator::NarrowFloat<F> b) {
  return a + b;
}
template <typename F>
inline emulator::NarrowFloat<F> __hsub(emulator::NarrowFloat<F> a, emulator::NarrowFloat<F> b) {
  return a - b;
}
template <typename F>
inline emulator::NarrowFloat<F> __hmul(emulator::NarrowFloat<F> a, emulator::NarrowFloat<F> b) {
  return a * b;
}
template <typename F>
inline emulator::NarrowFloat<F> __hfma(emulator::NarrowFloat<F> a, emulator::NarrowFloat<F> b,
                                       emulator::NarrowFloat<F> c) {
  return std::fmaf(float(a), float(b), float(c));
}
template <typename F>
inline emulator::NarrowFloat<F> __hmax(emulator::NarrowFloat<F> a, emulator::NarrowFloat<F> b) {
  return a < b ? b : a;
}
template <typename F>
inline emulator::NarrowFloat<F> __hmin(emulator::NarrowFloat<F> a, emulator::NarrowFloat<F> b) {
  return b < a ? b : a;
}
template <typename T>
inline emulator::NarrowPair<T> __hadd2(emulator::NarrowPair<T> a, emulator::NarrowPair<T> b) {
  return a + b;
}
template <typename T>
inline emulator::NarrowPair<T> __hmul2(emulator::NarrowPair<T> a, emulator::NarrowPair<T> b) {
  return a * b;
}
template <typename T>
inline emulator::NarrowPair<T> __hfma2(emulator::NarrowPair<T> a, emulator::NarrowPair<T> b,
                                       emulator::NarrowPair<T> c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
template <typename T>
inline emulator::NarrowPair<T> __hmax2(emulator::NarrowPair<T> a, emulator::NarrowPair<T> b) {
  return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
template <typename T>
inline emulator::NarrowPair<T> __hsub2(emulator::NarrowPair<T> a, emulator::NarrowPair<T> b) {
  return a - b;
}
template <typename T>
inline emulator::NarrowPair<T> __hmin2(emulator::NarrowPair<T> a, emulator::NarrowPair<T> b) {
  return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}
template <typename T>
inline emulator::NarrowPair<T> __h2div(emulator::NarrowPair<T> a, emulator::NarrowPair<T> b) {
  return {a.x / b.x, a.y / b.y};
}
template <typename F>
inline emulator::NarrowFloat<F> __hdiv(emulator::NarrowFloat<F> a, emulator::NarrowFloat<F> b) {
  return a / b;
}
template <typename T>
inline emulator::NarrowPair<T> __low2half2(emulator::NarrowPair<T> a) {
  return {a.x, a.x};
}
template <typename T>
inline emulator::NarrowPair<T> __high2half2(emulator::NarrowPair<T> a) {
  return {a.y, a.y};
}
template <typename T>
inline emulator::NarrowPair<T> __lowhigh2highlow(emulator::NarrowPair<T> a) {
  return {a.y, a.x};
}
#define EMULATOR_COMPARISON(name, sign)                                      \
  template <typename F>                                                      \
  inline bool name(emulator::NarrowFloat<F> a, emulator::NarrowFloat<F> b) { \
    return float(a) sign float(b);                                           \
  }
EMULATOR_COMPARISON(__hlt, <)
EMULATOR_COMPARISON(__hle, <=)
EMULATOR_COMPARISON(__hgt, >)
EMULATOR_COMPARISON(__hge, >=)
EMULATOR_COMPARISON(__heq, ==)
EMULATOR_COMPARISON(__hne, !=)
#undef EMULATOR_COMPARISON
/// name(x) for a number, pair(x) for both of a pair.
#define EMULATOR_FUNCTION(name, pair, formula)                            \
  template <typename F>                                                   \
  inline emulator::NarrowFloat<F> name(emulator::NarrowFloat<F> narrow) { \
    const float x = narrow;                                               \
    return formula;                                                       \
  }                                                                       \
  template <typename T>                                                   \
  inline emulator::NarrowPair<T> pair(emulator::NarrowPair<T> a) {        \
    return {name(a.x), name(a.y)};                                        \
  }
EMULATOR_FUNCTION(__hneg, __hneg2, -x)
EMULATOR_FUNCTION(__habs, __habs2, std::fabs(x))
EMULATOR_FUNCTION(hexp, h2exp, std::exp(x))
EMULATOR_FUNCTION(hexp2, h2exp2, std::exp2(x))
EMULATOR_FUNCTION(hlog, h2log, std::log(x))
EMULATOR_FUNCTION(hlog2, h2log2, std::log2(x))
EMULATOR_FUNCTION(hsqrt, h2sqrt, std::sqrt(x))
EMULATOR_FUNCTION(hrsqrt, h2rsqrt, 1.0f / std::sqrt(x))
EMULATOR_FUNCTION(hrcp, h2rcp, 1.0f / x)
EMULATOR_FUNCTION(htanh, h2tanh, std::tanh(x))
#undef EMULATOR_FUNCTION
template <typename F>
inline bool __hisnan(emulator::NarrowFloat<F> a) {
  return std::isnan(float(a));
}
