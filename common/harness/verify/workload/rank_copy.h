// The memory of a copy between ranks, and whether every rank has got what was sent to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/ranks.h"
#include "gemm/problem/step.h"
#include "harness/backend/ranks.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/rank_run.h"

namespace harness {

/// What a copy between ranks is like, whoever makes it.
struct RankCopyForm {
  int ranks = 2;
  std::int64_t bytes = 0;
  int reader_ctas = 1;
  bool one_way = false;  // only rank 0 sends
};

class RankCopy : public RankRun {
 public:
  explicit RankCopy(const RankCopyForm& form);

  const Ranks& ranks() const override { return ranks_; }
  const RankCopyForm& form() const { return form_; }
  /// The problem with pieces of this size, sent by this many CTAs.
  gemm::PeerCopy problem(std::int64_t piece_bytes, int ctas) const;

  bool is_timed(int rank) const override { return !form_.one_way || rank == 0; }
  /// Every inbox, and what readers found wrong.
  void poison() override;
  /// kApart: the readers follow when everything has been sent, so that nobody waits while the GPU loads a
  /// kernel. A load may have to wait until the device is idle, and a reader until its peer has begun.
  void start(const gemm::RankLauncher& launcher, Readers readers, const Delay& delay) override;
  /// What readers found wrong since poison(), and what the inboxes hold.
  CheckResult check() override;

 private:
  bool reads(int rank) const { return !form_.one_way || rank == 1; }

  RankCopyForm form_;
  Ranks ranks_;
  std::vector<gemm::RankMemory> memory_;
  std::uint32_t epoch_ = 0;  // the latest
};

/// One exchange, for checks on the emulator.
struct RankCase {
  RankCopyForm form;
  std::int64_t piece_bytes = gemm::kCopyChunkBytes;
  int ctas = 1;
  std::string why{};
};

/// What exercises every line: rings that wrap, pieces that end within a chunk, more than two ranks.
std::vector<RankCase> rank_cases();
/// How tests and exercises name one where other steps have M x N x K: ranks, KiB that each sends, and CTAs.
RankCase rank_case(const gemm::Shape& shape);
/// One variant under the schedule that control_emulator() has set.
CheckResult check_rank_case(const gemm::Variant& variant, const RankCase& one, int epochs);

}  // namespace harness
