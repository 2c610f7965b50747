// Arithmetic of inline PTX. The approximate functions (ex2, lg2, rcp, rsqrt, sin, cos, tanh) are rounded
// results here and within the PTX ISA's documented error on a GPU; everything else is the same bit for bit.
//
// PTX ISA, "Integer Arithmetic Instructions", "Floating Point Instructions", "Comparison and Selection
// Instructions", "Logic and Shift Instructions", "Data Movement and Conversion Instructions: cvt, prmt".
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "emulator/instrument/rounding.h"
#include "gemm/problem/types.h"
#include "own_kernel/inline_ptx/values.h"

namespace inline_ptx {

inline constexpr unsigned kSat = 1;   // floats: into [0, 1]; integers: into the type
inline constexpr unsigned kFtz = 2;   // subnormal numbers are zeros
inline constexpr unsigned kRelu = 4;  // negative results are zeros
inline constexpr unsigned kNan = 8;   // min and max: a NaN wins

template <typename T>
T flushed(T x, unsigned flags) {
  return (flags & kFtz) != 0 && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T(0), x) : x;
}
template <typename T>
T finished(T x, unsigned flags) {
  if (flags == 0) return x;
  x = flushed(x, flags);
  if ((flags & kSat) != 0) x = x > T(0) ? std::min(x, T(1)) : T(0);  // a NaN is 0
  if ((flags & kRelu) != 0 && x < T(0)) x = T(0);
  return x;
}

/// f of the operands: of each element of pairs, and in binary32 for types of 16 bits.
template <typename F, typename T, typename... Rest>
[[gnu::always_inline]] inline T lanes(unsigned flags, F f, const T& a, const Rest&... rest) {
  if constexpr (kIsPair<T>) {
    return {lanes(flags, f, a.low, rest.low...), lanes(flags, f, a.high, rest.high...)};
  } else if constexpr (kIsNarrow<T>) {
    return T(finished(static_cast<float>(f(static_cast<float>(a), static_cast<float>(rest)...)), flags));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (flags == 0) return f(a, rest...);
    return finished(static_cast<T>(f(flushed(a, flags), flushed(rest, flags)...)), flags);
  } else {
    return f(a, rest...);
  }
}

template <typename T>
using Unsigned = std::conditional_t<
    std::is_same_v<T, u128>, u128,
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type>;

/// Integers wrap around.
template <typename T, typename F>
[[gnu::always_inline]] inline T arithmetic(unsigned flags, F f, const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (sizeof(T) == 4 && std::is_signed_v<T>) {
      if ((flags & kSat) != 0)
        return static_cast<T>(
            std::clamp<s64>(f(s64{a}, s64{b}), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
    return static_cast<T>(f(static_cast<Unsigned<T>>(a), static_cast<Unsigned<T>>(b)));
  } else {
    return lanes(flags, f, a, b);
  }
}
template <typename T>
inline T add(T a, T b, unsigned flags) {
  return arithmetic(
      flags, [](auto x, auto y) { return x + y; }, a, b);
}
template <typename T>
inline T sub(T a, T b, unsigned flags) {
  return arithmetic(
      flags, [](auto x, auto y) { return x - y; }, a, b);
}
template <typename T>
inline T mul(T a, T b, unsigned flags) {
  return arithmetic(
      flags, [](auto x, auto y) { return x * y; }, a, b);
}
/// PTX ISA, "div": the result of a division of integers by zero is unspecified; here all bits are set.
template <typename T>
inline T div(T a, T b, unsigned flags) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return sub(T(0), a, 0u);
    return static_cast<T>(a / b);
  } else {
    return lanes(
        flags, [](auto x, auto y) { return x / y; }, a, b);
  }
}
template <typename T>
inline T rem(T a, T b, unsigned) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}
/// The smaller of two numbers: -0 is below +0, and of a number and a NaN it is the number.
template <typename T>
inline T min(T a, T b, unsigned flags) {
  if constexpr (std::is_integral_v<T>) {
    return b < a ? b : a;
  } else {
    return lanes(
        flags,
        [flags](auto x, auto y) {
          if ((flags & kNan) != 0 && (std::isnan(x) || std::isnan(y)))
            return std::numeric_limits<decltype(x)>::quiet_NaN();
          if (x == y) return std::signbit(x) ? x : y;
          return std::fmin(x, y);
        },
        a, b);
  }
}
template <typename T>
inline T max(T a, T b, unsigned flags) {
  if constexpr (std::is_integral_v<T>) {
    return a < b ? b : a;
  } else {
    return lanes(
        flags,
        [flags](auto x, auto y) {
          if ((flags & kNan) != 0 && (std::isnan(x) || std::isnan(y)))
            return std::numeric_limits<decltype(x)>::quiet_NaN();
          if (x == y) return std::signbit(x) ? y : x;
          return std::fmax(x, y);
        },
        a, b);
  }
}
template <typename T>
inline T neg(T a, unsigned flags) {
  if constexpr (std::is_integral_v<T>) {
    return sub(T(0), a, 0u);
  } else {
    return lanes(
        flags, [](auto x) { return -x; }, a);
  }
}
template <typename T>
inline T abs(T a, unsigned flags) {
  if constexpr (std::is_integral_v<T>) {
    return a < 0 ? neg(a, 0u) : a;
  } else {
    return lanes(
        flags, [](auto x) { return std::fabs(x); }, a);
  }
}
/// One rounding, for types of 16 bits as well.
template <typename T>
inline T fma(T a, T b, T c, unsigned flags) {
  if constexpr (kIsPair<T>) {
    return {fma(a.low, b.low, c.low, flags), fma(a.high, b.high, c.high, flags)};
  } else if constexpr (kIsNarrow<T>) {
    const double odd =
        emulator::fma_to_odd(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
    return T(finished(static_cast<float>(T::rounded(odd, emulator::Rounding::kNearest)), flags));
  } else {
    return lanes(
        flags, [](auto x, auto y, auto z) { return std::fma(x, y, z); }, a, b, c);
  }
}
template <typename T>
inline T copysign(T a, T b, unsigned) {  // PTX ISA: the sign of a, the magnitude of b
  return std::copysign(b, a);
}

template <typename T>
inline T mul_lo(T a, T b) {
  return mul(a, b, 0u);
}
template <typename T>
inline auto mul_wide(T a, T b) {
  using Wide = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, s32, u32>,
                                  std::conditional_t<std::is_signed_v<T>, s64, u64>>;
  return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b));
}
template <typename T>
inline T mul_hi(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, u128>;
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
}
template <typename T>
inline T sad(T a, T b, T c, unsigned) {
  return add(c, static_cast<T>(a < b ? b - a : a - b), 0u);
}
/// add.cc, addc, sub.cc, subc: `carry` is the flag that one of them leaves for the next. A borrow is its
/// absence.
template <typename T>
inline T add_carry(T a, T b, bool takes, bool leaves, bool& carry) {
  const u128 sum = u128{static_cast<Unsigned<T>>(a)} + static_cast<Unsigned<T>>(b) + (takes && carry ? 1 : 0);
  if (leaves) carry = (sum >> (8 * sizeof(T)) & 1) != 0;
  return static_cast<T>(sum);
}
template <typename T>
inline T sub_carry(T a, T b, bool takes, bool leaves, bool& carry) {
  return add_carry(a, static_cast<T>(~b), true, leaves, takes ? carry : (carry = true));
}

template <typename T>
inline T bit_and(T a, T b, unsigned) {
  return static_cast<T>(a & b);
}
template <typename T>
inline T bit_or(T a, T b, unsigned) {
  return static_cast<T>(a | b);
}
template <typename T>
inline T bit_xor(T a, T b, unsigned) {
  return static_cast<T>(a ^ b);
}
template <typename T>
inline T bit_not(T a, unsigned) {
  return static_cast<T>(~a);
}
inline bool bit_and_pred(bool a, bool b) {
  return a && b;
}
inline bool bit_or_pred(bool a, bool b) {
  return a || b;
}
inline bool bit_xor_pred(bool a, bool b) {
  return a != b;
}
inline bool bit_not_pred(bool a) {
  return !a;
}
template <typename T>
inline T cnot(T a, unsigned) {
  return a == 0 ? 1 : 0;
}
template <typename T>
inline T shl(T a, u32 count) {
  return count >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<Unsigned<T>>(a) << count);
}
template <typename T>
inline T shr(T a, u32 count) {
  return static_cast<T>(a >> std::min<u32>(count, 8 * sizeof(T) - 1) >> (count >= 8 * sizeof(T) ? 1 : 0));
}
/// Funnel shifts of b:a, clamped at 32 or modulo 32.
inline u32 shf_l(u32 a, u32 b, u32 count, bool wraps) {
  const u32 n = wraps ? count & 31u : std::min(count, 32u);
  return static_cast<u32>((u64{b} << 32 | a) << n >> 32);
}
inline u32 shf_r(u32 a, u32 b, u32 count, bool wraps) {
  const u32 n = wraps ? count & 31u : std::min(count, 32u);
  return static_cast<u32>((u64{b} << 32 | a) >> n);
}
inline u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  for (u32 i = 0; i < 8; ++i) {
    if ((table >> i & 1u) != 0)
      result |= ((i & 4u) != 0 ? a : ~a) & ((i & 2u) != 0 ? b : ~b) & ((i & 1u) != 0 ? c : ~c);
  }
  return result;
}
inline u32 prmt(u32 a, u32 b, u32 selector, const char* mode) {
  const u64 bytes = u64{b} << 32 | a;
  const u32 from = selector & 3u;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    u32 index = selector >> (4 * i) & 7u;
    bool replicates_sign = (selector >> (4 * i) & 8u) != 0;
    if (*mode != '\0') replicates_sign = false;
    if (std::strcmp(mode, "f4e") == 0) index = from + i;
    if (std::strcmp(mode, "b4e") == 0) index = (from + 8 - i) & 7u;
    if (std::strcmp(mode, "rc8") == 0) index = from;
    if (std::strcmp(mode, "ecl") == 0) index = std::max(from, i);
    if (std::strcmp(mode, "ecr") == 0) index = std::min(from, i);
    if (std::strcmp(mode, "rc16") == 0) index = (from & 1u) * 2 + (i & 1u);
    u32 byte = static_cast<u32>(bytes >> (8 * index)) & 0xffu;
    if (replicates_sign) byte = (byte & 0x80u) != 0 ? 0xffu : 0;
    result |= byte << (8 * i);
  }
  return result;
}
template <typename T>
inline T bfe(T a, u32 position, u32 length) {
  constexpr u32 kBits = 8 * sizeof(T);
  position &= 0xffu;
  length = std::min(length & 0xffu, kBits);
  if (length == 0) return 0;
  const Unsigned<T> value = shr(static_cast<Unsigned<T>>(a), position);
  const Unsigned<T> mask = length == kBits ? ~Unsigned<T>(0) : (Unsigned<T>(1) << length) - 1;
  Unsigned<T> result = value & mask;
  if constexpr (std::is_signed_v<T>) {  // the sign is the field's highest bit, or that of a beyond it
    const u32 sign_at = std::min(position + length - 1, kBits - 1);
    if ((static_cast<Unsigned<T>>(a) >> sign_at & 1u) != 0) {
      const u32 there = position >= kBits ? 0 : std::min(length, kBits - position);
      result |= there >= kBits ? 0 : ~Unsigned<T>(0) << there;
    }
  }
  return static_cast<T>(result);
}
template <typename T>
inline T bfi(T a, T b, u32 position, u32 length) {
  constexpr u32 kBits = 8 * sizeof(T);
  position &= 0xffu;
  length &= 0xffu;
  if (length == 0 || position >= kBits) return b;
  const Unsigned<T> mask = shl(length >= kBits ? ~Unsigned<T>(0) : (Unsigned<T>(1) << length) - 1, position);
  return static_cast<T>((static_cast<Unsigned<T>>(b) & ~mask) |
                        (shl(static_cast<Unsigned<T>>(a), position) & mask));
}
template <typename T>
inline u32 popc(T a) {
  return static_cast<u32>(std::popcount(static_cast<Unsigned<T>>(a)));
}
template <typename T>
inline u32 clz(T a) {
  return static_cast<u32>(std::countl_zero(static_cast<Unsigned<T>>(a)));
}
template <typename T>
inline u32 bfind(T a, bool shift_amount = false) {
  const auto bits = static_cast<Unsigned<T>>(std::is_signed_v<T> && a < 0 ? ~a : a);
  if (bits == 0) return 0xffffffffu;
  return static_cast<u32>(shift_amount ? std::countl_zero(bits) : std::bit_width(bits) - 1);
}
template <typename T>
inline T brev(T a, unsigned) {
  T result = 0;
  for (std::size_t i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>(result << 1 | (a >> i & 1u));
  return result;
}
template <bool kSignedA, bool kSignedB>
inline u32 dp4a(u32 a, u32 b, u32 c) {
  for (u32 i = 0; i < 32; i += 8) {
    const s32 x = kSignedA ? s32{static_cast<s8>(a >> i)} : s32{static_cast<u8>(a >> i)};
    const s32 y = kSignedB ? s32{static_cast<s8>(b >> i)} : s32{static_cast<u8>(b >> i)};
    c += static_cast<u32>(x * y);
  }
  return c;
}

enum class Compare { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };
template <typename T>
inline bool compare(Compare how, const T& x, const T& y) {
  const auto a = [&] {
    if constexpr (kIsNarrow<T>) {
      return static_cast<float>(x);
    } else {
      return x;
    }
  }();
  const auto b = [&] {
    if constexpr (kIsNarrow<T>) {
      return static_cast<float>(y);
    } else {
      return y;
    }
  }();
  const bool unordered = a != a || b != b;
  switch (how) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b && !unordered;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    case Compare::kGe:
      return a >= b;
    case Compare::kEqu:
      return unordered || a == b;
    case Compare::kNeu:
      return a != b;
    case Compare::kLtu:
      return unordered || a < b;
    case Compare::kLeu:
      return unordered || a <= b;
    case Compare::kGtu:
      return unordered || a > b;
    case Compare::kGeu:
      return unordered || a >= b;
    case Compare::kNum:
      return !unordered;
    default:
      return unordered;
  }
}
template <typename T>
inline bool testp_finite(T a) {
  return std::isfinite(a);
}
template <typename T>
inline bool testp_infinite(T a) {
  return std::isinf(a);
}
template <typename T>
inline bool testp_number(T a) {
  return !std::isnan(a);
}
template <typename T>
inline bool testp_notanumber(T a) {
  return std::isnan(a);
}
template <typename T>
inline bool testp_normal(T a) {
  return std::isnormal(a);
}
template <typename T>
inline bool testp_subnormal(T a) {
  return std::fpclassify(a) == FP_SUBNORMAL;
}

/// Computed in binary64 and rounded once.
template <typename T, typename F>
[[gnu::always_inline]] inline T approximate(unsigned flags, F f, const T& a) {
  return lanes(
      flags, [f](auto x) { return static_cast<decltype(x)>(f(static_cast<double>(x))); }, a);
}
template <typename T>
inline T ex2(T a, unsigned flags) {
  return approximate(
      flags, [](double x) { return std::exp2(x); }, a);
}
template <typename T>
inline T lg2(T a, unsigned flags) {
  return approximate(
      flags, [](double x) { return std::log2(x); }, a);
}
template <typename T>
inline T rcp(T a, unsigned flags) {
  return approximate(
      flags, [](double x) { return 1 / x; }, a);
}
template <typename T>
inline T rsqrt(T a, unsigned flags) {
  return approximate(
      flags, [](double x) { return 1 / std::sqrt(x); }, a);
}
template <typename T>
inline T sqrt(T a, unsigned flags) {
  return approximate(
      flags, [](double x) { return std::sqrt(x); }, a);
}
template <typename T>
inline T sin(T a, unsigned flags) {
  return approximate(
      flags, [](double x) { return std::sin(x); }, a);
}
template <typename T>
inline T cos(T a, unsigned flags) {
  return approximate(
      flags, [](double x) { return std::cos(x); }, a);
}
template <typename T>
inline T tanh(T a, unsigned flags) {
  return approximate(
      flags, [](double x) { return std::tanh(x); }, a);
}

// Conversions.

enum class Rounding { kNone, kNearest, kZero, kDown, kUp, kAway };
struct Conversion {
  Rounding rounding;
  bool saturates;  // integers: into the type; floats: into [0, 1]
  bool finite;     // .satfinite: what is too large is the largest number
  bool relu;
};

template <typename T>
inline double exact(const T& value) {
  if constexpr (kIsNarrow<T>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}
inline emulator::Rounding direction(Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return emulator::Rounding::kZero;
    case Rounding::kDown:
      return emulator::Rounding::kDown;
    case Rounding::kUp:
      return emulator::Rounding::kUp;
    default:
      return emulator::Rounding::kNearest;
  }
}
/// The neighbour of a number of a narrower type, away from zero or towards it.
template <typename D>
inline D neighbour(D x, bool upwards) {
  if constexpr (kIsNarrow<D>) {
    const bool grows = upwards != ((x.bits & 0x8000u) != 0);
    return D::of_bits(static_cast<u16>(x.bits + (grows ? 1 : -1)));
  } else {
    return std::nextafter(x,
                          upwards ? std::numeric_limits<D>::infinity() : -std::numeric_limits<D>::infinity());
  }
}
template <typename D>
inline D narrowed(double x, const Conversion& how) {
  D result = D{};
  if constexpr (kIsNarrow<D>) {
    result = D::rounded(x, direction(how.rounding));
  } else if constexpr (std::is_same_v<D, float>) {
    result = emulator::with_rounding(
        direction(how.rounding), [](double value) { return static_cast<float>(value); }, x);
  } else {
    result = x;
  }
  if (how.finite && std::isinf(exact(result)) && !std::isnan(x)) result = neighbour(result, x < 0);
  return result;
}
template <typename D, typename A>
inline D convert(const A& value, const Conversion& how) {
  if constexpr (std::is_integral_v<D> && std::is_integral_v<A>) {
    if (!how.saturates) return static_cast<D>(value);
    using Wide = __int128;
    return static_cast<D>(
        std::clamp<Wide>(value, std::numeric_limits<D>::min(), std::numeric_limits<D>::max()));
  } else if constexpr (std::is_integral_v<D>) {
    if constexpr (std::is_same_v<A, double>) {
      return emulator::integer_of<D>(value, direction(how.rounding));
    } else {
      return emulator::integer_of<D>(static_cast<float>(value), direction(how.rounding));
    }
  } else if constexpr (std::is_integral_v<A>) {
    if constexpr (std::is_floating_point_v<D>) {
      return emulator::converted<D>(value, direction(how.rounding));
    } else {
      return narrowed<D>(emulator::integer_to_odd(value), how);
    }
  } else {
    double x = exact(value);
    if (std::is_same_v<D, A> && how.rounding != Rounding::kNone)
      x = emulator::to_integer(x, direction(how.rounding));
    if (how.relu && !(x > 0) && !std::isnan(x)) x = 0;
    if (how.saturates) x = x > 0 ? std::min(x, 1.0) : 0;
    return narrowed<D>(x, how);
  }
}
inline u32 to_tf32(float value, const Conversion& how) {
  u32 bits = std::bit_cast<u32>(how.relu && value < 0 ? 0.0f : value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  const u32 half = how.rounding == Rounding::kZero   ? 0
                   : how.rounding == Rounding::kAway ? 0x1000u
                                                     : 0xfffu + (bits >> 13 & 1u);
  bits = (bits + half) & ~0x1fffu;
  return bits;
}
template <typename T>
inline T from_float(float value, const Conversion& how) {
  return convert<T>(value, how);
}
/// The first operand is the upper element.
template <typename Target>
inline Target convert_pair(float high, float low, const Conversion& how) {
  if (how.relu) {
    high = high < 0 ? 0 : high;
    low = low < 0 ? 0 : low;
  }
  if constexpr (std::is_same_v<Target, e4m3x2>) {
    return {gemm::to_e4m3(low).bits, gemm::to_e4m3(high).bits};
  } else if constexpr (std::is_same_v<Target, e5m2x2>) {
    return {gemm::to_e5m2(low).bits, gemm::to_e5m2(high).bits};
  } else {
    using Element = decltype(Target::low);
    return {from_float<Element>(low, how), from_float<Element>(high, how)};
  }
}
inline float element(u8 bits, const e4m3x2&) {
  return gemm::to_float(gemm::e4m3{bits});
}
inline float element(u8 bits, const e5m2x2&) {
  return gemm::to_float(gemm::e5m2{bits});
}
template <typename T, typename Source>
inline float element(const T& value, const Source&) {
  return static_cast<float>(value);
}
template <typename Target, typename Source>
inline Target convert_lanes(const Source& source, const Conversion& how) {
  return convert_pair<Target>(element(source.high, source), element(source.low, source), how);
}

}  // namespace inline_ptx
