// Timing what several ranks do together: the slowest one counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/ranks.h"
#include "harness/timing/statistics/statistics.h"
#include "harness/timing/timing.h"
#include "harness/verify/workload/rank_gather.h"
#include "harness/verify/workload/rank_run.h"
#include "harness/verify/workload/rank_scatter.h"

namespace harness {

/// One way to do what the ranks do.
struct RankContestant {
  std::string variant;
  std::int64_t piece_bytes = 0;
  int ctas = 0;               // that copy; 0: no SM takes part
  bool is_reference = false;  // whose times the others are compared with
  bool is_opponent = false;   // no kernel of this course
  bool has_result = true;     // false: it is a part of what others do, and leaves nothing that can be checked
  gemm::RankLauncher launcher;
  std::vector<double> samples_us{};  // one per round: the slowest rank's
  double median_us = 0, q1_us = 0, q3_us = 0;
  Ratio to_reference;  // speed relative to the reference; zeros where there is none
  Verdict verdict = Verdict::kAmbiguous;
};

/// Times all contestants in interleaved rounds, in burst mode, and verifies what each leaves behind. Before a
/// timed launch the ranks meet on the GPUs, so that all of them begin at the same moment. Throws Error where
/// a result is wrong, and on the emulator.
void time_ranks(RankRun& run, std::vector<RankContestant>& contestants, const TimingOptions& options);

/// What an all-gather and a product are without a kernel that waits: the copies and then cuBLASLt's best
/// algorithm, the same with NCCL where its library is found, cuBLASLt in parts beside the copies, and each of
/// the two alone, under these names. The first one is the reference. GPU build only.
std::vector<RankContestant> gather_opponents(RankGather& gather);
inline constexpr const char* kProductOfOpponent = "cublaslt_alone";
inline constexpr const char* kCopiesOfOpponent = "copies_alone";

/// The same for a product and a reduce-scatter: cuBLASLt's best algorithm with a D in bf16 on every rank, and
/// then copies to the owners and a kernel that adds them, or NCCL; and the product in parts, whose copies run
/// beside the next part.
std::vector<RankContestant> scatter_opponents(RankScatter& scatter);

/// Lets a rank wait, for tests of what happens when one is late. Does nothing on the emulator, whose
/// schedule does that.
void delay_rank(gemm::ptx::Stream stream, double microseconds);

}  // namespace harness
