// The memory of a product followed by a reduce-scatter, and whether every rank has got its rows of the sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/ranks.h"
#include "gemm/problem/step.h"
#include "harness/backend/ranks.h"
#include "harness/verify/inputs/input_value.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/rank_run.h"

namespace harness {

/// The product of all ranks: each has K / ranks columns of A and of B, and gets M / ranks rows of D.
struct RankScatterForm {
  int ranks = 2;
  gemm::Shape shape;
  Pattern pattern = Pattern::kExact;
  std::uint64_t seed = 1;
  /// The partials of the ranks 0 and 1 are 2^24 and -2^24, all others are 1: the sum says in which order they
  /// were added. It must be the owner's first, and then the others' by rank.
  bool tells_order = false;
};

/// Throws Error where the shape cannot be divided among so many ranks.
void check_scatter(const RankScatterForm& form);

class RankScatter : public RankRun {
 public:
  explicit RankScatter(const RankScatterForm& form);

  const Ranks& ranks() const override { return ranks_; }
  const RankScatterForm& form() const { return form_; }
  gemm::ScatterGemm problem() const;
  /// Every rank loads the kernel, while no other kernel waits for anything.
  void load(const void* kernel) const;

  bool is_timed(int) const override { return true; }
  /// D, and the buffers of partials.
  void poison() override;
  void start(const gemm::RankLauncher& launcher, Readers readers, const Delay& delay) override;
  /// D of the latest epoch, and what it was made of.
  CheckResult check() override;

 private:
  /// What a correct D may be, element by element.
  struct Bounds {
    std::vector<gemm::bf16> low;
    std::vector<gemm::bf16> high;
  };

  gemm::Shape shape_of_rank() const;
  int rows_of_rank() const { return form_.shape.m / form_.ranks; }
  InputRule rule_of(Operand operand, int rank, std::size_t phase) const;
  void fill_operands(int rank, gemm::ScatterMemory& memory, gemm::bf16* b);
  const Bounds& bounds(int owner, std::size_t phase);
  std::string what_it_is(int owner, std::size_t phase, int row, int column, gemm::bf16 got) const;

  RankScatterForm form_;
  Ranks ranks_;
  std::vector<gemm::ScatterMemory> memory_;
  std::uint32_t epoch_ = 0;                                 // the latest
  std::map<std::pair<int, std::size_t>, Bounds> computed_;  // each once
};

/// One such product, for checks on the emulator.
struct ScatterCase {
  RankScatterForm form;
  std::string why{};
};

/// What exercises every line: rings that wrap, tiles that hang over D, more than two ranks, the order of
/// additions.
std::vector<ScatterCase> scatter_cases();
/// How tests and exercises name one where other steps have M x N x K: ranks, tiles along M that each of them
/// owns, and k-tiles of each. With more than two ranks, the sums tell the order.
ScatterCase scatter_case(const gemm::Shape& shape);
/// One variant under the schedule that control_emulator() has set.
CheckResult check_scatter_case(const gemm::Variant& variant, const ScatterCase& one, int epochs);

}  // namespace harness
