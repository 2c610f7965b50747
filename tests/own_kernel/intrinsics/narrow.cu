// Functions of half and bf16: each on special values, beside a result that is found by search among all bit
// patterns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "reference.h"

using reference::Format;
using reference::Mode;
using u16 = std::uint16_t;
using u32 = unsigned;
using u64 = unsigned long long;

__device__ __half number(u16 bits, __half) {
  return __ushort_as_half(bits);
}
__device__ __nv_bfloat16 number(u16 bits, __nv_bfloat16) {
  return __ushort_as_bfloat16(bits);
}
__device__ u16 bits_of(__half x) {
  return __half_as_ushort(x);
}
__device__ u16 bits_of(__nv_bfloat16 x) {
  return __bfloat16_as_ushort(x);
}
__device__ __half2 pair(__half x, __half y) {
  return __halves2half2(x, y);
}
__device__ __nv_bfloat162 pair(__nv_bfloat16 x, __nv_bfloat16 y) {
  return __halves2bfloat162(x, y);
}
__device__ u32 result(__half x) {
  return bits_of(x);
}
__device__ u32 result(__nv_bfloat16 x) {
  return bits_of(x);
}
__device__ u32 result(bool x) {
  return x;
}
__device__ u32 result(unsigned x) {
  return x;
}
template <typename Pair>
__device__ u32 upper(Pair x) {  // the lower element is that of other operands
  return bits_of(x.y);
}

// What the host computes with: numbers as long doubles, results as bits; -1 is any NaN.
struct Host {
  Format format;
  int rounded(long double x) const { return reference::rounded(format, x, reference::kNearest); }
  int saturated(long double x) const { return std::isnan(x) ? 0 : saturated_bits(rounded(x)); }
  int saturated_bits(int bits) const {
    const long double x = reference::value(format, static_cast<unsigned>(bits));
    return x >= 1 ? rounded(1) : x > 0 ? bits : 0;
  }
  int relu(long double x) const {
    const int bits = rounded(x);
    return bits >= 0 && x < 0 && bits != 0x8000 ? 0 : bits;
  }
  int smaller(long double x, long double y) const {
    if (std::isnan(x)) return rounded(y);
    if (std::isnan(y)) return rounded(x);
    return rounded(x < y || (x == y && std::signbit(x)) ? x : y);
  }
  int larger(long double x, long double y) const {
    if (std::isnan(x)) return rounded(y);
    if (std::isnan(y)) return rounded(x);
    return rounded(x > y || (x == y && !std::signbit(x)) ? x : y);
  }
  int one(bool holds) const { return rounded(holds ? 1 : 0); }
};

// On the device a, b are numbers and p, q pairs whose upper elements they are; on the host x, y are the
// numbers.
#define COMPARISON(X, relation, holds)                               \
  X(result(__h##relation(a, b)), (holds))                            \
  X(upper(__h##relation##2(p, q)), h.one(holds))                     \
  X(result(__h##relation##2_mask(p, q) >> 16), (holds) ? 0xffff : 0) \
  X(result(__hb##relation##2(p, q)), (holds) && x == x && y == y)    \
  X(result(__hb##relation##2(pair(a, a), pair(b, b))), (holds))
#define ORDERED_COMPARISON(X, relation, sign)                                            \
  X(result(__h##relation(a, b)), x sign y&& x == x && y == y)                            \
  X(upper(__h##relation##2(p, q)), h.one(x sign y&& x == x && y == y))                   \
  X(result(__h##relation##2_mask(p, q) >> 16), x sign y&& x == x && y == y ? 0xffff : 0) \
  X(result(__hb##relation##2(pair(a, a), pair(b, b))), x sign y&& x == x && y == y)
#define UNORDERED_COMPARISON(X, relation, sign)                                           \
  X(result(__h##relation(a, b)), x sign y || x != x || y != y)                            \
  X(upper(__h##relation##2(p, q)), h.one(x sign y || x != x || y != y))                   \
  X(result(__h##relation##2_mask(p, q) >> 16), x sign y || x != x || y != y ? 0xffff : 0) \
  X(result(__hb##relation##2(pair(a, a), pair(b, b))), x sign y || x != x || y != y)
#define BINARY(X)                                                                                   \
  X(result(__hadd(a, b)), h.rounded(x + y))                                                         \
  X(result(__hadd_rn(a, b)), h.rounded(x + y))                                                      \
  X(result(__hadd_sat(a, b)), h.saturated(x + y))                                                   \
  X(upper(__hadd2(p, q)), h.rounded(x + y))                                                         \
  X(upper(__hadd2_sat(p, q)), h.saturated(x + y))                                                   \
  X(result(__hsub(a, b)), h.rounded(x - y))                                                         \
  X(result(__hsub_sat(a, b)), h.saturated(x - y))                                                   \
  X(upper(__hsub2(p, q)), h.rounded(x - y))                                                         \
  X(upper(__hsub2_sat(p, q)), h.saturated(x - y))                                                   \
  X(result(__hmul(a, b)), h.rounded(x* y))                                                          \
  X(result(__hmul_sat(a, b)), h.saturated(x* y))                                                    \
  X(upper(__hmul2(p, q)), h.rounded(x* y))                                                          \
  X(upper(__hmul2_sat(p, q)), h.saturated(x* y))                                                    \
  X(result(__hdiv(a, b)), h.rounded(x / y))                                                         \
  X(upper(__h2div(p, q)), h.rounded(x / y))                                                         \
  X(result(__hmin(a, b)), h.smaller(x, y))                                                          \
  X(result(__hmax(a, b)), h.larger(x, y))                                                           \
  X(upper(__hmin2(p, q)), h.smaller(x, y))                                                          \
  X(upper(__hmax2(p, q)), h.larger(x, y))                                                           \
  X(result(__hmin_nan(a, b)), x != x || y != y ? -1 : h.smaller(x, y))                              \
  X(result(__hmax_nan(a, b)), x != x || y != y ? -1 : h.larger(x, y))                               \
  X(upper(__hmin2_nan(p, q)), x != x || y != y ? -1 : h.smaller(x, y))                              \
  X(upper(__hmax2_nan(p, q)), x != x || y != y ? -1 : h.larger(x, y))                               \
  X(result(a < b), x < y)                                                                           \
  X(result(a <= b), x <= y)                                                                         \
  X(result(a == b), x == y)                                                                         \
  X(result(a != b), x != y)                                                                         \
  X(result(p != pair(b, b)), x != y && lower_differs)                                               \
  ORDERED_COMPARISON(X, eq, ==)                                                                     \
  ORDERED_COMPARISON(X, ne, !=)                                                                     \
  ORDERED_COMPARISON(X, lt, <)                                                                      \
  ORDERED_COMPARISON(X, le, <=)                                                                     \
  ORDERED_COMPARISON(X, gt, >)                                                                      \
  ORDERED_COMPARISON(X, ge, >=)                                                                     \
  UNORDERED_COMPARISON(X, equ, ==)                                                                  \
  UNORDERED_COMPARISON(X, neu, !=)                                                                  \
  UNORDERED_COMPARISON(X, ltu, <)                                                                   \
  UNORDERED_COMPARISON(X, leu, <=)                                                                  \
  UNORDERED_COMPARISON(X, gtu, >)                                                                   \
  UNORDERED_COMPARISON(X, geu, >=)                                                                  \
  X(result(__hneg(a)), h.rounded(-x))                                                               \
  X(result(__habs(a)), h.rounded(std::fabs(x)))                                                     \
  X(upper(__hneg2(p)), h.rounded(-x))                                                               \
  X(upper(__habs2(p)), h.rounded(std::fabs(x)))                                                     \
  X(result(__hisnan(a)), x != x)                                                                    \
  X(result(unsigned(__hisinf(a))), std::isinf(x) ? (x > 0 ? 1 : static_cast<int>(0xffffffffu)) : 0) \
  X(result(hceil(a)), h.rounded(std::ceil(x)))                                                      \
  X(result(hfloor(a)), h.rounded(std::floor(x)))                                                    \
  X(result(htrunc(a)), h.rounded(std::trunc(x)))                                                    \
  X(result(hrint(a)), h.rounded(std::rint(x)))                                                      \
  X(upper(__lowhigh2highlow(pair(a, b))), h.rounded(x))
#define TERNARY(X)                                               \
  X(result(__hfma(a, b, c)), h.rounded(x* y + z))                \
  X(result(__hfma_sat(a, b, c)), h.saturated(x* y + z))          \
  X(result(__hfma_relu(a, b, c)), h.relu(x* y + z))              \
  X(upper(__hfma2(p, q, pair(a, c))), h.rounded(x* y + z))       \
  X(upper(__hfma2_sat(p, q, pair(a, c))), h.saturated(x* y + z)) \
  X(upper(__hfma2_relu(p, q, pair(a, c))), h.relu(x* y + z))

#define DEVICE(on_device, on_host) results[n++ * count + i] = on_device;
#define HOST(on_device, on_host) check(#on_device, on_host);
#define COUNT(on_device, on_host) +1

template <typename T>
__global__ void binary(const u16* first, const u16* second, u32* results, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const T a = number(first[i], T());
  const T b = number(second[i], T());
  const auto p = pair(number(0x3c00, T()), a);
  const auto q = pair(number(0x3c00, T()), b);
  int n = 0;
  BINARY(DEVICE)
}
template <typename T>
__global__ void ternary(const u16* operands, int values, u32* results, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const T a = number(operands[i % values], T());
  const T b = number(operands[i / values % values], T());
  const T c = number(operands[i / values / values], T());
  const auto p = pair(number(0x3c00, T()), a);
  const auto q = pair(number(0x3c00, T()), b);
  int n = 0;
  TERNARY(DEVICE)
}

template <typename T>
void check_arithmetic(emulate::Run& run, const Format& format, const std::vector<u16>& special,
                      const std::vector<u16>& moderate) {
  const Host h{format};
  const int values = static_cast<int>(special.size());
  std::vector<u16> first, second;
  for (u16 a : special) {
    for (u16 b : special) {
      first.push_back(a);
      second.push_back(b);
    }
  }
  int count = values * values;
  u32* results = run.buffer<u32>("results", static_cast<std::size_t>(count) * (0 BINARY(COUNT)));
  binary<T><<<(count + 127) / 128, 128>>>(run.buffer("first", first), run.buffer("second", second), results,
                                          count);
  std::vector<u32> got = run.host(results);
  for (int i = 0; i < count; ++i) {
    const long double x = reference::value(format, first[i]);
    const long double y = reference::value(format, second[i]);
    const bool lower_differs = reference::value(format, 0x3c00) != y;
    int n = 0;
    const auto check = [&](const char* what, int expected) {
      const u32 bits = got[n++ * count + i];
      const bool right =
          expected == -1 ? (bits & 0x7fffu) > format.infinity : bits == static_cast<u32>(expected);
      if (!right)
        run.expect(false,
                   reference::text(what, reference::hex(first[i]) + " and " + reference::hex(second[i]), bits,
                                   static_cast<u32>(expected)));
    };
    BINARY(HOST)
  }

  const int few = static_cast<int>(moderate.size());
  count = few * few * few;
  results = run.buffer<u32>("results", static_cast<std::size_t>(count) * (0 TERNARY(COUNT)));
  ternary<T><<<(count + 127) / 128, 128>>>(run.buffer("operands", moderate), few, results, count);
  got = run.host(results);
  for (int i = 0; i < count; ++i) {
    const u16 a = moderate[i % few], b = moderate[i / few % few], c = moderate[i / few / few];
    const long double x = reference::value(format, a), y = reference::value(format, b),
                      z = reference::value(format, c);
    int n = 0;
    const auto check = [&](const char* what, int expected) {
      const u32 bits = got[n++ * count + i];
      const bool right =
          expected == -1 ? (bits & 0x7fffu) > format.infinity : bits == static_cast<u32>(expected);
      if (!right)
        run.expect(
            false,
            reference::text(what, reference::hex(a) + ", " + reference::hex(b) + " and " + reference::hex(c),
                            bits, static_cast<u32>(expected)));
    };
    TERNARY(HOST)
  }
}

// ---- Conversions.

#define ROUNDINGS(X, name)          \
  X(name##_rn, reference::kNearest) \
  X(name##_rz, reference::kZero)    \
  X(name##_rd, reference::kDown)    \
  X(name##_ru, reference::kUp)
#define TO_NARROW(type, name)                                                      \
  __global__ void of_float_##name(const float* x, u16* results, int count) {       \
    const int i = static_cast<int>(threadIdx.x);                                   \
    if (i >= count) return;                                                        \
    results[0 * count + i] = bits_of(__float2##name##_rn(x[i]));                   \
    results[1 * count + i] = bits_of(__float2##name##_rz(x[i]));                   \
    results[2 * count + i] = bits_of(__float2##name##_rd(x[i]));                   \
    results[3 * count + i] = bits_of(__float2##name##_ru(x[i]));                   \
  }                                                                                \
  __global__ void of_double_##name(const double* x, u16* results, int count) {     \
    const int i = static_cast<int>(threadIdx.x);                                   \
    if (i < count) results[i] = bits_of(__double2##name(x[i]));                    \
  }                                                                                \
  __global__ void of_integer_##name(const long long* x, u16* results, int count) { \
    const int i = static_cast<int>(threadIdx.x);                                   \
    if (i >= count) return;                                                        \
    int n = 0;                                                                     \
    INTEGERS(STORE_OF_INTEGER, name)                                               \
  }                                                                                \
  __global__ void to_integer_##name(const u16* x, long long* results, int count) { \
    const int i = static_cast<int>(threadIdx.x);                                   \
    if (i >= count) return;                                                        \
    const type value = number(x[i], type());                                       \
    int n = 0;                                                                     \
    INTEGERS(STORE_TO_INTEGER, name)                                               \
    results[n++ * count + i] = __##name##2char_rz(value);                          \
    results[n++ * count + i] = __##name##2uchar_rz(value);                         \
  }
#define INTEGERS(X, name)         \
  X(name, short, short)           \
  X(name, ushort, unsigned short) \
  X(name, int, int)               \
  X(name, uint, unsigned)         \
  X(name, ll, long long)          \
  X(name, ull, unsigned long long)
#define STORE_OF_INTEGER(name, word, type)                                             \
  results[n++ * count + i] = bits_of(__##word##2##name##_rn(static_cast<type>(x[i]))); \
  results[n++ * count + i] = bits_of(__##word##2##name##_rz(static_cast<type>(x[i]))); \
  results[n++ * count + i] = bits_of(__##word##2##name##_rd(static_cast<type>(x[i]))); \
  results[n++ * count + i] = bits_of(__##word##2##name##_ru(static_cast<type>(x[i])));
#define STORE_TO_INTEGER(name, word, type)                                          \
  results[n++ * count + i] = static_cast<long long>(__##name##2##word##_rn(value)); \
  results[n++ * count + i] = static_cast<long long>(__##name##2##word##_rz(value)); \
  results[n++ * count + i] = static_cast<long long>(__##name##2##word##_rd(value)); \
  results[n++ * count + i] = static_cast<long long>(__##name##2##word##_ru(value));
TO_NARROW(__half, half)
TO_NARROW(__nv_bfloat16, bfloat16)

constexpr Mode kModes[] = {reference::kNearest, reference::kZero, reference::kDown, reference::kUp};

void expect_bits(emulate::Run& run, const Format& format, const char* what, long double x, u16 got,
                 Mode mode) {
  const int expected = reference::rounded(format, x, mode);
  const int largest = static_cast<int>(format.infinity) - 1;
  int wanted = expected;  // an overflow towards zero is the largest number
  if (expected >= 0 && (expected & 0x7fff) == static_cast<int>(format.infinity) && !std::isinf(x)) {
    const bool stays = mode == reference::kZero || mode == (x > 0 ? reference::kDown : reference::kUp);
    if (stays) wanted = (expected & 0x8000) | largest;
  }
  const bool right = wanted == -1 ? (got & 0x7fffu) > format.infinity : got == wanted;
  if (!right)
    run.expect(
        false,
        reference::text(what, std::to_string(static_cast<double>(x)) + " in rounding " + std::to_string(mode),
                        got, static_cast<u32>(wanted)));
}
template <typename T>
void expect_integers(emulate::Run& run, const Format& format, const char* what,
                     const std::vector<u16>& operands, const std::vector<long long>& got, int& row,
                     int modes) {
  for (int mode = 0; mode < modes; ++mode, ++row) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Mode how = modes == 1 ? reference::kZero : kModes[mode];
      const T expected = reference::integer<T>(reference::value(format, operands[i]), how, sizeof(T) == 8);
      const T is = static_cast<T>(got[static_cast<std::size_t>(row) * operands.size() + i]);
      if (is != expected)
        run.expect(false,
                   reference::text(what, reference::hex(operands[i]) + " in rounding " + std::to_string(how),
                                   u64(is), u64(expected)));
    }
  }
}
template <typename T>
void expect_of_integers(emulate::Run& run, const Format& format, const char* what,
                        const std::vector<long long>& operands, const std::vector<u16>& got, int& row) {
  for (Mode mode : kModes) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      expect_bits(run, format, what, static_cast<long double>(static_cast<T>(operands[i])),
                  got[static_cast<std::size_t>(row) * operands.size() + i], mode);
    ++row;
  }
}

template <typename OfFloat, typename OfDouble, typename OfInteger, typename ToInteger>
void check_conversions(emulate::Run& run, const Format& format, const std::vector<u16>& special,
                       OfFloat of_float, OfDouble of_double, OfInteger of_integer, ToInteger to_integer) {
  std::vector<float> floats;
  std::vector<double> doubles;
  for (u16 bits : special) {
    const auto x = static_cast<double>(reference::value(format, bits));
    const auto next = static_cast<double>(reference::value(format, static_cast<u16>(bits + 1)));
    for (double y : {x, (x + next) / 2}) {
      floats.push_back(static_cast<float>(y));
      floats.push_back(std::nextafter(static_cast<float>(y), 0.0f));
      floats.push_back(std::nextafter(static_cast<float>(y), HUGE_VALF));
      doubles.push_back(y);
      doubles.push_back(
          std::nextafter(y, 0.0));  // binary32 rounds it to y, and half or bf16 must not see that
      doubles.push_back(std::nextafter(y, HUGE_VAL));
    }
  }
  u16* results = run.buffer<u16>("results", 4 * floats.size());
  of_float<<<1, static_cast<unsigned>(floats.size())>>>(run.buffer("floats", floats), results,
                                                        static_cast<int>(floats.size()));
  std::vector<u16> got = run.host(results);
  for (std::size_t i = 0; i < 4 * floats.size(); ++i)
    expect_bits(run, format, "a float", static_cast<long double>(floats[i % floats.size()]), got[i],
                kModes[i / floats.size()]);
  results = run.buffer<u16>("results", doubles.size());
  of_double<<<1, static_cast<unsigned>(doubles.size())>>>(run.buffer("doubles", doubles), results,
                                                          static_cast<int>(doubles.size()));
  got = run.host(results);
  for (std::size_t i = 0; i < doubles.size(); ++i)
    expect_bits(run, format, "a double", static_cast<long double>(doubles[i]), got[i], reference::kNearest);

  std::vector<long long> integers;
  for (int bit = 0; bit < 64; ++bit) {
    for (long long offset : {-1, 0, 1})
      integers.push_back(static_cast<long long>((1ull << bit) + static_cast<u64>(offset)));
    integers.push_back(
        static_cast<long long>(0x8180000000000001ull >> bit));  // a tie of bf16 and what is beyond it
    integers.push_back(static_cast<long long>(0x8180000000000000ull >> bit));
    integers.push_back(static_cast<long long>(~0x8010000000000001ull >> bit));
  }
  const auto count = integers.size();
  results = run.buffer<u16>("results", 24 * count);
  of_integer<<<1, static_cast<unsigned>(count)>>>(run.buffer("integers", integers), results,
                                                  static_cast<int>(count));
  got = run.host(results);
  int row = 0;
#define EXPECT_OF_INTEGER(name, word, type) expect_of_integers<type>(run, format, #word, integers, got, row);
  INTEGERS(EXPECT_OF_INTEGER, unused)

  std::vector<u16> operands = special;
  for (int i = 0; i < 128; ++i) operands.push_back(static_cast<u16>(i * 509));
  long long* numbers = run.buffer<long long>("numbers", 26 * operands.size());
  to_integer<<<1, static_cast<unsigned>(operands.size())>>>(run.buffer("operands", operands), numbers,
                                                            static_cast<int>(operands.size()));
  const std::vector<long long> whole = run.host(numbers);
  row = 0;
#define EXPECT_INTEGER(name, word, type) expect_integers<type>(run, format, #word, operands, whole, row, 4);
  INTEGERS(EXPECT_INTEGER, unused)
  expect_integers<signed char>(run, format, "char", operands, whole, row, 1);
  expect_integers<unsigned char>(run, format, "uchar", operands, whole, row, 1);
}

/// Products on a tie of bf16, and an addend that decides it from far away.
__global__ void far_addends(u16* results) {
  const __nv_bfloat16 a = __ushort_as_bfloat16(0x3f81);  // 1 + 2^-7
  const __nv_bfloat16 b = __ushort_as_bfloat16(0x3fc0);  // 1.5
  const __nv_bfloat16 tiny = __ushort_as_bfloat16(0x0d80);
  results[0] = bits_of(__hfma(a, b, __ushort_as_bfloat16(0)));
  results[1] = bits_of(__hfma(a, b, tiny));
  results[2] = bits_of(__hfma(a, b, __hneg(tiny)));
  const __nv_bfloat162 product =
      __hcmadd(__halves2bfloat162(a, b), __halves2bfloat162(b, a), __halves2bfloat162(tiny, tiny));
  results[3] = bits_of(__low2bfloat16(product));
  results[4] = bits_of(__high2bfloat16(product));
}

template <typename T>
__global__ void exchange(u16* out, T* sum) {
  const int lane = static_cast<int>(threadIdx.x);
  const T mine = number(static_cast<u16>(lane), T());
  out[lane] = bits_of(__shfl_sync(~0u, mine, 5));
  out[32 + lane] = bits_of(__shfl_up_sync(~0u, mine, 1));
  out[64 + lane] = bits_of(__shfl_down_sync(~0u, mine, 2, 16));
  out[96 + lane] = bits_of(__shfl_xor_sync(~0u, pair(mine, mine), 3).y);
  atomicAdd(sum, T(1.0f));
  __syncwarp();
  if (lane == 0) out[128] = bits_of(__ldcg(sum));
}
template <typename T>
void check_exchange(emulate::Run& run, const Format& format) {
  u16* out = run.buffer<u16>("out", 129);
  T* sum = run.buffer("sum", std::vector<T>{T(0.0f), T(0.0f)});
  exchange<<<1, 32>>>(out, sum);
  const std::vector<u16> got = run.host(out);
  for (int lane = 0; lane < 32; ++lane) {
    run.expect(got[lane] == 5 && got[32 + lane] == (lane == 0 ? 0 : lane - 1) &&
                   got[64 + lane] == (lane % 16 < 14 ? lane + 2 : lane) && got[96 + lane] == (lane ^ 3),
               "a shuffle of 16 bits brings another lane's");
  }
  run.expect(got[128] == reference::rounded(format, 32, reference::kNearest),
             "the sum of 32 atomics is not 32");
}

void check_kernel(emulate::Run& run) {
  const std::vector<u16> half{0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x03ff, 0x0400, 0x83ff, 0x3800, 0x3bff,
                              0x3c00, 0x3c01, 0xbc00, 0x3e00, 0xbe00, 0x4100, 0x3555, 0xb555, 0x6400, 0x6bff,
                              0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x1400, 0x9400, 0x0c01, 0x57f1};
  const std::vector<u16> bfloat16{0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x007f, 0x0080, 0x807f,
                                  0x3f00, 0x3f7f, 0x3f80, 0x3f81, 0xbf80, 0x3fc0, 0xbfc0, 0x4020,
                                  0x3eab, 0xbeab, 0x4b80, 0x4eff, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
                                  0x7fc0, 0xffc0, 0x2000, 0xa000, 0x1001, 0x5f01};
  check_arithmetic<__half>(run, reference::kHalf, half,
                           {0x0000, 0x8000, 0x3c00, 0x3c01, 0xbc01, 0x3e00, 0x3555, 0x57f1, 0x7c00, 0xfc00,
                            0x7e00, 0x4401, 0x9801});
  check_arithmetic<__nv_bfloat16>(run, reference::kBfloat16, bfloat16,
                                  {0x0000, 0x8000, 0x3f80, 0x3f81, 0xbf81, 0x3fc0, 0x3eab, 0x42fe, 0x7f80,
                                   0xff80, 0x7fc0, 0x4081, 0xbb01});
  check_conversions(run, reference::kHalf, half, of_float_half, of_double_half, of_integer_half,
                    to_integer_half);
  check_conversions(run, reference::kBfloat16, bfloat16, of_float_bfloat16, of_double_bfloat16,
                    of_integer_bfloat16, to_integer_bfloat16);
  u16* results = run.buffer<u16>("results", 5);
  far_addends<<<1, 1>>>(results);
  // 1.5 + 2^-7 + 2^-8 is halfway between 0x3fc1 and 0x3fc2. The complex product has a real part near 0,
  // rounded twice as two fused operations are: 0x3fc2 - (1.5 + 2^-7 + 2^-8) = 2^-8; its imaginary part is a²
  // + b² = 3.2656... .
  run.expect_equal("results", run.host(results), std::vector<u16>{0x3fc2, 0x3fc2, 0x3fc1, 0x3b80, 0x4051});
  check_exchange<__half>(run, reference::kHalf);
  check_exchange<__nv_bfloat16>(run, reference::kBfloat16);
}
