#include "harness/verify/types/fp8_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace harness {
namespace {

constexpr int kFp8Products = 32;  // of an instruction
constexpr int kFp8Fraction = 13;
constexpr int kNoFp8Exponent = -1000;

struct Fp8Factor {
  double value;
  int exponent;  // of the format: subnormal numbers have the smallest
};

Fp8Factor fp8_factor_of(gemm::Type type, std::uint8_t bits) {
  const bool four = type == gemm::Type::kE4m3;
  const float value = four ? gemm::to_float(gemm::e4m3{bits}) : gemm::to_float(gemm::e5m2{bits});
  if (value == 0) return {0, kNoFp8Exponent};
  return {static_cast<double>(value), std::max(std::ilogb(value), four ? -6 : -14)};
}

/// Towards 0.
long whole_units(double value, int unit) {
  return static_cast<long>(std::ldexp(value, -unit));
}

}  // namespace

float fp8_chain(const gemm::Types& types, const std::uint8_t* a, const std::uint8_t* b, int k) {
  float accumulator = 0;
  for (int first = 0; first < k; first += kFp8Products) {
    const int count = std::min(kFp8Products, k - first);
    Fp8Factor of_a[kFp8Products];
    Fp8Factor of_b[kFp8Products];
    int largest = accumulator == 0 ? kNoFp8Exponent : std::ilogb(accumulator);
    for (int i = 0; i < count; ++i) {
      of_a[i] = fp8_factor_of(types.a, a[first + i]);
      of_b[i] = fp8_factor_of(types.b, b[first + i]);
      largest = std::max(largest, of_a[i].exponent + of_b[i].exponent);
    }
    if (largest <= kNoFp8Exponent / 2) continue;  // all products are 0
    const int unit = largest - kFp8Fraction;
    long sum = whole_units(static_cast<double>(accumulator), unit);
    for (int i = 0; i < count; ++i) sum += whole_units(of_a[i].value * of_b[i].value, unit);
    const int excess = std::bit_width(static_cast<unsigned long>(std::labs(sum))) - (kFp8Fraction + 1);
    if (excess > 0) sum = sum / (1L << excess) * (1L << excess);
    accumulator = static_cast<float>(std::ldexp(static_cast<double>(sum), unit));
  }
  return accumulator;
}

}  // namespace harness
