// One problem on the device: inputs, guarded output, reference, verification.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gemm/gemm.h"
#include "harness/input_value.h"

namespace harness {

/// Throws Error listing the known patterns, nearest match first.
Pattern parse_pattern(const std::string& name);
std::string to_string(Pattern pattern);

/// The outcome of one check. `report` is empty when ok, otherwise several lines: which check failed, how many
/// elements, the first mismatches (row, column, tile of `tile` size, expected, got), and the row/column/tile
/// pattern.
struct CheckResult {
  bool ok = false;
  std::string report;
  std::string summary;  // one line, also when ok: "exact: 65536 elements match bit for bit"
};

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

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Device bytes a workload takes, guard bands included.
std::int64_t workload_bytes(const gemm::Shape& shape);

}  // namespace harness
