// The memory of a copy between ranks, and whether every rank has got what was sent to it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gemm/problem/ranks.h"
#include "harness/backend/ranks.h"
#include "harness/verify/verify.h"

namespace harness {

/// What a copy between ranks is like, whoever makes it.
struct RankCopyForm {
  int ranks = 2;
  std::int64_t bytes = 0;
  int reader_ctas = 1;
  bool one_way = false;  // only rank 0 sends
};

class RankCopy {
 public:
  explicit RankCopy(const RankCopyForm& form);

  const Ranks& ranks() const { return ranks_; }
  const RankCopyForm& form() const { return form_; }
  /// The problem with pieces of this size, sent by this many CTAs.
  gemm::PeerCopy problem(std::int64_t piece_bytes, int ctas) const;

  /// Poisons every inbox, and forgets what readers found wrong.
  void poison();
  /// Gives all ranks the work of the next epoch. `delay` is called before a rank's work goes to a stream.
  ///
  /// kApart: the readers follow when everything has been sent, so that nobody waits while the GPU loads a
  /// kernel. A load may have to wait until the device is idle, and a reader until its peer has begun.
  enum class Readers : std::uint8_t { kBeside, kApart };
  using Delay = std::function<void(int rank, gemm::ptx::Stream stream)>;
  void start(const gemm::RankLauncher& launcher, Readers readers, const Delay& delay = {});
  bool sends(int rank) const { return !form_.one_way || rank == 0; }
  std::uint32_t epoch() const { return epoch_; }  // the latest
  std::uint32_t next_epoch() { return ++epoch_; }

  /// When all ranks have finished: what readers found wrong since poison(), and what the inboxes hold.
  CheckResult check() const;

 private:
  bool reads(int rank) const { return !form_.one_way || rank == 1; }

  RankCopyForm form_;
  Ranks ranks_;
  std::vector<gemm::RankMemory> memory_;
  std::uint32_t epoch_ = 0;
};

}  // namespace harness
