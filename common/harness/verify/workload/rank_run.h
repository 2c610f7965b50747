// What several ranks do together, epoch after epoch, and whether it was right: for checks and for times.
#pragma once

#include <cstdint>
#include <functional>

#include "gemm/problem/ranks.h"
#include "harness/backend/ranks.h"
#include "harness/verify/verify.h"

namespace harness {

class RankRun {
 public:
  RankRun() = default;
  virtual ~RankRun() = default;
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  virtual const Ranks& ranks() const = 0;
  /// Whether this rank has something to do that is timed.
  virtual bool is_timed(int rank) const = 0;

  /// Poisons what the ranks are going to write, and forgets what was found wrong.
  virtual void poison() = 0;
  /// Gives all ranks the work of the next epoch. `delay` is called before a rank's work goes to a stream.
  ///
  /// kApart: for the first time, where a kernel that waits must not be in the way of one that is loaded.
  enum class Readers : std::uint8_t { kBeside, kApart };
  using Delay = std::function<void(int rank, gemm::ptx::Stream stream)>;
  virtual void start(const gemm::RankLauncher& launcher, Readers readers, const Delay& delay) = 0;
  /// When all ranks have finished: whether what they have is right, as far as poison() and start() go back.
  virtual CheckResult check() = 0;

  /// poison(), so many epochs without waiting for their end, and check(). `first`: of the first epoch.
  CheckResult run(const gemm::RankLauncher& launcher, int epochs, Readers first, const Delay& delay = {});
};

}  // namespace harness
