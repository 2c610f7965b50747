#include "harness/verify/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numbers>

#include "harness/backend/backend.h"
#include "harness/base/parallel.h"
#include "harness/base/problem.h"

namespace harness {
namespace {

constexpr std::array kPatterns = {Pattern::kExact,     Pattern::kNormal, Pattern::kUniform,
                                  Pattern::kIdentity,  Pattern::kArange, Pattern::kSpecial,
                                  Pattern::kCancelling};

/// Solves P(|N(0, 1)| > x) = tail by Newton's method; `start` is a smaller root, of a larger tail. The
/// function is convex for x > 0, so the iterates ascend to the root.
double normal_quantile(double tail, double start) {
  const double density_at_0 = std::sqrt(2 / std::numbers::pi);
  double x = start;
  for (int i = 0; i < 50; ++i) {
    const double excess = std::erfc(x / std::numbers::sqrt2) - tail;
    const double step = excess / (density_at_0 * std::exp(-x * x / 2));
    x += step;
    if (std::abs(step) < 1e-14) break;
  }
  return x;
}

std::vector<gemm::bf16> make_normal_quantiles() {
  std::vector<gemm::bf16> table(kNormalQuantiles);
  double x = 0;
  for (int i = 0; i < kNormalQuantiles; ++i) {
    x = normal_quantile(1 - (i + 0.5) / kNormalQuantiles, x);
    table[static_cast<std::size_t>(i)] = gemm::to_bf16(static_cast<float>(x));
  }
  return table;
}

}  // namespace

std::string to_string(Pattern pattern) {
  switch (pattern) {
    case Pattern::kExact:
      return "exact";
    case Pattern::kNormal:
      return "normal";
    case Pattern::kUniform:
      return "uniform";
    case Pattern::kIdentity:
      return "identity";
    case Pattern::kArange:
      return "arange";
    case Pattern::kSpecial:
      return "special";
    case Pattern::kCancelling:
      return "cancelling";
  }
  return "?";
}

Pattern parse_pattern(const std::string& name) {
  std::vector<std::string> known;
  for (const Pattern pattern : kPatterns) {
    if (to_string(pattern) == name) return pattern;
    known.push_back(to_string(pattern));
  }
  const std::string nearest = nearest_match(name, known);
  const auto position = std::find(known.begin(), known.end(), nearest);
  if (position != known.end()) std::rotate(known.begin(), position, position + 1);
  throw Error(fmt::format("unknown pattern '{}'{} Known: {}", name,
                          nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest),
                          fmt::join(known, ", ")));
}

const gemm::bf16* normal_quantiles() {
  static const std::vector<gemm::bf16> kTable = make_normal_quantiles();
  return kTable.data();
}

void fill_host(const InputRule& rule, int first_row, int rows, gemm::bf16* values) {
  const gemm::bf16* quantiles = normal_quantiles();
  parallel_for(rows, row_grain(rule.columns), [&](std::int64_t begin, std::int64_t end) {
    for (int row = static_cast<int>(begin); row < end; ++row) {
      gemm::bf16* out = values + gemm::offset(row, 0, rule.columns);
      for (int column = 0; column < rule.columns; ++column)
        out[column] = input_value(rule, first_row + row, column, quantiles);
    }
  });
}

std::vector<gemm::bf16> host_input(const InputRule& rule) {
  std::vector<gemm::bf16> values(static_cast<std::size_t>(gemm::offset(rule.rows, 0, rule.columns)));
  fill_host(rule, 0, rule.rows, values.data());
  return values;
}

void compare_input(const InputRule& rule, int first_row, int rows, const gemm::bf16* values,
                   InputDamage& damage) {
  const gemm::bf16* quantiles = normal_quantiles();
  std::mutex mutex;
  parallel_for(rows, row_grain(rule.columns), [&](std::int64_t begin, std::int64_t end) {
    for (int row = static_cast<int>(begin); row < end; ++row) {
      const gemm::bf16* in = values + gemm::offset(row, 0, rule.columns);
      for (int column = 0; column < rule.columns; ++column) {
        const gemm::bf16 expected = input_value(rule, first_row + row, column, quantiles);
        if (in[column].bits == expected.bits) continue;
        const std::scoped_lock lock(mutex);
        const int full_row = first_row + row;
        const bool first =
            full_row < damage.row || (full_row == damage.row && column < damage.column) || damage.count == 0;
        if (first) {
          damage.row = full_row;
          damage.column = column;
          damage.expected = expected;
          damage.got = in[column];
        }
        ++damage.count;
      }
    }
  });
}

double Inputs::flat(Operand operand, std::int64_t index) const {
  const InputRule& from = rule(operand);
  if (index < 0 || index >= static_cast<std::int64_t>(from.rows) * from.columns) return 0;
  const gemm::bf16 value = input_value(from, static_cast<int>(index / from.columns),
                                       static_cast<int>(index % from.columns), normal_quantiles());
  return static_cast<double>(gemm::to_float(value));
}

void Inputs::sum(int row, int column, double& value, double& norm) const {
  sum_with(rules_.group_of(row), row, column, value, norm);
}

void Inputs::sum_with(int group, int row, int column, double& value, double& norm) const {
  const int k = rules_.a.columns;
  double squares = 0;
  value = 0;
  for (int i = 0; i < k && group >= 0; ++i) {
    const double product = flat(Operand::kA, gemm::offset(row, i, k)) *
                           flat(Operand::kB, gemm::offset(group * rules_.n() + column, i, k));
    value += product;
    squares += product * product;
  }
  norm = std::sqrt(squares);
}

double Inputs::result(int row, int column, double sum) const {
  return epilogue_value(rules_.epilogue, sum, source_at(rules_, row, column), bias_at(rules_, row, column));
}

}  // namespace harness
