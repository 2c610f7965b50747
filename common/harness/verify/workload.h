// One problem on the device: inputs, guarded output, reference, verification.
#pragma once

#include <cstdint>
#include <memory>

#include "gemm/gemm.h"
#include "harness/verify/inputs.h"
#include "harness/verify/inputs/input_value.h"
#include "harness/verify/verify.h"

namespace harness {

/// Owns A, B and D on the device, D between guard bands. Throws Error when it does not fit (needed, free).
class Workload {
 public:
  Workload(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed);
  ~Workload();
  Workload(Workload&&) noexcept;
  Workload& operator=(Workload&&) noexcept;

  gemm::Gemm gemm() const;
  /// Fills D and its guard bands with NaN patterns; call before every verified run.
  void poison();
  /// Checks D against the reference (computed once, on first use), the guard bands, and that A and B are
  /// unchanged. `tile` only helps the report to locate the damage.
  CheckResult check(const gemm::TileShape& tile);

  /// What the device holds now; for the injected faults, which damage it and put it back.
  RunImage image() const;
  void restore(const RunImage& image);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Device bytes a workload takes, guard bands included.
std::int64_t workload_bytes(const gemm::Shape& shape);

}  // namespace harness
