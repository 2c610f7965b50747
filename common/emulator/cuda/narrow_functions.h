// What half and bf16 have in common: arithmetic, comparisons and mathematics of numbers and of pairs.
// Arithmetic is rounded once to nearest even; approximations are rounded results.
//
// CUDA Math API, "Half Precision Intrinsics", "Bfloat16 Precision Intrinsics".
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda_runtime.h"
#include "emulator/instrument/narrow_float.h"

namespace emulator {

/// A parameter of the type that the first one has: other arguments are converted to it.
template <typename T>
using Same = std::type_identity_t<T>;

inline constexpr std::uint16_t kNarrowNan = 0x7fff;

/// Into [0, 1]; a NaN becomes 0.
template <AnyNarrowFloat T>
T saturated(T x) {
  return x > T(0.0f) ? (x < T(1.0f) ? x : T(1.0f)) : T(0.0f);
}
template <AnyNarrowFloat T>
T without_negatives(T x) {
  return x < T(0.0f) ? T(0.0f) : x;
}
template <AnyNarrowPair P, typename F, typename... Pairs>
P each(F f, P a, Pairs... rest) {
  return {f(a.x, rest.x...), f(a.y, rest.y...)};
}
/// -0 is below +0.
template <AnyNarrowFloat T>
bool is_below(T a, T b) {
  return a < b || (a == b && (a.bits & ~b.bits & 0x8000u) != 0);
}
/// 1 or 0, or the mask, of each element of two pairs.
template <AnyNarrowPair P, typename F>
P each_as_number(F compare, P a, P b) {
  using T = typename P::Element;
  return {T(compare(a.x, b.x) ? 1.0f : 0.0f), T(compare(a.y, b.y) ? 1.0f : 0.0f)};
}
template <AnyNarrowPair P, typename F>
unsigned each_as_mask(F compare, P a, P b) {
  return (compare(a.x, b.x) ? 0xffffu : 0u) | (compare(a.y, b.y) ? 0xffff0000u : 0u);
}

}  // namespace emulator

// ---- Arithmetic.

#define EMULATOR_BINARY(name, formula)  \
  template <emulator::AnyNarrowFloat T> \
  T name(T a, emulator::Same<T> b) {    \
    return formula;                     \
  }
#define EMULATOR_BINARY_OF_PAIRS(name, element)    \
  template <emulator::AnyNarrowPair P>             \
  P name(P a, emulator::Same<P> b) {               \
    return {element(a.x, b.x), element(a.y, b.y)}; \
  }
EMULATOR_BINARY(__hadd, a + b)
EMULATOR_BINARY(__hadd_rn, a + b)
EMULATOR_BINARY(__hadd_sat, emulator::saturated(a + b))
EMULATOR_BINARY(__hsub, a - b)
EMULATOR_BINARY(__hsub_rn, a - b)
EMULATOR_BINARY(__hsub_sat, emulator::saturated(a - b))
EMULATOR_BINARY(__hmul, a* b)
EMULATOR_BINARY(__hmul_rn, a* b)
EMULATOR_BINARY(__hmul_sat, emulator::saturated(a* b))
EMULATOR_BINARY(__hdiv, a / b)
EMULATOR_BINARY_OF_PAIRS(__hadd2, __hadd)
EMULATOR_BINARY_OF_PAIRS(__hadd2_rn, __hadd)
EMULATOR_BINARY_OF_PAIRS(__hadd2_sat, __hadd_sat)
EMULATOR_BINARY_OF_PAIRS(__hsub2, __hsub)
EMULATOR_BINARY_OF_PAIRS(__hsub2_rn, __hsub)
EMULATOR_BINARY_OF_PAIRS(__hsub2_sat, __hsub_sat)
EMULATOR_BINARY_OF_PAIRS(__hmul2, __hmul)
EMULATOR_BINARY_OF_PAIRS(__hmul2_rn, __hmul)
EMULATOR_BINARY_OF_PAIRS(__hmul2_sat, __hmul_sat)
EMULATOR_BINARY_OF_PAIRS(__h2div, __hdiv)

template <emulator::AnyNarrowFloat T>
T __hfma(T a, emulator::Same<T> b, emulator::Same<T> c) {
  return T::rounded(emulator::fma_to_odd(float(a), float(b), float(c)), emulator::Rounding::kNearest);
}
template <emulator::AnyNarrowFloat T>
T __hfma_sat(T a, emulator::Same<T> b, emulator::Same<T> c) {
  return emulator::saturated(__hfma(a, b, c));
}
template <emulator::AnyNarrowFloat T>
T __hfma_relu(T a, emulator::Same<T> b, emulator::Same<T> c) {
  return emulator::without_negatives(__hfma(a, b, c));
}
template <emulator::AnyNarrowPair P>
P __hfma2(P a, emulator::Same<P> b, emulator::Same<P> c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
template <emulator::AnyNarrowPair P>
P __hfma2_sat(P a, emulator::Same<P> b, emulator::Same<P> c) {
  return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)};
}
template <emulator::AnyNarrowPair P>
P __hfma2_relu(P a, emulator::Same<P> b, emulator::Same<P> c) {
  return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};
}
/// a * b + c of complex numbers: the real part is x.
template <emulator::AnyNarrowPair P>
P __hcmadd(P a, emulator::Same<P> b, emulator::Same<P> c) {
  const typename P::Element real = __hfma(a.x, b.x, c.x);
  const typename P::Element imaginary = __hfma(a.x, b.y, c.y);
  return {__hfma(-a.y, b.y, real), __hfma(a.y, b.x, imaginary)};
}
template <emulator::AnyNarrowFloat T>
T __hneg(T a) {
  return -a;
}
template <emulator::AnyNarrowPair P>
P __hneg2(P a) {
  return -a;
}
template <emulator::AnyNarrowFloat T>
T __habs(T a) {
  return T::of_bits(a.bits & 0x7fffu);
}
template <emulator::AnyNarrowPair P>
P __habs2(P a) {
  return {__habs(a.x), __habs(a.y)};
}

// ---- The smaller and the larger number: that of a number and a NaN is the number, and for _nan the NaN.

template <emulator::AnyNarrowFloat T>
T __hmin_nan(T a, emulator::Same<T> b) {
  if (a != a || b != b) return T::of_bits(emulator::kNarrowNan);
  return emulator::is_below(b, a) ? b : a;
}
template <emulator::AnyNarrowFloat T>
T __hmax_nan(T a, emulator::Same<T> b) {
  if (a != a || b != b) return T::of_bits(emulator::kNarrowNan);
  return emulator::is_below(a, b) ? b : a;
}
EMULATOR_BINARY(__hmin, a != a && b == b ? b : (b != b && a == a ? a : __hmin_nan(a, b)))
EMULATOR_BINARY(__hmax, a != a && b == b ? b : (b != b && a == a ? a : __hmax_nan(a, b)))
EMULATOR_BINARY_OF_PAIRS(__hmin2, __hmin)
EMULATOR_BINARY_OF_PAIRS(__hmax2, __hmax)
EMULATOR_BINARY_OF_PAIRS(__hmin2_nan, __hmin_nan)
EMULATOR_BINARY_OF_PAIRS(__hmax2_nan, __hmax_nan)
#undef EMULATOR_BINARY
#undef EMULATOR_BINARY_OF_PAIRS

// ---- Comparisons of numbers; of pairs as 1 or 0, as masks, and whether both elements fulfil it. Those with
// a u are true when an operand is a NaN, the others false.

#define EMULATOR_COMPARISON(relation, formula)                                 \
  template <emulator::AnyNarrowFloat T>                                        \
  bool __h##relation(T first, emulator::Same<T> second) {                      \
    const float a = first;                                                     \
    const float b = second;                                                    \
    return formula;                                                            \
  }                                                                            \
  template <emulator::AnyNarrowPair P>                                         \
  P __h##relation##2(P a, emulator::Same<P> b) {                               \
    return emulator::each_as_number(__h##relation<typename P::Element>, a, b); \
  }                                                                            \
  template <emulator::AnyNarrowPair P>                                         \
  unsigned __h##relation##2_mask(P a, emulator::Same<P> b) {                   \
    return emulator::each_as_mask(__h##relation<typename P::Element>, a, b);   \
  }                                                                            \
  template <emulator::AnyNarrowPair P>                                         \
  bool __hb##relation##2(P a, emulator::Same<P> b) {                           \
    return __h##relation(a.x, b.x) && __h##relation(a.y, b.y);                 \
  }
EMULATOR_COMPARISON(eq, a == b)
EMULATOR_COMPARISON(ne, a<b || a> b)
EMULATOR_COMPARISON(lt, a < b)
EMULATOR_COMPARISON(le, a <= b)
EMULATOR_COMPARISON(gt, a > b)
EMULATOR_COMPARISON(ge, a >= b)
EMULATOR_COMPARISON(equ, !(a < b || a > b))
EMULATOR_COMPARISON(neu, a != b)
EMULATOR_COMPARISON(ltu, !(a >= b))
EMULATOR_COMPARISON(leu, !(a > b))
EMULATOR_COMPARISON(gtu, !(a <= b))
EMULATOR_COMPARISON(geu, !(a < b))
#undef EMULATOR_COMPARISON

template <emulator::AnyNarrowFloat T>
bool __hisnan(T a) {
  return a != a;
}
template <emulator::AnyNarrowPair P>
P __hisnan2(P a) {
  return __hneu2(a, a);
}
/// 1 or -1 for the infinities.
template <emulator::AnyNarrowFloat T>
int __hisinf(T a) {
  return std::isinf(float(a)) ? (a.bits & 0x8000u ? -1 : 1) : 0;
}

// ---- Mathematics: name(x) of a number, pair(x) of both elements, computed in binary64.

#define EMULATOR_FUNCTION(name, pair, formula) \
  template <emulator::AnyNarrowFloat T>        \
  T name(T narrow) {                           \
    const double x = float(narrow);            \
    return T(formula);                         \
  }                                            \
  template <emulator::AnyNarrowPair P>         \
  P pair(P a) {                                \
    return {name(a.x), name(a.y)};             \
  }
EMULATOR_FUNCTION(hexp, h2exp, std::exp(x))
EMULATOR_FUNCTION(hexp2, h2exp2, std::exp2(x))
EMULATOR_FUNCTION(hexp10, h2exp10, std::pow(10.0, x))
EMULATOR_FUNCTION(hlog, h2log, std::log(x))
EMULATOR_FUNCTION(hlog2, h2log2, std::log2(x))
EMULATOR_FUNCTION(hlog10, h2log10, std::log10(x))
EMULATOR_FUNCTION(hsin, h2sin, std::sin(x))
EMULATOR_FUNCTION(hcos, h2cos, std::cos(x))
EMULATOR_FUNCTION(hsqrt, h2sqrt, std::sqrt(x))
EMULATOR_FUNCTION(hrsqrt, h2rsqrt, 1 / std::sqrt(x))
EMULATOR_FUNCTION(hrcp, h2rcp, 1 / x)
EMULATOR_FUNCTION(htanh, h2tanh, std::tanh(x))
EMULATOR_FUNCTION(htanh_approx, h2tanh_approx, std::tanh(x))
EMULATOR_FUNCTION(hceil, h2ceil, std::ceil(x))
EMULATOR_FUNCTION(hfloor, h2floor, std::floor(x))
EMULATOR_FUNCTION(htrunc, h2trunc, std::trunc(x))
EMULATOR_FUNCTION(hrint, h2rint, std::nearbyint(x))
#undef EMULATOR_FUNCTION

// ---- Elements of pairs.

template <emulator::AnyNarrowPair P>
P __lowhigh2highlow(P a) {
  return {a.y, a.x};
}
template <emulator::AnyNarrowPair P>
float __low2float(P a) {
  return a.x;
}
template <emulator::AnyNarrowPair P>
float __high2float(P a) {
  return a.y;
}

// ---- Shuffles.

#define EMULATOR_SHUFFLE(name, Lane)                                                                        \
  template <typename T>                                                                                     \
  requires(emulator::kIsNarrowFloat<T> || emulator::kIsNarrowPair<T>) T name(                               \
      unsigned mask, T value, Lane lane, int width = 32, emulator::Where where = emulator::Where::here()) { \
    unsigned bits = 0;                                                                                      \
    std::memcpy(&bits, &value, sizeof value);                                                               \
    bits = name(mask, bits, lane, width, where);                                                            \
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);                                           \
    return value;                                                                                           \
  }
EMULATOR_SHUFFLE(__shfl_sync, int)
EMULATOR_SHUFFLE(__shfl_up_sync, unsigned)
EMULATOR_SHUFFLE(__shfl_down_sync, unsigned)
EMULATOR_SHUFFLE(__shfl_xor_sync, int)
#undef EMULATOR_SHUFFLE

// ---- Conversions: EMULATOR_CONVERSIONS writes those of one type in all roundings.

#define EMULATOR_OF_INTEGER(type, name, word, integer, suffix, rounding)                 \
  inline type __##word##2##name##suffix(integer value) {                                 \
    return type::rounded(emulator::integer_to_odd(value), emulator::Rounding::rounding); \
  }
#define EMULATOR_TO_INTEGER(type, name, word, integer, suffix, rounding)              \
  inline integer __##name##2##word##suffix(type value) {                              \
    return emulator::integer_of<integer>(float(value), emulator::Rounding::rounding); \
  }
#define EMULATOR_INTEGER(type, name, word, integer)             \
  EMULATOR_OF_INTEGER(type, name, word, integer, _rn, kNearest) \
  EMULATOR_OF_INTEGER(type, name, word, integer, _rz, kZero)    \
  EMULATOR_OF_INTEGER(type, name, word, integer, _rd, kDown)    \
  EMULATOR_OF_INTEGER(type, name, word, integer, _ru, kUp)      \
  EMULATOR_TO_INTEGER(type, name, word, integer, _rn, kNearest) \
  EMULATOR_TO_INTEGER(type, name, word, integer, _rz, kZero)    \
  EMULATOR_TO_INTEGER(type, name, word, integer, _rd, kDown)    \
  EMULATOR_TO_INTEGER(type, name, word, integer, _ru, kUp)
#define EMULATOR_OF_FLOAT(type, name, suffix, rounding)        \
  inline type __float2##name##suffix(float value) {            \
    return type::rounded(value, emulator::Rounding::rounding); \
  }
#define EMULATOR_CONVERSIONS(type, name)                            \
  EMULATOR_INTEGER(type, name, short, short)                        \
  EMULATOR_INTEGER(type, name, ushort, unsigned short)              \
  EMULATOR_INTEGER(type, name, int, int)                            \
  EMULATOR_INTEGER(type, name, uint, unsigned)                      \
  EMULATOR_INTEGER(type, name, ll, long long)                       \
  EMULATOR_INTEGER(type, name, ull, unsigned long long)             \
  EMULATOR_TO_INTEGER(type, name, char, signed char, _rz, kZero)    \
  EMULATOR_TO_INTEGER(type, name, uchar, unsigned char, _rz, kZero) \
  EMULATOR_OF_FLOAT(type, name, _rz, kZero)                         \
  EMULATOR_OF_FLOAT(type, name, _rd, kDown)                         \
  EMULATOR_OF_FLOAT(type, name, _ru, kUp)                           \
  inline type __float2##name##_rn(float value) {                    \
    return value;                                                   \
  }                                                                 \
  inline type __float2##name(float value) {                         \
    return value;                                                   \
  }                                                                 \
  inline type __double2##name(double value) {                       \
    return value;                                                   \
  }                                                                 \
  inline float __##name##2float(type value) {                       \
    return value;                                                   \
  }
