// The epilogue in binary64, and what of it is asked for on the command line.
#pragma once

#include <string>
#include <vector>

#include "gemm/problem/groups.h"
#include "gemm/problem/step.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {

std::string to_string(gemm::Bias bias);              // "column"
std::string to_string(gemm::Activation activation);  // "relu"
std::string to_string(gemm::Auxiliary auxiliary);    // "residual", "" for none
std::string to_string(gemm::Reduction reduction);    // "column sums out", "" for none
/// Throw Error that lists the known names, nearest match first.
gemm::Bias parse_bias(const std::string& name);
gemm::Activation parse_activation(const std::string& name);

/// "alpha 1, beta 1" and, where there are any, ", bias column", ", relu" and ", residual".
std::string to_string(const gemm::Epilogue& epilogue);

/// Whether the variant computes the epilogue.
bool computes(const gemm::Variant& variant, const gemm::Epilogue& epilogue);
/// "", or a sentence that says what of the epilogue the variant does not compute, and what is nearest.
std::string epilogue_problem(const gemm::Step& step, const gemm::Variant& variant,
                             const gemm::Epilogue& epilogue);

/// activation(alpha * sum + beta * c + bias), exactly as far as binary64 goes. With beta = 0 `c` has no part.
double epilogue_value(const gemm::Epilogue& epilogue, double sum, double c, double bias);

struct Interval {
  double low = 0;
  double high = 0;
};

/// Where the binary32 result of a correct kernel lies, if its accumulator is within `error` of `sum`. Of each
/// of the at most five operations before the activation the result is off by half a unit in the last place,
/// 2^-24 times a number that is at most |alpha| (|sum| + error) + |beta c| + |bias|. GELU and SiLU are off by
/// more, because of instructions whose error the PTX ISA documents: tanh.approx.f32, 2^-11 of its value
/// ("tanh"); ex2.approx.f32, two units in the last place of the rounded result ("ex2"), 2.5 * 2^-23;
/// rcp.approx.f32, one unit ("rcp"), 2^-23.
///   gelu: x / 2 * (1 + tanh(u)). tanh is at most 1, so x / 2 times 2^-11; u is off by at most 5 * 2^-24 of
///   itself, which changes tanh(u) by at most 0.45 of that, and the last operations add 2^-24 each: together
///   less than 2^-20 of x / 2.
///   gelu_erf: x / 2 times the error of erf. That is 1.5e-7 where it is taken from Abramowitz and Stegun,
///   7.1.26, and 2 units in the last place for erff(). The polynomial's terms are at most 4.5 together, t = 1
///   / (1 + p z) is off by 2^-23 and a rounding, with an amplification of at most 5, and the exponential by
///   2.5 * 2^-23 and 1.2 * 2^-24 for its argument: together less than 2^-19.
///   silu: the exponential e^-x is off by 2.5 * 2^-23 and, for the rounding of its argument, |x| * 2^-23 of
///   itself; the addition, the reciprocal and the product add less than 2 * 2^-23: less than (|x| + 6) *
///   2^-23 of the result. Where e^-x is infinite or 1 / e^x subnormal, zero is right, too: less than |x| *
///   2^-125.
/// The error grows with |x|; it is taken at x and at the end of the interval, whichever is larger.
Interval accepted_results(const gemm::Epilogue& epilogue, double sum, double error, double c, double bias);

/// Whether the result is unique: exact sums, and an epilogue that only adds, doubles, or clips such numbers.
bool is_exact(Pattern pattern, const gemm::Epilogue& epilogue);

/// How the exact and the arange pattern choose their numbers for an epilogue: A and B are integers up to
/// `range`; C and the bias are up to 256 times 2^shift, as large as the sums are.
struct ExactNumbers {
  int range = 0;
  int shift = 0;
};
/// The largest range for which alpha * sum + beta * C + bias, in any order, is a multiple of a power of two
/// and less than 2^24 times it, so that nothing is rounded (see exact_range). Plain epilogue: exact_range(k).
ExactNumbers exact_numbers(int k, const gemm::Epilogue& epilogue);

/// Everything that D depends on.
struct InputRules {
  InputRule a;
  InputRule b;
  gemm::Epilogue epilogue;
  InputRule c;     // of an epilogue with beta, otherwise without rows
  InputRule bias;  // one row
  // Of a problem in groups, whose B has N rows for each of them.
  std::vector<gemm::GroupRows> groups{};

  int n() const { return groups.empty() ? b.rows : b.rows / static_cast<int>(groups.size()); }
  gemm::Shape shape() const { return {a.rows, n(), a.columns}; }
  /// The group of a row of D, or -1 where it is of none; 0 where there are no groups.
  int group_of(int row) const;
};
/// `c_pitch` and `bias_length`: 0 for N, and for what the bias needs.
InputRules input_rules(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                       const gemm::Epilogue& epilogue, int c_pitch = 0, int bias_length = 0);
/// Of a problem in groups.
InputRules grouped_rules(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                         const std::vector<gemm::GroupRows>& groups);

/// C(row, column) and the bias at it; 0 where the epilogue has none.
double source_at(const InputRules& rules, int row, int column);
double bias_at(const InputRules& rules, int row, int column);

}  // namespace harness
