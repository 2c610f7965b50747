// Verification of epilogues with a tensor of their own, or with a reduction: inputs, reference, bounds,
// checks of every tensor. The sibling of verify.h for gemm::Auxiliary and gemm::Reduction.
// docs/verification.md, "Auxiliary tensors".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/types.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/epilogue/reductions.h"
#include "harness/verify/fault.h"
#include "harness/verify/inputs/input_value.h"
#include "harness/verify/verify.h"

namespace harness {

/// Names of the checks of the auxiliary tensor.
inline constexpr const char* kAuxNeverWritten = "aux-never-written";
inline constexpr const char* kAuxNan = "aux-nan";
inline constexpr const char* kAuxInfinity = "aux-infinity";
inline constexpr const char* kAuxValue = "aux-value";
inline constexpr const char* kAuxPadding = "aux-padding";  // what lies between its rows was written
inline constexpr const char* kAuxGuardBefore = "aux-guard-before";
inline constexpr const char* kAuxGuardAfter = "aux-guard-after";
inline constexpr const char* kInputAux = "input-aux";

/// Everything that the outputs depend on.
struct AuxRules {
  InputRules base;     // A, B, the epilogue, the bias, and C where beta is not 0
  InputRule tensor{};  // of a tensor of bf16 that is read; otherwise only its key counts
  int pitch = 0;       // from one row of the tensor to the next: elements, of a mask bits; 0: no tensor
  gemm::Type d = gemm::Type::kBf16;  // or e4m3: then D is v times the scale, rounded once, saturating
  float d_scale = 1;                 // a reduction is of v, which is not scaled

  const gemm::Epilogue& epilogue() const { return base.epilogue; }
  gemm::Shape shape() const { return {base.a.rows, base.b.rows, base.a.columns}; }
  int columns_of_d() const { return epilogue().columns_of_d(base.b.rows); }
  std::size_t tensor_bytes() const;
};
/// `pitch` and `bias_length` 0: the smallest that is allowed. A residual is as large as the sums; a
/// pre-activation to be read is of the normal pattern, or of the uniform one times 2, whatever the others
/// are: the derivative of an activation bends near 0. The bits of a mask are 0 and 1 with the same
/// probability, those behind N too. Where there are sums over rows or columns, integers are so small that the
/// sums are exact; where the largest of a row are looked for, so small that some are equal.
/// The scale of an e4m3 D lets some of its elements saturate; where the pattern is exact, it is
/// a power of two. In the exact pattern some elements of C are NaN or infinite, but where there is a largest
/// magnitude, which one NaN decides, they are so in the arange pattern instead.
AuxRules aux_rules(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                   const gemm::Epilogue& epilogue, int pitch = 0, int bias_length = 0,
                   gemm::Type d = gemm::Type::kBf16, int c_pitch = 0);

/// bf16 times bf16, and D e4m3: of other types than bf16 the only ones that have an epilogue.
constexpr bool narrows_d(const gemm::Types& types) {
  gemm::Types narrow;
  narrow.d = gemm::Type::kE4m3;
  return types == narrow;
}

/// The tensor as it lies in memory where it is read.
std::vector<std::uint8_t> aux_input(const AuxRules& rules);
/// Byte `index` of a tensor that is written, before the run. A mask has no NaN: it gets noise, and a word
/// that is wrong and still has its noise was never written.
std::uint8_t aux_poison(gemm::Auxiliary auxiliary, std::size_t index);
bool mask_bit(const std::uint8_t* mask, int pitch, int row, int column);

/// The derivative of GELU in the form with tanh, and how far off a correct kernel's may be. With s = 1 / (1 +
/// e^(-2 u)) it is s + 2 z u' s (1 - s), where tanh(u) = 2 s - 1. The exponential is off by d = (3 |2 u| + 4)
/// 2^-23 of itself: ex2.approx's 2.5 * 2^-23 (PTX ISA, "ex2"), and the roundings of its argument. That
/// changes s by (1 - s) d of itself and s (1 - s) by at most 3 d; rcp.approx (PTX ISA, "rcp") and the other
/// operations add less than 8 * 2^-23. Where |z| is large, e^(-2 u) need not be looked at: |2 u| counts up
/// to 88.
double gelu_derivative(double z);
double gelu_derivative_error(double z);

/// What may be stored. Exact patterns with exact epilogues have one value: high is empty.
struct AuxAcceptance {
  std::vector<gemm::bf16> low;  // of D
  std::vector<gemm::bf16> high;
  std::vector<gemm::bf16> tensor_low;  // [m][n], of a pre-activation that is written
  std::vector<gemm::bf16> tensor_high;
  std::vector<std::uint8_t> bits;  // [m][n], of a mask that is written: 1: a 0 is right, 2: a 1, 3: either
  ReducedAcceptance reduced;
  bool padding = false;  // may be written, between the rows of a tensor
};
/// `allowance` widens it: an x that is rounded before the rest of the epilogue, 2^-8 of each summand and of
/// each result, and for the derivative of GELU what 2^-11 of tanh (PTX ISA, "tanh") makes of it.
AuxAcceptance aux_acceptance(const AuxRules& rules, const Allowance& allowance = {});

/// Everything that a run could have touched.
struct AuxImage {
  std::vector<gemm::bf16> a;
  std::vector<gemm::bf16> b;
  std::vector<gemm::bf16> bias;
  std::vector<gemm::bf16> c;  // [m][pitch of C]; empty where there is none, or where D takes its place
  std::vector<std::uint8_t> before;
  std::vector<gemm::bf16> d;  // [m][columns_of_d]; of e4m3 the same numbers, all of which bf16 has
  std::vector<std::uint8_t> after;
  std::vector<std::uint8_t> tensor_before;
  std::vector<std::uint8_t> tensor;
  std::vector<std::uint8_t> tensor_after;
  std::vector<std::uint8_t> reduced_before;
  std::vector<float> reduced;
  std::vector<std::uint8_t> reduced_after;
};
/// What a flawless run leaves behind.
AuxImage correct_image(const AuxRules& rules);

CheckResult verify(const AuxRules& rules, const AuxImage& image, const AuxAcceptance& acceptance,
                   const gemm::TileShape& tile);

/// Ways to damage an image: those that an epilogue can have.
using AuxFault = Fault<void (*)(AuxImage& image, const AuxRules& rules, const gemm::TileShape& tile)>;
std::vector<AuxFault> aux_faults(const gemm::Epilogue& epilogue, gemm::Type d = gemm::Type::kBf16);

}  // namespace harness
