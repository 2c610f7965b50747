#include "harness/verify/inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/base/parallel.h"
#include "harness/verify/reference.h"

namespace {

using harness::Operand;
using harness::Pattern;

constexpr Pattern kAll[] = {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity,
                            Pattern::kArange};

std::vector<float> values(Pattern pattern, Operand operand, int rows, int columns, std::uint64_t seed = 1) {
  std::vector<float> result;
  for (const gemm::bf16 value :
       harness::host_input(harness::input_rule(pattern, seed, operand, rows, columns)))
    result.push_back(gemm::to_float(value));
  return result;
}

TEST_CASE("in the cancelling pattern every product has its opposite") {
  constexpr int kK = 48;
  const std::vector<float> a = values(Pattern::kCancelling, Operand::kA, 3, kK);
  const std::vector<float> b = values(Pattern::kCancelling, Operand::kB, 3, kK);
  for (int row = 0; row < 3; ++row) {
    for (int k = 0; k < kK / 2; ++k) {
      const auto first = static_cast<std::size_t>(row * kK + k);
      const std::size_t second = first + kK / 2;
      CHECK(a[first] == a[second]);
      CHECK(b[first] == -b[second]);
    }
  }
  CHECK(a[0] != a[1]);
}

struct Moments {
  double mean = 0;
  double variance = 0;
};
Moments moments(const std::vector<float>& samples) {
  const auto n = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  double squares = 0;
  for (const float sample : samples) squares += (sample - mean) * (sample - mean);
  return {mean, squares / n};
}

TEST_CASE("parallel_for covers every index once, in order within a piece") {
  for (const std::int64_t count : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
    harness::parallel_for(count, 3, [&](std::int64_t begin, std::int64_t end) {
      REQUIRE(end - begin <= 3);
      for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
    });
    for (const auto& times : seen) REQUIRE(times == 1);
  }
}

TEST_CASE("the random numbers are those of SplitMix64") {
  // The first outputs of the published generator, seeded with 0.
  CHECK(harness::random_bits(0, 0) == 0xe220a8397b1dcdaf);
  CHECK(harness::random_bits(0, 1) == 0x6e789e6aa1b965f4);
  CHECK(harness::random_bits(0, 2) == 0x06c45d188009454f);
}

TEST_CASE("inputs are pinned: records and reports name seeds, so the bits must not change") {
  const auto bits = [](Pattern pattern, Operand operand, int row, int column) {
    return harness::input_value(harness::input_rule(pattern, 1, operand, 200, 72), row, column,
                                harness::normal_quantiles())
        .bits;
  };
  CHECK(bits(Pattern::kExact, Operand::kA, 0, 0) == 0xc2ac);
  CHECK(bits(Pattern::kExact, Operand::kB, 199, 71) == 0x4348);
  CHECK(bits(Pattern::kNormal, Operand::kA, 0, 0) == 0xbede);
  CHECK(bits(Pattern::kUniform, Operand::kA, 3, 5) == 0xbebf);
  CHECK(bits(Pattern::kIdentity, Operand::kB, 3, 5) == 0x3105);
  CHECK(bits(Pattern::kArange, Operand::kA, 3, 5) == 0xc378);
}

TEST_CASE("special: five of 17 rows have a NaN, an infinity, subnormal numbers or zeros") {
  constexpr int kRows = 17 * 8;
  constexpr int kColumns = 300;
  const auto rule = harness::input_rule(Pattern::kSpecial, 3, Operand::kB, kRows, kColumns);
  const std::vector<float> special = values(Pattern::kSpecial, Operand::kB, kRows, kColumns, 3);
  const std::vector<float> exact = values(Pattern::kExact, Operand::kB, kRows, kColumns, 3);
  int rows[6] = {};
  std::vector<int> places;
  for (int row = 0; row < kRows; ++row) {
    const auto kind = harness::special_of(rule, row);
    ++rows[static_cast<int>(kind)];
    int same = 0;
    for (int column = 0; column < kColumns; ++column) {
      const auto index = static_cast<std::size_t>(row * kColumns + column);
      const float value = special[index];
      same += value == exact[index] ? 1 : 0;
      if (!std::isfinite(value)) places.push_back(column);
      if (std::isnan(value)) REQUIRE(kind == harness::Special::kNan);
      if (std::isinf(value))
        REQUIRE(kind == (value > 0 ? harness::Special::kInfinity : harness::Special::kMinusInfinity));
      if (kind == harness::Special::kZero) REQUIRE(value == 0);
      if (kind == harness::Special::kSubnormal) REQUIRE(std::abs(value) < 0x1p-126f);
    }
    const bool all = kind == harness::Special::kSubnormal || kind == harness::Special::kZero;
    CHECK(same == (kind == harness::Special::kNone ? kColumns : all ? 0 : kColumns - 1));
  }
  for (int kind = 1; kind < 6; ++kind) CHECK(rows[kind] == 8);
  std::sort(places.begin(), places.end());
  CHECK(places.size() == 24);
  CHECK(std::unique(places.begin(), places.end()) - places.begin() > 18);  // they are spread over K
}

TEST_CASE("exact_range is as large as exact sums allow") {
  for (const int k : {1, 7, 255, 256, 257, 1000, 4096, 28672, 262144}) {
    const std::int64_t r = harness::exact_range(k);
    CAPTURE(k, r);
    CHECK(r >= 1);
    CHECK(r * r * k < (1 << 24));
    if (r < 256) {
      CHECK((r + 1) * (r + 1) * k >= (1 << 24));
    }
  }
  CHECK(harness::exact_range(1) == 256);
  CHECK(harness::exact_range(4096) == 63);
  CHECK(harness::exact_range(262144) == 7);
}

TEST_CASE("exact: integers of the whole range, both signs, no zeros") {
  for (const int k : {3, 300, 4096}) {
    const int range = harness::exact_range(k);
    const std::vector<float> a = values(Pattern::kExact, Operand::kA, 200000 / k, k);
    std::vector<int> count(static_cast<std::size_t>(2 * range + 1));
    for (const float value : a) {
      REQUIRE(value == std::round(value));
      REQUIRE(std::abs(value) <= range);
      ++count[static_cast<std::size_t>(static_cast<int>(value) + range)];
    }
    CHECK(count[static_cast<std::size_t>(range)] == 0);
    // Uniform: chi-squared with 2 r - 1 degrees of freedom, whose standard deviation is sqrt(2 (2 r - 1)).
    const double expected = static_cast<double>(a.size()) / (2 * range);
    double chi_squared = 0;
    for (int value = -range; value <= range; ++value) {
      if (value == 0) continue;
      const double difference = count[static_cast<std::size_t>(value + range)] - expected;
      chi_squared += difference * difference / expected;
    }
    CAPTURE(k, range);
    CHECK(std::abs(chi_squared - (2 * range - 1)) < 5 * std::sqrt(2.0 * (2 * range - 1)));
  }
}

TEST_CASE("exact and arange: binary32 sums do not depend on the order") {
  std::mt19937 generator(7);
  for (const Pattern pattern : {Pattern::kExact, Pattern::kArange}) {
    for (const int k : {1, 100, 4096, 20000}) {
      const std::vector<float> a = values(pattern, Operand::kA, 2, k);
      const std::vector<float> b = values(pattern, Operand::kB, 3, k);
      std::vector<std::size_t> order(static_cast<std::size_t>(k));
      std::iota(order.begin(), order.end(), 0u);
      double exact = 0;
      for (const std::size_t i : order) exact += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      // Sorted by size is the worst order: the partial sums become as large as they can.
      std::sort(order.begin(), order.end(),
                [&](std::size_t i, std::size_t j) { return a[i] * b[i] < a[j] * b[j]; });
      for (int trial = 0; trial < 4; ++trial) {
        float sum = 0;
        for (const std::size_t i : order) sum = std::fma(a[i], b[i], sum);
        REQUIRE(static_cast<double>(sum) == exact);
        std::shuffle(order.begin(), order.end(), generator);
      }
    }
  }
}

TEST_CASE("exact: even the largest possible sum fits") {
  for (const int k : {1, 255, 256, 4096, 262144}) {
    const auto r = static_cast<float>(harness::exact_range(k));
    CHECK(gemm::to_float(gemm::to_bf16(r)) == r);
    CHECK(static_cast<double>(r) * r * k < 0x1p24);
  }
}

TEST_CASE("normal: moments and distribution of N(0, 1)") {
  const std::vector<float> a = values(Pattern::kNormal, Operand::kA, 1000, 1000);
  const auto [mean, variance] = moments(a);
  CHECK(std::abs(mean) < 0.005);  // 5 standard deviations of the mean
  CHECK(std::abs(variance - 1) < 0.01);
  for (const double x : {-2.5, -1.0, -0.1, 0.05, 0.7, 3.0}) {
    const double below =
        static_cast<double>(std::count_if(a.begin(), a.end(), [&](float v) { return v < x; }));
    const double expected = 0.5 * std::erfc(-x / std::sqrt(2.0));
    CAPTURE(x);
    CHECK(std::abs(below / 1e6 - expected) < 0.004);  // 5 standard deviations and half a bf16 step
  }
  CHECK(*std::max_element(a.begin(), a.end()) > 4);
  CHECK(*std::min_element(a.begin(), a.end()) < -4);
}

TEST_CASE("normal: the table is the quantile function") {
  const gemm::bf16* table = harness::normal_quantiles();
  for (int i = 0; i < harness::kNormalQuantiles; ++i) {
    if (i > 0) {
      REQUIRE(gemm::to_float(table[i - 1]) <= gemm::to_float(table[i]));
    }
    // The bf16 interval around the entry contains the quantile.
    const double p = (i + 0.5) / harness::kNormalQuantiles;
    const double x = static_cast<double>(gemm::to_float(table[i]));
    REQUIRE(std::erf(x * (1 - 0x1p-8) / std::sqrt(2.0)) <= p);
    REQUIRE(std::erf(x * (1 + 0x1p-8) / std::sqrt(2.0)) >= p);
  }
}

TEST_CASE("uniform: moments, ends and symmetry") {
  const std::vector<float> a = values(Pattern::kUniform, Operand::kB, 1000, 1000);
  const auto [mean, variance] = moments(a);
  CHECK(std::abs(mean) < 0.003);
  CHECK(std::abs(variance - 1.0 / 3) < 0.002);
  CHECK(*std::max_element(a.begin(), a.end()) == 1);
  CHECK(*std::min_element(a.begin(), a.end()) == -1);
}

TEST_CASE("identity: D shows the coded operand, element by element") {
  for (const std::uint64_t seed : {1, 2}) {
    const gemm::Shape shape{70, 50, 40};
    const auto a_rule = harness::input_rule(Pattern::kIdentity, seed, Operand::kA, shape.m, shape.k);
    const auto b_rule = harness::input_rule(Pattern::kIdentity, seed, Operand::kB, shape.n, shape.k);
    CHECK(harness::is_identity(a_rule) == (seed == 1));
    CHECK(harness::is_identity(b_rule) == (seed == 2));
    const auto a = harness::host_input(a_rule);
    const auto b = harness::host_input(b_rule);
    std::vector<double> d(static_cast<std::size_t>(shape.m * shape.n));
    harness::host_reference({shape, a.data(), b.data(), nullptr}, d.data(), nullptr);
    for (int i = 0; i < shape.m; ++i) {
      for (int j = 0; j < shape.n; ++j) {
        const gemm::bf16 expected = seed == 1 ? b[static_cast<std::size_t>(j * shape.k + i % shape.k)]
                                              : a[static_cast<std::size_t>(i * shape.k + j % shape.k)];
        REQUIRE(d[static_cast<std::size_t>(i * shape.n + j)] ==
                static_cast<double>(gemm::to_float(expected)));
      }
    }
  }
}

TEST_CASE("identity: a code names its position") {
  for (int row = 0; row < 300; ++row) {
    for (int column = 0; column < 300; ++column) {
      const gemm::bf16 code = harness::position_code(row, column);
      REQUIRE(harness::is_position_code(code));
      REQUIRE(std::isnormal(gemm::to_float(code)));
      const auto position = harness::decode_position(code);
      REQUIRE(position.row == row % 128);
      REQUIRE(position.column == column % 128);
    }
  }
  CHECK_FALSE(harness::is_position_code(gemm::bf16{0}));
  CHECK_FALSE(harness::is_position_code(gemm::bf16{0xffff}));
}

TEST_CASE("arange: one more with every step, two coprime periods") {
  const std::vector<float> a = values(Pattern::kArange, Operand::kA, 20, 300);
  const std::vector<float> b = values(Pattern::kArange, Operand::kB, 20, 300);
  const int range = harness::exact_range(300);
  CHECK(a[0] == -range);
  CHECK(b[0] == -(range - 1));
  for (std::size_t i = 0; i + 1 < 300; ++i) {
    CHECK((a[i + 1] == a[i] + 1 || (a[i] == range && a[i + 1] == -range)));
    CHECK((b[i + 1] == b[i] + 1 || (b[i] == range - 1 && b[i + 1] == -(range - 1))));
    CHECK(a[300 + i] == a[i + 1]);
  }
  CHECK(std::gcd(2 * range + 1, 2 * range - 1) == 1);
}

TEST_CASE("operands and seeds give different numbers") {
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kUniform}) {
    const std::vector<float> a = values(pattern, Operand::kA, 100, 100, 1);
    for (const std::vector<float>& other :
         {values(pattern, Operand::kB, 100, 100, 1), values(pattern, Operand::kA, 100, 100, 2)}) {
      int equal = 0;
      for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == other[i] ? 1 : 0;
      CHECK(equal < 200);
    }
  }
}

TEST_CASE("a slab of rows is a part of the whole matrix") {
  for (const Pattern pattern : kAll) {
    const auto rule = harness::input_rule(pattern, 3, Operand::kB, 57, 33);
    const std::vector<gemm::bf16> whole = harness::host_input(rule);
    std::vector<gemm::bf16> slab(10 * 33);
    harness::fill_host(rule, 21, 10, slab.data());
    for (std::size_t i = 0; i < slab.size(); ++i) REQUIRE(slab[i].bits == whole[21 * 33 + i].bits);
  }
}

TEST_CASE("a clobbered input is found, with the first position") {
  for (const Pattern pattern : kAll) {
    const auto rule = harness::input_rule(pattern, 3, Operand::kA, 57, 33);
    std::vector<gemm::bf16> matrix = harness::host_input(rule);
    harness::InputDamage damage;
    harness::compare_input(rule, 0, 57, matrix.data(), damage);
    CHECK(damage.count == 0);
    const gemm::bf16 original = matrix[40 * 33 + 5];
    matrix[40 * 33 + 5].bits ^= 1;
    matrix[50 * 33 + 1].bits ^= 0x8000;
    harness::compare_input(rule, 0, 45, matrix.data(), damage);
    harness::compare_input(rule, 45, 12, matrix.data() + 45 * 33, damage);
    CHECK(damage.count == 2);
    CHECK(damage.row == 40);
    CHECK(damage.column == 5);
    CHECK(damage.expected.bits == original.bits);
    CHECK(damage.got.bits == (original.bits ^ 1));
  }
}

TEST_CASE("pattern names") {
  for (const Pattern pattern : kAll) CHECK(harness::parse_pattern(harness::to_string(pattern)) == pattern);
  try {
    harness::parse_pattern("norml");
    FAIL("accepted a misspelt pattern");
  } catch (const harness::Error& error) {
    const std::string text = error.what();
    CAPTURE(text);
    check_text(text, {"'norml'", "did you mean 'normal'",
                      "Known: normal, exact, uniform, identity, arange, special"});
  }
}

}  // namespace
