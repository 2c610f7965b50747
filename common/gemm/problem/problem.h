// The second problem: D = activation(alpha * A * B^T + beta * C + bias), operands of other types than bf16,
// and rows in groups. The steps of the main ladder solve Gemm; a step with an epilogue says in its variants
// which of these epilogues it computes, a step with types says which each variant multiplies, and a step with
// groups that it takes them.
#pragma once

#include <cstdint>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/types.h"

namespace gemm {

/// What the bias has a value for: each column of D (as the bias of a linear layer), or each row.
enum class Bias { kNone, kColumn, kRow };

/// GELU in the form with tanh, which frameworks call approximate and cuBLASLt computes, and in the exact form
/// with erf; SiLU is x * sigmoid(x). LeakyReLU is x, and kLeakySlope * x where x is negative.
enum class Activation { kNone, kRelu, kLeakyRelu, kGelu, kGeluErf, kSilu };

/// A power of two, so that LeakyReLU rounds nothing.
inline constexpr float kLeakySlope = 0x1p-6F;

/// What an epilogue does with one more tensor, of N columns like the product. x is alpha * A * B^T + bias, in
/// binary32.
enum class Auxiliary {
  kNone,
  kResidual,               // read, r: D = activation(x) + r
  kPreActivation,          // written: x, rounded to bf16; D = activation(x), of x before that
  kMask,                   // written, a bit an element: whether x > 0; D = activation(x)
  kMaskBackward,           // read, m: D = x where the bit is 1, and 0 elsewhere: the gradient of ReLU
  kPreActivationBackward,  // read, z: D = x * activation'(z): the gradient of the activation
  kGate,                   // no tensor: D has N / 2 columns, activation(x(2 j)) * x(2 j + 1)
};

/// Masks have a bit for each column, the lowest bit of a word first; a row begins with a word of its own.
inline constexpr int kMaskWordBits = 32;

constexpr bool is_mask(Auxiliary auxiliary) {
  return auxiliary == Auxiliary::kMask || auxiliary == Auxiliary::kMaskBackward;
}
constexpr bool is_read(Auxiliary auxiliary) {
  return auxiliary == Auxiliary::kResidual || auxiliary == Auxiliary::kMaskBackward ||
         auxiliary == Auxiliary::kPreActivationBackward;
}
constexpr bool is_written(Auxiliary auxiliary) {
  return auxiliary == Auxiliary::kPreActivation || auxiliary == Auxiliary::kMask;
}

/// What an epilogue makes of many elements. v is what D is rounded from, in binary32: sums and maxima are of
/// v, not of D, so they do not depend on D's type.
enum class Reduction {
  kNone,
  kColumnSums,   // written, float [n]: of v over the rows. Of a gradient: the gradient of the bias
  kRowSums,      // written, float [m]: of v over the columns
  kAmax,         // written, float [1]: the largest |v|, NaN where one is NaN
  kTopKSoftmax,  // D = softmax over the top_k largest v of each row, and 0 elsewhere; of equal ones those of
                 // lower columns are taken, and NaN never is
};

constexpr bool is_written(Reduction reduction) {
  return reduction != Reduction::kNone && reduction != Reduction::kTopKSoftmax;
}
constexpr bool is_sum(Reduction reduction) {
  return reduction == Reduction::kColumnSums || reduction == Reduction::kRowSums;
}
/// Elements of what is written.
constexpr int reduced_elements(Reduction reduction, const Shape& shape) {
  if (reduction == Reduction::kColumnSums) return shape.n;
  if (reduction == Reduction::kRowSums) return shape.m;
  return reduction == Reduction::kAmax ? 1 : 0;
}
/// The top_k of an epilogue that does not say it.
inline constexpr int kUsualTopK = 4;

/// What happens to the accumulators on their way to D, in binary32, before the one rounding to bf16.
struct Epilogue {
  float alpha = 1;
  float beta = 0;  // 0: C is not read, whatever it holds
  Bias bias = Bias::kNone;
  Activation activation = Activation::kNone;
  Auxiliary auxiliary = Auxiliary::kNone;
  Reduction reduction = Reduction::kNone;
  int top_k = 0;  // of kTopKSoftmax
  bool operator==(const Epilogue&) const = default;

  /// D = A * B^T, the problem of the main ladder.
  constexpr bool is_plain() const { return *this == Epilogue{}; }
  /// Whether it has a tensor of its own, a gate, or a reduction.
  constexpr bool has_more() const { return auxiliary != Auxiliary::kNone || reduction != Reduction::kNone; }
  constexpr int columns_of_d(int n) const { return auxiliary == Auxiliary::kGate ? n / 2 : n; }
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

  void* auxiliary = nullptr;         // bf16, or std::uint32_t of a mask: [m][auxiliary_pitch], the first n
  std::int64_t auxiliary_pitch = 0;  // elements from one row of it to the next; of a mask bits

  float* reduced = nullptr;  // what a reduction writes
  int reduced_length = 0;

  // Of operands that are not bf16: a, b and d are addresses of elements of these types, and D is
  // scales[0] * scales[1] * scales[2] * A * B^T, rounded to D's type; what is too large for it saturates.
  // Operands of 16 bits can be MN-major: a is [k][m] then, b is [k][n], and nothing is scaled.
  Types types;
  const float* scales = nullptr;  // [3], in device memory: of A, of B, of D; nullptr where types are bf16,
                                  // an operand is MN-major, or blocks have scales

  // Of operands whose blocks have scales (Types::scaling): a product of A's element (i, k) and B's (j, k)
  // counts scales_a[k / 128][i] * scales_b[j / 128][k / 128] times. Both are in device memory, at multiples
  // of 16 bytes; so are their rows. A NaN makes NaN of what it scales, whatever the elements are.
  const float* scales_a = nullptr;  // [K / 128, rounded up][scales_a_pitch], the first M of each row
  std::int64_t scales_a_pitch = 0;
  const float* scales_b = nullptr;  // [N / 128, rounded up][scales_b_pitch], the first K / 128, rounded up
  std::int64_t scales_b_pitch = 0;

  // Of operands with a scale for 32 or 16 elements (Scaling::kMx, kNv): the same, with a ue8m0 or ue4m3 for
  // each row of A or B and each block of K, where the tensor cores want them: pieces of 512 bytes for 128
  // rows and 4 blocks, [rows / 128, rounded up][blocks / 4, rounded up], whose bytes scale_offset() orders
  // (ptx/tcgen05_scaled_descriptor.h). So does cuBLASLt. Scales of blocks behind K scale nothing but zeros
  // and must not be NaN; those of rows that do not exist may be anything. With kNv also `scales` counts.
  const std::uint8_t* mx_scales_a = nullptr;
  const std::uint8_t* mx_scales_b = nullptr;
  // Where D is e2m1: what the quantiser writes, a ue4m3 for each row of D and each 16 of its columns, in the
  // same layout, so that D can be A of the next product. Those of rows and blocks that D does not have are 0.
  std::uint8_t* mx_scales_d = nullptr;

  // Of weights: b holds them packed (weights.h), each is multiplied by the scale of its row and of its group
  // of types.group elements of K, and there are no other scales.
  // Where types.zero_points, the N scales of a group are followed by its N zero points z, -8 to 7, each as
  // -(z + 8) / 64: what widening adds to a weight.
  const bf16* group_scales = nullptr;  // [K / group][types.scale_lines()][N], in device memory
  const bf16* wide_b = nullptr;        // the weights times their scales, of A's type, [N][K]: for an opponent
                                       // that multiplies nothing else; nullptr: there is none

  // Of a problem in groups, in host memory: the rows of group g of D are those of A times B's rows [g * N,
  // (g + 1) * N), transposed. Empty: all rows, and one B.
  std::vector<GroupRows> groups;

  // Groups whose sizes only the device knows: group g has room for `capacity` rows of A and of D, from row g
  // * capacity on, and the first counts[g] of them are its. The others are nobody's: they are not written,
  // and what they hold is not used. A count below 0 counts as 0, one above the capacity as the capacity. No
  // count may change while a launch runs. `groups` is then what the host knows of the sizes, or empty.
  int capacity = 0;             // 0: groups as above
  const int* counts = nullptr;  // [M / capacity], in device memory

  // Groups that lie anywhere, each with addresses and pitches of its own: a, b, d and M then say nothing, and
  // there are no `groups`. Fewer than 0 rows count as 0. The table may change between two launches, and not
  // while one runs. Nobody can check an address on the device: `known` is what the host knows of the table,
  // or empty. A group may have an N and a K of its own, which are at most the problem's.
  const PlacedGroup* placed = nullptr;  // [placed_count], in device memory; nullptr: groups as above
  int placed_count = 0;
  std::vector<PlacedGroup> known{};
};

/// Which epilogues a kernel computes, beside the plain one.
struct EpilogueSupport {
  bool alpha = false;   // any alpha
  bool source = false;  // any beta: D may be C itself
  std::vector<Bias> biases;
  std::vector<Activation> activations;
  bool fixed = false;  // the one bias and activation that are listed, or none, are always there
  Auxiliary auxiliary = Auxiliary::kNone;  // the one that is always there
  Reduction reduction = Reduction::kNone;  // the same
};

/// The support of a kernel that computes one bias, activation and auxiliary only, which are compiled in.
inline EpilogueSupport only(const Epilogue& epilogue, bool any_alpha) {
  EpilogueSupport support{.alpha = any_alpha,
                          .source = false,
                          .biases = {},
                          .activations = {},
                          .fixed = true,
                          .auxiliary = epilogue.auxiliary,
                          .reduction = epilogue.reduction};
  if (epilogue.bias != Bias::kNone) support.biases = {epilogue.bias};
  if (epilogue.activation != Activation::kNone) support.activations = {epilogue.activation};
  return support;
}

/// Gives `epilogue` the bias, the activation, the auxiliary and the reduction of a kernel in which they are
/// compiled in.
inline Epilogue with_fixed(const EpilogueSupport& support, Epilogue epilogue) {
  epilogue.auxiliary = support.auxiliary;
  epilogue.reduction = support.reduction;
  if (support.reduction != Reduction::kTopKSoftmax) epilogue.top_k = 0;
  if (support.reduction == Reduction::kTopKSoftmax && epilogue.top_k == 0) epilogue.top_k = kUsualTopK;
  if (!support.fixed) return epilogue;
  epilogue.bias = support.biases.empty() ? Bias::kNone : support.biases.front();
  epilogue.activation = support.activations.empty() ? Activation::kNone : support.activations.front();
  return epilogue;
}

}  // namespace gemm
