// The record of one timed run: what was raced, under which conditions, and what came out. It is the only
// source of the numbers in the docs: `tools/compare --json` writes it, the table and plot generators read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gemm/gemm.h"
#include "harness/backend/backend.h"

namespace harness {

enum class TimingMode { kBurst, kSustained };
enum class Verdict { kFaster, kSlower, kAmbiguous };
enum class ContestantKind { kStep, kBaseline, kCeiling };

/// A median ratio and the interval between two order statistics that contains the true median with >= 95 %
/// confidence, whatever the distribution. With fewer than kMinRounds samples there is no such interval: low
/// and high are then the extremes.
struct Ratio {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// The smallest number of samples whose extremes enclose the median with 95 % confidence: 1 - 2 / 2^6 =
/// 0.969.
inline constexpr int kMinRounds = 6;

/// The contestant that every ratio refers to.
inline constexpr const char* kReferenceContestant = "cublaslt_best";

struct ContestantRecord {
  std::string name;     // "03_register_tile", "cublaslt_best", "cublas_default", "wgmma_ceiling"
  std::string variant;  // step variant, or which cuBLASLt algorithm won
  std::string chosen;   // the variant that ran, of a step's that chooses by shape; otherwise, and in older
  std::string why;      // records, empty; and its reason
  ContestantKind kind = ContestantKind::kStep;
  std::vector<double> samples_us;  // one per round, in round order; rounds are aligned across contestants
  double median_us = 0;
  double q1_us = 0;
  double q3_us = 0;
  double tflops = 0;         // from the median; 2 m n k FLOP
  Ratio to_cublaslt;         // > 1: faster than cuBLASLt best; zeros when that baseline did not run
  double ceiling_share = 0;  // of the wgmma-only rate in the same run; 0 when it did not run
  Verdict verdict = Verdict::kAmbiguous;
};

/// What NVML saw between the first and the last timed launch of one shape. Zeros when NVML is missing.
struct Conditions {
  double sm_clock_mhz_min = 0, sm_clock_mhz_median = 0, sm_clock_mhz_max = 0;
  double power_w_median = 0, power_w_max = 0;
  double temperature_c_max = 0;
  std::vector<std::string> throttle_reasons;
};

struct ShapeRecord {
  gemm::Shape shape;
  std::vector<ContestantRecord> contestants;  // in the order they were given
  Conditions conditions;
  int rotated_buffers = 0;  // how many operand sets were rotated through
};

struct Record {
  DeviceInfo device;
  std::string cublas_version;
  std::string commit;  // "abc1234" or "abc1234-dirty"
  std::string date;    // ISO 8601, UTC
  std::uint64_t seed = 0;
  std::string pattern;  // input pattern that was timed
  TimingMode mode = TimingMode::kBurst;
  double idle_ms = 0;  // before each launch in burst mode
  int rounds = 0;
  std::vector<ShapeRecord> shapes;
};

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

/// Fills every derived field of the shape (medians, quartiles, TFLOP/s, ratios, verdicts, shares) from the
/// samples. Throws std::invalid_argument when the contestants' sample counts differ or are zero.
void derive(ShapeRecord& shape);

nlohmann::json to_json(const Ratio& ratio);
nlohmann::json to_json(const Conditions& conditions);
nlohmann::json to_json(const Record& record);
/// Throws Error that names the missing or ill-typed field.
Record record_from_json(const nlohmann::json& json);

const char* to_string(TimingMode mode);   // "burst"
const char* to_string(Verdict verdict);   // "FASTER"
std::string human_time(double us);        // "12.3 us", "1.23 ms": four digits at most
std::string human_ratio(const Ratio& r);  // "1.012 (1.010 to 1.015)"
/// The GPU, the versions and the commit: one line.
std::string human_origin(const Record& record);

/// The table for the terminal: one block per shape, one row per contestant, the conditions below it.
std::string human_table(const Record& record);

}  // namespace harness
