// The fixed set of public shapes that the project compares itself with cuBLAS on, what a run over them adds
// up to, and its record: docs/results/suite_h200.json comes from it. It is two records, one for each mode, in
// one file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/record/record.h"

namespace harness {

/// Cubes from 1024 to 16384; the linear layers of a large language model with many, some and few tokens; and
/// two shapes that leave most of the last wave of tiles empty.
const std::vector<gemm::Shape>& suite_burst_shapes();
/// Where the power limit decides.
const std::vector<gemm::Shape>& suite_sustained_shapes();

struct SuiteRecord {
  Record burst;
  Record sustained;
};

/// One contestant over all shapes.
struct SuiteSummary {
  std::string name;
  std::string variant;  // of a step; the algorithm that a baseline chose differs from shape to shape
  ContestantKind kind = ContestantKind::kStep;
  Ratio geometric_mean;  // of the burst shapes' speeds relative to cuBLASLt best; zeros without that baseline
  std::size_t burst_shapes = 0;  // of that mean: where both ran
  Ratio worst;                   // the lowest of the medians, sustained shapes included
  gemm::Shape worst_shape;
  TimingMode worst_mode = TimingMode::kBurst;
};

/// The geometric mean of medians that were measured independently of each other. Its interval adds their
/// widths, as logarithms, in quadrature, as the errors of independent measurements add up. Throws
/// std::invalid_argument when there are none, or one is not positive.
Ratio geometric_mean(const std::vector<Ratio>& ratios);

/// Every contestant that has a speed relative to cuBLASLt, itself and the ceiling
/// excepted, in the record's order.
std::vector<SuiteSummary> summarize(const SuiteRecord& suite);

/// For the terminal: one block per contestant with a row per shape, then the geometric
/// means and the worst cases.
std::string human_table(const SuiteRecord& suite);

}  // namespace harness
