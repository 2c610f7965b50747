// Rounding in each direction, to C++'s own types and to narrower ones.
//
// PTX ISA, "Floating Point Comparisons: rounding modifiers"; "Data Movement and Conversion Instructions:
// cvt".
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace emulator {

enum class Rounding { kNearest, kZero, kDown, kUp };

/// The value by way of memory: the compiler computes it before what follows, and not in advance.
template <typename T>
T hidden(T value) {
  volatile T copy = value;
  return copy;
}
/// f of the operands, rounded so by the CPU.
template <typename F, typename... T>
auto with_rounding(Rounding rounding, F f, T... operands) {
  if (rounding == Rounding::kNearest) return f(operands...);
  constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(kModes[static_cast<int>(rounding)]);
  const auto result = hidden(f(hidden(operands)...));
  std::fesetround(FE_TONEAREST);
  return result;
}

/// A result that is `lost` away from the exact one, with an odd last bit when `lost` is not 0. Rounding it
/// once more, to a type of at most 50 bits and in any direction, is then one rounding of the exact result.
inline double to_odd(double result, double lost) {
  if (lost == 0 || !std::isfinite(result) || (std::bit_cast<std::uint64_t>(result) & 1u) != 0) return result;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return std::nextafter(result, lost > 0 ? kInfinity : -kInfinity);
}
/// a * b + c of operands whose product is exact in binary64.
inline double fma_to_odd(double a, double b, double c) {
  const double product = a * b;
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - product;
  return to_odd(sum, (product - (sum - part)) + (c - part));
}
/// An integer as a binary64; of 64 bits, the lower 11 become an odd last bit.
template <typename T>
double integer_to_odd(T value) {
  if constexpr (sizeof(T) == 8) {
    constexpr T kExact = T{1} << 40;
    const bool is_small = value < kExact && (std::is_unsigned_v<T> || value > static_cast<T>(-kExact));
    if (!is_small && (value & 2047) != 0) value = static_cast<T>((value & ~T{2047}) | T{2048});
  }
  return static_cast<double>(value);
}

/// The integer beside x.
inline double to_integer(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    case Rounding::kUp:
      return std::ceil(x);
    default:
      return std::nearbyint(x);
  }
}
/// As cvt does it: what lies outside the type becomes its largest or smallest number. A NaN becomes 0, and
/// the highest bit alone where the source is a double or the result has 64 bits.
template <typename T, typename Source>
T integer_of(Source source, Rounding rounding) {
  using Limits = std::numeric_limits<T>;
  const auto value = static_cast<double>(source);
  if (std::isnan(value))
    return std::is_same_v<Source, double> || sizeof(T) == 8 ? static_cast<T>(T{1} << (8 * sizeof(T) - 1))
                                                            : T{0};
  const double x = to_integer(value, rounding);
  if (x <= static_cast<double>(Limits::min())) return Limits::min();
  if (x >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(x);
}

/// x as a number with so many bits of fraction, of which the smallest normal one is 2 to the power kLeast: a
/// binary64 that may be larger than the type's largest number.
template <int kFraction, int kLeast>
double rounded_to(double x, Rounding rounding) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), kLeast) - kFraction;
  return std::copysign(std::ldexp(to_integer(std::ldexp(x, -exponent), rounding), exponent), x);
}
/// An overflow is an infinity, or the largest number where the rounding is away from the infinity.
inline double bounded(double x, double largest, Rounding rounding) {
  if (std::isinf(x) || !(std::fabs(x) > largest)) return x;
  const bool stays = rounding == Rounding::kZero || rounding == (x > 0 ? Rounding::kDown : Rounding::kUp);
  return std::copysign(stays ? largest : std::numeric_limits<double>::infinity(), x);
}

}  // namespace emulator
