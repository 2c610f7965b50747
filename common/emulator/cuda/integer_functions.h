// Integers of CUDA's headers on the emulator: bits, high halves of products, averages, and functions of two
// or four integers in a word.
//
// CUDA Math API, "Integer Intrinsics", "SIMD Intrinsics".
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ptx/core.cuh"
#include "vector_functions.h"

// ---- Words.

constexpr unsigned long long __brevll(unsigned long long value) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(value))) << 32 |
         __brev(static_cast<unsigned>(value >> 32));
}
constexpr int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
constexpr unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(static_cast<Wide>(a) * b >> 64);
}
constexpr long long __mul64hi(long long a, long long b) {
  const auto x = static_cast<unsigned long long>(a);
  const auto y = static_cast<unsigned long long>(b);
  return static_cast<long long>(__umul64hi(x, y) - (a < 0 ? y : 0) - (b < 0 ? x : 0));
}
/// The lower 32 bits of a product of 24 bits each.
constexpr unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
constexpr int __mul24(int a, int b) {
  const auto extended = [](int x) {
    return static_cast<long long>(static_cast<int>(static_cast<unsigned>(x) << 8) >> 8);
  };
  return static_cast<int>(extended(a) * extended(b));
}
constexpr int __hadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b) >> 1);
}
constexpr int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
constexpr unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b) >> 1);
}
constexpr unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}
constexpr unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return c + (a < b ? b - a : a - b);
}
constexpr unsigned __sad(int a, int b, unsigned c) {
  return c + (a < b ? static_cast<unsigned>(b) - static_cast<unsigned>(a)
                    : static_cast<unsigned>(a) - static_cast<unsigned>(b));
}
/// high:low shifted by the count's lower five bits, or by at most 32; the left one's upper word, the right
/// one's lower.
constexpr unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31u) >> 32);
}
constexpr unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31u));
}
constexpr unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
constexpr unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
/// The place of a set bit: the offset-th one from `base` on upwards, or downwards for a negative offset, or
/// `base` itself; all ones when there is none.
constexpr unsigned __fns(unsigned mask, unsigned base, int offset) {
  int missing = offset < 0 ? -offset : offset == 0 ? 1 : offset;
  for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += offset < 0 ? -1 : 1) {
    if ((mask >> bit & 1u) != 0 && --missing == 0) return static_cast<unsigned>(bit);
    if (offset == 0) break;
  }
  return 0xffffffffu;
}
constexpr unsigned short __nv_bswap16(unsigned short value) {
  return __builtin_bswap16(value);
}
constexpr unsigned __nv_bswap32(unsigned value) {
  return __builtin_bswap32(value);
}
constexpr unsigned long long __nv_bswap64(unsigned long long value) {
  return __builtin_bswap64(value);
}

// ---- Dot products.

namespace emulator {

/// c plus the products of kCount elements of a and b, with b's from `first_of_b` on.
template <typename A, typename B, int kCount>
constexpr unsigned dot_product(unsigned a, unsigned b, unsigned c, int first_of_b = 0) {
  for (int i = 0; i < kCount; ++i) {
    const auto x = static_cast<A>(a >> (8 * sizeof(A)) * i);
    const auto y = static_cast<B>(b >> (8 * sizeof(B)) * (i + first_of_b));
    c += static_cast<unsigned>(x) * static_cast<unsigned>(y);
  }
  return c;
}
template <typename V>
constexpr unsigned word_of(V vector) {
  return std::bit_cast<unsigned>(vector);
}

}  // namespace emulator

constexpr unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return emulator::dot_product<std::uint8_t, std::uint8_t, 4>(a, b, c);
}
constexpr int __dp4a(int a, int b, int c) {
  return static_cast<int>(emulator::dot_product<std::int8_t, std::int8_t, 4>(
      static_cast<unsigned>(a), static_cast<unsigned>(b), static_cast<unsigned>(c)));
}
constexpr int __dp4a(char4 a, char4 b, int c) {
  return __dp4a(static_cast<int>(emulator::word_of(a)), static_cast<int>(emulator::word_of(b)), c);
}
constexpr unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(emulator::word_of(a), emulator::word_of(b), c);
}
/// Two elements of 16 bits and the lower or the upper two bytes of b.
#define EMULATOR_DP2A(name, first)                                                                  \
  constexpr unsigned name(unsigned a, unsigned b, unsigned c) {                                     \
    return emulator::dot_product<std::uint16_t, std::uint8_t, 2>(a, b, c, first);                   \
  }                                                                                                 \
  constexpr int name(int a, int b, int c) {                                                         \
    return static_cast<int>(emulator::dot_product<std::int16_t, std::int8_t, 2>(                    \
        static_cast<unsigned>(a), static_cast<unsigned>(b), static_cast<unsigned>(c), first));      \
  }                                                                                                 \
  constexpr int name(short2 a, char4 b, int c) {                                                    \
    return name(static_cast<int>(emulator::word_of(a)), static_cast<int>(emulator::word_of(b)), c); \
  }                                                                                                 \
  constexpr unsigned name(ushort2 a, uchar4 b, unsigned c) {                                        \
    return name(emulator::word_of(a), emulator::word_of(b), c);                                     \
  }
EMULATOR_DP2A(__dp2a_lo, 0)
EMULATOR_DP2A(__dp2a_hi, 2)
#undef EMULATOR_DP2A

// ---- Two or four integers in a word.

namespace emulator {

/// f of each Lane of the words, as ints; the result's lower bits are kept.
template <typename Lane, typename F, typename... Words>
constexpr unsigned by_lane(F f, Words... words) {
  constexpr int kBits = 8 * sizeof(Lane);
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += kBits) {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): a signed lane keeps its sign
    const int lane = f(static_cast<int>(static_cast<Lane>(words >> shift))...);
    result |= static_cast<unsigned>(static_cast<std::make_unsigned_t<Lane>>(lane)) << shift;
  }
  return result;
}
template <typename Lane, typename F>
constexpr unsigned sum_of_lanes(F f, unsigned a, unsigned b) {
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += 8 * static_cast<int>(sizeof(Lane)))
    result += static_cast<unsigned>(f(static_cast<Lane>(a >> shift), static_cast<Lane>(b >> shift)));
  return result;
}
template <typename Lane>
constexpr int clamped(int x) {
  return std::clamp<int>(x, std::numeric_limits<Lane>::min(), std::numeric_limits<Lane>::max());
}
constexpr int distance(int x, int y) {
  return x < y ? y - x : x - y;
}
/// The mean, rounded to nearest and away from zero.
constexpr int rounded_mean(int x, int y) {
  return (x + y + (x + y >= 0 ? 1 : 0)) >> 1;
}

}  // namespace emulator

// x and y are the lanes of a and b, Lane is their type: signed for `s`, unsigned for `u`.
#define EMULATOR_LANES(name, Type, formula)                                                       \
  constexpr unsigned name(unsigned a, unsigned b) {                                               \
    using Lane = Type;                                                                            \
    return emulator::by_lane<Lane>([](int x, int y) { return static_cast<int>(formula); }, a, b); \
  }
#define EMULATOR_SIGNED(name, formula)           \
  EMULATOR_LANES(name##2, std::int16_t, formula) \
  EMULATOR_LANES(name##4, std::int8_t, formula)
#define EMULATOR_UNSIGNED(name, formula)          \
  EMULATOR_LANES(name##2, std::uint16_t, formula) \
  EMULATOR_LANES(name##4, std::uint8_t, formula)
#define EMULATOR_COMPARED(relation, sign)                   \
  EMULATOR_SIGNED(__vcmp##relation##s, x sign y ? -1 : 0)   \
  EMULATOR_UNSIGNED(__vcmp##relation##u, x sign y ? -1 : 0) \
  EMULATOR_SIGNED(__vset##relation##s, x sign y ? 1 : 0)    \
  EMULATOR_UNSIGNED(__vset##relation##u, x sign y ? 1 : 0)
#define EMULATOR_OF_ONE(name, formula)       \
  constexpr unsigned name##2(unsigned a) {   \
    return emulator::by_lane<std::int16_t>(  \
        [](int x) {                          \
          using Lane = std::int16_t;         \
          return static_cast<Lane>(formula); \
        },                                   \
        a);                                  \
  }                                          \
  constexpr unsigned name##4(unsigned a) {   \
    return emulator::by_lane<std::int8_t>(   \
        [](int x) {                          \
          using Lane = std::int8_t;          \
          return static_cast<Lane>(formula); \
        },                                   \
        a);                                  \
  }
EMULATOR_UNSIGNED(__vadd, x + y)
EMULATOR_UNSIGNED(__vsub, x - y)
EMULATOR_SIGNED(__vaddss, emulator::clamped<Lane>(x + y))
EMULATOR_SIGNED(__vsubss, emulator::clamped<Lane>(x - y))
EMULATOR_UNSIGNED(__vaddus, emulator::clamped<Lane>(x + y))
EMULATOR_UNSIGNED(__vsubus, emulator::clamped<Lane>(x - y))
EMULATOR_SIGNED(__vmins, std::min(x, y))
EMULATOR_SIGNED(__vmaxs, std::max(x, y))
EMULATOR_UNSIGNED(__vminu, std::min(x, y))
EMULATOR_UNSIGNED(__vmaxu, std::max(x, y))
EMULATOR_SIGNED(__vavgs, emulator::rounded_mean(x, y))
EMULATOR_UNSIGNED(__vavgu, emulator::rounded_mean(x, y))
EMULATOR_UNSIGNED(__vhaddu, (x + y) >> 1)
EMULATOR_SIGNED(__vabsdiffs, emulator::distance(x, y))
EMULATOR_UNSIGNED(__vabsdiffu, emulator::distance(x, y))
EMULATOR_UNSIGNED(__vcmpeq, x == y ? -1 : 0)
EMULATOR_UNSIGNED(__vcmpne, x != y ? -1 : 0)
EMULATOR_UNSIGNED(__vseteq, x == y ? 1 : 0)
EMULATOR_UNSIGNED(__vsetne, x != y ? 1 : 0)
EMULATOR_COMPARED(lt, <)
EMULATOR_COMPARED(le, <=)
EMULATOR_COMPARED(gt, >)
EMULATOR_COMPARED(ge, >=)
EMULATOR_OF_ONE(__vneg, -x)
EMULATOR_OF_ONE(__vabs, x < 0 ? -x : x)
EMULATOR_OF_ONE(__vnegss, emulator::clamped<Lane>(-x))
EMULATOR_OF_ONE(__vabsss, emulator::clamped<Lane>(x < 0 ? -x : x))
#undef EMULATOR_OF_ONE
#undef EMULATOR_COMPARED
#undef EMULATOR_UNSIGNED
#undef EMULATOR_SIGNED
#undef EMULATOR_LANES

constexpr unsigned __vsads2(unsigned a, unsigned b) {
  return emulator::sum_of_lanes<std::int16_t>(emulator::distance, a, b);
}
constexpr unsigned __vsads4(unsigned a, unsigned b) {
  return emulator::sum_of_lanes<std::int8_t>(emulator::distance, a, b);
}
constexpr unsigned __vsadu2(unsigned a, unsigned b) {
  return emulator::sum_of_lanes<std::uint16_t>(emulator::distance, a, b);
}
constexpr unsigned __vsadu4(unsigned a, unsigned b) {
  return emulator::sum_of_lanes<std::uint8_t>(emulator::distance, a, b);
}

// ---- Sums and the largest or smallest number, as dynamic programming wants them (DPX). Sums wrap around;
// _relu is the maximum of that and 0.

#define EMULATOR_DPX(suffix, Word, largest, smallest, sum)     \
  constexpr Word __vimax3_##suffix(Word a, Word b, Word c) {   \
    return largest(largest(a, b), c);                          \
  }                                                            \
  constexpr Word __vimin3_##suffix(Word a, Word b, Word c) {   \
    return smallest(smallest(a, b), c);                        \
  }                                                            \
  constexpr Word __viaddmax_##suffix(Word a, Word b, Word c) { \
    return largest(sum(a, b), c);                              \
  }                                                            \
  constexpr Word __viaddmin_##suffix(Word a, Word b, Word c) { \
    return smallest(sum(a, b), c);                             \
  }
#define EMULATOR_DPX_RELU(suffix, Word, largest, smallest)            \
  constexpr Word __vimax_##suffix##_relu(Word a, Word b) {            \
    return largest(largest(a, b), Word{0});                           \
  }                                                                   \
  constexpr Word __vimin_##suffix##_relu(Word a, Word b) {            \
    return largest(smallest(a, b), Word{0});                          \
  }                                                                   \
  constexpr Word __vimax3_##suffix##_relu(Word a, Word b, Word c) {   \
    return largest(__vimax3_##suffix(a, b, c), Word{0});              \
  }                                                                   \
  constexpr Word __vimin3_##suffix##_relu(Word a, Word b, Word c) {   \
    return largest(__vimin3_##suffix(a, b, c), Word{0});              \
  }                                                                   \
  constexpr Word __viaddmax_##suffix##_relu(Word a, Word b, Word c) { \
    return largest(__viaddmax_##suffix(a, b, c), Word{0});            \
  }                                                                   \
  constexpr Word __viaddmin_##suffix##_relu(Word a, Word b, Word c) { \
    return largest(__viaddmin_##suffix(a, b, c), Word{0});            \
  }
namespace emulator {
template <typename T>
constexpr T wrapping_sum(T a, T b) {
  return static_cast<T>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
}  // namespace emulator
EMULATOR_DPX(s32, int, std::max, std::min, emulator::wrapping_sum)
EMULATOR_DPX(u32, unsigned, std::max, std::min, emulator::wrapping_sum)
EMULATOR_DPX(s16x2, unsigned, __vmaxs2, __vmins2, __vadd2)
EMULATOR_DPX(u16x2, unsigned, __vmaxu2, __vminu2, __vadd2)
EMULATOR_DPX_RELU(s32, int, std::max, std::min)
EMULATOR_DPX_RELU(s16x2, unsigned, __vmaxs2, __vmins2)
#undef EMULATOR_DPX_RELU
#undef EMULATOR_DPX

/// The larger or smaller number, and whether it is a: of equal ones, a.
#define EMULATOR_WITH_PREDICATE(name, suffix16, Lane, Type, suffix32, sign, extreme)              \
  constexpr Type name##_##suffix32(Type a, Type b, bool* is_a) {                                  \
    *is_a = a sign b;                                                                             \
    return std::extreme(a, b);                                                                    \
  }                                                                                               \
  constexpr unsigned name##_##suffix16(unsigned a, unsigned b, bool* high_is_a, bool* low_is_a) { \
    *high_is_a = static_cast<Lane>(a >> 16) sign static_cast<Lane>(b >> 16);                      \
    *low_is_a = static_cast<Lane>(a) sign static_cast<Lane>(b);                                   \
    return ((*high_is_a ? a : b) & 0xffff0000u) | ((*low_is_a ? a : b) & 0xffffu);                \
  }
EMULATOR_WITH_PREDICATE(__vibmax, s16x2, std::int16_t, int, s32, >=, max)
EMULATOR_WITH_PREDICATE(__vibmax, u16x2, std::uint16_t, unsigned, u32, >=, max)
EMULATOR_WITH_PREDICATE(__vibmin, s16x2, std::int16_t, int, s32, <=, min)
EMULATOR_WITH_PREDICATE(__vibmin, u16x2, std::uint16_t, unsigned, u32, <=, min)
#undef EMULATOR_WITH_PREDICATE
