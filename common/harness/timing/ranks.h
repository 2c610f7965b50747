// Timing what several ranks do together: the slowest one counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/ranks.h"
#include "harness/timing/statistics/statistics.h"
#include "harness/timing/timing.h"
#include "harness/verify/workload/rank_copy.h"

namespace harness {

/// One way to copy.
struct RankContestant {
  std::string variant;
  std::int64_t piece_bytes = 0;
  int ctas = 0;  // 0: no SM takes part
  gemm::RankLauncher launcher;
  std::vector<double> samples_us{};  // one per round: the slowest rank's
  double median_us = 0, q1_us = 0, q3_us = 0;
  double gigabytes_per_second = 0;  // per rank and direction
  Ratio to_engine;                  // speed relative to the copy engine; zeros where it did not run
  Verdict verdict = Verdict::kAmbiguous;
};

/// Times all contestants in interleaved rounds, in burst mode, and verifies what each leaves behind. Before a
/// timed launch the ranks meet on the GPUs, so that all of them begin at the same moment. Throws Error where
/// a result is wrong, and on the emulator.
void time_ranks(RankCopy& copy, std::vector<RankContestant>& contestants, const TimingOptions& options);

/// Lets a rank wait, for tests of what happens when one is late. Does nothing on the emulator, whose
/// schedule does that.
void delay_rank(gemm::ptx::Stream stream, double microseconds);

}  // namespace harness
