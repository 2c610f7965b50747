// Which elements of D are wrong, of which kind, and what their places have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/verify/inputs.h"
#include "harness/verify/verify.h"

namespace harness {

/// An index into a std::vector.
inline std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// What is wrong with one element. One that is to be NaN may be any NaN but the poison; of one that is to be
/// infinite, anything else is a wrong value.
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

/// The same of any D: `classify` says what is wrong with the element at this index of D, [m][n].
Survey survey(const gemm::Shape& shape, const gemm::TileShape& tile,
              const std::function<Wrong(std::size_t)>& classify);

/// Of a D whose pattern is not exact and in which nothing is wrong: how far the accumulator was off, as far
/// as D shows. At an element that is not the exact sum, rounded, the accumulator lay beyond the nearest tie,
/// so it was off by at least the distance from the sum to that tie; this is the largest of these distances. 0
/// when D is the exact sum, rounded, everywhere. Of many such elements only some are looked at, evenly
/// spread. All cores.
double observed_error(const Acceptance& acceptance, const gemm::bf16* d, const Inputs& inputs);

/// Where all wrong elements lie next to what is right, and on one side of it: that they are rounded to the
/// wrong side; else "". `step(index)`: how many numbers of D's type lie from the right one to the wrong one,
/// below 0 nearer to zero; 0 where that has no meaning. `negative(index)`: whether the right one is.
std::string explain_rounding(const Survey& survey, const std::function<bool(std::size_t)>& is_wrong,
                             const std::function<std::int64_t(std::size_t)>& step,
                             const std::function<bool(std::size_t)>& negative);

/// Where all wrong elements are those of some of a thread's registers in a fragment of 16 x 8, by row half
/// and column: which; else "".
std::string describe_registers(const Survey& survey, const std::function<bool(std::size_t)>& is_wrong);

/// One or more sentences: which tiles, rows, columns, which regularity.
std::string describe_place(const Survey& survey);

}  // namespace harness
