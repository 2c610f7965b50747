// Ways of timing that are common elsewhere, each wrong in one thing. Nothing here is used to publish a
// number.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/timing/timing.h"
#include "harness/verify/workload/workload.h"

namespace measuring {

/// The kernel and what it is compared with, in microseconds for one launch.
struct Pair {
  double kernel_us = 0;
  double yardstick_us = 0;
};

/// Both, prepared on the same operands.
struct Race {
  harness::Contestant kernel;
  harness::Contestant yardstick;
};

/// Operands with random values: as many sets as exceed twice the L2, or one.
class RandomOperands {
 public:
  RandomOperands(const gemm::Shape& shape, std::uint64_t seed, bool rotate);
  std::vector<gemm::Launcher> prepare(const harness::Contestant& contestant) const;
  /// Runs it once more on the first set and checks; throws harness::Error when D is wrong.
  void verify(const harness::Contestant& contestant);

 private:
  std::deque<harness::Workload> sets_;
};

/// Operands full of zeros.
class ZeroOperands {
 public:
  explicit ZeroOperands(const gemm::Shape& shape);
  ~ZeroOperands();
  ZeroOperands(const ZeroOperands&) = delete;
  ZeroOperands& operator=(const ZeroOperands&) = delete;
  std::vector<gemm::Launcher> prepare(const harness::Contestant& contestant) const;
  /// Runs it on NaNs in D; throws harness::Error unless D is zero afterwards.
  void verify(const harness::Contestant& contestant);

 private:
  gemm::Shape shape_;
  gemm::bf16* a_;
  gemm::bf16* b_;
  gemm::bf16* d_;
};

/// Of several algorithms that are described alike, the one with the fastest loop on rotated buffers.
harness::Contestant fastest(const gemm::Shape& shape, const std::vector<harness::Contestant>& candidates,
                            std::uint64_t seed);

/// One launch that nothing went before, by the clock of the host. Must be the first launches of the process.
/// Verified.
Pair first_launch(const gemm::Shape& shape, const Race& race, std::uint64_t seed);

/// Blocks of back-to-back launches in turn, after settling: sustained as this project does it, but with
/// zeros.
std::pair<Pair, harness::Conditions> sustained_on_zeros(const gemm::Shape& shape, const Race& race,
                                                        double seconds);

/// A loop of launches between two events, the kernel's and then the yardstick's; on one set of buffers or on
/// rotated ones.
Pair loops(const gemm::Shape& shape, const Race& race, std::uint64_t seed, bool rotate);

/// The same loops, but the first one is run on a GPU that has rested and the second one on a GPU that has
/// worked, as it happens when a list of kernels is timed one after the other. `kernel_first` says which is
/// which.
Pair one_after_the_other(const gemm::Shape& shape, const Race& race, std::uint64_t seed, bool kernel_first);

}  // namespace measuring
