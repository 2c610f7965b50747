// Division by a number that is known before the kernel starts: a multiplication and a shift.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace gemm {

/// An int from 1 on to divide by (0, for "none", must not be divided by). The host computes the reciprocal; a
/// division of 0 <= n < 2^31 is then exact, and costs a GPU 2 or 3 instructions instead of some 30.
///
/// Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (PLDI 1994), theorem 4.2:
/// with 2^(l - 1) < d <= 2^l and m = ceil(2^(31 + l) / d), n / d = floor(n * m / 2^(31 + l)).
class Divisor {
 public:
  constexpr Divisor(int value = 0)  // NOLINT(google-explicit-constructor): it stands for the number
      : value_(value) {
    if (value <= 0) return;
    const int bits = std::bit_width(static_cast<std::uint32_t>(value) - 1);
    shift_ = 31 + bits;
    reciprocal_ =
        static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + static_cast<std::uint32_t>(value) - 1) /
                                   static_cast<std::uint32_t>(value));
  }
  constexpr operator int() const { return value_; }  // NOLINT(google-explicit-constructor)

  // Templates, so that a double is not converted to int.
  template <std::same_as<int> N>
  friend constexpr int operator/(N n, const Divisor& d) {
    return static_cast<int>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)) * d.reciprocal_ >>
                            d.shift_);
  }
  template <std::same_as<int> N>
  friend constexpr int operator%(N n, const Divisor& d) {
    return n - n / d * d.value_;
  }

 private:
  int value_;
  int shift_ = 0;
  std::uint32_t reciprocal_ = 0;
};

}  // namespace gemm
