// Verification of operands that are not bf16: inputs, reference, bounds, checks. The sibling of inputs.h and
// verify.h, with less to say about what went wrong. docs/verification.md, "Other types".
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "harness/verify/fault.h"
#include "harness/verify/inputs/input_value.h"
#include "harness/verify/verify.h"

namespace harness {

/// "e4m3 x e5m2 -> bf16"; "bf16 x bf16 -> bf16, A M-major, B K-major" where an operand is not K-major
std::string to_string(const gemm::Types& types);

/// The number that these bits are in a type (of tf32 what the tensor cores see), and the bits that a number
/// is rounded to. Bits of fewer than 32 are the lower ones.
float decode(gemm::Type type, std::uint32_t bits);
std::uint32_t encode(gemm::Type type, float value);
/// The same for element `index` of a matrix.
std::uint32_t bits_at(gemm::Type type, const std::uint8_t* matrix, std::int64_t index);
void put_bits(gemm::Type type, std::uint8_t* matrix, std::int64_t index, std::uint32_t bits);

/// The largest magnitude of the integers of the patterns exact and arange, so that nothing is rounded before
/// D. Numbers that both operands' types hold: up to 256 in bf16, 2048 in fp16 and tf32, 16 in e4m3, 8 in
/// e5m2, 4 in e2m1, 127 in int8. Sums of K products r * r:
/// - up to r * r * K < 2^24, see exact_range; with int8 2^31; up to 65504 where D is fp16 and has no scale;
/// - fp8: below 2^13, of which the accumulator holds every integer. Signs of the exact pattern are random, so
///   a sum is more than 9 r r sqrt(K) with probability 1e-17 (Hoeffding); the arange pattern sums to 0 over a
///   period of (2r + 1)(2r - 1), so only part of a period can remain.
/// - scales of blocks, of which the largest product is 16 times the smallest: 16 * r * r * K < 2^24. So it is
///   with fp8 and ue8m0 scales: the tensor cores that scale have accumulators of binary32.
/// - fp8 with promotion every P: r * r * P < 2^14, the last integer before the accumulator's unit becomes 2,
///   and r * r * K < 2^24. All elements of a row have one sign in the exact pattern, so that sums grow with K
///   and leave the range of an accumulator that is not promoted.
int typed_range(const gemm::Types& types, Pattern pattern, int k);

/// How far the accumulator of a correct kernel can be from the exact sum of k products whose Euclidean norm
/// is `norm`. int8: 0. fp8 without promotion: of the K products and 2 K / 32 sums each loses less than a
/// unit, 2^-13 times the largest partial sum, at most M = min(sqrt(K), 9) norm. What products lose has random
/// signs and adds up to 9 sqrt(K) units, what sums lose is always towards 0: g / (1 - g) M with g = (K / 16 +
/// min(K, 9 sqrt(K))) 2^-13. With promotion every P the accumulator's errors of K / P blocks have random
/// signs and norms b with sum b b = norm norm: together at most 9 (P / 16 + sqrt(P)) units of 2^-13 9 norm,
/// and each addition in binary32 rounds by at most 2^-24 9 norm, so g = 9 (P / 16 + sqrt(P)) 2^-13 + K / P
/// 2^-24. With scales of blocks the products are the scaled ones, and each block's sum is multiplied with a
/// product that was rounded, which is one more rounding a block: 2 K / P 2^-24, and 2^-23 without promotion's
/// term. With ue8m0 and ue4m3 scales the PTX ISA leaves the precision of the sum open; the bound is that of
/// products that are scaled exactly and added with the errors of binary32 accumulators. All others:
/// accumulation_error.
/// Weights: where a weight times its scale is rounded to bf16, each product is off by up to 2^-8 of itself
/// and by less than 2^-9 in the root mean square, and the signs of the other factors are random: 9 * 2^-9
/// norm more.
double typed_error(const gemm::Types& types, int k, double norm);

/// Everything that D depends on.
struct TypedRules {
  gemm::Types types;
  InputRule a;
  InputRule b;
  std::array<float, 3> scales{};  // of A, of B, of D; all 1 where blocks have them, but for Scaling::kNv
  std::vector<float> blocks_a{};  // [k / 128][m], or empty; with ue8m0 [k / 32][m], ue4m3 [k / 16][m]
  std::vector<float> blocks_b{};  // [n / 128][k / 128], or empty; with ue8m0 [k / 32][n], ue4m3 [k / 16][n]
  // Rows of A in groups. B and its scales are then those of all groups, one after another; rows of no group
  // are poison in A, their scales are NaN, and D must not be written there. Empty: one B.
  std::vector<gemm::GroupRows> groups{};

  int count_of_b() const { return groups.empty() ? 1 : static_cast<int>(groups.size()); }
  gemm::Shape shape() const { return {a.rows, b.rows / count_of_b(), a.columns}; }
  /// What a sum is multiplied with, in this order.
  float scale() const { return scales[0] * scales[1] * scales[2]; }
  /// Blocks of elements along K that share a scale.
  int blocks_of_k() const { return gemm::ceil_div(a.columns, types.scale_block()); }
  /// Of the blocks that A's element (row, k), or B's, is in; 1 where there are none.
  float block_scale(Operand operand, int row, int k) const;
};
/// Scales of the exact patterns are powers of two: of blocks of A 1/2 to 2, of B 1/4 to 1. Those of blocks in
/// the other patterns have 20 significant bits, so that an element of fp8 times its scale is a binary32, and
/// are from 1/8 to 8. A ue8m0 in them is a power of two from 2^-8 to 2^8, and a ue4m3 is one of the 64
/// numbers from 2^-4 to 15. The scale of D is such that, where D's type is narrow, a few of its elements in a
/// hundred saturate; an fp16 overflows nowhere if `saturates` is false, for opponents that make infinities.
/// With an MN-major operand there are none: all are 1, and the integers of the exact patterns are so small
/// that nothing saturates.
TypedRules typed_rules(const gemm::Shape& shape, const gemm::Types& types, Pattern pattern,
                       std::uint64_t seed, bool saturates = true,
                       const std::vector<gemm::GroupRows>& groups = {});

/// A or B as it lies in memory.
std::vector<std::uint8_t> typed_input(const InputRule& rule, gemm::Type type,
                                      gemm::Major major = gemm::Major::kK);
/// A of a problem, whose rows of no group are poison.
std::vector<std::uint8_t> typed_a(const TypedRules& rules);
/// The group of each row of A, and -1 where there is none; all 0 without groups.
std::vector<int> groups_of_rows(const TypedRules& rules);
/// The bits of one element, wherever it lies. Call normal_quantiles() before threads do.
std::uint32_t typed_bits(const InputRule& rule, gemm::Type type, int row, int column);

/// D's bits before a run. No NaN exists among int8: there they are noise, and an element that is wrong and
/// still has its noise was never written.
std::uint8_t typed_poison(gemm::Type type, std::size_t index);

/// What may be stored, decoded: exact patterns have one value, high is empty.
struct TypedAcceptance {
  std::vector<float> low;
  std::vector<float> high;
  // Where D shows the sums as they are, in binary32, and inputs are random:
  std::vector<double> value;
  std::vector<float> norm;
};
/// From the rules alone. All cores, or the device.
TypedAcceptance typed_acceptance(const TypedRules& rules);

/// Everything that a run could have touched.
struct TypedImage {
  std::vector<std::uint8_t> a;
  std::vector<std::uint8_t> b;             // of weights: packed
  std::vector<std::uint8_t> group_scales;  // of weights: [K / group][N] of bf16
  std::vector<std::uint8_t> before;
  std::vector<std::uint8_t> d;
  std::vector<std::uint8_t> after;
};
/// What a flawless run leaves behind.
TypedImage correct_image(const TypedRules& rules);

CheckResult verify(const TypedRules& rules, const TypedImage& image, const TypedAcceptance& acceptance,
                   const gemm::TileShape& tile);

/// Ways to damage an image of a product of these types.
using TypedFault = Fault<void (*)(TypedImage& image, const TypedRules& rules, const gemm::TileShape& tile)>;
std::vector<TypedFault> typed_faults(const gemm::Types& types);
/// Those of a problem in groups whose blocks have scales: at least three groups, of which the second has more
/// than 3 rows and is followed by a row of no group, and the last one has rows.
std::vector<TypedFault> typed_group_faults();

}  // namespace harness
