// Floating-point functions of CUDA's headers on the emulator: casts, conversions and arithmetic in each
// rounding, the approximations, and what math.h lacks. The emulator computes what the approximations
// approximate, and rounds it.
//
// CUDA Math API, "Single Precision Intrinsics", "Double Precision Intrinsics", "Type Casting Intrinsics",
// "Single Precision Mathematical Functions", "Double Precision Mathematical Functions".
#pragma once

#include <math.h>  // isnan and its kin without std::, as nvcc has them

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <type_traits>

#include "emulator/instrument/rounding.h"
#include "ptx/core.cuh"
#include "vector_functions.h"

// ---- Casts of bits.

constexpr long long __double_as_longlong(double value) {
  return std::bit_cast<long long>(value);
}
constexpr double __longlong_as_double(long long bits) {
  return std::bit_cast<double>(bits);
}
constexpr int __double2hiint(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 32);
}
constexpr int __double2loint(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value));
}
constexpr double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 |
                               static_cast<unsigned>(low));
}

// ---- Conversions in each rounding.

namespace emulator {

/// A number of another type, of which the narrower ones are rounded; 0 stays +0 in each rounding.
template <typename To, typename From>
To converted(From value, Rounding rounding) {
  if (value == From(0)) return static_cast<To>(value);
  return with_rounding(
      rounding, [](From x) { return static_cast<To>(x); }, value);
}

}  // namespace emulator

// X(suffix, rounding) for each.
#define EMULATOR_ROUNDINGS(X, ...) \
  X(__VA_ARGS__, _rn, kNearest)    \
  X(__VA_ARGS__, _rz, kZero)       \
  X(__VA_ARGS__, _rd, kDown)       \
  X(__VA_ARGS__, _ru, kUp)
#define EMULATOR_TO_INTEGER(name, To, From, suffix, rounding)         \
  inline To name##suffix(From x) {                                    \
    return emulator::integer_of<To>(x, emulator::Rounding::rounding); \
  }
#define EMULATOR_TO_FLOAT(name, To, From, suffix, rounding)          \
  inline To name##suffix(From x) {                                   \
    return emulator::converted<To>(x, emulator::Rounding::rounding); \
  }
EMULATOR_ROUNDINGS(EMULATOR_TO_INTEGER, __float2int, int, float)
EMULATOR_ROUNDINGS(EMULATOR_TO_INTEGER, __float2uint, unsigned, float)
EMULATOR_ROUNDINGS(EMULATOR_TO_INTEGER, __float2ll, long long, float)
EMULATOR_ROUNDINGS(EMULATOR_TO_INTEGER, __float2ull, unsigned long long, float)
EMULATOR_ROUNDINGS(EMULATOR_TO_INTEGER, __double2int, int, double)
EMULATOR_ROUNDINGS(EMULATOR_TO_INTEGER, __double2uint, unsigned, double)
EMULATOR_ROUNDINGS(EMULATOR_TO_INTEGER, __double2ll, long long, double)
EMULATOR_ROUNDINGS(EMULATOR_TO_INTEGER, __double2ull, unsigned long long, double)
EMULATOR_ROUNDINGS(EMULATOR_TO_FLOAT, __int2float, float, int)
EMULATOR_ROUNDINGS(EMULATOR_TO_FLOAT, __uint2float, float, unsigned)
EMULATOR_ROUNDINGS(EMULATOR_TO_FLOAT, __ll2float, float, long long)
EMULATOR_ROUNDINGS(EMULATOR_TO_FLOAT, __ull2float, float, unsigned long long)
EMULATOR_ROUNDINGS(EMULATOR_TO_FLOAT, __ll2double, double, long long)
EMULATOR_ROUNDINGS(EMULATOR_TO_FLOAT, __ull2double, double, unsigned long long)
EMULATOR_ROUNDINGS(EMULATOR_TO_FLOAT, __double2float, float, double)
#undef EMULATOR_TO_INTEGER
#undef EMULATOR_TO_FLOAT
inline double __int2double_rn(int x) {
  return x;
}
inline double __uint2double_rn(unsigned x) {
  return x;
}

// ---- Arithmetic in each rounding.

#define EMULATOR_ARITHMETIC_1(name, T, formula, suffix, rounding)           \
  inline T name##suffix(T a) {                                              \
    return emulator::with_rounding(                                         \
        emulator::Rounding::rounding, [](T x) -> T { return formula; }, a); \
  }
#define EMULATOR_ARITHMETIC_2(name, T, formula, suffix, rounding)                   \
  inline T name##suffix(T a, T b) {                                                 \
    return emulator::with_rounding(                                                 \
        emulator::Rounding::rounding, [](T x, T y) -> T { return formula; }, a, b); \
  }
#define EMULATOR_ARITHMETIC_3(name, T, formula, suffix, rounding)                           \
  inline T name##suffix(T a, T b, T c) {                                                    \
    return emulator::with_rounding(                                                         \
        emulator::Rounding::rounding, [](T x, T y, T z) -> T { return formula; }, a, b, c); \
  }
// core.cuh has __fadd_rn, __fmul_rn and __fmaf_rn.
#define EMULATOR_DIRECTED(X, ...) \
  X(__VA_ARGS__, _rz, kZero)      \
  X(__VA_ARGS__, _rd, kDown)      \
  X(__VA_ARGS__, _ru, kUp)
EMULATOR_DIRECTED(EMULATOR_ARITHMETIC_2, __fadd, float, x + y)
EMULATOR_DIRECTED(EMULATOR_ARITHMETIC_2, __fmul, float, x* y)
EMULATOR_DIRECTED(EMULATOR_ARITHMETIC_3, __fmaf, float, std::fma(x, y, z))
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_2, __fsub, float, x - y)
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_2, __fdiv, float, x / y)
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_1, __frcp, float, 1.0f / x)
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_1, __fsqrt, float, std::sqrt(x))
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_3, __fmaf_ieee, float, std::fma(x, y, z))
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_2, __dadd, double, x + y)
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_2, __dsub, double, x - y)
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_2, __dmul, double, x* y)
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_2, __ddiv, double, x / y)
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_1, __drcp, double, 1.0 / x)
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_1, __dsqrt, double, std::sqrt(x))
EMULATOR_ROUNDINGS(EMULATOR_ARITHMETIC_3, __fma, double, std::fma(x, y, z))
#undef EMULATOR_DIRECTED
#undef EMULATOR_ARITHMETIC_1
#undef EMULATOR_ARITHMETIC_2
#undef EMULATOR_ARITHMETIC_3
/// Of a binary64, so that the second rounding is the only one that counts.
inline float __frsqrt_rn(float x) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
}

// Two floats at once, which GPUs have from sm_100 on.
#define EMULATOR_TWO_FLOATS(suffix, rounding)                              \
  inline float2 __fadd2##suffix(float2 a, float2 b) {                      \
    return {__fadd##suffix(a.x, b.x), __fadd##suffix(a.y, b.y)};           \
  }                                                                        \
  inline float2 __fmul2##suffix(float2 a, float2 b) {                      \
    return {__fmul##suffix(a.x, b.x), __fmul##suffix(a.y, b.y)};           \
  }                                                                        \
  inline float2 __ffma2##suffix(float2 a, float2 b, float2 c) {            \
    return {__fmaf##suffix(a.x, b.x, c.x), __fmaf##suffix(a.y, b.y, c.y)}; \
  }
EMULATOR_TWO_FLOATS(_rn, kNearest)
EMULATOR_TWO_FLOATS(_rz, kZero)
EMULATOR_TWO_FLOATS(_rd, kDown)
EMULATOR_TWO_FLOATS(_ru, kUp)
#undef EMULATOR_TWO_FLOATS
#undef EMULATOR_ROUNDINGS

/// Into [0, 1]; a NaN becomes 0.
inline float __saturatef(float x) {
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}

// ---- Approximations.

namespace emulator {

/// f of x, computed in binary64.
template <typename F>
float through_double(F f, float x) {
  return static_cast<float>(f(static_cast<double>(x)));
}

}  // namespace emulator

inline float __expf(float x) {
  return emulator::through_double([](double y) { return std::exp(y); }, x);
}
inline float __exp10f(float x) {
  return emulator::through_double([](double y) { return std::pow(10.0, y); }, x);
}
inline float __logf(float x) {
  return emulator::through_double([](double y) { return std::log(y); }, x);
}
inline float __log2f(float x) {
  return emulator::through_double([](double y) { return std::log2(y); }, x);
}
inline float __log10f(float x) {
  return emulator::through_double([](double y) { return std::log10(y); }, x);
}
/// exp2(y * log2(x)): for a negative x a NaN.
inline float __powf(float x, float y) {
  return static_cast<float>(std::exp2(static_cast<double>(y) * std::log2(static_cast<double>(x))));
}
inline float __sinf(float x) {
  return emulator::through_double([](double y) { return std::sin(y); }, x);
}
inline float __cosf(float x) {
  return emulator::through_double([](double y) { return std::cos(y); }, x);
}
inline float __tanf(float x) {
  return emulator::through_double([](double y) { return std::tan(y); }, x);
}
inline float __tanhf(float x) {
  return emulator::through_double([](double y) { return std::tanh(y); }, x);
}
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = __sinf(x);
  *cosine = __cosf(x);
}
/// Beyond 2^126, where the reciprocal is subnormal, the quotient of a number is 0 and that of an infinity a
/// NaN.
inline float __fdividef(float x, float y) {
  if (std::fabs(y) > 0x1p126f && std::isfinite(y))
    return std::isinf(x) ? std::numeric_limits<float>::quiet_NaN() : 0 * x;
  return x / y;
}

// ---- What math.h lacks. EMULATOR_MATH writes the functions of double and float, whose value is that of
// double rounded.

namespace emulator {

/// The sine or cosine of pi * x. x is reduced to at most a quarter without an error.
inline double sine_of_pi(double x, int quarter_turns) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  const double turn = std::remainder(x, 2.0);
  const double halves = std::nearbyint(2 * turn);
  const double angle = std::numbers::pi * (turn - halves / 2);
  switch ((static_cast<int>(halves) + quarter_turns) & 3) {
    case 0:
      return std::sin(angle);
    case 1:
      return std::cos(angle);
    case 2:
      return 0 - std::sin(angle);
    default:
      return 0 - std::cos(angle);
  }
}
inline double length(int dimensions, const double* p) {
  double result = 0;
  for (int i = 0; i < dimensions; ++i) result = std::hypot(result, p[i]);
  return result;
}

}  // namespace emulator

// nvcc has those of float by the name of the double's, too.
#define EMULATOR_MATH(name, formula)    \
  inline double name(double x) {        \
    return formula;                     \
  }                                     \
  inline float name##f(float value) {   \
    const double x = value;             \
    return static_cast<float>(formula); \
  }                                     \
  inline float name(float value) {      \
    return name##f(value);              \
  }
EMULATOR_MATH(rcbrt, 1 / std::cbrt(x))
EMULATOR_MATH(sinpi, x == 0 ? x : emulator::sine_of_pi(x, 0))
EMULATOR_MATH(cospi, emulator::sine_of_pi(x, 1))
EMULATOR_MATH(normcdf, 0.5 * std::erfc(-x / std::numbers::sqrt2))
EMULATOR_MATH(cyl_bessel_i0, std::cyl_bessel_i(0.0, std::fabs(x)))
EMULATOR_MATH(cyl_bessel_i1, std::copysign(std::cyl_bessel_i(1.0, std::fabs(x)), x))
#undef EMULATOR_MATH
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
inline float rsqrt(float x) {
  return rsqrtf(x);
}
inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
inline void sincospi(float x, float* sine, float* cosine) {
  sincospif(x, sine, cosine);
}
inline void sincos(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
inline float exp10(float x) {
  return exp10f(x);
}
inline double fdivide(double x, double y) {
  return x / y;
}
inline float fdividef(float x, float y) {
  return x / y;
}

// Lengths of vectors and their reciprocals.
inline double norm3d(double a, double b, double c) {
  return std::hypot(a, b, c);
}
inline double norm4d(double a, double b, double c, double d) {
  return std::hypot(std::hypot(a, b), std::hypot(c, d));
}
inline double norm(int dimensions, const double* p) {
  return emulator::length(dimensions, p);
}
inline double rhypot(double a, double b) {
  return 1 / std::hypot(a, b);
}
inline double rnorm3d(double a, double b, double c) {
  return 1 / norm3d(a, b, c);
}
inline double rnorm4d(double a, double b, double c, double d) {
  return 1 / norm4d(a, b, c, d);
}
inline double rnorm(int dimensions, const double* p) {
  return 1 / norm(dimensions, p);
}
inline float norm3df(float a, float b, float c) {
  return static_cast<float>(norm3d(a, b, c));
}
inline float norm4df(float a, float b, float c, float d) {
  return static_cast<float>(norm4d(a, b, c, d));
}
inline float normf(int dimensions, const float* p) {
  double result = 0;
  for (int i = 0; i < dimensions; ++i) result = std::hypot(result, static_cast<double>(p[i]));
  return static_cast<float>(result);
}
inline float rhypotf(float a, float b) {
  return static_cast<float>(rhypot(a, b));
}
inline float rnorm3df(float a, float b, float c) {
  return static_cast<float>(rnorm3d(a, b, c));
}
inline float rnorm4df(float a, float b, float c, float d) {
  return static_cast<float>(rnorm4d(a, b, c, d));
}
inline float rnormf(int dimensions, const float* p) {
  return 1 / normf(dimensions, p);
}

// nvcc has Bessel functions of float by the name of the double's.
#define EMULATOR_BESSEL(order)     \
  inline float j##order(float x) { \
    return j##order##f(x);         \
  }                                \
  inline float y##order(float x) { \
    return y##order##f(x);         \
  }
EMULATOR_BESSEL(0)
EMULATOR_BESSEL(1)
#undef EMULATOR_BESSEL
inline float jn(int order, float x) {
  return jnf(order, x);
}
inline float yn(int order, float x) {
  return ynf(order, x);
}

// ---- The smaller and the larger number, of two types as well. -0 is below +0, and of a number and a NaN it
// is the number.

namespace emulator {

template <typename T>
T smaller(T a, T b) {
  return a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b);
}
template <typename T>
T larger(T a, T b) {
  return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
}
/// Signed and unsigned integers of one size.
template <typename A, typename B>
concept OneUnsigned = std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, B> &&
                      std::is_same_v<std::make_unsigned_t<A>, std::make_unsigned_t<B>>;

}  // namespace emulator

inline float min(float a, float b) {
  return emulator::smaller(a, b);
}
inline float max(float a, float b) {
  return emulator::larger(a, b);
}
inline double min(double a, double b) {
  return emulator::smaller(a, b);
}
inline double max(double a, double b) {
  return emulator::larger(a, b);
}
inline double min(double a, float b) {
  return emulator::smaller(a, static_cast<double>(b));
}
inline double min(float a, double b) {
  return emulator::smaller(static_cast<double>(a), b);
}
inline double max(double a, float b) {
  return emulator::larger(a, static_cast<double>(b));
}
inline double max(float a, double b) {
  return emulator::larger(static_cast<double>(a), b);
}
// Beside a file's own template of two numbers of a type, these are chosen.
#define EMULATOR_MIN_MAX(type)         \
  constexpr type min(type a, type b) { \
    return b < a ? b : a;              \
  }                                    \
  constexpr type max(type a, type b) { \
    return a < b ? b : a;              \
  }
EMULATOR_MIN_MAX(int)
EMULATOR_MIN_MAX(unsigned)
EMULATOR_MIN_MAX(long)
EMULATOR_MIN_MAX(unsigned long)
EMULATOR_MIN_MAX(long long)
EMULATOR_MIN_MAX(unsigned long long)
#undef EMULATOR_MIN_MAX
template <typename A, typename B>
requires emulator::OneUnsigned<A, B>
constexpr std::make_unsigned_t<A> min(A a, B b) {
  return min(static_cast<std::make_unsigned_t<A>>(a), static_cast<std::make_unsigned_t<B>>(b));
}
template <typename A, typename B>
requires emulator::OneUnsigned<A, B>
constexpr std::make_unsigned_t<A> max(A a, B b) {
  return max(static_cast<std::make_unsigned_t<A>>(a), static_cast<std::make_unsigned_t<B>>(b));
}
template <typename = void>  // host code may define its own
constexpr unsigned umin(unsigned a, unsigned b) {
  return min(a, b);
}
template <typename = void>  // host code may define its own
constexpr unsigned umax(unsigned a, unsigned b) {
  return max(a, b);
}
constexpr long long llmin(long long a, long long b) {
  return min(a, b);
}
constexpr long long llmax(long long a, long long b) {
  return max(a, b);
}
constexpr unsigned long long ullmin(unsigned long long a, unsigned long long b) {
  return min(a, b);
}
constexpr unsigned long long ullmax(unsigned long long a, unsigned long long b) {
  return max(a, b);
}
