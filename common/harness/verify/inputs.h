// The inputs on the host: filling, and finding what a kernel clobbered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {

/// Throws Error listing the known patterns, nearest match first.
Pattern parse_pattern(const std::string& name);
std::string to_string(Pattern pattern);

/// Writes rows [first_row, first_row + rows) of the matrix to `values`, [rows][rule.columns]. All cores.
void fill_host(const InputRule& rule, int first_row, int rows, gemm::bf16* values);

/// The whole matrix, [rule.rows][rule.columns].
std::vector<gemm::bf16> host_input(const InputRule& rule);

/// Elements that are not what input_value says.
struct InputDamage {
  std::int64_t count = 0;
  int row = 0;  // of the first one
  int column = 0;
  gemm::bf16 expected{};
  gemm::bf16 got{};
};

/// Compares rows [first_row, first_row + rows), [rows][rule.columns], with the rule, bit for bit, and adds
/// what it finds to `damage`. All cores.
void compare_input(const InputRule& rule, int first_row, int rows, const gemm::bf16* values,
                   InputDamage& damage);

/// The inputs of the problem, row by row, computed on demand.
class Inputs {
 public:
  Inputs(const InputRule& a, const InputRule& b)
      : rules_{.a = a, .b = b, .epilogue = {}, .c = {}, .bias = {}} {}
  explicit Inputs(const InputRules& rules) : rules_(rules) {}
  gemm::Shape shape() const { return rules_.shape(); }
  const InputRules& rules() const { return rules_; }
  /// Of A or B.
  const InputRule& rule(Operand operand) const { return operand == Operand::kA ? rules_.a : rules_.b; }
  /// Element `index` of the matrix as it lies in memory; 0 outside of it.
  double flat(Operand operand, std::int64_t index) const;
  /// The exact sum for D(row, column), and the norm of its products; 0 where the row is of no group.
  void sum(int row, int column, double& value, double& norm) const;
  /// The same with the B of another group.
  void sum_with(int group, int row, int column, double& value, double& norm) const;
  /// What the epilogue makes of a sum there.
  double result(int row, int column, double sum) const;

 private:
  InputRules rules_;
};

}  // namespace harness
