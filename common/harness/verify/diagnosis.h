// From wrong elements to the likely bug: where they are, and which mistake would have produced exactly them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/gemm.h"
#include "harness/base/input_value.h"
#include "harness/verify/verify.h"

namespace harness {

/// What is wrong with one element.
enum class Wrong { kNot, kNeverWritten, kNan, kInfinity, kValue };
Wrong classify(gemm::bf16 low, gemm::bf16 high, gemm::bf16 got);

struct Element {
  int row = 0;
  int column = 0;
};

/// Where the wrong elements are.
struct Survey {
  gemm::Shape shape;
  gemm::TileShape tile;  // m and n at least 1 and at most those of the shape
  std::int64_t wrong = 0;
  std::int64_t never_written = 0;
  std::int64_t nan = 0;
  std::int64_t infinity = 0;
  std::int64_t value = 0;
  std::vector<std::int64_t> row_wrong;     // [m]
  std::vector<std::int64_t> row_value;     // [m]: only Wrong::kValue
  std::vector<std::int64_t> column_wrong;  // [n]
  std::vector<std::int64_t> tile_wrong;    // [tile rows][tile columns]

  int tile_rows() const { return gemm::ceil_div(shape.m, tile.m); }
  int tile_columns() const { return gemm::ceil_div(shape.n, tile.n); }
};

/// Classifies every element of d, [m][n]. All cores.
Survey survey(const Acceptance& acceptance, const gemm::bf16* d, const gemm::TileShape& tile);

/// One or more sentences: which tiles, rows, columns, which regularity.
std::string describe_place(const Survey& survey);

/// The inputs of the problem, row by row, computed on demand.
class Inputs {
 public:
  Inputs(const InputRule& a, const InputRule& b) : a_(a), b_(b) {}
  gemm::Shape shape() const { return {a_.rows, b_.rows, a_.columns}; }
  const InputRule& rule(Operand operand) const { return operand == Operand::kA ? a_ : b_; }
  /// Element `index` of the matrix as it lies in memory; 0 outside of it.
  double flat(Operand operand, std::int64_t index) const;
  /// The exact sum for D(row, column), and the norm of its products.
  void sum(int row, int column, double& value, double& norm) const;

 private:
  InputRule a_;
  InputRule b_;
};

/// Sentences, best first, each about a mistake that gives what is in D at (nearly) all of `samples`, which
/// are wrong elements of the kind Wrong::kValue. Empty when nothing fits.
std::vector<std::string> explain(const Acceptance& acceptance, const gemm::bf16* d, const Inputs& inputs,
                                 const gemm::TileShape& tile, const std::vector<Element>& samples);

}  // namespace harness
