#include "harness/verify/epilogue/epilogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "harness/backend/backend.h"
#include "harness/base/problem.h"

namespace harness {
namespace {

constexpr std::array kBiases = {gemm::Bias::kNone, gemm::Bias::kColumn, gemm::Bias::kRow};
constexpr std::array kActivations = {gemm::Activation::kNone,      gemm::Activation::kRelu,
                                     gemm::Activation::kLeakyRelu, gemm::Activation::kGelu,
                                     gemm::Activation::kGeluErf,   gemm::Activation::kSilu};

/// alpha and beta are exact multiples of 2^-kFraction where results are exact.
constexpr int kFraction = 4;

bool is_dyadic(float scale) {
  const float scaled = std::ldexp(scale, kFraction);
  return std::abs(scale) <= 16 && scaled == std::floor(scaled);
}

/// The fewest fractional bits with which both can be written; 0 for what is not dyadic.
int fraction_bits(const gemm::Epilogue& epilogue) {
  if (!is_dyadic(epilogue.alpha) || !is_dyadic(epilogue.beta)) return 0;
  for (int bits = 0; bits < kFraction; ++bits) {
    const auto fits = [bits](float scale) {
      const float scaled = std::ldexp(scale, bits);
      return scaled == std::floor(scaled);
    };
    if (fits(epilogue.alpha) && fits(epilogue.beta)) return bits;
  }
  return kFraction;
}

double activated(gemm::Activation activation, double x) {
  switch (activation) {
    case gemm::Activation::kNone:
      return x;
    case gemm::Activation::kRelu:
      return std::max(x, 0.0);
    case gemm::Activation::kLeakyRelu:
      return x < 0 ? static_cast<double>(gemm::kLeakySlope) * x : x;
    case gemm::Activation::kGelu: {
      // Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv 1606.08415.
      const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1 + std::tanh(inner));
    }
    case gemm::Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case gemm::Activation::kSilu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

/// Where GELU and SiLU are lowest: they fall up to there and rise behind it.
double lowest_at(gemm::Activation activation) {
  switch (activation) {
    case gemm::Activation::kGelu:
      return -0.75246;
    case gemm::Activation::kGeluErf:
      return -0.75179;
    case gemm::Activation::kSilu:
      return -1.27846;
    default:
      return 0;
  }
}

bool is_smooth(gemm::Activation activation) {
  return activation == gemm::Activation::kGelu || activation == gemm::Activation::kGeluErf ||
         activation == gemm::Activation::kSilu;
}

/// How far off a correct kernel's GELU or SiLU of x may be (see accepted_results).
double activation_error(gemm::Activation activation, double x) {
  const double size = std::abs(x);
  switch (activation) {
    case gemm::Activation::kGelu:
      return 0.5 * size * (0x1p-11 + 0x1p-20);
    case gemm::Activation::kGeluErf:
      return 0.5 * size * (1.5e-7 + 0x1p-19);
    case gemm::Activation::kSilu:
      return std::abs(activated(activation, x)) * (size + 6) * 0x1p-23 + size * 0x1p-125;
    default:
      return 0;
  }
}

template <typename Value, std::size_t kCount>
Value parse_name(const std::string& what, const std::string& name, const std::array<Value, kCount>& values) {
  std::vector<std::string> known;
  for (const Value value : values) {
    known.push_back(to_string(value));
    if (known.back() == name) return value;
  }
  const std::string nearest = nearest_match(name, known);
  throw Error(fmt::format("unknown {} '{}'{} Known: {}", what, name,
                          nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest),
                          fmt::join(known, ", ")));
}

template <typename Value>
bool has(const std::vector<Value>& values, Value wanted) {
  return std::find(values.begin(), values.end(), wanted) != values.end();
}

}  // namespace

std::string to_string(gemm::Bias bias) {
  if (bias == gemm::Bias::kNone) return "none";
  return bias == gemm::Bias::kColumn ? "column" : "row";
}

std::string to_string(gemm::Activation activation) {
  switch (activation) {
    case gemm::Activation::kNone:
      return "none";
    case gemm::Activation::kRelu:
      return "relu";
    case gemm::Activation::kLeakyRelu:
      return "leaky_relu";
    case gemm::Activation::kGelu:
      return "gelu";
    case gemm::Activation::kGeluErf:
      return "gelu_erf";
    case gemm::Activation::kSilu:
      return "silu";
  }
  return "?";
}

std::string to_string(gemm::Auxiliary auxiliary) {
  switch (auxiliary) {
    case gemm::Auxiliary::kNone:
      return "";
    case gemm::Auxiliary::kResidual:
      return "residual";
    case gemm::Auxiliary::kPreActivation:
      return "pre-activation out";
    case gemm::Auxiliary::kMask:
      return "bit mask out";
    case gemm::Auxiliary::kMaskBackward:
      return "bit mask in";
    case gemm::Auxiliary::kPreActivationBackward:
      return "backward, pre-activation in";
    case gemm::Auxiliary::kGate:
      return "gate";
  }
  return "?";
}

std::string to_string(gemm::Reduction reduction) {
  switch (reduction) {
    case gemm::Reduction::kNone:
      return "";
    case gemm::Reduction::kColumnSums:
      return "column sums out";
    case gemm::Reduction::kRowSums:
      return "row sums out";
    case gemm::Reduction::kAmax:
      return "largest magnitude out";
    case gemm::Reduction::kTopKSoftmax:
      return "softmax of the largest of a row";
  }
  return "?";
}

gemm::Bias parse_bias(const std::string& name) {
  return parse_name("bias", name, kBiases);
}

gemm::Activation parse_activation(const std::string& name) {
  return parse_name("activation", name, kActivations);
}

std::string to_string(const gemm::Epilogue& epilogue) {
  std::string text = fmt::format("alpha {:g}, beta {:g}", epilogue.alpha, epilogue.beta);
  if (epilogue.bias != gemm::Bias::kNone) text += ", bias " + to_string(epilogue.bias);
  if (epilogue.activation != gemm::Activation::kNone) text += ", " + to_string(epilogue.activation);
  if (epilogue.auxiliary != gemm::Auxiliary::kNone) text += ", " + to_string(epilogue.auxiliary);
  if (epilogue.reduction != gemm::Reduction::kNone) text += ", " + to_string(epilogue.reduction);
  if (epilogue.top_k != 0) text += fmt::format(", k {}", epilogue.top_k);
  return text;
}

bool computes(const gemm::Variant& variant, const gemm::Epilogue& epilogue) {
  const gemm::EpilogueSupport& support = variant.epilogues;
  if (!(gemm::with_fixed(support, epilogue) == epilogue)) return false;
  return (epilogue.alpha == 1 || support.alpha) && (epilogue.beta == 0 || support.source) &&
         (epilogue.bias == gemm::Bias::kNone || has(support.biases, epilogue.bias)) &&
         (epilogue.activation == gemm::Activation::kNone || has(support.activations, epilogue.activation));
}

std::string epilogue_problem(const gemm::Step& step, const gemm::Variant& variant,
                             const gemm::Epilogue& epilogue) {
  const gemm::EpilogueSupport& support = variant.epilogues;
  gemm::Epilogue nearest = epilogue;
  std::vector<std::string> missing;
  if (epilogue.alpha != 1 && !support.alpha) {
    missing.push_back(fmt::format("alpha = {:g}", epilogue.alpha));
    nearest.alpha = 1;
  }
  if (epilogue.beta != 0 && !support.source) {
    missing.push_back(fmt::format("beta = {:g}", epilogue.beta));
    nearest.beta = 0;
  }
  if (epilogue.bias != gemm::Bias::kNone && !has(support.biases, epilogue.bias)) {
    missing.push_back("a bias per " + to_string(epilogue.bias));
    nearest.bias = support.biases.empty() ? gemm::Bias::kNone : support.biases.front();
  }
  if (epilogue.activation != gemm::Activation::kNone && !has(support.activations, epilogue.activation)) {
    missing.push_back("the activation " + to_string(epilogue.activation));
    nearest.activation = support.activations.empty() ? gemm::Activation::kNone : support.activations.front();
  }
  const gemm::Epilogue fixed = gemm::with_fixed(support, epilogue);
  if (epilogue.bias == gemm::Bias::kNone && fixed.bias != gemm::Bias::kNone)
    missing.emplace_back("an epilogue without a bias");
  if (epilogue.activation == gemm::Activation::kNone && fixed.activation != gemm::Activation::kNone)
    missing.emplace_back("an epilogue without an activation");
  if (epilogue.auxiliary != fixed.auxiliary)
    missing.push_back(epilogue.auxiliary == gemm::Auxiliary::kNone
                          ? "an epilogue without its " + to_string(fixed.auxiliary)
                          : "a " + to_string(epilogue.auxiliary));
  if (epilogue.reduction != fixed.reduction)
    missing.push_back(epilogue.reduction == gemm::Reduction::kNone
                          ? "an epilogue without its " + to_string(fixed.reduction)
                          : "a reduction: " + to_string(epilogue.reduction));
  if (epilogue.top_k != 0 && fixed.top_k == 0) missing.emplace_back("the top k of a row");
  nearest = gemm::with_fixed(support, nearest);
  if (missing.empty()) return "";
  std::string others;
  for (const gemm::Variant& other : step.variants) {
    if (&other != &variant && others.empty() && computes(other, epilogue))
      others = fmt::format("; its variant {} does", other.name);
  }
  return fmt::format("{} {} does not compute {}{}; the nearest epilogue that it has is {}", step.name,
                     variant.name, fmt::join(missing, " and "), others, to_string(nearest));
}

double epilogue_value(const gemm::Epilogue& epilogue, double sum, double c, double bias) {
  const double source = epilogue.beta == 0 ? 0 : static_cast<double>(epilogue.beta) * c;
  const double x = static_cast<double>(epilogue.alpha) * sum + source + bias;
  return activated(epilogue.activation, x);
}

Interval accepted_results(const gemm::Epilogue& epilogue, double sum, double error, double c, double bias) {
  constexpr double kUnit = 0x1p-24;
  constexpr double kOperations = 5;
  const double alpha = std::abs(static_cast<double>(epilogue.alpha));
  const double source = epilogue.beta == 0 ? 0 : std::abs(static_cast<double>(epilogue.beta) * c);
  const double size = alpha * (std::abs(sum) + error) + source + std::abs(bias);
  const double off = alpha * error + kOperations * kUnit * size;
  gemm::Epilogue linear = epilogue;
  linear.activation = gemm::Activation::kNone;
  const double x = epilogue_value(linear, sum, c, bias);
  if (!std::isfinite(x)) return {activated(epilogue.activation, x), activated(epilogue.activation, x)};
  double low = activated(epilogue.activation, x - off);
  double high = activated(epilogue.activation, x + off);
  if (!is_smooth(epilogue.activation)) return {low, high};
  if (low > high) std::swap(low, high);
  const double turn = lowest_at(epilogue.activation);
  if (x - off < turn && turn < x + off) low = activated(epilogue.activation, turn);
  return {low - std::max(activation_error(epilogue.activation, x - off),
                         activation_error(epilogue.activation, x)),
          high + std::max(activation_error(epilogue.activation, x + off),
                          activation_error(epilogue.activation, x))};
}

bool is_exact(Pattern pattern, const gemm::Epilogue& epilogue) {
  if (epilogue.is_plain()) return is_exact(pattern);
  return (pattern == Pattern::kExact || pattern == Pattern::kArange || pattern == Pattern::kSpecial) &&
         is_dyadic(epilogue.alpha) && is_dyadic(epilogue.beta) && !is_smooth(epilogue.activation) &&
         epilogue.reduction != gemm::Reduction::kTopKSoftmax;
}

ExactNumbers exact_numbers(int k, const gemm::Epilogue& epilogue) {
  ExactNumbers numbers{exact_range(k), 0};
  if (epilogue.is_plain()) return numbers;
  const double alpha = std::abs(static_cast<double>(epilogue.alpha));
  const double beta = std::abs(static_cast<double>(epilogue.beta));
  const double most = std::ldexp(1.0, 24 - fraction_bits(epilogue));
  constexpr double kLargest = 256;  // of bf16's integers
  for (; numbers.range >= 1; --numbers.range) {
    const double range = numbers.range;
    // C as large as twice the sum's standard deviation, range^2 / 3 * sqrt(k), or as 256.
    const double wanted = 2 * range * range / 3 * std::sqrt(k) * std::max(alpha, 1.0 / 16) /
                          std::max(beta, 1.0 / 16) / kLargest;
    numbers.shift = std::clamp(static_cast<int>(std::floor(std::log2(wanted))), 0, 12);
    const double addend = std::ldexp(kLargest, numbers.shift);
    if (alpha * range * range * k + (beta + 1) * addend < most) return numbers;
  }
  return {1, 0};
}

InputRules input_rules(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                       const gemm::Epilogue& epilogue, int c_pitch, int bias_length) {
  InputRules rules{.a = input_rule(pattern, seed, Operand::kA, shape.m, shape.k),
                   .b = input_rule(pattern, seed, Operand::kB, shape.n, shape.k),
                   .epilogue = epilogue,
                   .c = {},
                   .bias = {}};
  if (epilogue.is_plain()) return rules;
  const ExactNumbers numbers = exact_numbers(shape.k, epilogue);
  rules.a.range = rules.b.range = numbers.range;
  // The identity pattern says in D where an element of A or B comes from; C and the bias are integers there.
  const bool special = pattern == Pattern::kSpecial;
  const Pattern of_addends = pattern == Pattern::kIdentity || special ? Pattern::kExact : pattern;
  const int deviations = static_cast<int>(std::lround(std::log2(std::sqrt(shape.k))));
  const auto addend = [&](Operand operand, int rows, int columns) {
    InputRule rule = input_rule(of_addends, seed, operand, rows, columns);
    rule.range = 256;
    rule.shift = numbers.shift;
    rule.special = special;
    if (pattern == Pattern::kIdentity) rule.shift = 0;
    if (pattern == Pattern::kNormal) rule.shift = deviations;
    if (pattern == Pattern::kUniform) rule.shift = std::max(0, deviations - 1);
    return rule;
  };
  if (epilogue.beta != 0) rules.c = addend(Operand::kC, shape.m, c_pitch > 0 ? c_pitch : shape.n);
  if (epilogue.bias != gemm::Bias::kNone) {
    const int needed = epilogue.bias == gemm::Bias::kColumn ? shape.n : shape.m;
    rules.bias = addend(Operand::kBias, 1, bias_length > 0 ? bias_length : needed);
  }
  return rules;
}

InputRules grouped_rules(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                         const std::vector<gemm::GroupRows>& groups) {
  const int rows_of_b = shape.n * std::max(1, static_cast<int>(groups.size()));
  InputRules rules = input_rules({shape.m, rows_of_b, shape.k}, pattern, seed, {});
  rules.groups = groups;
  return rules;
}

int InputRules::group_of(int row) const {
  if (groups.empty()) return 0;
  // The first that ends behind the row: groups ascend.
  const auto at = std::upper_bound(groups.begin(), groups.end(), row,
                                   [](int wanted, const gemm::GroupRows& one) { return wanted < one.end; });
  if (at == groups.end() || row < at->begin) return -1;
  return static_cast<int>(at - groups.begin());
}

double source_at(const InputRules& rules, int row, int column) {
  if (row < 0 || column < 0 || row >= rules.c.rows || column >= rules.c.columns) return 0;
  return static_cast<double>(gemm::to_float(input_value(rules.c, row, column, normal_quantiles())));
}

double bias_at(const InputRules& rules, int row, int column) {
  if (rules.epilogue.bias == gemm::Bias::kNone) return 0;
  const int index = rules.epilogue.bias == gemm::Bias::kRow ? row : column;
  if (index < 0 || index >= rules.bias.columns) return 0;
  return static_cast<double>(gemm::to_float(input_value(rules.bias, 0, index, normal_quantiles())));
}

}  // namespace harness
