// The record of one timed run: what was raced, under which conditions, and what came out. It is the only
// source of the numbers in the docs: `tools/compare --json` writes it (json.h), the table and plot generators
// read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/backend/backend.h"
#include "harness/timing/statistics/statistics.h"

namespace harness {

enum class TimingMode { kBurst, kSustained };
enum class ContestantKind { kStep, kBaseline, kCeiling };

/// Of the record's form; counted up when older programs could not read it.
inline constexpr int kRecordSchema = 1;

/// The contestant that every ratio refers to.
inline constexpr const char* kReferenceContestant = "cublaslt_best";

struct ContestantRecord {
  std::string name;      // "03_register_tile", "cublaslt_best", "cublas_default", "wgmma_ceiling"
  std::string variant;   // step variant, or which cuBLASLt algorithm won
  std::string chosen;    // the variant that ran, of a step's that chooses by shape; otherwise, and in older
  std::string why;       // records, empty; and its reason
  std::string epilogue;  // where it computed another one than the race is about; otherwise empty
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

inline bool is_reference(const ContestantRecord& contestant) {
  return contestant.name == kReferenceContestant;
}

/// What NVML saw between the first and the last timed launch of one shape. Zeros when NVML is missing.
struct Conditions {
  double sm_clock_mhz_min = 0, sm_clock_mhz_median = 0, sm_clock_mhz_max = 0;
  double power_w_median = 0, power_w_max = 0;
  double temperature_c_max = 0;
  std::vector<std::string> throttle_reasons;
};

struct ShapeRecord {
  gemm::Shape shape;
  std::string epilogue;                       // "alpha 1, beta 1"; empty: D = A * B^T
  std::vector<ContestantRecord> contestants;  // in the order they were given
  Conditions conditions;
  std::string tuned;        // the variant that --autotune would remember; empty where nobody asked
  int rotated_buffers = 0;  // how many operand sets were rotated through
};

struct Record {
  int schema = kRecordSchema;
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

/// Fills every derived field of the shape (medians, quartiles, TFLOP/s, ratios, verdicts, shares) from the
/// samples. Throws std::invalid_argument when the contestants' sample counts differ or are zero.
void derive(ShapeRecord& shape);

std::string to_string(TimingMode mode);   // "burst", as in the record
std::string to_string(Verdict verdict);   // "FASTER"
std::string human_time(double us);        // "12.3 us", "1.23 ms": four digits at most
std::string human_ratio(const Ratio& r);  // "1.012 (1.010 to 1.015)"
/// The GPU, the versions and the commit: one line.
std::string human_origin(const Record& record);

/// The table for the terminal: one block per shape, one row per contestant, the conditions below it.
std::string human_table(const Record& record);

}  // namespace harness
