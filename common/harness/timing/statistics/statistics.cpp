#include "harness/timing/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace harness {

double quantile(std::vector<double> samples, double p) {
  if (samples.empty()) throw std::invalid_argument("a quantile needs at least one sample");
  std::sort(samples.begin(), samples.end());
  const double position = p * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (position - static_cast<double>(below)) * (samples[above] - samples[below]);
}

Ratio median_interval(std::vector<double> samples) {
  constexpr double kConfidence = 0.95;
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  Ratio result{.median = quantile(samples, 0.5), .low = samples.front(), .high = samples.back()};
  // In logarithms, because 2^-n leaves the range of binary64 at a thousand samples.
  const double log_total = static_cast<double>(n) * std::log(2.0);
  double log_binomial = 0;  // of n over i
  double tail = 0;          // P(Bin(n, 1/2) < r)
  for (std::size_t r = 1; 2 * r <= n; ++r) {
    tail += std::exp(log_binomial - log_total);  // i = r - 1
    log_binomial += std::log(static_cast<double>(n - r + 1)) - std::log(static_cast<double>(r));
    if (1 - 2 * tail < kConfidence) break;
    result.low = samples[r - 1];
    result.high = samples[n - r];
  }
  return result;
}

Verdict verdict_of(const Ratio& ratio, std::size_t samples) {
  if (samples < kMinRounds) return Verdict::kAmbiguous;
  if (ratio.low > 1) return Verdict::kFaster;
  return ratio.high < 1 ? Verdict::kSlower : Verdict::kAmbiguous;
}

}  // namespace harness
