// Division by a multiplication and a shift: exact, for every divisor and every dividend it is made for.
#include "gemm/schedule/divisor.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.h"

namespace {

using gemm::Divisor;

constexpr int kMost = std::numeric_limits<int>::max();  // 2^31 - 1

/// Compares quotient and remainder with the machine's; says where they differ, or nothing.
std::string mistake(int n, int d, const Divisor& divisor) {
  if (n / divisor == n / d && n % divisor == n % d) return "";
  return std::to_string(n) + " / " + std::to_string(d) + " = " + std::to_string(n / divisor) + ", rest " +
         std::to_string(n % divisor);
}

/// The dividends at which a wrong reciprocal shows first: multiples of d and their neighbours, the smallest
/// and the largest.
std::vector<int> dividends(int d) {
  std::vector<int> all{0, 1, kMost - 1, kMost};
  const std::int64_t last = kMost / d;
  for (const std::int64_t quotient : {std::int64_t{1}, std::int64_t{2}, last / 2, last - 1, last}) {
    for (int next = -1; next <= 1; ++next) {
      const std::int64_t n = quotient * d + next;
      if (n >= 0 && n <= kMost) all.push_back(static_cast<int>(n));
    }
  }
  return all;
}

/// 1, 2, 3, all powers of two and their neighbours up to 2^31 - 1.
std::vector<int> special_divisors() {
  std::vector<int> all;
  for (int bits = 0; bits <= 31; ++bits) {
    for (int next = -1; next <= 1; ++next) {
      const std::int64_t d = (std::int64_t{1} << bits) + next;
      if (d >= 1 && d <= kMost) all.push_back(static_cast<int>(d));
    }
  }
  return all;
}

constexpr bool right_for_small_numbers() {
  for (int d = 1; d <= 20; ++d) {
    for (int n = 0; n <= 100; ++n) {
      if (n / Divisor(d) != n / d || n % Divisor(d) != n % d) return false;
    }
  }
  return true;
}
static_assert(right_for_small_numbers(), "the compiler can divide with it, too");
static_assert(kMost / Divisor(kMost) == 1 && kMost % Divisor(kMost - 1) == 1);

}  // namespace

TEST_CASE("divisor: every small number by every small number") {
  for (int d = 1; d <= 700; ++d) {
    const Divisor divisor(d);
    for (int n = 0; n <= 3000; ++n) {
      if (const std::string wrong = mistake(n, d, divisor); !wrong.empty()) FAIL(wrong);
    }
  }
}

TEST_CASE("divisor: powers of two and their neighbours, where the quotient changes") {
  int largest = 0;
  for (const int d : special_divisors()) {
    const Divisor divisor(d);
    largest = d;
    for (const int n : dividends(d)) {
      if (const std::string wrong = mistake(n, d, divisor); !wrong.empty()) FAIL(wrong);
    }
  }
  CHECK(largest == kMost);
}

TEST_CASE("divisor: random numbers up to 2^31 - 1") {
  std::mt19937 random(31);
  std::uniform_int_distribution<int> any(0, kMost);
  const auto check_all = [&](int d, int count) {
    const Divisor divisor(d);
    for (const int n : dividends(d)) {
      if (const std::string wrong = mistake(n, d, divisor); !wrong.empty()) FAIL(wrong);
    }
    for (int i = 0; i < count; ++i) {
      const int n = any(random);
      if (const std::string wrong = mistake(n, d, divisor); !wrong.empty()) FAIL(wrong);
    }
  };
  for (const int d : special_divisors()) check_all(d, 2000);
  for (int i = 0; i < 20000; ++i) {
    // As many small ones as large ones.
    const int bits = std::uniform_int_distribution<int>(0, 30)(random);
    check_all(1 + any(random) % (1 << bits), 20);
    check_all(1 + any(random) % kMost, 5);
  }
}

TEST_CASE("divisor: it stands for its number") {
  CHECK(int{Divisor(7)} == 7);
  CHECK(int{Divisor(kMost)} == kMost);
  CHECK(int{Divisor()} == 0);   // none; never divided by
  CHECK(int{Divisor(0)} == 0);  // as the rows of a last raster group that is not there
  CHECK(3 * Divisor(5) == 15);
  CHECK(Divisor(5) - 1 == 4);
  CHECK(Divisor(12) / 5 == 2);  // as a dividend, too
  CHECK(Divisor(12) % Divisor(5) == 2);
  Divisor changed(9);
  changed = 4;
  CHECK(17 / changed == 4);
  CHECK(17 % changed == 1);
}

TEST_CASE("divisor: other types than int are divided by its number as they are") {
  const Divisor two(2);
  STATIC_REQUIRE(std::is_same_v<decltype(7.0 / two), double>);
  STATIC_REQUIRE(std::is_same_v<decltype(7.0f / two), float>);
  STATIC_REQUIRE(std::is_same_v<decltype(std::int64_t{7} / two), std::int64_t>);
  STATIC_REQUIRE(std::is_same_v<decltype(7 / two), int>);
  CHECK(7.0 / two == 3.5);
  CHECK(1e12 / two == 5e11);
  CHECK((std::int64_t{1} << 40) / two == std::int64_t{1} << 39);
  CHECK(7 / two == 3);
}
