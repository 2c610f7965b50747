// Integer functions and those of two or four integers in a word, beside the same computed lane by lane with
// 64 bits.
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "reference.h"

using u32 = unsigned;
using u64 = unsigned long long;
using s32 = int;
using s64 = long long;

// ---- The host's lanes.

template <typename Lane>
s64 lane(u32 word, int index) {
  return static_cast<Lane>(word >> (8 * static_cast<int>(sizeof(Lane)) * index));
}
template <typename Lane, typename F>
u32 lanes(F f, u32 a, u32 b) {
  const int bits = 8 * static_cast<int>(sizeof(Lane));
  u32 result = 0;
  for (int i = 0; i < 32 / bits; ++i)
    result |= static_cast<u32>(f(lane<Lane>(a, i), lane<Lane>(b, i)) & ((s64{1} << bits) - 1)) << (bits * i);
  return result;
}
template <typename Lane>
s64 saturated(s64 x) {
  const s64 least = std::is_signed_v<Lane> ? -(s64{1} << (8 * sizeof(Lane) - 1)) : 0;
  const s64 most = least + (s64{1} << (8 * sizeof(Lane))) - 1;
  return x < least ? least : x > most ? most : x;
}
template <typename Lane>
u32 summed_distance(u32 a, u32 b) {
  s64 result = 0;
  for (int i = 0; i < 4 / static_cast<int>(sizeof(Lane)); ++i)
    result += std::abs(lane<Lane>(a, i) - lane<Lane>(b, i));
  return static_cast<u32>(result);
}
s64 mean_away_from_zero(s64 x, s64 y) {
  return (x + y + (x + y >= 0)) >> 1;
}
template <typename Lane, typename Byte>
u32 dot(u32 a, u32 b, u32 c, int elements, int first) {
  s64 result = static_cast<s64>(c);
  for (int i = 0; i < elements; ++i) result += lane<Lane>(a, i) * lane<Byte>(b, i + first);
  return static_cast<u32>(result);
}
u32 high_of_funnel(u32 low, u32 high, u32 count) {
  return count >= 32 ? low : count == 0 ? high : high << count | low >> (32 - count);
}
u32 low_of_funnel(u32 low, u32 high, u32 count) {
  return count >= 32 ? high : count == 0 ? low : low >> count | high << (32 - count);
}
s64 extended24(u32 x) {
  const s64 low = x & 0xffffffu;
  return low >= 0x800000 ? low - 0x1000000 : low;
}
u32 high_half(u64 x) {
  return static_cast<u32>(x >> 32);
}
/// The upper 64 bits of a product, by halves.
u64 high_of_product(u64 a, u64 b) {
  const u64 a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const u64 middle = a1 * b0 + (a0 * b0 >> 32);
  const u64 other = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}
u32 reversed(u32 x) {
  u32 result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1u) << (31 - i);
  return result;
}
u32 set_bits(u64 x) {
  u32 result = 0;
  for (int i = 0; i < 64; ++i) result += x >> i & 1u;
  return result;
}
u32 leading_zeros(u64 x, int bits) {
  u32 result = 0;
  for (int i = bits - 1; i >= 0 && (x >> i & 1u) == 0; --i) ++result;
  return result;
}
u32 first_set(u64 x) {
  for (u32 i = 0; i < 64; ++i)
    if ((x >> i & 1u) != 0) return i + 1;
  return 0;
}

// Device and host: a, b and c are words, and w is b:a.
#define LANES(X, name, Lane2, Lane4, Type, formula)       \
  X(name##2(a, b), (lanes<Lane2>(                         \
                       [](s64 x, s64 y) -> s64 {          \
                         using Lane = Lane2;              \
                         static_cast<void>(sizeof(Lane)); \
                         return formula;                  \
                       },                                 \
                       a, b)))                            \
  X(name##4(a, b), (lanes<Lane4>(                         \
                       [](s64 x, s64 y) -> s64 {          \
                         using Lane = Lane4;              \
                         static_cast<void>(sizeof(Lane)); \
                         return formula;                  \
                       },                                 \
                       a, b)))
#define SIGNED(X, name, formula) LANES(X, name, std::int16_t, std::int8_t, s, formula)
#define UNSIGNED(X, name, formula) LANES(X, name, std::uint16_t, std::uint8_t, u, formula)
#define COMPARED(X, relation, sign)                     \
  SIGNED(X, __vcmp##relation##s, (x sign y) ? -1 : 0)   \
  UNSIGNED(X, __vcmp##relation##u, (x sign y) ? -1 : 0) \
  SIGNED(X, __vset##relation##s, (x sign y) ? 1 : 0)    \
  UNSIGNED(X, __vset##relation##u, (x sign y) ? 1 : 0)
#define ONE(X, name, formula)                          \
  X(name##2(a), (lanes<std::int16_t>(                  \
                    [](s64 x, s64) -> s64 {            \
                      using Lane = std::int16_t;       \
                      static_cast<void>(sizeof(Lane)); \
                      return formula;                  \
                    },                                 \
                    a, 0)))                            \
  X(name##4(a), (lanes<std::int8_t>(                   \
                    [](s64 x, s64) -> s64 {            \
                      using Lane = std::int8_t;        \
                      static_cast<void>(sizeof(Lane)); \
                      return formula;                  \
                    },                                 \
                    a, 0)))
#define SIMD(X)                                           \
  UNSIGNED(X, __vadd, x + y)                              \
  UNSIGNED(X, __vsub, x - y)                              \
  SIGNED(X, __vaddss, saturated<Lane>(x + y))             \
  UNSIGNED(X, __vaddus, saturated<Lane>(x + y))           \
  SIGNED(X, __vsubss, saturated<Lane>(x - y))             \
  UNSIGNED(X, __vsubus, saturated<Lane>(x - y))           \
  SIGNED(X, __vmins, x < y ? x : y)                       \
  SIGNED(X, __vmaxs, x < y ? y : x)                       \
  UNSIGNED(X, __vminu, x < y ? x : y)                     \
  UNSIGNED(X, __vmaxu, x < y ? y : x)                     \
  SIGNED(X, __vavgs, mean_away_from_zero(x, y))           \
  UNSIGNED(X, __vavgu, (x + y + 1) / 2)                   \
  UNSIGNED(X, __vhaddu, (x + y) / 2)                      \
  SIGNED(X, __vabsdiffs, x < y ? y - x : x - y)           \
  UNSIGNED(X, __vabsdiffu, x < y ? y - x : x - y)         \
  UNSIGNED(X, __vcmpeq, (x == y) ? -1 : 0)                \
  UNSIGNED(X, __vcmpne, (x != y) ? -1 : 0)                \
  UNSIGNED(X, __vseteq, (x == y) ? 1 : 0)                 \
  UNSIGNED(X, __vsetne, (x != y) ? 1 : 0)                 \
  COMPARED(X, lt, <)                                      \
  COMPARED(X, le, <=)                                     \
  COMPARED(X, gt, >)                                      \
  COMPARED(X, ge, >=)                                     \
  ONE(X, __vneg, -x)                                      \
  ONE(X, __vnegss, saturated<Lane>(-x))                   \
  ONE(X, __vabs, x < 0 ? -x : x)                          \
  ONE(X, __vabsss, saturated<Lane>(x < 0 ? -x : x))       \
  X(__vsads2(a, b), summed_distance<std::int16_t>(a, b))  \
  X(__vsads4(a, b), summed_distance<std::int8_t>(a, b))   \
  X(__vsadu2(a, b), summed_distance<std::uint16_t>(a, b)) \
  X(__vsadu4(a, b), summed_distance<std::uint8_t>(a, b))
#define MAX3(x, y, z) std::max(std::max(x, y), z)
#define MIN3(x, y, z) std::min(std::min(x, y), z)
#define HALVES(f) (static_cast<u32>(f(0)) & 0xffffu) | static_cast<u32>(f(1)) << 16
#define WORDS(X)                                                                                            \
  X(__brev(a), reversed(a))                                                                                 \
  X(high_half(__brevll(w)), reversed(a))                                                                    \
  X(u32(__popc(a)), set_bits(a))                                                                            \
  X(u32(__popcll(w)), set_bits(w))                                                                          \
  X(u32(__clz(s32(a))), leading_zeros(a, 32))                                                               \
  X(u32(__clzll(s64(w))), leading_zeros(w, 64))                                                             \
  X(u32(__ffs(s32(a))), first_set(a))                                                                       \
  X(u32(__ffsll(s64(w))), first_set(w))                                                                     \
  X(u32(__mulhi(s32(a), s32(b))), high_half(u64(s64{s32(a)} * s32(b))))                                     \
  X(__umulhi(a, b), high_half(u64{a} * b))                                                                  \
  X(u32(__umul64hi(w, w + c) >> 7), u32(high_of_product(w, w + c) >> 7))                                    \
  X(u32(__mul64hi(s64(w), s64(c) - 5)), u32(high_of_product(w, u64(s64(c) - 5)) -                           \
                                            (s64(w) < 0 ? u64(s64(c) - 5) : 0) - (s64(c) - 5 < 0 ? w : 0))) \
  X(u32(__mul24(s32(a), s32(b))), u32(extended24(a) * extended24(b)))                                       \
  X(__umul24(a, b), u32(u64{a & 0xffffffu} * (b & 0xffffffu)))                                              \
  X(u32(__hadd(s32(a), s32(b))), u32((s64{s32(a)} + s32(b)) >> 1))                                          \
  X(u32(__rhadd(s32(a), s32(b))), u32((s64{s32(a)} + s32(b) + 1) >> 1))                                     \
  X(__uhadd(a, b), u32((u64{a} + b) >> 1))                                                                  \
  X(__urhadd(a, b), u32((u64{a} + b + 1) >> 1))                                                             \
  X(__sad(s32(a), s32(b), c), u32(std::abs(s64{s32(a)} - s32(b)) + c))                                      \
  X(__usad(a, b, c), c + (a < b ? b - a : a - b))                                                           \
  X(__funnelshift_l(a, b, c), high_of_funnel(a, b, c & 31u))                                                \
  X(__funnelshift_r(a, b, c), low_of_funnel(a, b, c & 31u))                                                 \
  X(__funnelshift_lc(a, b, c), high_of_funnel(a, b, c))                                                     \
  X(__funnelshift_rc(a, b, c), low_of_funnel(a, b, c))                                                      \
  X(u32(__dp4a(s32(a), s32(b), s32(c))), (dot<std::int8_t, std::int8_t>(a, b, c, 4, 0)))                    \
  X(__dp4a(a, b, c), (dot<std::uint8_t, std::uint8_t>(a, b, c, 4, 0)))                                      \
  X(u32(__dp2a_lo(s32(a), s32(b), s32(c))), (dot<std::int16_t, std::int8_t>(a, b, c, 2, 0)))                \
  X(u32(__dp2a_hi(s32(a), s32(b), s32(c))), (dot<std::int16_t, std::int8_t>(a, b, c, 2, 2)))                \
  X(__dp2a_lo(a, b, c), (dot<std::uint16_t, std::uint8_t>(a, b, c, 2, 0)))                                  \
  X(__dp2a_hi(a, b, c), (dot<std::uint16_t, std::uint8_t>(a, b, c, 2, 2)))                                  \
  X(u32(__vimax3_s32(s32(a), s32(b), s32(c))), u32(MAX3(s32(a), s32(b), s32(c))))                           \
  X(__vimin3_u32(a, b, c), MIN3(a, b, c))                                                                   \
  X(u32(__vimin3_s32_relu(s32(a), s32(b), s32(c))), u32(std::max(MIN3(s32(a), s32(b), s32(c)), 0)))         \
  X(u32(__viaddmax_s32(s32(a), s32(b), s32(c))), u32(std::max(s32(a + b), s32(c))))                         \
  X(__viaddmin_u32(a, b, c), std::min(a + b, c))                                                            \
  X(u32(__vimax_s32_relu(s32(a), s32(b))), u32(MAX3(s32(a), s32(b), 0)))                                    \
  X(__vimax3_s16x2(a, b, c), HALVES([&](int i) {                                                            \
      return MAX3(lane<std::int16_t>(a, i), lane<std::int16_t>(b, i), lane<std::int16_t>(c, i));            \
    }))                                                                                                     \
  X(__vimin3_u16x2(a, b, c), HALVES([&](int i) {                                                            \
      return MIN3(lane<std::uint16_t>(a, i), lane<std::uint16_t>(b, i), lane<std::uint16_t>(c, i));         \
    }))                                                                                                     \
  X(__viaddmax_s16x2_relu(a, b, c), HALVES([&](int i) {                                                     \
      return MAX3(s64{std::int16_t(lane<std::int16_t>(a, i) + lane<std::int16_t>(b, i))},                   \
                  lane<std::int16_t>(c, i), s64{0});                                                        \
    }))                                                                                                     \
  X(with_predicates(a, b), (lane<std::int16_t>(a, 1) >= lane<std::int16_t>(b, 1) ? 2u : 0u) +               \
                               (lane<std::int16_t>(a, 0) >= lane<std::int16_t>(b, 0) ? 1u : 0u))            \
  X(__fns(a, c & 31u, 2), nth(a, static_cast<int>(c & 31u), 2))                                             \
  X(__fns(a, c & 31u, -1), nth(a, static_cast<int>(c & 31u), -1))                                           \
  X(min(a, s32(b)), std::min(a, b))                                                                         \
  X(u32(max(s64(w), s64(c))), u32(std::max(s64(w), s64(c))))

/// The offset-th set bit from `base` on.
u32 nth(u32 mask, int base, int offset) {
  int found = 0;
  for (int bit = base; bit >= 0 && bit<32; bit += offset> 0 ? 1 : -1) {
    found += static_cast<int>(mask >> bit & 1u);
    if (found == std::abs(offset)) return static_cast<u32>(bit);
  }
  return 0xffffffffu;
}
__device__ u32 with_predicates(u32 a, u32 b) {
  bool high = false, low = false;
  const u32 larger = __vibmax_s16x2(a, b, &high, &low);
  return larger == __vmaxs2(a, b) ? (high ? 2u : 0u) + (low ? 1u : 0u) : 4u;
}
__device__ u32 high_half_on_device(u64 x) {
  return static_cast<u32>(x >> 32);
}

#define DEVICE(on_device, on_host) results[n++ * count + i] = on_device;
#define HOST(on_device, on_host)                                                                     \
  {                                                                                                  \
    const u32 result = got[static_cast<std::size_t>(n++ * count + i)];                               \
    const auto right = static_cast<u32>(on_host);                                                    \
    run.expect(result == right, result == right                                                      \
                                    ? std::string()                                                  \
                                    : reference::text(#on_device,                                    \
                                                      reference::hex(a) + ", " + reference::hex(b) + \
                                                          " and " + reference::hex(c),               \
                                                      result, right));                               \
  }
#define COUNT(on_device, on_host) +1
#define high_half high_half_on_device
__global__ void compute(const u32* words, u32* results, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const u32 a = words[3 * i], b = words[3 * i + 1], c = words[3 * i + 2];
  const u64 w = static_cast<u64>(b) << 32 | a;
  int n = 0;
  SIMD(DEVICE)
  WORDS(DEVICE)
}
#undef high_half

void check_kernel(emulate::Run& run) {
  const std::vector<u32> special{0,           1,           0xffffffffu, 0x80000000u,
                                 0x7fffffffu, 0x80808080u, 0x7f7f7f7fu, 0x8000ffffu,
                                 0x7fff0001u, 0x01ff80feu, 33,          0x12345678u};
  std::vector<u32> words;
  for (u32 a : special) {
    for (u32 b : special) {
      words.push_back(a);
      words.push_back(b);
      words.push_back(special[(words.size() * 5) % special.size()]);
    }
  }
  u32 state = 1;
  for (int i = 0; i < 300; ++i) words.push_back(state = state * 1664525u + 1013904223u);
  const int count = static_cast<int>(words.size() / 3);
  u32* results = run.buffer<u32>("results", static_cast<std::size_t>(count) * (0 SIMD(COUNT) WORDS(COUNT)));
  compute<<<(count + 127) / 128, 128>>>(run.buffer("words", words), results, count);
  const std::vector<u32> got = run.host(results);
  for (int i = 0; i < count; ++i) {
    const u32 a = words[static_cast<std::size_t>(3 * i)], b = words[static_cast<std::size_t>(3 * i + 1)],
              c = words[static_cast<std::size_t>(3 * i + 2)];
    const u64 w = static_cast<u64>(b) << 32 | a;
    int n = 0;
    SIMD(HOST)
    WORDS(HOST)
  }
}
