// What every element of A and B is: a pure function of its position, so that the host and the GPU make the
// same bits, a single element can be computed again when a report needs it, and a clobbered input is found by
// comparing with the function itself.
#pragma once

#include <bit>
#include <cstdint>

#include "gemm/problem/bf16.h"

namespace harness {

enum class Pattern { kExact, kNormal, kUniform, kIdentity, kArange, kSpecial, kCancelling };

/// A is m x k, B is n x k. In formulas: row i of A makes row i of D, row j of B makes column j of D. C is m x
/// n, and the bias a single row.
enum class Operand { kA, kB, kC, kBias };

/// Everything that the value of an element depends on besides its position. Plain data: pass it to a kernel
/// by value.
struct InputRule {
  Pattern pattern = Pattern::kExact;
  Operand operand = Operand::kA;
  std::uint64_t seed = 0;
  std::uint64_t key = 0;  // of this operand's random numbers
  int rows = 0;
  int columns = 0;  // K; of C its row pitch
  int range = 0;    // the largest magnitude of exact and arange
  int shift = 0;    // every value is multiplied by 2^shift: C and the bias are to be as large as the sums
  bool one_sign = false;  // of exact, fp8 with promotion: in a row all elements have the same sign
  bool special = false;   // of C and the bias: one element of 64 is NaN or infinite
  unsigned kinds = ~0u;   // of the special pattern: the bits of those that it may have
};

/// What the special pattern makes of a row of A or B: one element NaN or infinite, or all of them subnormal,
/// or zeros of both signs.
enum class Special { kNone, kNan, kInfinity, kMinusInfinity, kSubnormal, kZero };
constexpr unsigned bit_of(Special kind) {
  return 1u << static_cast<unsigned>(kind);
}

/// The largest r <= 256 with r * r * k < 2^24.
///
/// Why: let every element be an integer of magnitude at most r. Each product is an integer of magnitude at
/// most r^2, and every partial sum, over any subset of K in any order, is an integer of magnitude at most r^2
/// * k < 2^24. A binary32 holds all integers up to 2^24, so no addition rounds, whatever the order or the
/// grouping. The inequality is strict for tensor cores: they align all addends to the largest one and drop
/// what lies more than 23 bits below its leading bit (25 on Hopper; see verify.h). The leading bit of a
/// number below 2^24 is worth at most 2^23, so what they drop is worth less than 1, and an integer has
/// nothing there. bf16 holds the integers up to 256 exactly (8 significant bits), hence the cap.
///
/// As wide as possible, because two different operands then rarely give the same sum, and because D then
/// needs more bits than bf16 has, so that exact mode also tests the final rounding, ties included.
constexpr int exact_range(int k) {
  int range = 256;
  while (range > 1 && static_cast<std::int64_t>(range) * range * k >= (std::int64_t{1} << 24)) --range;
  return range;
}

/// The output function of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014; the constants are variant 13 of Stafford's mixers): a bijection of 64 bits in
/// which every input bit flips every output bit with probability close to 1/2.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

inline constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, made odd

/// The index-th number of the SplitMix64 sequence that starts at `key`, without computing those before it.
constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t index) {
  return mix64(key + (index + 1) * kGoldenGamma);
}

/// The rule for one operand: `rows` is M for A and N for B, `columns` is K.
constexpr InputRule input_rule(Pattern pattern, std::uint64_t seed, Operand operand, int rows, int columns) {
  return {.pattern = pattern,
          .operand = operand,
          .seed = seed,
          .key = random_bits(mix64(seed), static_cast<std::uint64_t>(operand)),
          .rows = rows,
          .columns = columns,
          .range = exact_range(columns)};
}

/// The normal pattern draws from this many bf16 quantiles of |N(0, 1)|; the sign is one more random bit.
inline constexpr int kNormalQuantiles = 1 << 15;

/// The table that input_value reads for Pattern::kNormal: entry i is the quantile (i + 1/2) /
/// kNormalQuantiles of |N(0, 1)|, rounded to bf16. Host memory; made on first use, then constant. A device
/// needs a copy.
const gemm::bf16* normal_quantiles();

/// In the identity pattern one operand is an identity (row i has its 1 in column i mod K) and the other one
/// holds this code of its positions: the fraction says the column mod 128, exponent and sign say the row mod
/// 128. D then shows the coded operand element by element, and a wrong element says where it came from. Odd
/// seeds make A the identity: D(i, j) = B(j, i mod K). Even seeds make B the identity:
/// D(i, j) = A(i, j mod K).
constexpr gemm::bf16 position_code(int row, int column) {
  const unsigned sign = static_cast<unsigned>(row / 64) & 1u;
  const unsigned exponent = 127u - 32u + (static_cast<unsigned>(row) & 63u);
  return {
      static_cast<std::uint16_t>((sign << 15) | (exponent << 7) | (static_cast<unsigned>(column) & 127u))};
}

/// The inverse of position_code: row and column, both mod 128. Meaningful only for is_position_code(value).
struct Position {
  int row = 0;
  int column = 0;
};
constexpr Position decode_position(gemm::bf16 value) {
  const int exponent = ((value.bits >> 7) & 0xff) - (127 - 32);
  return {.row = exponent + 64 * (value.bits >> 15), .column = value.bits & 127};
}
constexpr bool is_position_code(gemm::bf16 value) {
  const int exponent = ((value.bits >> 7) & 0xff) - (127 - 32);
  return exponent >= 0 && exponent < 64;
}

/// True when the rule's operand is the identity of Pattern::kIdentity.
constexpr bool is_identity(const InputRule& rule) {
  return rule.pattern == Pattern::kIdentity && (rule.operand == Operand::kA) == ((rule.seed & 1) == 1);
}

/// Of the special pattern. Every 17 rows have one of each kind: few, so that most of D is as exact as ever,
/// and at other places of a thread's, a warp's and a tile's rows each time. Another seed has them elsewhere.
constexpr Special special_of(const InputRule& rule, int row) {
  if (rule.pattern != Pattern::kSpecial) return Special::kNone;
  constexpr std::uint64_t kPeriod = 17;
  constexpr std::uint64_t kFirst = 5;
  constexpr std::uint64_t kApart = 3;
  const std::uint64_t place =
      (static_cast<std::uint64_t>(row) + kApart * rule.seed + kPeriod - kFirst) % kPeriod;
  if (place % kApart != 0 || place > 4 * kApart) return Special::kNone;
  const auto kind = static_cast<Special>(1 + place / kApart);
  return (rule.kinds & bit_of(kind)) != 0 ? kind : Special::kNone;
}

/// The element of such a row that is NaN or infinite.
constexpr int special_column(const InputRule& rule, int row) {
  return static_cast<int>((random_bits(~rule.key, static_cast<std::uint64_t>(row)) >> 32) %
                          static_cast<std::uint64_t>(rule.columns));
}

/// Where an element's random number stands, and whether its sign is the other one. In the cancelling pattern
/// the second half of K repeats the first, in B with the other sign. So every sum is 0 but for what rounding
/// left of it, and that is another number for almost every order of the additions.
struct Drawn {
  int column = 0;
  bool negated = false;
};
constexpr Drawn drawn_at(const InputRule& rule, int column) {
  const int half = (rule.columns + 1) / 2;
  const bool repeats = rule.pattern == Pattern::kCancelling && column >= half;
  return {repeats ? column - half : column, repeats && rule.operand == Operand::kB};
}

/// The element at (row, column), 0 <= row < rule.rows, 0 <= column < rule.columns, before the rule's shift.
///
/// exact     integer, uniform in -r..-1 and 1..r with r = exact_range(K). No zeros: they hide mistakes.
/// normal    N(0, 1), rounded to bf16
/// uniform   uniform in [-1, 1], symmetric about 0, rounded to bf16
/// identity  see position_code
/// arange    a count that goes up by one with every step right or down, with periods that are coprime:
///           A(i, k) = (i + k) mod (2r + 1) - r and B(j, k) = (j + k) mod (2r - 1) - (r - 1)
/// special   exact, but for the rows of special_of: an element of a subnormal row is its integer, up to 127,
///           times the smallest subnormal number, so that sums stay exact
/// cancelling  normal, but for drawn_at()
///
/// `quantiles` is normal_quantiles() or a copy of it; only the normal and the cancelling pattern read it.
constexpr gemm::bf16 unshifted_value(const InputRule& rule, int row, int column,
                                     const gemm::bf16* quantiles) {
  const Drawn drawn = drawn_at(rule, column);
  const std::uint64_t index = static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(rule.columns) +
                              static_cast<std::uint64_t>(drawn.column);
  switch (rule.pattern) {
    case Pattern::kSpecial:
    case Pattern::kExact: {
      const std::uint64_t bits = random_bits(rule.key, index);
      const std::uint64_t magnitude = 1 + (((bits >> 32) * static_cast<std::uint64_t>(rule.range)) >> 32);
      const auto sign = static_cast<std::uint16_t>((bits & 1) << 15);
      const Special kind = special_of(rule, row);
      if (kind == Special::kZero) return {sign};
      if (kind == Special::kSubnormal) return {static_cast<std::uint16_t>(sign | (magnitude & 0x7f))};
      if (kind != Special::kNone && column == special_column(rule, row)) {
        if (kind == Special::kNan) return {0x7fff};
        return {kind == Special::kInfinity ? std::uint16_t{0x7f80} : std::uint16_t{0xff80}};
      }
      const gemm::bf16 value = gemm::to_bf16(static_cast<float>(static_cast<int>(magnitude)));
      return {static_cast<std::uint16_t>(value.bits | sign)};
    }
    case Pattern::kCancelling:
    case Pattern::kNormal: {
      const std::uint64_t bits = random_bits(rule.key, index) ^ (drawn.negated ? 1u : 0u);
      const gemm::bf16 magnitude = quantiles[bits >> 49];
      return {static_cast<std::uint16_t>(magnitude.bits | ((bits & 1) << 15))};
    }
    case Pattern::kUniform: {
      const int odd = 2 * static_cast<int>(random_bits(rule.key, index) >> 48) - 65535;
      return gemm::to_bf16(static_cast<float>(odd) / 65536.0f);
    }
    case Pattern::kIdentity:
      if (is_identity(rule)) return gemm::to_bf16(column == row % rule.columns ? 1.0f : 0.0f);
      return position_code(row, column);
    case Pattern::kArange: {
      const int half = rule.operand == Operand::kA ? rule.range : rule.range - 1;
      const int period = 2 * half + 1;
      return gemm::to_bf16(static_cast<float>((row % period + column % period) % period - half));
    }
  }
  return {0x7fff};
}

/// NaN, infinity and its negative, each as often, for one index of 64; 0 for the others.
constexpr gemm::bf16 special_value(const InputRule& rule, int row, int column) {
  constexpr std::uint16_t kSpecials[] = {0x7fff, 0x7f80, 0xff80};
  const std::uint64_t index = static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(rule.columns) +
                              static_cast<std::uint64_t>(column);
  const std::uint64_t bits = random_bits(~rule.key, index);
  return {bits % 64 == 0 ? kSpecials[(bits >> 32) % 3] : std::uint16_t{0}};
}

/// The element at (row, column) as it lies in memory.
constexpr gemm::bf16 input_value(const InputRule& rule, int row, int column, const gemm::bf16* quantiles) {
  if (rule.special && special_value(rule, row, column).bits != 0) return special_value(rule, row, column);
  const gemm::bf16 value = unshifted_value(rule, row, column, quantiles);
  if (rule.shift == 0) return value;
  return gemm::to_bf16(gemm::to_float(value) * static_cast<float>(1 << rule.shift));
}

/// True when every correct kernel gives the same bits: all patterns but normal, uniform and cancelling.
constexpr bool is_exact(Pattern pattern) {
  return pattern != Pattern::kNormal && pattern != Pattern::kUniform && pattern != Pattern::kCancelling;
}

static_assert(kNormalQuantiles == 1 << (64 - 49),
              "input_value takes as many index bits as the table has entries");

}  // namespace harness
