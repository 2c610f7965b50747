// What a handful of samples says: quantiles, the interval of a median, a verdict. Pure functions of numbers.
#pragma once

#include <cstddef>
#include <vector>

namespace harness {

/// A median ratio and the interval between two order statistics that contains the true median with >= 95 %
/// confidence, whatever the distribution. With fewer than kMinRounds samples there is no such interval: low
/// and high are then the extremes.
struct Ratio {
  double median = 0;
  double low = 0;
  double high = 0;
};

enum class Verdict { kFaster, kSlower, kAmbiguous };

/// The smallest number of samples whose extremes enclose the median with 95 % confidence: 1 - 2 / 2^6 =
/// 0.969.
inline constexpr int kMinRounds = 6;

/// The p-quantile, 0 <= p <= 1, interpolated linearly between the order statistics around 1 + p (n - 1).
/// Throws std::invalid_argument when there are no samples.
double quantile(std::vector<double> samples, double p);

/// The median of the samples and its interval. The number of samples below the true median is binomial with
/// probability 1/2, so the r-th smallest and the r-th largest enclose it with probability 1 - 2 P(Bin(n, 1/2)
/// < r); r is the largest for which that is at least 95 %. (David and Nagaraja, "Order Statistics", 3rd ed.,
/// section 7.1.)
Ratio median_interval(std::vector<double> samples);

/// FASTER when the whole interval is above 1, SLOWER when it is below, otherwise AMBIGUOUS, which it also is
/// with fewer than kMinRounds samples.
Verdict verdict_of(const Ratio& ratio, std::size_t samples);

}  // namespace harness
