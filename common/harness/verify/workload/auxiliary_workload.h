// One problem on the device whose epilogue has a tensor of its own, or a reduction: what Workload holds then.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "gemm/problem/problem.h"
#include "harness/verify/epilogue/auxiliary.h"
#include "harness/verify/workload/workload.h"

namespace harness {

class DeviceBuffer;
class GuardedBuffer;

/// Owns A, B, C, the bias, and between guard bands D, the auxiliary tensor, and what a reduction writes. The
/// methods are Workload's.
class AuxWorkload {
 public:
  AuxWorkload(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed, const ProblemForm& form);
  ~AuxWorkload();

  std::uint64_t seed() const { return rules_.base.a.seed; }
  const AuxRules& rules() const { return rules_; }
  gemm::Problem problem() const { return problem(rules_.epilogue()); }
  /// With another epilogue, for one that races against this one. Throws Error where it needs an input that is
  /// not there, or where its D has other columns.
  gemm::Problem problem(const gemm::Epilogue& epilogue) const;
  void use_inputs(std::uint64_t seed);
  void poison();
  CheckResult check(const gemm::TileShape& tile) { return check(tile, rules_.epilogue(), {}); }
  CheckResult check(const gemm::TileShape& tile, const gemm::Epilogue& epilogue, const Allowance& allowance);
  AuxImage image() const;
  void restore(const AuxImage& image);

 private:
  void fill_inputs();
  bool has_c() const { return c_ != nullptr; }
  gemm::bf16* c() const;
  std::size_t c_bytes() const;
  AuxRules rules_of(const gemm::Epilogue& epilogue) const;

  ProblemForm form_;
  AuxRules rules_;
  std::unique_ptr<DeviceBuffer> a_;
  std::unique_ptr<DeviceBuffer> b_;
  std::unique_ptr<DeviceBuffer> bias_;
  std::unique_ptr<DeviceBuffer> c_;       // of a form with C outside of D
  std::unique_ptr<DeviceBuffer> scales_;  // [3], of a D that is scaled
  std::unique_ptr<GuardedBuffer> d_;
  std::unique_ptr<GuardedBuffer> tensor_;
  std::unique_ptr<GuardedBuffer> reduced_;  // what a reduction writes
  // By seed, epilogue, and what an opponent may do; each computed once.
  std::vector<std::tuple<std::uint64_t, gemm::Epilogue, Allowance, AuxAcceptance>> acceptances_;
};

/// Device bytes that it takes, guard bands included.
std::int64_t aux_workload_bytes(const gemm::Shape& shape, const ProblemForm& form);

}  // namespace harness
