// The memory of an all-gather followed by a product, and whether every rank has got its columns of D.
#pragma once

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

/// The product of all ranks: each has M / ranks rows of A, and makes N / ranks columns of D.
struct RankGatherForm {
  int ranks = 2;
  gemm::Shape shape;
  Pattern pattern = Pattern::kExact;
  std::uint64_t seed = 1;
};

/// Throws Error where the shape cannot be divided among so many ranks.
void check_gather(const RankGatherForm& form);

class RankGather : public RankRun {
 public:
  /// `tile` helps reports to locate the damage.
  RankGather(const RankGatherForm& form, const gemm::TileShape& tile);

  const Ranks& ranks() const override { return ranks_; }
  const RankGatherForm& form() const { return form_; }
  /// The problem with pieces of so many rows, copied by this many CTAs where SMs copy.
  gemm::GatherGemm problem(int piece_rows, int ctas) const;
  /// Every rank loads the kernel, while no other kernel waits for anything.
  void load(const void* kernel) const;
  /// Of the next epoch: which A it multiplies.
  std::size_t parity_of_next() const { return (epoch_ + 1) % 2; }

  bool is_timed(int) const override { return true; }
  /// D, and the rows of A that other ranks send. What a rank sends is not the same in even and odd epochs.
  void poison() override;
  void start(const gemm::RankLauncher& launcher, Readers readers, const Delay& delay) override;
  /// Everything that a rank has got, and D of the latest epoch.
  CheckResult check() override;

 private:
  gemm::Shape shape_of_rank() const;
  InputRule rule_of_a(std::size_t parity) const;
  InputRule rule_of_b(int rank) const;
  const Acceptance& reference(int rank, std::size_t parity);

  RankGatherForm form_;
  gemm::TileShape tile_;
  Ranks ranks_;
  std::vector<gemm::GatherMemory> memory_;
  std::uint32_t epoch_ = 0;                                       // the latest
  std::map<std::pair<int, std::size_t>, Acceptance> references_;  // each computed once
};

/// One such product, for checks on the emulator.
struct GatherCase {
  RankGatherForm form;
  int piece_rows = gemm::kGatherRows;
  int ctas = 1;
  std::string why{};
  bool once = false;  // a large one for CTAs that copy, which a check runs under one schedule
};

/// What exercises every line: rings that wrap, several pieces, tiles that hang over D, more than two ranks.
std::vector<GatherCase> gather_cases();
/// How tests and exercises name one where other steps have M x N x K: ranks, tiles along M that each of them
/// has, and k-tiles.
GatherCase gather_case(const gemm::Shape& shape);
/// One variant under the schedule that control_emulator() has set.
CheckResult check_gather_case(const gemm::Variant& variant, const GatherCase& one, int epochs);

}  // namespace harness
