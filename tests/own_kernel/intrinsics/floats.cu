// Arithmetic and conversions of float and double in each rounding. The host computes with exact sums and
// products of integers of 128 bits, or checks from both sides that no other number of the type is nearer.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "reference.h"

using reference::Mode;
using u64 = unsigned long long;

// ---- What the results of x + y and of others must be, by the sign of (candidate - exact result), which is
// exact.

/// A whole number of 2^-2200, in words of 32 bits with one sign: sums and products of doubles are exact.
class Big {
 public:
  explicit Big(double x) {
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(x), &exponent);
    add_shifted(static_cast<u64>(std::ldexp(fraction, 53)), exponent - 53 + kUnit);
    negative_ = std::signbit(x);
  }
  Big operator*(const Big& other)
      const {  // in units of 2^(-2 kUnit), shifted back: the caller's factors are whole there
    Big result(0.0);
    for (int i = 0; i < kWords; ++i) {
      if (words_[i] == 0) continue;
      for (int j = 0; j < kWords; ++j) {
        if (other.words_[j] == 0) continue;
        result.add_shifted(static_cast<u64>(words_[i]) * other.words_[j], 32 * (i + j) - kUnit);
      }
    }
    result.negative_ = negative_ != other.negative_;
    return result;
  }
  Big operator+(const Big& other) const {
    if (negative_ == other.negative_) {
      Big result = *this;
      for (int i = 0; i < kWords; ++i) result.add_shifted(other.words_[i], 32 * i);
      return result;
    }
    const Big& large = compare_magnitudes(*this, other) >= 0 ? *this : other;
    const Big& small = &large == this ? other : *this;
    Big result = large;
    long long borrow = 0;
    for (int i = 0; i < kWords; ++i) {
      long long word = static_cast<long long>(large.words_[i]) - small.words_[i] - borrow;
      borrow = word < 0;
      result.words_[i] = static_cast<std::uint32_t>(word + (borrow << 32));
    }
    return result;
  }
  Big operator-() const {
    Big result = *this;
    result.negative_ = !negative_;
    return result;
  }
  int sign() const {
    for (std::uint32_t word : words_)
      if (word != 0) return negative_ ? -1 : 1;
    return 0;
  }

 private:
  static constexpr int kUnit = 2240, kWords = 145;  // 2^-2240 to 2^2400
  void add_shifted(u64 value, int shift) {
    if (shift < 0) {
      value = -shift < 64 ? value >> -shift : 0;
      shift = 0;
    }
    unsigned __int128 wide = static_cast<unsigned __int128>(value) << (shift % 32);
    for (int i = shift / 32; wide != 0 && i < kWords; ++i) {
      wide += words_[i];
      words_[i] = static_cast<std::uint32_t>(wide);
      wide >>= 32;
    }
  }
  static int compare_magnitudes(const Big& a, const Big& b) {
    for (int i = kWords - 1; i >= 0; --i)
      if (a.words_[i] != b.words_[i]) return a.words_[i] < b.words_[i] ? -1 : 1;
    return 0;
  }
  std::uint32_t words_[kWords] = {};
  bool negative_ = false;
};

/// The exact result less a candidate: its sign decides.
template <typename T>
using Difference = int (*)(const T* operands, T candidate);
template <typename T>
int sum_less(const T* x, T candidate) {
  return (Big(x[0]) + Big(x[1]) + -Big(candidate)).sign();
}
template <typename T>
int difference_less(const T* x, T candidate) {
  return (Big(x[0]) + -Big(x[1]) + -Big(candidate)).sign();
}
template <typename T>
int product_less(const T* x, T candidate) {
  return (Big(x[0]) * Big(x[1]) + -Big(candidate)).sign();
}
template <typename T>
int fma_less(const T* x, T candidate) {
  return (Big(x[0]) * Big(x[1]) + Big(x[2]) + -Big(candidate)).sign();
}
template <typename T>
int quotient_less(const T* x, T candidate) {  // x / y - c has the sign of (x - c y) / y
  return (Big(x[0]) + -(Big(candidate) * Big(x[1]))).sign() * (std::signbit(x[1]) ? -1 : 1);
}
template <typename T>
int root_less(const T* x, T candidate) {
  return (Big(x[0]) + -(Big(candidate) * Big(candidate))).sign();
}

/// Whether `got` is the exact result rounded so. Its neighbours and the halves between them are the
/// witnesses.
template <typename T>
bool is_rounded(Difference<T> less, const T* x, T got, Mode mode) {
  const T largest = std::numeric_limits<T>::max();
  if (std::isnan(got)) return false;
  if (std::isinf(got)) {  // beyond the largest number, or beyond what rounds to it
    const T bound = got > 0 ? largest : -largest;
    const int beyond = less(x, bound) * (got > 0 ? 1 : -1);
    return beyond > 0 && mode != reference::kZero && mode != (got > 0 ? reference::kDown : reference::kUp);
  }
  const int remainder = less(x, got);
  if (remainder == 0) return true;
  const bool toward_zero_was_up = got < 0 || (got == 0 && std::signbit(got));
  if (mode == reference::kDown || (mode == reference::kZero && !toward_zero_was_up)) {
    if (remainder < 0) return false;
    return got == largest || less(x, std::nextafter(got, std::numeric_limits<T>::infinity())) < 0;
  }
  if (mode == reference::kUp || mode == reference::kZero) {
    if (remainder > 0) return false;
    return got == -largest || less(x, std::nextafter(got, -std::numeric_limits<T>::infinity())) > 0;
  }
  return true;
}

// ---- The device's results.

#define ROUNDINGS(X, name, less) \
  X(name##_rz, less, reference::kZero) X(name##_rd, less, reference::kDown) X(name##_ru, less, reference::kUp)
#define FLOATS_2(X)                     \
  ROUNDINGS(X, __fadd, sum_less)        \
  ROUNDINGS(X, __fsub, difference_less) \
  ROUNDINGS(X, __fmul, product_less)    \
  ROUNDINGS(X, __fdiv, quotient_less)
#define DOUBLES_2(X)                    \
  ROUNDINGS(X, __dadd, sum_less)        \
  ROUNDINGS(X, __dsub, difference_less) \
  ROUNDINGS(X, __dmul, product_less)    \
  ROUNDINGS(X, __ddiv, quotient_less)
#define STORE_1(name, less, mode) results[n++ * count + i] = name(x[i]);
#define STORE_2(name, less, mode) results[n++ * count + i] = name(x[i], y[i]);
#define STORE_3(name, less, mode) results[n++ * count + i] = name(x[i], y[i], z[i]);
#define COUNT(name, less, mode) +1

template <typename T>
__global__ void two(const T* x, const T* y, T* results, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  int n = 0;
  if constexpr (sizeof(T) == 4) {
    FLOATS_2(STORE_2)
  } else {
    DOUBLES_2(STORE_2)
  }
}
template <typename T>
__global__ void three(const T* x, const T* y, const T* z, T* results, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  int n = 0;
  if constexpr (sizeof(T) == 4) {
    ROUNDINGS(STORE_3, __fmaf, fma_less)
  } else {
    ROUNDINGS(STORE_3, __fma, fma_less)
  }
}
template <typename T>
__global__ void one(const T* x, T* results, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  int n = 0;
  if constexpr (sizeof(T) == 4) {
    ROUNDINGS(STORE_1, __fsqrt, root_less)
  } else {
    ROUNDINGS(STORE_1, __dsqrt, root_less)
  }
}

template <typename T>
std::vector<T> special() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{T(1),
                        T(3),
                        T(-3),
                        T(1) / T(3),
                        T(-7) / T(5),
                        T(1) + Limits::epsilon(),
                        T(-1) + Limits::epsilon() / 2,
                        Limits::max(),
                        Limits::min(),
                        -Limits::min(),
                        Limits::denorm_min(),
                        Limits::min() - Limits::denorm_min(),
                        -Limits::denorm_min(),
                        T(1e20),
                        T(-1e-20),
                        T(0x1p-100)};
  return values;
}

template <typename T>
void expect_rounded(emulate::Run& run, const char* what, Difference<T> less, const T* operands, T got,
                    Mode mode) {
  if (is_rounded(less, operands, got, mode)) return;
  u64 bits = 0;
  std::memcpy(&bits, &got, sizeof got);
  run.expect(false, std::string(what) + " of " + std::to_string(operands[0]) + ", " +
                        std::to_string(operands[1]) + " and " + std::to_string(operands[2]) + " is " +
                        reference::hex(bits));
}
template <typename T>
void check_arithmetic(emulate::Run& run) {
  const std::vector<T> values = special<T>();
  std::vector<T> x, y, z, third;
  for (T a : values) {
    for (T b : values) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  int count = static_cast<int>(x.size());
  T* results = run.buffer<T>("results", x.size() * 12);
  two<<<(count + 127) / 128, 128>>>(run.buffer("x", x), run.buffer("y", y), results, count);
  std::vector<T> got = run.host(results);
  int n = 0;
#define EXPECT_2(name, less, mode)                                              \
  for (int i = 0; i < count; ++i) {                                             \
    const T operands[3] = {x[i], y[i], 0};                                      \
    expect_rounded<T>(run, #name, less<T>, operands, got[n * count + i], mode); \
  }                                                                             \
  ++n;
  if constexpr (sizeof(T) == 4) {
    FLOATS_2(EXPECT_2)
  } else {
    DOUBLES_2(EXPECT_2)
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    z.push_back(values[(i * 7 + 3) % values.size()]);
    if (i % 3 == 0) z.back() = -(x[i] * y[i]);  // what is left is the product's error
    if (!std::isfinite(z.back())) z.back() = T(1);
  }
  results = run.buffer<T>("results", x.size() * 3);
  three<<<(count + 127) / 128, 128>>>(run.buffer("x", x), run.buffer("y", y), run.buffer("z", z), results,
                                      count);
  got = run.host(results);
  const Mode modes[] = {reference::kZero, reference::kDown, reference::kUp};
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < count; ++i) {
      const T operands[3] = {x[i], y[i], z[i]};
      expect_rounded<T>(run, "fma", fma_less<T>, operands, got[row * count + i], modes[row]);
    }
  }
  std::vector<T> positive;
  for (T value : values)
    if (value > 0) positive.push_back(value);
  count = static_cast<int>(positive.size());
  results = run.buffer<T>("results", positive.size() * 3);
  one<<<1, count>>>(run.buffer("positive", positive), results, count);
  got = run.host(results);
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < count; ++i) {
      const T operands[3] = {positive[i], 0, 0};
      expect_rounded<T>(run, "sqrt", root_less<T>, operands, got[row * count + i], modes[row]);
    }
  }
}

// ---- Conversions.

#define TO_INTEGERS(X)               \
  X(__float2int, float, int)         \
  X(__float2uint, float, unsigned)   \
  X(__float2ll, float, long long)    \
  X(__float2ull, float, u64)         \
  X(__double2int, double, int)       \
  X(__double2uint, double, unsigned) \
  X(__double2ll, double, long long)  \
  X(__double2ull, double, u64)
#define STORE_INTEGER(name, From, To)                                              \
  results[n++ * count + i] = static_cast<u64>(name##_rn(static_cast<From>(x[i]))); \
  results[n++ * count + i] = static_cast<u64>(name##_rz(static_cast<From>(x[i]))); \
  results[n++ * count + i] = static_cast<u64>(name##_rd(static_cast<From>(x[i]))); \
  results[n++ * count + i] = static_cast<u64>(name##_ru(static_cast<From>(x[i])));
__global__ void to_integers(const double* x, u64* results, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  int n = 0;
  TO_INTEGERS(STORE_INTEGER)
}
#define OF_INTEGERS(X)      \
  X(__int2float, int)       \
  X(__uint2float, unsigned) \
  X(__ll2float, long long)  \
  X(__ull2float, u64)       \
  X(__ll2double, long long) \
  X(__ull2double, u64)
#define STORE_FLOATS(name, From)                                                      \
  results[n++ * count + i] = static_cast<double>(name##_rn(static_cast<From>(x[i]))); \
  results[n++ * count + i] = static_cast<double>(name##_rz(static_cast<From>(x[i]))); \
  results[n++ * count + i] = static_cast<double>(name##_rd(static_cast<From>(x[i]))); \
  results[n++ * count + i] = static_cast<double>(name##_ru(static_cast<From>(x[i])));
__global__ void of_integers(const u64* x, double* results, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  int n = 0;
  OF_INTEGERS(STORE_FLOATS)
}
constexpr Mode kModes[] = {reference::kNearest, reference::kZero, reference::kDown, reference::kUp};

/// An integer with so many bits left, by the integers beside it.
double rounded_integer(bool negative, u64 magnitude, int bits, Mode mode) {
  int shift = 0;
  while (magnitude >> shift >> bits != 0) ++shift;
  const u64 low = shift == 0 ? 0 : magnitude & ((1ull << shift) - 1);
  u64 kept = magnitude >> shift;
  const u64 half = shift == 0 ? 1 : 1ull << (shift - 1);
  const bool up = mode == reference::kNearest
                      ? low > half || (low == half && (kept & 1) != 0)
                      : low != 0 && mode == (negative ? reference::kDown : reference::kUp);
  kept += up;
  const double result = std::ldexp(static_cast<double>(kept), shift);
  return negative ? -result : result;
}

void check_conversions(emulate::Run& run) {
  std::vector<double> x{0.0,      -0.0,      0.5, -0.5, 1.5,  2.5,  -2.5,  0.75,  1e-40, -1e-40,
                        INFINITY, -INFINITY, NAN, 3e9,  -3e9, 1e30, -1e30, 255.5, -1.0};
  for (int bit : {7, 8, 15, 16, 31, 32, 63, 64}) {
    for (double offset : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
      x.push_back(std::ldexp(1.0, bit) + offset);
      x.push_back(-std::ldexp(1.0, bit) + offset);
    }
  }
  int count = static_cast<int>(x.size());
  u64* words = run.buffer<u64>("words", x.size() * 32);
  to_integers<<<1, count>>>(run.buffer("x", x), words, count);
  const std::vector<u64> integers = run.host(words);
  int n = 0;
#define EXPECT_INTEGER(name, From, To)                                                                   \
  for (Mode mode : kModes) {                                                                             \
    for (int i = 0; i < count; ++i) {                                                                    \
      const To expected =                                                                                \
          reference::integer<To>(static_cast<From>(x[i]), mode, sizeof(To) == 8 || sizeof(From) == 8);   \
      const To got = static_cast<To>(integers[n * count + i]);                                           \
      if (got != expected)                                                                               \
        run.expect(false,                                                                                \
                   reference::text(#name, std::to_string(x[i]) + " in rounding " + std::to_string(mode), \
                                   u64(got), u64(expected)));                                            \
    }                                                                                                    \
    ++n;                                                                                                 \
  }
  TO_INTEGERS(EXPECT_INTEGER)

  std::vector<u64> whole{0, 1, 2};
  for (int bit = 20; bit < 64; ++bit) {
    for (u64 offset : {~0ull, 0ull, 1ull, 2ull, 3ull}) {
      whole.push_back((1ull << bit) + offset);
      whole.push_back(~((1ull << bit) + offset));
    }
  }
  count = static_cast<int>(whole.size());
  double* numbers = run.buffer<double>("numbers", whole.size() * 24);
  of_integers<<<1, count>>>(run.buffer("whole", whole), numbers, count);
  const std::vector<double> got = run.host(numbers);
  n = 0;
#define EXPECT_FLOAT(name, From)                                                                       \
  for (Mode mode : kModes) {                                                                           \
    for (int i = 0; i < count; ++i) {                                                                  \
      const From value = static_cast<From>(whole[i]);                                                  \
      const bool negative = std::is_signed_v<From> && static_cast<long long>(value) < 0;               \
      const double expected = rounded_integer(negative, negative ? 0 - u64(value) : u64(value),        \
                                              #name[std::strlen(#name) - 1] == 't' ? 24 : 53, mode);   \
      if (got[n * count + i] != expected || std::signbit(got[n * count + i]) != negative)              \
        run.expect(false, std::string(#name) + " of " + reference::hex(u64(value)) + " in rounding " + \
                              std::to_string(mode) + " is " + std::to_string(got[n * count + i]) +     \
                              ", expected " + std::to_string(expected));                               \
    }                                                                                                  \
    ++n;                                                                                               \
  }
  OF_INTEGERS(EXPECT_FLOAT)
}

// ---- What has one value for each operand.

__global__ void others(double* results, const float* p) {
  int n = 0;
  results[n++] = __saturatef(-1.0f);
  results[n++] = __saturatef(0.25f);
  results[n++] = __saturatef(3.0f);
  results[n++] = __saturatef(p[0]);  // a NaN
  results[n++] = __double2float_rd(1 + 0x1p-40);
  results[n++] = __double2float_ru(1 + 0x1p-40);
  results[n++] = __double2float_rz(-1 - 0x1p-40);
  results[n++] = __double2float_rn(1 + 0x1p-24 + 0x1p-50);
  results[n++] = __hiloint2double(__double2hiint(-1.5), __double2loint(-1.5));
  results[n++] = __longlong_as_double(__double_as_longlong(0.1));
  results[n++] = __int2double_rn(-7);
  results[n++] = __frcp_ru(3.0f);
  results[n++] = __frcp_rd(3.0f);
  results[n++] = sinpif(1.0f);
  results[n++] = cospif(0.5f);
  results[n++] = sinpi(-0.5);
  results[n++] = cospi(3.0);
  results[n++] = min(p[0], 2.0f);
  results[n++] = max(-1.0f, p[0]);
  results[n++] = norm3d(2.0, 3.0, 6.0);
  results[n++] = norm4df(1.0f, 1.0f, 1.0f, 1.0f);
  results[n++] = rhypot(3.0, 4.0);
  results[n++] = normcdff(0.0f);
  results[n++] = __fdividef(1.0f, 0x1.8p126f);
  results[n++] = isnan(p[0]) ? 1 : 0;
  results[n++] = isinf(p[1]) ? 1 : 0;
  results[n++] = signbit(p[2]) ? 1 : 0;
  results[n++] = rsqrt(0.25);
  results[n++] = rcbrt(-8.0);
  results[n++] = exp10f(3.0f);
}
/// Approximations, within 2^-20 of C++'s.
__global__ void approximations(float* results, const float* x, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  results[0 * count + i] = __expf(x[i]);
  results[1 * count + i] = __exp10f(x[i]);
  results[2 * count + i] = __logf(x[i]);
  results[3 * count + i] = __log2f(x[i]);
  results[4 * count + i] = __log10f(x[i]);
  results[5 * count + i] = __powf(x[i], 1.5f);
  results[6 * count + i] = __tanf(x[i]);
  __sincosf(x[i], &results[7 * count + i], &results[8 * count + i]);
  results[9 * count + i] = __frsqrt_rn(x[i]);
  results[10 * count + i] = __fdividef(x[i], 3.0f);
}

void check_kernel(emulate::Run& run) {
  check_arithmetic<float>(run);
  check_arithmetic<double>(run);
  check_conversions(run);

  double* results = run.buffer<double>("results", 30);
  others<<<1, 1>>>(results, run.buffer("p", std::vector<float>{NAN, -INFINITY, -0.0f}));
  const double third = 1.0 / 3;
  const float near = static_cast<float>(third);
  const float below = near < third ? near : std::nextafter(near, 0.0f);
  run.expect_equal("results", run.host(results),
                   std::vector<double>{0,
                                       0.25,
                                       1,
                                       0,
                                       1,
                                       1 + 0x1p-23,
                                       -1,
                                       1 + 0x1p-23,
                                       -1.5,
                                       0.1,
                                       -7,
                                       static_cast<double>(std::nextafter(below, 1.0f)),
                                       static_cast<double>(below),
                                       0,
                                       0,
                                       -1,
                                       -1,
                                       2,
                                       -1,
                                       7,
                                       2,
                                       0.2,
                                       0.5,
                                       0,
                                       1,
                                       1,
                                       1,
                                       2,
                                       -0.5,
                                       1000});

  const std::vector<float> x{0.125f, 0.5f, 0.75f, 1.25f, 1.5f, 0.1f};
  const int count = static_cast<int>(x.size());
  float* near_ones = run.buffer<float>("near", x.size() * 11);
  approximations<<<1, count>>>(near_ones, run.buffer("x", x), count);
  std::vector<double> expected;
  const auto all = [&](auto f) {
    for (float value : x) expected.push_back(f(static_cast<double>(value)));
  };
  all([](double v) { return std::exp(v); });
  all([](double v) { return std::pow(10.0, v); });
  all([](double v) { return std::log(v); });
  all([](double v) { return std::log2(v); });
  all([](double v) { return std::log10(v); });
  all([](double v) { return std::pow(v, 1.5); });
  all([](double v) { return std::tan(v); });
  all([](double v) { return std::sin(v); });
  all([](double v) { return std::cos(v); });
  all([](double v) { return 1 / std::sqrt(v); });
  all([](double v) { return v / 3; });
  run.expect_close("near", run.host(near_ones), expected, 0x1p-20, 0x1p-20);
}
