#include "harness/timing/statistics/statistics.h"

#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "catch.h"

namespace harness {
namespace {

TEST_CASE("quantiles by hand") {
  CHECK(quantile({5}, 0.5) == 5);
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2.5);
  CHECK(quantile({4, 1, 3, 2}, 0.25) == 1.75);
  CHECK(quantile({4, 1, 3, 2}, 0.75) == 3.25);
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({3, 1, 2}, 0) == 1);
  CHECK(quantile({3, 1, 2}, 1) == 3);
  CHECK_THROWS_AS(quantile({}, 0.5), std::invalid_argument);
}

/// The ranks (from 1) of the interval's ends among n samples.
std::pair<int, int> ranks(int n) {
  std::vector<double> samples;
  for (int i = 1; i <= n; ++i) samples.push_back((i * 7919) % n + 1);  // 1..n, shuffled: 7919 is prime
  const Ratio ratio = median_interval(samples);
  CHECK(ratio.median == (n + 1) / 2.0);
  return {static_cast<int>(ratio.low), static_cast<int>(ratio.high)};
}

TEST_CASE("the median's interval: ranks from the binomial distribution") {
  // 1 - 2 P(Bin(n, 1/2) < r) >= 0.95: n = 6: r = 1 (0.969); n = 8: r = 1 (0.992), r = 2 has 0.930;
  // n = 9: r = 2 (0.961); n = 20: r = 6 (0.959); n = 100: r = 40 (0.965), r = 41 has 0.943.
  CHECK(ranks(6) == std::pair(1, 6));
  CHECK(ranks(8) == std::pair(1, 8));
  CHECK(ranks(9) == std::pair(2, 8));
  CHECK(ranks(20) == std::pair(6, 15));
  CHECK(ranks(100) == std::pair(40, 61));
  CHECK(ranks(5) == std::pair(1, 5));  // too few: the extremes
  CHECK(ranks(1) == std::pair(1, 1));
  const auto [low, high] = ranks(5000);  // 2^-5000 is 0 in binary64
  CHECK(low > 2400);
  CHECK(low < 2450);
  CHECK(high == 5001 - low);
}

TEST_CASE("the median's interval covers the true median 95 times in 100") {
  std::mt19937 generator(11);
  std::lognormal_distribution<double> distribution(0, 1);  // skewed; the median is 1
  for (const int n : {6, 15, 40}) {
    int covered = 0;
    constexpr int kTrials = 4000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> samples(static_cast<std::size_t>(n));
      for (double& sample : samples) sample = distribution(generator);
      const Ratio ratio = median_interval(samples);
      covered += ratio.low <= 1 && 1 <= ratio.high ? 1 : 0;
    }
    CAPTURE(n, covered);
    CHECK(covered > 0.94 * kTrials);
    CHECK(covered < 0.99 * kTrials);
  }
}

TEST_CASE("verdicts") {
  CHECK(verdict_of({1.02, 1.001, 1.03}, 6) == Verdict::kFaster);
  CHECK(verdict_of({0.98, 0.97, 0.999}, 6) == Verdict::kSlower);
  CHECK(verdict_of({1.02, 1.0, 1.03}, 6) == Verdict::kAmbiguous);
  CHECK(verdict_of({0.99, 0.97, 1.0}, 6) == Verdict::kAmbiguous);
  CHECK(verdict_of({2, 2, 2}, 5) == Verdict::kAmbiguous);  // no 95 % interval
}

}  // namespace
}  // namespace harness
