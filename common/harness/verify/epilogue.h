// The epilogue in binary64, and what of it is asked for on the command line.
#pragma once

#include <string>
#include <vector>

#include "gemm/step.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {

std::string to_string(gemm::Bias bias);              // "column"
std::string to_string(gemm::Activation activation);  // "relu"
/// Throw Error that lists the known names, nearest match first.
gemm::Bias parse_bias(const std::string& name);
gemm::Activation parse_activation(const std::string& name);

/// "alpha 1, beta 1" and, where there are any, ", bias column" and ", relu".
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
/// 2^-24 times a number that is at most |alpha| (|sum| + error) + |beta c| + |bias|. GELU and SiLU may use
/// tanh.approx.f32, whose relative error is at most 2^-10.987 (PTX ISA, "tanh"), on which half of x hangs.
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
};
/// `c_pitch` and `bias_length`: 0 for N, and for what the bias needs.
InputRules input_rules(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                       const gemm::Epilogue& epilogue, int c_pitch = 0, int bias_length = 0);

/// C(row, column) and the bias at it; 0 where the epilogue has none.
double source_at(const InputRules& rules, int row, int column);
double bias_at(const InputRules& rules, int row, int column);

}  // namespace harness
