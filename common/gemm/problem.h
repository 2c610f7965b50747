// The second problem: D = activation(alpha * A * B^T + beta * C + bias), operands of other types than bf16,
// and rows in groups. The steps of the main ladder solve Gemm; a step with an epilogue says in its variants
// which of these epilogues it computes, a step with types says which each variant multiplies, and a step with
// groups that it takes them.
#pragma once

#include <cstdint>
#include <vector>

#include "gemm/gemm.h"
#include "gemm/groups.h"
#include "gemm/types.h"

namespace gemm {

/// What the bias has a value for: each column of D (as the bias of a linear layer), or each row.
enum class Bias { kNone, kColumn, kRow };

/// GELU in the form with tanh, which frameworks call approximate and cuBLASLt computes, and in the exact form
/// with erf; SiLU is x * sigmoid(x). LeakyReLU is x, and kLeakySlope * x where x is negative.
enum class Activation { kNone, kRelu, kLeakyRelu, kGelu, kGeluErf, kSilu };

/// A power of two, so that LeakyReLU rounds nothing.
inline constexpr float kLeakySlope = 0x1p-6F;

/// What happens to the accumulators on their way to D, in binary32, before the one rounding to bf16.
struct Epilogue {
  float alpha = 1;
  float beta = 0;  // 0: C is not read, whatever it holds
  Bias bias = Bias::kNone;
  Activation activation = Activation::kNone;
  bool operator==(const Epilogue&) const = default;

  /// D = A * B^T, the problem of the main ladder.
  constexpr bool is_plain() const { return *this == Epilogue{}; }
};

/// One multiplication on device memory, with its epilogue.
struct Problem : Gemm {
  Problem() = default;
  Problem(const Gemm& gemm) : Gemm(gemm) {}  // with the plain epilogue

  Epilogue epilogue;
  const bf16* c = nullptr;     // [m][c_pitch], the first n of each row count; may be d
  std::int64_t c_pitch = 0;    // elements from one row of C to the next
  const bf16* bias = nullptr;  // [bias_length]
  int bias_length = 0;

  // Of operands that are not bf16: a, b and d are addresses of elements of these types, and D is
  // scales[0] * scales[1] * scales[2] * A * B^T, rounded to D's type; what is too large for it saturates.
  Types types;
  const float* scales = nullptr;  // [3], in device memory: of A, of B, of D; nullptr where types are bf16

  // Of a problem in groups, in host memory: the rows of group g of D are those of A times B's rows [g * N,
  // (g + 1) * N), transposed. Empty: all rows, and one B.
  std::vector<GroupRows> groups;
};

/// Which epilogues a kernel computes, beside the plain one.
struct EpilogueSupport {
  bool alpha = false;   // any alpha
  bool source = false;  // any beta: D may be C itself
  std::vector<Bias> biases;
  std::vector<Activation> activations;
  bool fixed = false;  // the one bias and activation that are listed, or none, are always there
};

/// The support of a kernel that computes one bias and one activation only, which are compiled in.
inline EpilogueSupport only(const Epilogue& epilogue, bool any_alpha) {
  EpilogueSupport support{
      .alpha = any_alpha, .source = false, .biases = {}, .activations = {}, .fixed = true};
  if (epilogue.bias != Bias::kNone) support.biases = {epilogue.bias};
  if (epilogue.activation != Activation::kNone) support.activations = {epilogue.activation};
  return support;
}

/// Gives `epilogue` the bias and the activation of a kernel in which they are compiled in.
inline Epilogue with_fixed(const EpilogueSupport& support, Epilogue epilogue) {
  if (!support.fixed) return epilogue;
  epilogue.bias = support.biases.empty() ? Bias::kNone : support.biases.front();
  epilogue.activation = support.activations.empty() ? Activation::kNone : support.activations.front();
  return epilogue;
}

}  // namespace gemm
