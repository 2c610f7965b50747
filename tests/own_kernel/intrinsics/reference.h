// Rounding by search: the neighbours of a number among all bit patterns of a format, and the one that the
// rounding takes. Slow, and nothing here is shared with the emulator.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace reference {

enum Mode { kNearest, kZero, kDown, kUp };

/// One sign bit, then the exponent, then so many bits of fraction.
struct Format {
  int bits, fraction, bias;
  unsigned infinity;  // its bits, or those behind the largest number's
};
inline constexpr Format kHalf{16, 10, 15, 0x7c00};
inline constexpr Format kBfloat16{16, 7, 127, 0x7f80};
inline constexpr Format kE4m3{8, 3, 7, 0x7f};
inline constexpr Format kE5m2{8, 2, 15, 0x7c};

/// The magnitude, as if there were no infinities: the one behind the largest number is the next number.
inline long double magnitude(const Format& format, unsigned bits) {
  const unsigned exponent = bits >> format.fraction;
  const unsigned fraction = bits & ((1u << format.fraction) - 1);
  if (exponent == 0) return std::ldexp(static_cast<long double>(fraction), 1 - format.bias - format.fraction);
  return std::ldexp(static_cast<long double>(fraction + (1u << format.fraction)),
                    static_cast<int>(exponent) - format.bias - format.fraction);
}
inline long double value(const Format& format, unsigned bits) {
  const unsigned sign = 1u << (format.bits - 1);
  const unsigned positive = bits & (sign - 1);
  long double result = positive > format.infinity    ? NAN
                       : positive == format.infinity ? INFINITY
                                                     : magnitude(format, positive);
  if (format.bits == 8 && format.infinity == 0x7f && positive == 0x7f) result = NAN;
  return (bits & sign) != 0 ? -result : result;
}
/// -1 for a NaN.
inline int rounded(const Format& format, long double x, Mode mode) {
  if (std::isnan(x)) return -1;
  const unsigned sign = std::signbit(x) ? 1u << (format.bits - 1) : 0;
  const long double wanted = std::fabs(x);
  if (std::isinf(x)) return static_cast<int>(sign | format.infinity);
  unsigned below = 0, above = format.infinity;
  while (above - below > 1) {
    const unsigned middle = (below + above) / 2;
    (magnitude(format, middle) <= wanted ? below : above) = middle;
  }
  if (magnitude(format, below) == wanted) return static_cast<int>(sign | below);
  bool up = false;
  if (mode == kNearest) {
    const long double down_by = wanted - magnitude(format, below);
    const long double up_by = magnitude(format, above) - wanted;
    up = down_by > up_by || (down_by == up_by && (below & 1u) != 0);
  } else {
    up = mode == (sign != 0 ? kDown : kUp);
  }
  return static_cast<int>(sign | (up ? above : below));
}
/// As PTX converts to integers.
template <typename T>
T integer(long double x, Mode mode, bool nan_is_highest_bit) {
  if (std::isnan(x)) return nan_is_highest_bit ? static_cast<T>(T{1} << (8 * sizeof(T) - 1)) : T{0};
  const long double whole = mode == kNearest ? std::rint(x)
                            : mode == kZero  ? std::trunc(x)
                            : mode == kDown  ? std::floor(x)
                                             : std::ceil(x);
  const T least = static_cast<T>(-1) < T{0} ? static_cast<T>(T{1} << (8 * sizeof(T) - 1)) : T{0};
  const T most = static_cast<T>(~least);
  if (whole <= static_cast<long double>(least)) return least;
  if (whole >= static_cast<long double>(most)) return most;
  return static_cast<T>(whole);
}

inline std::string text(const char* what, const std::string& operands, unsigned long long got,
                        unsigned long long expected) {
  char result[300];
  std::snprintf(result, sizeof result, "%s of %s is %#llx, expected %#llx", what, operands.c_str(), got,
                expected);
  return result;
}
inline std::string hex(unsigned long long value) {
  char result[32];
  std::snprintf(result, sizeof result, "%#llx", value);
  return result;
}

}  // namespace reference
