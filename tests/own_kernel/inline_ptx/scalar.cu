// Arithmetic in inline PTX: each instruction on many operands, beside the same in C++ on the host. On a GPU
// (tools/emulate --backend gpu) the same comparison tells whether the C++ says what the hardware does.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

template <typename T>
u32 bits(T value) {
  u32 result = 0;
  std::memcpy(&result, &value, sizeof value);
  return result;
}
float number(u32 value) {
  float result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
u32 half_bits(float value) {
  return bits(__float2half_rn(value)) & 0xffffu;
}
u32 bf16_bits(float value) {
  return bits(__float2bfloat16_rn(value)) & 0xffffu;
}
float low_half(u32 pair) {
  __half h;
  std::memcpy(&h, &pair, sizeof h);
  return __half2float(h);
}
float high_half(u32 pair) {
  return low_half(pair >> 16);
}
s64 clamp32(s64 x) {
  return std::clamp<s64>(x, INT32_MIN, INT32_MAX);
}
u32 permuted(u32 a, u32 b, u32 selector) {
  const u64 all = u64{b} << 32 | a;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 s = selector >> (4 * i) & 15u;
    const u32 byte = static_cast<u32>(all >> (8 * (s & 7u))) & 255u;
    result |= ((s & 8u) ? ((byte & 128u) ? 255u : 0u) : byte) << (8 * i);
  }
  return result;
}
u32 reversed(u32 a) {
  u32 result = 0;
  for (int i = 0; i < 32; ++i) result |= (a >> i & 1u) << (31 - i);
  return result;
}

// Words: %0 is the result, %1 to %3 are a, b and c.
#define WORDS(X)                                                                                            \
  X("add.u32 %0, %1, %2;", a + b)                                                                           \
  X("sub.s32 %0, %1, %2;", a - b)                                                                           \
  X("add.sat.s32 %0, %1, %2;", u32(clamp32(s64{s32(a)} + s32(b))))                                          \
  X("sub.sat.s32 %0, %1, %2;", u32(clamp32(s64{s32(a)} - s32(b))))                                          \
  X("mul.lo.s32 %0, %1, %2;", a* b)                                                                         \
  X("mul.hi.u32 %0, %1, %2;", u32(u64{a} * b >> 32))                                                        \
  X("mul.hi.s32 %0, %1, %2;", u32(u64(s64{s32(a)} * s32(b)) >> 32))                                         \
  X("mad.lo.u32 %0, %1, %2, %3;", a* b + c)                                                                 \
  X("mad.hi.u32 %0, %1, %2, %3;", u32(u64{a} * b >> 32) + c)                                                \
  X("min.s32 %0, %1, %2;", u32(std::min(s32(a), s32(b))))                                                   \
  X("max.u32 %0, %1, %2;", std::max(a, b))                                                                  \
  X("abs.s32 %0, %1;", s32(a) < 0 ? 0u - a : a)                                                             \
  X("neg.s32 %0, %1;", 0u - a)                                                                              \
  X("sad.u32 %0, %1, %2, %3;", c + (a < b ? b - a : a - b))                                                 \
  X("and.b32 %0, %1, %2;", a& b)                                                                            \
  X("or.b32 %0, %1, %2;", a | b)                                                                            \
  X("xor.b32 %0, %1, %2;", a ^ b)                                                                           \
  X("not.b32 %0, %1;", ~a)                                                                                  \
  X("cnot.b32 %0, %1;", a == 0 ? 1u : 0u)                                                                   \
  X("shl.b32 %0, %1, %3;", c > 31 ? 0u : a << c)                                                            \
  X("shr.u32 %0, %1, %3;", c > 31 ? 0u : a >> c)                                                            \
  X("shr.s32 %0, %1, %3;", u32(s32(a) >> std::min(c, 31u)))                                                 \
  X("shf.l.wrap.b32 %0, %1, %2, %3;", u32((u64{b} << 32 | a) << (c & 31u) >> 32))                           \
  X("shf.r.wrap.b32 %0, %1, %2, %3;", u32((u64{b} << 32 | a) >> (c & 31u)))                                 \
  X("shf.l.clamp.b32 %0, %1, %2, %3;", u32((u64{b} << 32 | a) << std::min(c, 32u) >> 32))                   \
  X("lop3.b32 %0, %1, %2, %3, 0xE8;", (a & b) | (b & c) | (a & c))                                          \
  X("lop3.b32 %0, %1, %2, %3, 0x96;", a ^ b ^ c)                                                            \
  X("prmt.b32 %0, %1, %2, %3;", permuted(a, b, c))                                                          \
  X("prmt.b32 %0, %1, %2, 0x7531;", permuted(a, b, 0x7531))                                                 \
  X("popc.b32 %0, %1;", u32(__builtin_popcount(a)))                                                         \
  X("clz.b32 %0, %1;", a == 0 ? 32u : u32(__builtin_clz(a)))                                                \
  X("brev.b32 %0, %1;", reversed(a))                                                                        \
  X("bfind.u32 %0, %1;", a == 0 ? 0xffffffffu : 31u - u32(__builtin_clz(a)))                                \
  X("bfe.u32 %0, %1, 5, 11;", a >> 5 & 0x7ffu)                                                              \
  X("bfe.s32 %0, %1, 5, 11;", u32(s32(a << 16) >> 21))                                                      \
  X("bfi.b32 %0, %1, %2, 7, 9;", (b & ~(0x1ffu << 7)) | (a & 0x1ffu) << 7)                                  \
  X("{.reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %1, %3, p;}", s32(a) < s32(b) ? a : c)              \
  X("{.reg .pred p; setp.hi.u32 p, %1, %2; selp.u32 %0, 1, 0, p;}", a > b ? 1u : 0u)                        \
  X("{.reg .pred p, q, r; setp.eq.u32 r, %3, 0; setp.ge.and.u32 p|q, %1, %2, r; selp.u32 %0, 1, 0, q;}",    \
    !(a >= b) && c == 0 ? 1u : 0u)                                                                          \
  X("{.reg .pred p; setp.ne.b32 p, %1, %2; @!p mov.b32 %0, 7; @p mov.b32 %0, %3;}", a != b ? c : 7u)        \
  X("set.gt.u32.s32 %0, %1, %2;", s32(a) > s32(b) ? 0xffffffffu : 0u)                                       \
  X("{.reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l};}", a << 16 | a >> 16)                         \
  X("{.reg .u64 w; mul.wide.u32 w, %1, %2; shr.u64 w, w, 16; cvt.u32.u64 %0, w;}", u32(u64{a} * b >> 16))   \
  X("{.reg .u32 l; add.cc.u32 l, %1, %2; addc.u32 %0, %3, 5;}", c + 5 + (u64{a} + b > 0xffffffffu ? 1 : 0)) \
  X("{.reg .u32 l; sub.cc.u32 l, %1, %2; subc.u32 %0, %3, 5;}", c - 5 - (a < b ? 1 : 0))                    \
  X("dp4a.s32.s32 %0, %1, %2, %3;", [&] {                                                                   \
    s32 sum = s32(c);                                                                                       \
    for (int i = 0; i < 32; i += 8) sum += s32(std::int8_t(a >> i)) * s32(std::int8_t(b >> i));             \
    return u32(sum);                                                                                        \
  }())                                                                                                      \
  X("{.reg .s16 h; cvt.s16.s32 h, %1; cvt.s32.s16 %0, h;}", u32(s32(std::int16_t(a))))                      \
  X("cvt.sat.u8.s32 %0, %1;", u32(std::clamp(s32(a), 0, 255)))                                              \
  X("{.reg .u32 x; .reg .u32 x2; mov.u32 x, %1; { .reg .u32 x; add.u32 x, %1, 1; mov.u32 x2, x; } add.u32 " \
    "%0, x, x2;}",                                                                                          \
    2 * a + 1)                                                                                              \
  X("{.reg .u32 i; mov.u32 i, 0; mov.u32 %0, 0; AGAIN: add.u32 %0, %0, %1; add.u32 i, i, 1;"                \
    ".reg .pred p; setp.lt.u32 p, i, 3; @p bra AGAIN;}",                                                    \
    3 * a)

// Numbers: the operands are floats x and y, and z; the result is its bits.
#define FLOATS(X)                                                                                           \
  X("add.f32 %0, %1, %2;", x + y)                                                                           \
  X("sub.rn.f32 %0, %1, %2;", x - y)                                                                        \
  X("mul.f32 %0, %1, %2;", x* y)                                                                            \
  X("fma.rn.f32 %0, %1, %2, %3;", std::fma(x, y, z))                                                        \
  X("add.sat.f32 %0, %1, %2;", std::min(std::max(x + y, 0.0f), 1.0f))                                       \
  X("min.f32 %0, %1, %2;", std::fmin(x, y))                                                                 \
  X("max.f32 %0, %1, %2;", std::fmax(x, y))                                                                 \
  X("neg.f32 %0, %1;", -x)                                                                                  \
  X("abs.f32 %0, %1;", std::fabs(x))                                                                        \
  X("div.rn.f32 %0, %1, %2;", x / y)                                                                        \
  X("sqrt.rn.f32 %0, %1;", std::sqrt(x))                                                                    \
  X("copysign.f32 %0, %1, %2;", std::copysign(y, x))                                                        \
  X("cvt.rni.f32.f32 %0, %1;", std::nearbyint(x))                                                           \
  X("cvt.rzi.f32.f32 %0, %1;", std::trunc(x))                                                               \
  X("cvt.rmi.f32.f32 %0, %1;", std::floor(x))                                                               \
  X("{.reg .s32 i; cvt.rzi.s32.f32 i, %1; cvt.rn.f32.s32 %0, i;}", float(s32(x)))                           \
  X("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}", __half2float(__float2half_rn(x)))            \
  X("{.reg .b16 h; cvt.rn.bf16.f32 h, %1; mov.b32 %0, {0, h};}", __bfloat162float(__float2bfloat16_rn(x)))  \
  X("{.reg .f64 d, e; cvt.f64.f32 d, %1; cvt.f64.f32 e, %2; fma.rn.f64 d, d, e, e; cvt.rn.f32.f64 %0, d;}", \
    float(std::fma(double(x), double(y), double(y))))                                                       \
  X("{.reg .pred p; setp.gtu.f32 p, %1, %2; selp.f32 %0, %1, %3, p;}", x > y ? x : z)                       \
  X("{.reg .f32 one; mov.f32 one, 0f3F800000; add.f32 %0, %1, one;}", x + 1.0f)

// Pairs of 16 bits: a and b hold two halfs each, and x and y are floats.
#define PAIRS(X)                                                                                             \
  X("add.f16x2 %0, %1, %2;", half_bits(low_half(a) + low_half(b)) | half_bits(high_half(a) + high_half(b))   \
                                                                        << 16)                               \
  X("mul.rn.f16x2 %0, %1, %2;",                                                                              \
    half_bits(low_half(a) * low_half(b)) | half_bits(high_half(a) * high_half(b)) << 16)                     \
  X("fma.rn.f16x2 %0, %1, %2, %1;", half_bits(std::fma(low_half(a), low_half(b), low_half(a))) |             \
                                        half_bits(std::fma(high_half(a), high_half(b), high_half(a))) << 16) \
  X("max.f16x2 %0, %1, %2;",                                                                                 \
    half_bits(std::fmax(low_half(a), low_half(b))) | half_bits(std::fmax(high_half(a), high_half(b))) << 16) \
  X("neg.f16x2 %0, %1;", a ^ 0x80008000u)

#define PACKED(X)                                                                       \
  X("cvt.rn.f16x2.f32 %0, %1, %2;", half_bits(x) << 16 | half_bits(y))                  \
  X("cvt.rn.bf16x2.f32 %0, %1, %2;", bf16_bits(x) << 16 | bf16_bits(y))                 \
  X("cvt.rn.relu.bf16x2.f32 %0, %1, %2;",                                               \
    bf16_bits(std::fmax(x, 0.0f)) << 16 | bf16_bits(std::fmax(y, 0.0f)))                \
  X("cvt.rna.tf32.f32 %0, %1;", (bits(x) + 0x1000u) & ~0x1fffu)                         \
  X("{.reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, %1, %2; cvt.rn.f16x2.e4m3x2 %0, h;}", \
    half_bits(narrow(x)) << 16 | half_bits(narrow(y)))

/// e4m3: 3 bits of fraction, at most 448, multiples of 2^-9.
float narrow(float x) {
  if (std::fabs(x) >= 448) return std::copysign(448.0f, x);
  int exponent = 0;
  std::frexp(x, &exponent);
  const float unit = std::ldexp(1.0f, std::max(exponent - 4, -9));
  return std::nearbyint(x / unit) * unit;
}

#define COUNT(text, host) +1
constexpr int kWords = 0 WORDS(COUNT);
constexpr int kFloats = 0 FLOATS(COUNT);
constexpr int kPairs = 0 PAIRS(COUNT);
constexpr int kPacked = 0 PACKED(COUNT);

__global__ void words(const u32* in, u32* out) {
  const u32 a = in[threadIdx.x], b = in[threadIdx.x + blockDim.x], c = in[threadIdx.x + 2 * blockDim.x];
  int i = static_cast<int>(threadIdx.x);
#define RUN(text, host)                            \
  {                                                \
    u32 d;                                         \
    asm(text : "=&r"(d) : "r"(a), "r"(b), "r"(c)); \
    out[i] = d;                                    \
    i += static_cast<int>(blockDim.x);             \
  }
  WORDS(RUN)
#undef RUN
}

__global__ void floats(const float* in, float* out) {
  const float x = in[threadIdx.x], y = in[threadIdx.x + blockDim.x], z = in[threadIdx.x + 2 * blockDim.x];
  int i = static_cast<int>(threadIdx.x);
#define RUN(text, host)                                    \
  {                                                        \
    float d;                                               \
    asm volatile(text : "=f"(d) : "f"(x), "f"(y), "f"(z)); \
    out[i] = d;                                            \
    i += static_cast<int>(blockDim.x);                     \
  }
  FLOATS(RUN)
#undef RUN
}

__global__ void pairs(const u32* in, const float* numbers, u32* out) {
  const u32 a = in[threadIdx.x], b = in[threadIdx.x + blockDim.x];
  const float x = numbers[threadIdx.x], y = numbers[threadIdx.x + blockDim.x];
  int i = static_cast<int>(threadIdx.x);
  u32 d;
#define RUN(text, host)                 \
  asm(text : "=r"(d) : "r"(a), "r"(b)); \
  out[i] = d;                           \
  i += static_cast<int>(blockDim.x);
  PAIRS(RUN)
#undef RUN
#define RUN(text, host)                 \
  asm(text : "=r"(d) : "f"(x), "f"(y)); \
  out[i] = d;                           \
  i += static_cast<int>(blockDim.x);
  PACKED(RUN)
#undef RUN
}

constexpr int kThreads = 64;

void check_kernel(emulate::Run& run) {
  std::vector<u32> in(3 * kThreads);
  u32 state = 12345;
  for (u32& word : in) word = state = state * 1664525u + 1013904223u;
  for (int i = 2 * kThreads; i < 3 * kThreads; ++i)
    in[i] = i % 4 == 0 ? in[i] : in[i] % 40;  // shift counts, too
  in[0] = 0, in[1] = 0x80000000u, in[kThreads + 1] = 0xffffffffu, in[2] = 0x7fffffffu, in[kThreads + 2] = 1;
  in[kThreads + 3] = in[3];
  std::vector<float> numbers(3 * kThreads);
  for (int i = 0; i < 3 * kThreads; ++i)
    numbers[i] = static_cast<float>(static_cast<s32>(in[i])) / 33554432.0f;
  numbers[1] = 448.0f, numbers[2] = -0.0078125f, numbers[3] = 2.5f, numbers[4] = 3.5f;
  for (int i = 0; i < kThreads; ++i) numbers[i] = i % 2 == 0 ? std::fabs(numbers[i]) : numbers[i];
  std::vector<u32> halfs(2 * kThreads);
  for (int i = 0; i < 2 * kThreads; ++i)
    halfs[i] = half_bits(numbers[i]) | half_bits(numbers[i + kThreads] / 7) << 16;

  u32* const got_words = run.buffer<u32>("words", kWords * kThreads);
  words<<<1, kThreads>>>(run.buffer("in", in), got_words);
  float* const got_floats = run.buffer<float>("floats", kFloats * kThreads);
  floats<<<1, kThreads>>>(run.buffer("numbers", numbers), got_floats);
  u32* const got_pairs = run.buffer<u32>("pairs", (kPairs + kPacked) * kThreads);
  pairs<<<1, kThreads>>>(run.buffer("halfs", halfs), run.buffer("more numbers", numbers), got_pairs);

  const std::vector<u32> w = run.host(got_words);
  const std::vector<float> f = run.host(got_floats);
  const std::vector<u32> p = run.host(got_pairs);
  int at = 0;
  std::vector<u32> got(kThreads), expected(kThreads);
#define COMPARE(text, results)                                     \
  for (int i = 0; i < kThreads; ++i) got[i] = bits(results[at++]); \
  run.expect_equal(text, got, expected);
#define EXPECT(text, host)                                               \
  for (int i = 0; i < kThreads; ++i) {                                   \
    const u32 a = in[i], b = in[i + kThreads], c = in[i + 2 * kThreads]; \
    (void)a, (void)b, (void)c;                                           \
    expected[i] = host;                                                  \
  }                                                                      \
  COMPARE(text, w)
  WORDS(EXPECT)
#undef EXPECT
  at = 0;
#define EXPECT(text, host)                                                                      \
  for (int i = 0; i < kThreads; ++i) {                                                          \
    const float x = numbers[i], y = numbers[i + kThreads], z = numbers[i + 2 * kThreads];       \
    (void)x, (void)y, (void)z;                                                                  \
    expected[i] = bits(static_cast<float>(host));                                               \
    if (std::isnan(number(expected[i]))) expected[i] = bits(f[at + i]); /* which NaN is open */ \
  }                                                                                             \
  COMPARE(text, f)
  FLOATS(EXPECT)
#undef EXPECT
  at = 0;
#define EXPECT(text, host)                                 \
  for (int i = 0; i < kThreads; ++i) {                     \
    const u32 a = halfs[i], b = halfs[i + kThreads];       \
    const float x = numbers[i], y = numbers[i + kThreads]; \
    (void)a, (void)b, (void)x, (void)y;                    \
    expected[i] = host;                                    \
  }                                                        \
  COMPARE(text, p)
  PAIRS(EXPECT)
  PACKED(EXPECT)
}
