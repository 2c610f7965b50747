// One problem on the device whose operands are not bf16: what Workload holds then.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "gemm/problem/groups.h"
#include "gemm/problem/problem.h"
#include "harness/verify/types/typed.h"

namespace harness {

class DeviceBuffer;
class GuardedBuffer;

/// Owns A, B, the scales, and D between guard bands. The methods are Workload's.
class TypedWorkload {
 public:
  /// wide: the weights exist in bf16, too. Groups, of which each may have a capacity, are those of a product
  /// with scales of blocks.
  TypedWorkload(const gemm::Shape& shape, const gemm::Types& types, Pattern pattern, std::uint64_t seed,
                bool saturates = true, bool wide = false, const std::vector<gemm::GroupRows>& groups = {},
                int capacity = 0);
  ~TypedWorkload();

  std::uint64_t seed() const { return rules_.a.seed; }
  const TypedRules& rules() const { return rules_; }
  gemm::Problem problem() const;
  void use_inputs(std::uint64_t seed);
  void poison();
  CheckResult check(const gemm::TileShape& tile);
  TypedImage image() const;
  void restore(const TypedImage& image);

 private:
  void fill_inputs();

  bool saturates_;
  std::vector<gemm::GroupRows> groups_;  // those of the first seed
  int capacity_;
  std::uint64_t first_seed_;
  TypedRules rules_;
  std::unique_ptr<DeviceBuffer> a_;
  std::unique_ptr<DeviceBuffer> b_;
  std::unique_ptr<DeviceBuffer> scales_;
  std::unique_ptr<DeviceBuffer> blocks_a_;  // scales of blocks, each row padded with NaN; or ue8m0
  std::unique_ptr<DeviceBuffer> blocks_b_;
  std::unique_ptr<DeviceBuffer> group_scales_;  // of weights
  std::unique_ptr<DeviceBuffer> wide_;          // weights in bf16
  std::unique_ptr<DeviceBuffer> counts_;        // of groups that have a capacity
  std::unique_ptr<GuardedBuffer> d_;
  std::map<std::uint64_t, TypedAcceptance> acceptances_;  // by seed
};

/// Device bytes that it takes, guard bands included; with so many groups.
std::int64_t typed_workload_bytes(const gemm::Shape& shape, const gemm::Types& types, int groups = 1);

}  // namespace harness
