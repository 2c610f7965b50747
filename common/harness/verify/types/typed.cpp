#include "harness/verify/types/typed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "harness/base/parallel.h"
#include "harness/base/problem.h"
#include "harness/verify/survey.h"
#include "harness/verify/types/fp8_sum.h"
#include "harness/verify/types/quantised.h"
#include "harness/verify/types/sums.h"
#include "harness/verify/types/weights.h"

namespace harness {
namespace {

using gemm::Major;
using gemm::Type;
using gemm::Types;

constexpr std::size_t kTypes = static_cast<std::size_t>(Type::kFp32) + 1;
constexpr float kIntegerDeviation = 32;  // of the normal pattern's int8 operands
constexpr std::uint64_t kSpecialScales = 0x9a17u;
constexpr int kSpreadOfBlocks = 16;  // largest over smallest product of two scales of an exact pattern

/// The largest integer up to which a type holds all.
int largest_integer(Type type) {
  switch (type) {
    case Type::kBf16:
      return 256;
    case Type::kE4m3:
      return 16;
    case Type::kE5m2:
      return 8;
    case Type::kInt8:
      return 127;
    case Type::kInt4:
      return 7;
    case Type::kE2m1:
      return 4;
    default:
      return 2048;
  }
}

/// The largest finite number of a type in which results are likely to saturate; 0 for the others.
double largest_of_narrow(Type type) {
  switch (type) {
    case Type::kFp16:
      return 65504;
    case Type::kE4m3:
      return 448;
    case Type::kE5m2:
      return 57344;
    case Type::kInt8:
      return 127;
    case Type::kE2m1:
      return 6 * 448 * 2 / 3.0;  // with its scale; three standard deviations, since 16 elements share one
    default:
      return 0;
  }
}

float normal_value(Type type, float quantile) {
  if (type == Type::kInt8) return kIntegerDeviation * quantile;
  return type == Type::kInt4 ? 3 * quantile : type == Type::kE2m1 ? 2 * quantile : quantile;
}

/// The quantiles of the normal pattern in this type, each followed by its negative. To encode takes ten times
/// as long as to draw a random number, and a race has matrices of a hundred million elements.
const std::uint32_t* encoded_quantiles(Type type) {
  static const auto kTables = [] {
    std::array<std::vector<std::uint32_t>, kTypes> tables;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const auto to = static_cast<Type>(t);
      for (int i = 0; i < kNormalQuantiles; ++i) {
        const float magnitude = gemm::to_float(normal_quantiles()[i]);
        tables[t].push_back(encode(to, normal_value(to, magnitude)));
        tables[t].push_back(encode(to, normal_value(to, -magnitude)));
      }
    }
    return tables;
  }();
  return kTables[static_cast<std::size_t>(type)].data();
}

/// What stands in a type for a NaN or an infinity; the smallest number where the type has none.
std::uint32_t special_bits(Type type, Special kind) {
  const std::uint32_t sign = kind == Special::kMinusInfinity ? 1 : 0;
  const bool nan = kind == Special::kNan;
  switch (type) {
    case Type::kFp16:
      return sign << 15 | (nan ? 0x7e00u : 0x7c00u);
    case Type::kE5m2:
      return sign << 7 | (nan ? 0x7eu : 0x7cu);
    case Type::kE4m3:
      return sign << 7 | 0x7fu;
    case Type::kInt8:
      return 0x80u;
    case Type::kInt4:
      return 0x8u;
    case Type::kBf16:
      return sign << 15 | (nan ? 0x7fffu : 0x7f80u);
    default:
      return sign << 31 | (nan ? 0x7fc00000u : 0x7f800000u);
  }
}

/// The bits of an element of a subnormal row, none of which is 0.
std::uint32_t subnormal_bits(Type type, std::uint32_t integer) {
  switch (type) {
    case Type::kE4m3:
      return 1 + integer % 7;
    case Type::kE5m2:
      return 1 + integer % 3;
    case Type::kFp16:
      return 1 + integer % 1023;
    case Type::kBf16:
      return 1 + integer % 127;
    case Type::kE2m1:
      return 1;
    default:
      return (1 + integer % 1023) << 13;
  }
}

/// The bits of an element. The patterns are those of unshifted_value, but that the operand which is no
/// identity holds the exact pattern's integers, for most types have no room for a position.
std::uint32_t element_bits(const InputRule& rule, Type type, int row, int column) {
  const Drawn drawn = drawn_at(rule, column);
  const std::uint64_t random =
      random_bits(rule.key, static_cast<std::uint64_t>(gemm::offset(row, drawn.column, rule.columns))) ^
      (drawn.negated ? 1u : 0u);
  switch (rule.pattern) {
    case Pattern::kCancelling:
    case Pattern::kNormal: {
      if (type != Type::kTf32) return encoded_quantiles(type)[(random >> 49) << 1 | (random & 1)];
      const float magnitude = gemm::to_float(normal_quantiles()[random >> 49]);
      const float value =
          (random & 1) != 0 ? -magnitude : magnitude;  // with bits that the tensor cores do not see
      return std::bit_cast<std::uint32_t>(value) | static_cast<std::uint32_t>(random >> 16 & 0xffffu);
    }
    case Pattern::kUniform: {
      const float value = static_cast<float>(2 * static_cast<int>(random >> 48) - 65535) / 65536.0f;
      return encode(type, type == Type::kInt8   ? 127 * value
                          : type == Type::kInt4 ? 8 * value
                          : type == Type::kE2m1 ? 6 * value
                                                : value);
    }
    case Pattern::kArange: {
      const int half = rule.operand == Operand::kA ? rule.range : rule.range - 1;
      const int period = 2 * half + 1;
      return encode(type, static_cast<float>((row % period + column % period) % period - half));
    }
    case Pattern::kIdentity:
      if (is_identity(rule)) return encode(type, column == row % rule.columns ? 1.0f : 0.0f);
      break;
    case Pattern::kExact:
    case Pattern::kSpecial:
      break;
  }
  // Those of one sign are near the end of the range, so that twice as many as are promoted at once do not
  // fit.
  const auto range = static_cast<std::uint64_t>(rule.range);
  const std::uint64_t choices = rule.one_sign ? range / 3 + 1 : range;
  const std::uint64_t magnitude = range - choices + 1 + (((random >> 32) * choices) >> 32);
  const auto value = static_cast<float>(magnitude);
  const std::uint64_t sign = rule.one_sign ? random_bits(~rule.key, static_cast<std::uint64_t>(row)) : random;
  const Special kind = special_of(rule, row);
  const std::uint32_t sign_bit = encode(type, (sign & 1) != 0 ? -0.0f : 0.0f);
  if (kind == Special::kZero) return sign_bit;
  const bool is_integer = type == Type::kInt8 || type == Type::kInt4;
  if (kind == Special::kSubnormal && !is_integer)
    return sign_bit | subnormal_bits(type, static_cast<std::uint32_t>(magnitude));
  if (kind != Special::kNone && kind != Special::kSubnormal && column == special_column(rule, row))
    return special_bits(type, kind);
  return encode(type, (sign & 1) != 0 ? -value : value);
}

/// Where the element (row, k) of an operand lies, in elements.
std::int64_t place_of(const InputRule& rule, Major major, int row, int k) {
  return major == Major::kK ? gemm::offset(row, k, rule.columns) : gemm::offset(k, row, rule.rows);
}

/// [rows][k], whichever way round it lies, times the scales of its blocks.
std::vector<float> decoded(const std::vector<std::uint8_t>& matrix, const TypedRules& rules,
                           const InputRule& rule, Type type, Major major) {
  std::vector<float> values(matrix.size() * 8 / static_cast<std::size_t>(gemm::bits_of(type)));
  parallel_for(rule.rows, row_grain(rule.columns), [&](std::int64_t begin, std::int64_t end) {
    for (int row = static_cast<int>(begin); row < end; ++row) {
      for (int k = 0; k < rule.columns; ++k)
        values[static_cast<std::size_t>(gemm::offset(row, k, rule.columns))] =
            decode(type, bits_at(type, matrix.data(), place_of(rule, major, row, k))) *
            rules.block_scale(rule.operand, row, k);
    }
  });
  return values;
}

/// What a kernel stores for this sum, decoded; of a quantised D what is quantised.
float stored(const TypedRules& rules, double sum, double slack) {
  const float scaled = static_cast<float>(sum) * rules.scale();
  const float moved = std::isfinite(scaled)
                          ? scaled + static_cast<float>(slack * std::abs(static_cast<double>(scaled)))
                          : scaled;
  return rules.types.quantise_d() ? moved : decode(rules.types.d, encode(rules.types.d, moved));
}

/// Standard deviation of a sum, roughly: for scales only.
double typical_sum(const TypedRules& rules) {
  const double root = std::sqrt(static_cast<double>(rules.a.columns));
  const bool integers = rules.types.a == Type::kInt8;
  const double range = rules.a.range;
  constexpr double kNvScales = 23;  // the root mean square of the products of random_ue4m3
  const bool is_random = rules.a.pattern == Pattern::kNormal || rules.a.pattern == Pattern::kUniform;
  if (rules.types.are_nv() && is_random)
    return root * kNvScales * (rules.a.pattern == Pattern::kNormal ? 2.0 * 2.0 : 6.0 * 6.0 / 3);
  switch (rules.a.pattern) {
    case Pattern::kCancelling:
    case Pattern::kNormal:
      return root * (integers ? static_cast<double>(kIntegerDeviation * kIntegerDeviation) : 1);
    case Pattern::kUniform:
      return root / 3 * (integers ? 127.0 * 127.0 : 1);
    case Pattern::kIdentity:
      return range / 2;
    default:
      return root * range * range / 3;
  }
}

/// [m][n], of the operands of an image.
std::vector<double> sums_of(const TypedImage& image, const TypedRules& rules, std::vector<float>* norm) {
  const gemm::Shape shape = rules.shape();
  const Types& types = rules.types;
  const std::vector<float> a = decoded(image.a, rules, rules.a, types.a, types.major_a);
  const std::vector<float> b = types.has_weights() ? scaled_weights(image, rules)
                                                   : decoded(image.b, rules, rules.b, types.b, types.major_b);
  if (rules.groups.empty()) return trusted_sums(shape, a, b, norm, rules.a.key, to_string(types));
  std::vector<double> value(static_cast<std::size_t>(gemm::offset(shape.m, 0, shape.n)));
  if (norm != nullptr) norm->resize(value.size());
  const auto part = [&](const std::vector<float>& matrix, int first_row, int rows) {
    const auto* const from = matrix.data() + gemm::offset(first_row, 0, shape.k);
    return std::vector<float>(from, from + gemm::offset(rows, 0, shape.k));
  };
  for_groups(rules.groups, 0, shape.m, [&](int group, int row, int rows) {
    std::vector<float> norms;
    const std::vector<double> sums =
        trusted_sums({rows, shape.n, shape.k}, part(a, row, rows), part(b, group * shape.n, shape.n),
                     norm != nullptr ? &norms : nullptr, rules.a.key, to_string(types));
    std::copy(sums.begin(), sums.end(), value.begin() + gemm::offset(row, 0, shape.n));
    if (norm != nullptr) std::copy(norms.begin(), norms.end(), norm->begin() + gemm::offset(row, 0, shape.n));
  });
  return value;
}

TypedImage untouched_image(const TypedRules& rules) {
  TypedImage image;
  image.a = typed_a(rules);
  image.b = rules.types.has_weights() ? weight_input(rules)
                                      : typed_input(rules.b, rules.types.b, rules.types.major_b);
  if (rules.types.has_weights()) image.group_scales = scale_input(rules);
  image.before = guard_band();
  image.after = guard_band();
  return image;
}

void restore_poison(TypedImage& image, const TypedRules& rules, std::int64_t index) {
  if (rules.types.quantise_d()) {
    const gemm::Shape shape = rules.shape();
    image.d[static_cast<std::size_t>(index) / 2] = kPoisonByte;
    image.d[quantised_scale_byte(shape, static_cast<int>(index / shape.n),
                                 static_cast<int>(index % shape.n) / gemm::kNvBlock)] = kPoisonByte;
    return;
  }
  const auto size = static_cast<std::size_t>(gemm::bytes_of(rules.types.d));
  for (std::size_t byte = static_cast<std::size_t>(index) * size;
       byte < (static_cast<std::size_t>(index) + 1) * size; ++byte)
    image.d[byte] = typed_poison(rules.types.d, byte);
}

/// D from the image's operands; rows of no group are poison.
void multiply(TypedImage& image, const TypedRules& rules) {
  const std::vector<double> value = sums_of(image, rules, nullptr);
  if (rules.types.quantise_d()) {
    std::vector<float> scaled(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) scaled[i] = stored(rules, value[i], 0);
    image.d = quantised(rules.shape(), scaled);
    return;
  }
  image.d.resize(value.size() * static_cast<std::size_t>(gemm::bytes_of(rules.types.d)));
  const std::vector<int> groups = groups_of_rows(rules);
  const auto columns = static_cast<std::size_t>(rules.shape().n);
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (groups[i / columns] < 0) {
      restore_poison(image, rules, static_cast<std::int64_t>(i));
      continue;
    }
    const float scaled = static_cast<float>(value[i]) * rules.scale();
    put_bits(rules.types.d, image.d.data(), static_cast<std::int64_t>(i), encode(rules.types.d, scaled));
  }
}

bool matches(const TypedRules& rules, float got, double sum, float scale) {
  return got == decode(rules.types.d, encode(rules.types.d, static_cast<float>(sum) * scale));
}

/// How an operand may be misread: each block of 64 x 64 elements transposed, which is what an instruction
/// reads whose tnsp bit does not fit the tile; of each 16 x 16, what ldmatrix reads with other rows.
enum class Reading {
  kRight,
  kBlocksTransposed,
  kMatricesExchanged,
  kDepthsExchanged,
  kRowsExchanged,
  kTransposed
};

/// The element (row, k) of an operand.
double element_of(const std::vector<std::uint8_t>& matrix, const InputRule& rule, Type type, Major major,
                  int row, int k, Reading reading) {
  constexpr int kBlock = 64;
  const int in_row = row;
  const int in_k = k;
  switch (reading) {
    case Reading::kRight:
      break;
    case Reading::kBlocksTransposed:
      row += in_k % kBlock - in_row % kBlock;
      k += in_row % kBlock - in_k % kBlock;
      break;
    case Reading::kMatricesExchanged:
      row = (in_row & ~8) | (in_k & 8);
      k = (in_k & ~8) | (in_row & 8);
      break;
    case Reading::kDepthsExchanged:
      k ^= 8;
      break;
    case Reading::kRowsExchanged:
      row ^= 8;
      break;
    case Reading::kTransposed:
      row = (in_row & ~7) | (in_k & 7);
      k = (in_k & ~7) | (in_row & 7);
      break;
  }
  if (row >= rule.rows || k >= rule.columns) return 0;
  return static_cast<double>(decode(type, bits_at(type, matrix.data(), place_of(rule, major, row, k))));
}

/// Blocks of K of which all from one on, or all before one, take the scale of a neighbour: or "".
/// `with(sample, block, a, b)`: the block's product with A's scale of block `a` and B's of block `b`.
std::string explain_shifted_blocks(int blocks, int block_length, std::size_t samples,
                                   const std::function<double(std::size_t, int, int, int)>& with,
                                   const std::function<bool(std::size_t, double)>& is) {
  struct Kind {
    const char* words;
    bool a, b;
  };
  static constexpr Kind kKinds[] = {{"the scale of B", false, true},
                                    {"the scale of A", true, false},
                                    {"the scale of A and of B", true, true}};
  for (const Kind& kind : kKinds) {
    for (const int step : {-1, 1}) {
      // [sample][blocks before]
      std::vector<std::vector<double>> right(samples, std::vector<double>(1, 0.0));
      std::vector<std::vector<double>> shifted = right;
      for (std::size_t sample = 0; sample < samples; ++sample) {
        for (int block = 0; block < blocks; ++block) {
          const int other = std::clamp(block + step, 0, blocks - 1);
          right[sample].push_back(right[sample].back() + with(sample, block, block, block));
          shifted[sample].push_back(shifted[sample].back() +
                                    with(sample, block, kind.a ? other : block, kind.b ? other : block));
        }
      }
      for (const bool behind : {true, false}) {
        const auto fits = [&](int at) {
          const auto place = static_cast<std::size_t>(at);
          for (std::size_t sample = 0; sample < samples; ++sample) {
            const std::vector<double>& first = behind ? right[sample] : shifted[sample];
            const std::vector<double>& last = behind ? shifted[sample] : right[sample];
            if (!is(sample, first[place] + last.back() - last[place])) return false;
          }
          return true;
        };
        int at = 1;
        while (at < blocks && !fits(at)) ++at;
        if (at == blocks) continue;
        int until = at;  // where neighbours have equal scales
        while (until + 1 < blocks && fits(until + 1)) ++until;
        const int block = behind ? at : at - 1;
        return fmt::format(
            "  These are the sums in which, {} block {} of K (k = {}; the blocks are 0 to {}){}, {} is that "
            "of the {} block; {} it, the scale is right. A load of the scales of several blocks must begin "
            "with the first of them.\n",
            behind ? "from" : "up to", block, block * block_length, blocks - 1,
            until == at ? std::string()
                        : fmt::format(", or one of the blocks after it up to {}, whose scales are equal",
                                      block + until - at),
            kind.words, step < 0 ? "previous" : "next", behind ? "before" : "after");
      }
    }
  }
  // Loaded once for several blocks, and not again behind them.
  for (const Kind& kind : kKinds) {
    const auto fits = [&](int period) {
      for (std::size_t sample = 0; sample < samples; ++sample) {
        double sum = 0;
        for (int block = 0; block < blocks; ++block)
          sum += with(sample, block, kind.a ? block % period : block, kind.b ? block % period : block);
        if (!is(sample, sum)) return false;
      }
      return true;
    };
    constexpr int kPeriods[] = {32, 16, 8, 4, 2};  // what the lanes of a warp, or a vector, hold
    const auto* const found = std::find_if(std::begin(kPeriods), std::end(kPeriods),
                                           [&](int period) { return period < blocks && fits(period); });
    if (found == std::end(kPeriods)) continue;
    const int period = *found;
    return fmt::format(
        "  These are the sums in which {} for block {} of K and for all later blocks (from k = {} on; the "
        "blocks are 0 to {}) is that of the block {} before. Scales that are loaded for {} blocks at once "
        "must be loaded again after these blocks.\n",
        kind.words, period, period * block_length, blocks - 1, period, period);
  }
  return "";
}

/// What was done with the scales of blocks, in exact patterns: or "".
std::string explain_blocks(const TypedRules& rules, int tile_n, const std::vector<std::size_t>& samples,
                           const std::uint8_t* d) {
  if (samples.empty() || !is_exact(rules.a.pattern)) return "";
  const int length = rules.types.scale_block();
  const TypedImage inputs = untouched_image(rules);
  const gemm::Shape shape = rules.shape();
  const int blocks = rules.blocks_of_k();
  const auto of_a = [&](int row, int block) {
    return rules.block_scale(Operand::kA, std::clamp(row, 0, shape.m - 1), block * length);
  };
  const auto of_b = [&](int column, int block) {
    return rules.block_scale(Operand::kB, std::clamp(column, 0, shape.n - 1), block * length);
  };
  const auto next = [&](int block) { return std::min(block + 1, blocks - 1); };
  const auto before = [&](int block) { return std::max(block - 1, 0); };
  struct Candidate {
    std::function<float(int, int, int)> scale;  // of (row, column, block)
    const char* text;
    bool fits = true;
    bool exchanged = false;  // the elements of A in each byte
    float factor = 1;        // of the scale of the tensors
  };
  std::vector<Candidate> candidates{
      {[&](int, int, int) { return 1.0f; }, "the sums without any scale"},
      {[&](int, int column, int block) { return of_b(column, block); }, "the sums without the scales of A"},
      {[&](int row, int, int block) { return of_a(row, block); }, "the sums without the scales of B"},
      {[&](int row, int column, int block) { return of_a(row, next(block)) * of_b(column, block); },
       "the sums with A's scales of the next block of K"},
      {[&](int row, int column, int block) { return of_a(row, before(block)) * of_b(column, block); },
       "the sums with A's scales of the previous block of K"},
      {[&](int row, int column, int block) { return of_a(row, block) * of_b(column, next(block)); },
       "the sums with B's scales of the next block of K"},
      {[&](int row, int column, int block) { return of_a(row, block) * of_b(column, before(block)); },
       "the sums with B's scales of the previous block of K"},
      {[&](int row, int column, int) { return of_a(row, 0) * of_b(column, 0); },
       "the sums with the scales of the first block of K for all blocks"},
      {[&](int row, int column, int block) { return of_a(row, blocks - 1 - block) * of_b(column, block); },
       "the sums with A's scales of the blocks of K in reverse order"},
      {[&](int row, int column, int block) { return of_a(row, block) * of_b(column, blocks - 1 - block); },
       "the sums with B's scales of the blocks of K in reverse order"},
      {[&](int row, int column, int block) { return of_a(row ^ 8, block) * of_b(column, block); },
       "the sums with A's scales of the row 8 below or above: a thread's accumulators belong to two rows"},
      {[&](int row, int column, int block) { return of_a(row & ~8, block) * of_b(column, block); },
       "the sums with one scale of A for two rows, that of the upper one: a thread's accumulators belong to "
       "two rows"},
      {[&](int row, int column, int block) {
         return of_a(row, block) * of_b(column - gemm::kScaleBlock, block);
       },
       "the sums with B's scales of the previous 128 columns"},
      {[&](int row, int column, int block) {
         float sum = 0;
         for (int later = block; later < blocks; ++later) sum += of_a(row, later) * of_b(column, later);
         return sum;
       },
       "the sums of accumulators that are not reset between blocks of K: what is scaled and added for a "
       "block also contains the blocks before it. The first multiplication of each block must overwrite the "
       "accumulators (scale-d 0)"}};
  if (rules.types.are_mx()) {
    candidates.resize(10);  // those above that know nothing of Hopper's accumulators
    const auto kept = [&](int block, int from) { return std::min(block / 4 * 4 + from, blocks - 1); };
    const auto add = [&](auto scale, const char* text) { candidates.push_back({scale, text}); };
    add([&, kept](int row, int column, int block) { return of_a(row, kept(block, 0)) * of_b(column, block); },
        "the sums with A's scales of the first of every four blocks of K: the scale factor ID of A must be "
        "0, 1, "
        "2 and 3 in the four multiplications of a k-tile");
    add([&, kept](int row, int column, int block) { return of_a(row, block) * of_b(column, kept(block, 0)); },
        "the sums with B's scales of the first of every four blocks of K: the scale factor ID of B must be "
        "0, 1, "
        "2 and 3 in the four multiplications of a k-tile");
    add([&, kept](int row, int column,
                  int block) { return of_a(row, kept(block, 0)) * of_b(column, kept(block, 0)); },
        "the sums with the scales of the first of every four blocks of K: the scale factor IDs must be 0, 1, "
        "2 "
        "and 3 in the four multiplications of a k-tile");
    add([&](int row, int column,
            int block) { return of_a(row, std::max(block - 4, 0)) * of_b(column, std::max(block - 4, 0)); },
        "the sums with the scales of the previous k-tile");
    add([&](int row, int column, int block) { return of_b(row, block) * of_a(column, block); },
        "the sums with the scales of A and of B exchanged");
    add([&](int row, int column,
            int block) { return of_a(row / 128 * 128 + row % 32, block) * of_b(column, block); },
        "the sums with A's scales of rows 0-31 of the tile for all its rows: rows r and 32 + r have their "
        "scales in lane r of two columns");
    add([&](int row, int column, int block) { return of_a(row, block) * of_b(column ^ 64, block); },
        "the sums with B's scales of the column 64 before or behind: a piece of 512 bytes holds the scales "
        "of 128 "
        "rows of B, and a tile that begins in the middle of them must begin two columns of tensor memory "
        "later");
  }
  if (rules.types.are_nv()) {
    candidates.resize(10);
    candidates.front().text = "the sums without any scale of a block";
    const auto add = [&](auto scale, const char* text) { candidates.push_back({scale, text}); };
    const auto first = [&](int block) { return std::min(block / 16 * 16 + block % 4, blocks - 1); };
    add([&, first](int row, int column, int block) { return of_a(row, first(block)) * of_b(column, block); },
        "the sums with A's scales of the first 64 elements of each k-tile: each of its four multiplications "
        "reads a piece of its own");
    add([&, first](int row, int column, int block) { return of_a(row, block) * of_b(column, first(block)); },
        "the sums with B's scales of the first 64 elements of each k-tile: each of its four multiplications "
        "reads a piece of its own");
    add([&](int row, int column,
            int block) { return of_a(row, std::max(block - 16, 0)) * of_b(column, std::max(block - 16, 0)); },
        "the sums with the scales of the previous k-tile");
    add([&](int row, int column, int block) { return of_b(row, block) * of_a(column, block); },
        "the sums with the scales of A and of B exchanged");
    add([&](int row, int column, int block) { return of_a(row, block) * of_b(column ^ 128, block); },
        "the sums with B's scales of the column 128 before or behind: a piece of 512 bytes holds the scales "
        "of 128 rows of B, and a tile of 256 has two of them");
    const auto right = [&](int row, int column, int block) { return of_a(row, block) * of_b(column, block); };
    candidates.push_back(
        {right,
         "the sums with the two elements in each byte of A exchanged: that of the lower K is the lower half",
         true, true});
    candidates.push_back(
        {right, "the sums without the scales of the tensors", true, false, 1 / rules.scale()});
    candidates.push_back(
        {right, "the sums with the scales of the tensors applied twice", true, false, rules.scale()});
    candidates.push_back(
        {right, "the sums without the scale of B's tensor", true, false, 1 / rules.scales[1]});
  }
  // Columns of tiles whose scales of B may be those of another one: [tile of D][other]
  const int tiles_n = tile_n > 0 ? gemm::ceil_div(shape.n, tile_n) : 0;
  std::vector<std::vector<bool>> others(static_cast<std::size_t>(tiles_n));
  const auto row_of = [&](std::size_t index) {
    return static_cast<int>(static_cast<std::int64_t>(index) / shape.n);
  };
  const auto column_of = [&](std::size_t index) {
    return static_cast<int>(static_cast<std::int64_t>(index) % shape.n);
  };
  const auto got_at = [&](std::size_t index) {
    return decode(rules.types.d, bits_at(rules.types.d, d, static_cast<std::int64_t>(index)));
  };
  std::vector<std::vector<double>> products;  // [sample][block], without scales
  for (const std::size_t index : samples) {
    const int row = row_of(index);
    const int column = column_of(index);
    const float got = got_at(index);
    std::vector<double>& parts = products.emplace_back(static_cast<std::size_t>(blocks));
    std::vector<double> exchanged(parts.size());
    for (int k = 0; k < shape.k; ++k) {
      parts[static_cast<std::size_t>(k / length)] +=
          element_of(inputs.a, rules.a, rules.types.a, Major::kK, row, k, Reading::kRight) *
          element_of(inputs.b, rules.b, rules.types.b, Major::kK, column, k, Reading::kRight);
      exchanged[static_cast<std::size_t>(k / length)] +=
          element_of(inputs.a, rules.a, rules.types.a, Major::kK, row, k ^ 1, Reading::kRight) *
          element_of(inputs.b, rules.b, rules.types.b, Major::kK, column, k, Reading::kRight);
    }
    for (Candidate& candidate : candidates) {
      double sum = 0;
      for (int block = 0; block < blocks; ++block)
        sum += (candidate.exchanged ? exchanged : parts)[static_cast<std::size_t>(block)] *
               static_cast<double>(candidate.scale(row, column, block));
      candidate.fits = candidate.fits && matches(rules, got, sum, rules.scale() * candidate.factor);
    }
    if (tiles_n < 2) continue;
    std::vector<bool>& fits = others[static_cast<std::size_t>(column / tile_n)];
    fits.resize(static_cast<std::size_t>(tiles_n), true);
    for (int other = 0; other < tiles_n; ++other) {
      double sum = 0;
      for (int block = 0; block < blocks; ++block)
        sum += parts[static_cast<std::size_t>(block)] *
               static_cast<double>(of_a(row, block) * of_b(other * tile_n + column % tile_n, block));
      if (other == column / tile_n || !matches(rules, got, sum, rules.scale()))
        fits[static_cast<std::size_t>(other)] = false;
    }
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.fits) return fmt::format("  These are {}.\n", candidate.text);
  }
  std::string shifted_blocks = explain_shifted_blocks(
      blocks, length, samples.size(),
      [&](std::size_t sample, int block, int a, int b) {
        return products[sample][static_cast<std::size_t>(block)] *
               static_cast<double>(of_a(row_of(samples[sample]), a) * of_b(column_of(samples[sample]), b));
      },
      [&](std::size_t sample, double sum) {
        return matches(rules, got_at(samples[sample]), sum, rules.scale());
      });
  if (!shifted_blocks.empty()) return shifted_blocks;
  std::string list;
  for (int of = 0; of < tiles_n; ++of) {
    const std::vector<bool>& fits = others[static_cast<std::size_t>(of)];
    if (fits.empty()) continue;  // nothing wrong there
    const auto found = std::find(fits.begin(), fits.end(), true);
    if (found == fits.end()) return "";
    const auto other = static_cast<int>(found - fits.begin());
    list += fmt::format("{}columns {} to {} use those of columns {} to {}", list.empty() ? "" : ", ",
                        of * tile_n, std::min((of + 1) * tile_n, shape.n) - 1, other * tile_n,
                        std::min((other + 1) * tile_n, shape.n) - 1);
  }
  if (list.empty()) return "";
  return fmt::format(
      "  These are the sums with B's scales of another tile: {}. Scales that are loaded ahead must be those "
      "of the next tile, not those of the current one.\n",
      list);
}

/// Whose B, or whose scales of B, the rows of wrong elements of an exact pattern were multiplied by: or "".
std::string explain_groups(const TypedRules& rules, const std::vector<std::size_t>& samples,
                           const std::uint8_t* d) {
  struct Other {
    const char* words;
    std::function<int(int)> of;  // the group that is taken for this one
  };
  const int count = rules.count_of_b();
  const Other others[] = {{"the group itself", [](int group) { return group; }},
                          {"group 0", [](int) { return 0; }},
                          {"the previous group", [](int group) { return std::max(group - 1, 0); }},
                          {"the next group", [&](int group) { return std::min(group + 1, count - 1); }}};
  const TypedImage inputs = untouched_image(rules);
  const gemm::Shape shape = rules.shape();
  const std::vector<int> groups = groups_of_rows(rules);
  const auto fits = [&](const Other& of_b, const Other& of_scales) {
    return std::all_of(samples.begin(), samples.end(), [&](std::size_t index) {
      const auto row = static_cast<int>(static_cast<std::int64_t>(index) / shape.n);
      const auto column = static_cast<int>(static_cast<std::int64_t>(index) % shape.n);
      const int group = groups[static_cast<std::size_t>(row)];
      const int row_of_b = of_b.of(group) * shape.n + column;
      const int row_of_scale = of_scales.of(group) * shape.n + column;
      double sum = 0;
      for (int i = 0; i < shape.k; ++i)
        sum += element_of(inputs.a, rules.a, rules.types.a, Major::kK, row, i, Reading::kRight) *
               element_of(inputs.b, rules.b, rules.types.b, Major::kK, row_of_b, i, Reading::kRight) *
               static_cast<double>(rules.block_scale(Operand::kA, row, i) *
                                   rules.block_scale(Operand::kB, row_of_scale, i));
      const float got = decode(rules.types.d, bits_at(rules.types.d, d, static_cast<std::int64_t>(index)));
      return matches(rules, got, sum, rules.scale());
    });
  };
  for (const Other& of_b : others) {
    for (const Other& of_scales : others) {
      if (!fits(of_b, of_scales)) continue;
      return fmt::format(
          "  These are the sums with the B of {} and the scales of the B of {}: the coordinates of both "
          "depend on the tile's group.\n",
          of_b.words, of_scales.words);
    }
  }
  return "";
}

/// What would explain wrong values of an exact pattern, or "".
std::string explain(const TypedRules& rules, int tile_n, const std::vector<std::size_t>& samples,
                    const std::uint8_t* d) {
  if (samples.empty() || !is_exact(rules.a.pattern)) return "";
  if (rules.types.has_weights()) return explain_weights(rules, samples, d);
  if (!rules.groups.empty()) return explain_groups(rules, samples, d);
  const TypedImage inputs = untouched_image(rules);
  const gemm::Shape shape = rules.shape();
  const Types& types = rules.types;
  const float scale = rules.scale();
  if (types.scale_block() > 0) return explain_blocks(rules, tile_n, samples, d);
  struct Candidate {
    Reading of_a;
    Reading of_b;
    float scale;
    std::string text;
    bool fits = true;
  };
  constexpr Reading kRight = Reading::kRight;
  std::vector<Candidate> candidates;
  if (types.are_k_major()) {
    candidates = {{kRight, kRight, 1.0f, "the sums without any scale"},
                  {kRight, kRight, scale * scale, "the sums with every scale applied twice"},
                  {kRight, kRight, rules.scales[0] * rules.scales[1], "the sums without the scale of D"},
                  {kRight, kRight, rules.scales[1] * rules.scales[2], "the sums without the scale of A"},
                  {kRight, kRight, rules.scales[0] * rules.scales[2], "the sums without the scale of B"}};
    std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.scale == scale; });
  }
  if (gemm::can_be_mn_major(types.a)) {
    candidates.push_back({Reading::kBlocksTransposed, kRight, scale,
                          "the sums with each 64 x 64 block of A transposed: the tensor cores read A's tile "
                          "the other way round (check tnspA, and the step from one slab to the next)"});
    candidates.push_back({kRight, Reading::kBlocksTransposed, scale,
                          "the sums with each 64 x 64 block of B transposed: the tensor cores read B's tile "
                          "the other way round (check tnspB, and the step from one slab to the next)"});
  }
  if (gemm::bytes_of(types.a) == 2) {
    for (const auto& [reading, words] :
         {std::pair{
              Reading::kMatricesExchanged,
              "the 8 x 8 blocks at (rows 0-7, k 8-15) and (rows 8-15, k 0-7) of each 16 x 16 block of {} "
              "exchanged: they are matrices 1 and 2 of ldmatrix.x4, whose rows come from other lanes"},
          std::pair{Reading::kDepthsExchanged, "k 0-7 and k 8-15 of every 16 exchanged in {}"},
          std::pair{Reading::kRowsExchanged, "rows 0-7 and rows 8-15 of every 16 exchanged in {}"},
          std::pair{
              Reading::kTransposed,
              "each 8 x 8 block of {} transposed: ldmatrix has .trans where it must not, or lacks it"}}) {
      candidates.push_back(
          {reading, kRight, scale, "the sums with " + fmt::format(fmt::runtime(words), "A")});
      candidates.push_back(
          {kRight, reading, scale, "the sums with " + fmt::format(fmt::runtime(words), "B")});
    }
  }
  const int padded = gemm::ceil_div(shape.k, 16) * 16;
  for (const std::size_t index : samples) {
    const auto row = static_cast<int>(static_cast<std::int64_t>(index) / shape.n);
    const auto column = static_cast<int>(static_cast<std::int64_t>(index) % shape.n);
    const float got = decode(types.d, bits_at(types.d, d, static_cast<std::int64_t>(index)));
    for (Candidate& candidate : candidates) {
      double sum = 0;
      for (int k = 0; k < padded && candidate.fits; ++k) {
        sum += element_of(inputs.a, rules.a, types.a, types.major_a, row, k, candidate.of_a) *
               element_of(inputs.b, rules.b, types.b, types.major_b, column, k, candidate.of_b);
      }
      candidate.fits = candidate.fits && matches(rules, got, sum, candidate.scale);
    }
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.fits) return fmt::format("  These are {}.\n", candidate.text);
  }
  const auto unpromoted = [&](std::size_t index) {
    const auto row = static_cast<std::int64_t>(index) / shape.n;
    const auto column = static_cast<std::int64_t>(index) % shape.n;
    const float sum = fp8_chain(rules.types, &inputs.a[static_cast<std::size_t>(row * shape.k)],
                                &inputs.b[static_cast<std::size_t>(column * shape.k)], shape.k);
    return matches(rules, decode(rules.types.d, bits_at(rules.types.d, d, static_cast<std::int64_t>(index))),
                   static_cast<double>(sum), scale);
  };
  if (rules.types.promotion > 0 && std::all_of(samples.begin(), samples.end(), unpromoted))
    return fmt::format(
        "  These are the sums of a 14-bit accumulator that is never promoted. It loses the bits that do not "
        "fit: add it to a binary32 sum every {} elements of K.\n",
        rules.types.promotion);
  return "";
}

/// Accumulators that are promoted and not begun anew, so that they bring again what they have brought before;
/// and those of other columns of the tile where several parts of it use the same ones. Or "". `product(index,
/// k, k)`: the k-tile's part of a sum.
template <typename Product>
std::string explain_run_on(const TypedRules& rules, const gemm::TileShape& tile,
                           const std::vector<std::size_t>& samples, const std::uint8_t* d,
                           const Product& product) {
  const int promotion = rules.types.promotion;
  const int n = rules.shape().n;
  if (promotion < tile.k || promotion % tile.k != 0) return "";
  const int k_tiles = gemm::ceil_div(rules.shape().k, tile.k);
  const int every = promotion / tile.k;
  // The accumulators have 14 bits: the larger they are, the more is lost of each product that is added.
  constexpr double kNear = 1.0 / 6;
  /// How far D is off from the sums of accumulators that run on over `parts` parts of the tile, as a share of
  /// what was added up. `each_begins`: every part begins with its own first k-tile, or only the first does.
  const auto farthest = [&](int parts, bool each_begins) {
    const int width = tile.n / parts;
    double most = 0;
    for (const std::size_t index : samples) {
      const int column = static_cast<int>(index % static_cast<std::size_t>(n));
      const int mine = column % tile.n / width;
      double sum = 0;
      double size = 0;
      double accumulator = 0;
      for (int i = 0; i < k_tiles; ++i) {
        for (int part = 0; part < parts; ++part) {
          const int other = column + (part - mine) * width;
          const std::size_t there =
              index + static_cast<std::size_t>(other) - static_cast<std::size_t>(column);
          if (i == 0 && each_begins) accumulator = 0;
          const double added = other < n ? product(there, i * tile.k, i * tile.k) : 0;
          accumulator += added;
          if (part != mine || ((i + 1) % every != 0 && i + 1 < k_tiles)) continue;
          sum += accumulator;
          size += std::abs(accumulator) + std::abs(added);
        }
      }
      const auto scale = static_cast<double>(rules.scale());
      const auto got = static_cast<double>(
          decode(rules.types.d, bits_at(rules.types.d, d, static_cast<std::int64_t>(index))));
      most = std::max(most, std::abs(got - sum * scale) / std::max(size * std::abs(scale), 1e-30));
    }
    return most;
  };
  int parts = 0;
  double least = kNear;
  for (const auto& [of, each_begins] : {std::pair{1, true}, {2, true}, {2, false}, {4, true}, {4, false}}) {
    if (tile.n % of != 0) continue;
    const double off = farthest(of, each_begins);
    if (off >= least) continue;
    least = off;
    parts = of;
  }
  if (parts == 0) return "";
  return fmt::format(
      "  These are the sums of accumulators that are not reset after a promotion: what is promoted after "
      "each {} elements of K also contains everything that was promoted before{}. The first multiplication "
      "after every promotion must overwrite the accumulators (scale-d 0), not only the tile's first one.\n",
      promotion,
      parts == 1
          ? std::string()
          : fmt::format(", and the sums of the columns {} {} in the tile, which use the same accumulators",
                        tile.n / parts, parts == 2 ? "to the right or left" : "or more away"));
}

/// K-tiles that begin elsewhere, are missing, or are there twice, in exact patterns: or "".
std::string explain_k(const TypedRules& rules, const gemm::TileShape& tile,
                      const std::vector<std::size_t>& samples, const std::uint8_t* d) {
  const int tile_k = tile.k;
  if (samples.size() < 4 || tile_k < 2 || !is_exact(rules.a.pattern) || rules.types.has_weights() ||
      !rules.groups.empty())
    return "";
  const TypedImage inputs = untouched_image(rules);
  const gemm::Shape shape = rules.shape();
  const int k_tiles = gemm::ceil_div(shape.k, tile_k);
  const auto value = [&](const std::vector<std::uint8_t>& matrix, const InputRule& rule, Type type,
                         Major major, std::int64_t row, int k) {
    if (k >= shape.k) return 0.0;
    return static_cast<double>(
        decode(type, bits_at(type, matrix.data(), place_of(rule, major, static_cast<int>(row), k))) *
        rules.block_scale(rule.operand, static_cast<int>(row), k));
  };
  const Types& types = rules.types;
  const auto a_at = [&](std::size_t index, int k) {
    return value(inputs.a, rules.a, types.a, types.major_a, static_cast<std::int64_t>(index) / shape.n, k);
  };
  const auto b_at = [&](std::size_t index, int k) {
    return value(inputs.b, rules.b, types.b, types.major_b, static_cast<std::int64_t>(index) % shape.n, k);
  };
  /// A k-tile of A that begins at `of_a` times one of B that begins at `of_b`.
  const auto product = [&](std::size_t index, int of_a, int of_b) {
    double sum = 0;
    for (int k = 0; k < tile_k; ++k) sum += a_at(index, of_a + k) * b_at(index, of_b + k);
    return sum;
  };
  const auto fits = [&](const auto& sum_at) {
    return std::all_of(samples.begin(), samples.end(), [&](const std::size_t index) {
      const float got = decode(rules.types.d, bits_at(rules.types.d, d, static_cast<std::int64_t>(index)));
      return matches(rules, got, sum_at(index), rules.scale());
    });
  };
  for (const auto& [numerator, denominator] : {std::pair{1, 2}, {2, 1}, {1, 4}, {4, 1}, {1, 8}, {8, 1}}) {
    if (tile_k * numerator % denominator != 0 || k_tiles < 2) continue;
    const int step = tile_k * numerator / denominator;
    for (const int which : {0, 1, 2}) {  // both, A, B
      const bool fit = fits([&](const std::size_t index) {
        double sum = 0;
        for (int i = 0; i < k_tiles; ++i)
          sum += product(index, i * (which == 2 ? tile_k : step), i * (which == 1 ? tile_k : step));
        return sum;
      });
      if (!fit) continue;
      const int last = (k_tiles - 1) * step + tile_k;
      const std::string never =
          step < tile_k ? last < shape.k ? fmt::format("k from {} on is never read", last) : ""
                        : fmt::format("k = {} to {} is never read", tile_k, std::min(step, shape.k) - 1);
      return fmt::format(
          "  These are the sums with k-tiles of {} that begin {} elements apart instead of {}: k-tile i "
          "begins at k = {} * i{}{}. A coordinate along K counts elements, not bytes, and a k-tile has {} "
          "elements in {} bytes.\n",
          which == 0   ? "A and B"
          : which == 1 ? "A"
                       : "B",
          step, tile_k, step, step < tile_k ? "; parts of K are read twice" : "",
          never.empty() ? "" : (step < tile_k ? ", and " : "; ") + never, tile_k,
          tile_k * gemm::bits_of(rules.types.a) / 8);
    }
  }
  constexpr int kMostKTiles = 256;
  if (k_tiles > kMostKTiles) return "";
  std::vector<std::vector<double>> parts;  // [sample][k-tile]
  for (const std::size_t index : samples) {
    parts.emplace_back();
    for (int i = 0; i < k_tiles; ++i) parts.back().push_back(product(index, i * tile_k, i * tile_k));
  }
  for (int missing = -1; missing < k_tiles; ++missing) {
    for (int twice = -1; twice < k_tiles; ++twice) {
      if (missing == twice) continue;
      std::size_t sample = 0;
      const bool fit = fits([&](std::size_t) {
        const std::vector<double>& part = parts[sample++];
        double sum = 0;
        for (int i = 0; i < k_tiles; ++i)
          sum += i == missing ? 0 : part[static_cast<std::size_t>(i)] * (i == twice ? 2 : 1);
        return sum;
      });
      if (!fit) continue;
      const std::string lacks = missing < 0 ? "" : fmt::format("k-tile {} is missing", missing);
      const std::string has = twice < 0 ? "" : fmt::format("k-tile {} is counted twice", twice);
      const int inside = shape.k % tile_k;
      const std::string incomplete =
          inside != 0 && missing == k_tiles - 1 && twice < 0
              ? fmt::format(
                    " It is the incomplete one: K = {} is {} whole k-tiles of {} and {} more elements. If "
                    "the number of k-tiles{} is K / {} rounded down, this k-tile is left out, so round up.",
                    shape.k, k_tiles - 1, tile_k, inside,
                    types.scale_block() > 0
                        ? " or of blocks of scales (a map's extent, beyond which the scales are zeros)"
                        : " or an extent",
                    tile_k)
              : "";
      const std::string unpromoted =
          rules.types.promotion > tile_k && missing == k_tiles - 1 && twice < 0
              ? fmt::format(
                    " Either it was not multiplied, or the products after the last whole {} elements of K "
                    "were not promoted: the last sums must be added to D for every number of k-tiles.",
                    rules.types.promotion)
              : "";
      return fmt::format("  These are the sums in which {}{}{} (the k-tiles are 0 to {}).{}{}\n", lacks,
                         lacks.empty() || has.empty() ? "" : " and ", has, k_tiles - 1, incomplete,
                         unpromoted);
    }
  }
  if (std::string ran_on = explain_run_on(rules, tile, samples, d, product); !ran_on.empty()) return ran_on;
  // The slabs of 32 bytes along K (16 lines of an MN-major tile) that one instruction multiplies.
  constexpr int kSlabBytes = 32;
  const int slab = types.are_k_major() ? 8 * kSlabBytes / gemm::bits_of(types.a) : 16;
  const int slabs = tile_k / slab;
  if (slabs < 2 || tile_k % slab != 0) return "";
  const auto stepped = [&](int of_a, int of_b) {
    return fits([&](const std::size_t index) {
      double sum = 0;
      for (int tile = 0; tile < shape.k; tile += tile_k) {
        for (int i = 0; i < slabs; ++i) {
          for (int k = 0; k < slab; ++k)
            sum += a_at(index, tile + of_a * i % tile_k + k) * b_at(index, tile + of_b * i % tile_k + k);
        }
      }
      return sum;
    });
  };
  // What lies behind a k-tile is not known, so a step stays inside it.
  std::vector<int> steps{slab};
  for (const int step : {0, slab / 8, slab / 4, slab / 2, 2 * slab, 4 * slab}) {
    bool inside = true;
    for (int i = 0; i < slabs; ++i) inside = inside && step * i % tile_k + slab <= tile_k;
    if (inside) steps.push_back(step);
  }
  for (const int of_a : steps) {
    for (const int of_b : steps) {
      if ((of_a == slab && of_b == slab) || !stepped(of_a, of_b)) continue;
      const int step = of_a == slab ? of_b : of_a;
      const int last = step * (slabs - 1) + slab;
      return fmt::format(
          "  These are the sums in which the slabs of {} elements along K of {} begin {} elements apart "
          "instead of {}{}{}. A descriptor's step from slab to slab is in bytes: it is {}.\n",
          slab,
          of_a == of_b   ? "A and B"
          : of_a == slab ? "B"
                         : "A",
          step, slab,
          of_a == of_b || of_a == slab || of_b == slab ? "" : fmt::format(" (and those of B {} apart)", of_b),
          step < slab
              ? fmt::format(
                    ": k {} to {} of each k-tile is never read, and k {} to {} is read more than once", last,
                    tile_k - 1, step, last - step - 1)
              : ": parts of each k-tile are never read, and others are read more than once",
          (of_a == slab ? types.major_b : types.major_a) == Major::kMn
              ? fmt::format("{} lines of an MN-major tile, each as long as the span of its swizzle (with the "
                            "128-byte swizzle, this makes {} bytes)",
                            slab, 128 * slab)
              : fmt::format("{} bytes of a row of a K-major tile", slab * gemm::bits_of(types.a) / 8));
    }
  }
  return "";
}

/// Whether bytes are wrong only where their left neighbour in a pair is negative, and all of its sign: or "".
std::string explain_pairs(const TypedRules& rules, const std::uint8_t* d, const std::vector<float>& right) {
  if (rules.types.d != Type::kInt8) return "";
  const auto columns = static_cast<std::size_t>(rules.shape().n);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const float got = decode(Type::kInt8, d[i]);
    if (got == right[i]) continue;
    if (i % columns % 2 == 0 || got != -1 || decode(Type::kInt8, d[i - 1]) >= 0) return "";
    ++wrong;
  }
  if (wrong == 0) return "";
  return "  Each of these is -1 and is the right element of a pair whose left element is negative: the left "
         "one was sign-extended when the two were packed into 16 bits. Use only its low 8 bits (cast it to "
         "std::uint8_t, or use & 0xff).\n";
}

/// Where packed weights or their scales were written, or "".
std::string weight_damage(const TypedImage& image, const TypedRules& rules) {
  std::string text;
  for (const auto& [what, now, expected] :
       {std::tuple{"the packed weights", &image.b, weight_input(rules)},
        std::tuple{"the scales of the weights", &image.group_scales, scale_input(rules)}}) {
    if (*now == expected) continue;
    text += fmt::format("  [{}] the kernel wrote to {}: the first byte that changed is {}\n", kInputB, what,
                        std::mismatch(now->begin(), now->end(), expected.begin()).first - now->begin());
  }
  return text;
}

/// Where an input was written, or "".
std::string input_damage(const char* check, const std::vector<std::uint8_t>& now,
                         const std::vector<std::uint8_t>& expected, const InputRule& rule, Type type,
                         Major major) {
  if (now == expected) return "";
  const auto first = std::mismatch(now.begin(), now.end(), expected.begin()).first - now.begin();
  const auto element = static_cast<std::int64_t>(first) * 8 / gemm::bits_of(type);
  const int line = major == Major::kK ? rule.columns : rule.rows;
  return fmt::format("  [{}] the kernel wrote to an input: the first element that changed is ({}, {})\n",
                     check, element / line, element % line);
}

}  // namespace

std::string to_string(const Types& types) {
  std::string text =
      fmt::format("{} x {} -> {}{}", gemm::name_of(types.a), gemm::name_of(types.b), gemm::name_of(types.d),
                  types.have_blocks() ? ", blocks of 128 with scales"
                  : types.are_mx()    ? ", blocks of 32 with ue8m0 scales"
                  : types.are_nv()    ? ", blocks of 16 with ue4m3 scales"
                                      : "");
  if (types.has_weights())
    return fmt::format("{}, a scale{} for every {} of K", text, types.zero_points ? " and a zero point" : "",
                       types.group);
  if (types.are_k_major()) return text;
  return fmt::format("{}, A {}-major, B {}-major", text, types.major_a == Major::kK ? 'K' : 'M',
                     types.major_b == Major::kK ? 'K' : 'N');
}

float decode(Type type, std::uint32_t bits) {
  switch (type) {
    case Type::kBf16:
      return gemm::to_float(gemm::bf16{static_cast<std::uint16_t>(bits)});
    case Type::kFp16:
      return gemm::to_float(gemm::fp16{static_cast<std::uint16_t>(bits)});
    case Type::kTf32:
      return gemm::to_float(gemm::tf32{bits});
    case Type::kE4m3:
      return gemm::to_float(gemm::e4m3{static_cast<std::uint8_t>(bits)});
    case Type::kE5m2:
      return gemm::to_float(gemm::e5m2{static_cast<std::uint8_t>(bits)});
    case Type::kInt8:
      return gemm::to_float(static_cast<gemm::int8>(bits));
    case Type::kInt4:
      return gemm::int4_to_float(bits);
    case Type::kE2m1:
      return gemm::to_float(gemm::e2m1{static_cast<std::uint8_t>(bits)});
    case Type::kFp32:
      break;
  }
  return std::bit_cast<float>(bits);
}

std::uint32_t encode(Type type, float value) {
  switch (type) {
    case Type::kBf16:
      return gemm::to_bf16(value).bits;
    case Type::kFp16:
      return gemm::to_fp16(value).bits;
    case Type::kE4m3:
      return gemm::to_e4m3(value).bits;
    case Type::kE5m2:
      return gemm::to_e5m2(value).bits;
    case Type::kInt8:
      return static_cast<std::uint8_t>(gemm::to_int8(value));
    case Type::kInt4:
      return gemm::to_int4(value);
    case Type::kE2m1:
      return gemm::to_e2m1(value).bits;
    case Type::kTf32:
    case Type::kFp32:
      break;
  }
  return std::bit_cast<std::uint32_t>(value);
}

std::uint32_t bits_at(Type type, const std::uint8_t* matrix, std::int64_t index) {
  if (type == Type::kE2m1) return matrix[index / 2] >> 4 * (index % 2) & 0xfu;
  std::uint32_t bits = 0;
  const auto size = static_cast<std::size_t>(gemm::bytes_of(type));
  std::memcpy(&bits, matrix + static_cast<std::size_t>(index) * size, size);
  return bits;
}

void put_bits(Type type, std::uint8_t* matrix, std::int64_t index, std::uint32_t bits) {
  if (type == Type::kE2m1) {
    std::uint8_t& pair = matrix[index / 2];
    pair = static_cast<std::uint8_t>(index % 2 == 0 ? (pair & 0xf0u) | bits : (pair & 0x0fu) | bits << 4);
    return;
  }
  const auto size = static_cast<std::size_t>(gemm::bytes_of(type));
  std::memcpy(matrix + static_cast<std::size_t>(index) * size, &bits, size);
}

int typed_range(const Types& types, Pattern pattern, int k) {
  const bool narrow = gemm::is_fp8(types.a) && !types.are_mx();
  const bool promoted = narrow && types.promotion > 0;
  const bool unscaled = (!types.are_k_major() || types.has_weights()) && types.d == Type::kFp16;
  const double limit = narrow && !promoted      ? 0x1p13
                       : types.a == Type::kInt8 ? 0x1p31
                       : unscaled               ? largest_of_narrow(Type::kFp16)
                                                : 0x1p24;
  // The largest over the smallest; and a zero point makes of 7 a 15.
  const double scales = types.has_weights() ? types.zero_points ? 8 * 9 : 8 : 1;
  const auto largest_sum = [&](double range) {
    const double all = scales * range * range * k * (types.scale_block() > 0 ? kSpreadOfBlocks : 1);
    if (promoted && range * range * std::min(k, types.promotion) >= 0x1p14) return limit;
    if (!narrow || promoted) return all;
    if (pattern == Pattern::kArange) return std::min(all, range * range * (4 * range * range - 1));
    return std::min(all, 9 * range * range * std::sqrt(static_cast<double>(k)));
  };
  int range = std::min(largest_integer(types.a), largest_integer(types.b));
  while (range > 1 && largest_sum(range) >= limit) --range;
  return range;
}

double typed_error(const Types& types, int k, double norm) {
  if (types.a == Type::kInt8) return 0;
  if (types.rounds_weights) return accumulation_error(k, norm) + 9 * 0x1p-9 * norm;
  if (!gemm::is_fp8(types.a) || types.are_mx()) return accumulation_error(k, norm);
  const double root = std::sqrt(static_cast<double>(k));
  const auto bound = [&](double g) {
    return (g < 1 ? g / (1 - g) : std::numeric_limits<double>::infinity()) * std::min(root, 9.0) * norm;
  };
  const double roundings = types.have_blocks() ? 2 : 1;  // of a block's sum on its way into the binary32 one
  const double never = bound((k / 16.0 + std::min<double>(k, 9 * root)) * 0x1p-13 +
                             (types.have_blocks() ? roundings * (k / 128.0 + 1) * 0x1p-24 : 0));
  if (types.promotion == 0) return never;
  const double block = types.promotion;
  return std::min(never, bound(9 * (block / 16 + std::sqrt(block)) * 0x1p-13 +
                               (roundings * k / block + roundings) * 0x1p-24));
}

float TypedRules::block_scale(Operand operand, int row, int k) const {
  if (blocks_a.empty()) return 1;
  const int block = k / types.scale_block();
  if (types.have_scale_pieces()) {
    const bool is_a = operand == Operand::kA;
    return (is_a ? blocks_a
                 : blocks_b)[static_cast<std::size_t>(gemm::offset(block, row, is_a ? a.rows : b.rows))];
  }
  if (operand == Operand::kA) return blocks_a[static_cast<std::size_t>(gemm::offset(block, row, a.rows))];
  const int n = shape().n;  // each group's B begins with a block of its own
  const int block_row = row / n * gemm::ceil_div(n, gemm::kScaleBlock) + row % n / gemm::kScaleBlock;
  return blocks_b[static_cast<std::size_t>(gemm::offset(block_row, block, blocks_of_k()))];
}

namespace {

/// Scales of blocks. Exact patterns: one of three powers of two, from 2^lowest on. Others: 20 significant
/// bits.
std::vector<float> random_scales(std::uint64_t key, std::size_t count, bool exact, int lowest) {
  std::vector<float> scales(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = random_bits(mix64(key), i);
    constexpr std::uint64_t kSignificand = 1u << 19;
    scales[i] = exact ? std::ldexp(1.0f, lowest + static_cast<int>((random >> 32) % 3))
                      : std::ldexp(static_cast<float>(kSignificand + random % kSignificand),
                                   static_cast<int>((random >> 32) % 6) - 3 - 19);
  }
  return scales;
}

/// Scales that are powers of two whatever the pattern.
std::vector<float> random_powers(std::uint64_t key, std::size_t count) {
  std::vector<float> scales(count);
  for (std::size_t i = 0; i < count; ++i)
    scales[i] = std::ldexp(1.0f, static_cast<int>((random_bits(mix64(key), i) >> 32) % 17) - 8);
  return scales;
}

/// Scales that a ue4m3 holds: all its normal numbers from 2^-4 to below 2^4.
std::vector<float> random_ue4m3(std::uint64_t key, std::size_t count) {
  std::vector<float> scales(count);
  for (std::size_t i = 0; i < count; ++i)
    scales[i] = gemm::to_float(
        gemm::ue4m3{static_cast<std::uint8_t>(0x18 + (random_bits(mix64(key), i) >> 32) % 0x40)});
  return scales;
}

/// Of the special pattern: a few scales are NaN or 0. None is infinite, which would make NaN of the sum 0 of
/// a part that lies behind K, where that is promoted by itself.
void add_special_scales(std::uint64_t key, std::vector<float>& scales) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::uint64_t random = random_bits(key ^ kSpecialScales, i);
    if (random % 64 < 2) scales[i] = random % 64 == 0 ? std::numeric_limits<float>::quiet_NaN() : 0;
  }
}

/// Where D's type is narrow, so that a few of its elements saturate.
void set_scale_of_d(TypedRules& rules, bool exact, bool saturates) {
  const double largest = largest_of_narrow(rules.types.d);
  if (largest == 0) return;
  const double share = rules.types.d == Type::kFp16 && !saturates ? 16 : 2;  // 16 standard deviations, or 2
  const double wanted =
      largest / share / typical_sum(rules) / static_cast<double>(rules.scales[0] * rules.scales[1]);
  rules.scales[2] = static_cast<float>(exact ? std::exp2(std::floor(std::log2(wanted))) : wanted);
  if (rules.scale() == 1) rules.scales[2] = 0.25f;  // then it would not show whether anything scales
}

}  // namespace

TypedRules typed_rules(const gemm::Shape& shape, const Types& types, Pattern pattern, std::uint64_t seed,
                       bool saturates, const std::vector<gemm::GroupRows>& groups) {
  TypedRules rules{.types = types, .a = input_rule(pattern, seed, Operand::kA, shape.m, shape.k)};
  rules.groups = groups;
  rules.b = input_rule(pattern, seed, Operand::kB, rules.count_of_b() * shape.n, shape.k);
  rules.a.range = rules.b.range = typed_range(types, pattern, shape.k);
  rules.a.one_sign = rules.b.one_sign = types.promotion > 0;
  // Of e4m3, step 45 takes the bits of a NaN for a number: what is quantized has none.
  if (types.has_weights() && types.b == Type::kE4m3)
    rules.b.kinds = bit_of(Special::kSubnormal) | bit_of(Special::kZero);
  if (types.a == Type::kE2m1)  // which has neither NaN nor infinity
    rules.a.kinds = rules.b.kinds = bit_of(Special::kSubnormal) | bit_of(Special::kZero);
  const bool exact = is_exact(pattern);
  if (!types.are_k_major() || types.has_weights()) {
    rules.scales = {1, 1, 1};
    return rules;
  }
  if (types.have_scale_pieces()) {
    const auto of = [&](const InputRule& rule, int lowest) {
      const auto count = static_cast<std::size_t>(gemm::offset(rules.blocks_of_k(), 0, rule.rows));
      if (exact) return random_scales(rule.key, count, true, lowest);
      return types.are_nv() ? random_ue4m3(rule.key, count) : random_powers(rule.key, count);
    };
    rules.blocks_a = of(rules.a, -1);
    rules.blocks_b = of(rules.b, -2);
    rules.scales = {1, 1, 1};
    if (!types.are_nv()) return rules;
    rules.scales = exact ? std::array{0.5f, 8.0f, 0x1p-7f} : std::array{0.37f, 1.9f, 0.6f};
    if (types.quantise_d()) set_scale_of_d(rules, exact, saturates);
    if (pattern == Pattern::kSpecial) add_special_scales(rules.a.key, rules.blocks_a);
    return rules;
  }
  if (types.have_blocks()) {
    const auto blocks = static_cast<std::size_t>(rules.blocks_of_k());
    rules.scales = {1, 1, 1};
    rules.blocks_a = random_scales(rules.a.key, blocks * static_cast<std::size_t>(shape.m), exact, -1);
    rules.blocks_b = random_scales(
        rules.b.key,
        blocks * static_cast<std::size_t>(rules.count_of_b() * gemm::ceil_div(shape.n, gemm::kScaleBlock)),
        exact, -2);
    if (pattern == Pattern::kSpecial) add_special_scales(rules.a.key, rules.blocks_a);
    return rules;
  }
  rules.scales = exact ? std::array{0.5f, 8.0f, 0x1p-7f} : std::array{0.37f, 1.9f, 0.6f};
  set_scale_of_d(rules, exact, saturates);
  return rules;
}

std::vector<std::uint8_t> typed_input(const InputRule& rule, Type type, Major major) {
  const std::int64_t elements = gemm::offset(rule.rows, 0, rule.columns);
  std::vector<std::uint8_t> matrix(static_cast<std::size_t>(elements * gemm::bits_of(type) / 8));
  normal_quantiles();  // made before threads ask for it
  parallel_for(rule.rows, row_grain(rule.columns), [&](std::int64_t begin, std::int64_t end) {
    for (int row = static_cast<int>(begin); row < end; ++row) {
      for (int column = 0; column < rule.columns; ++column)
        put_bits(type, matrix.data(), place_of(rule, major, row, column),
                 element_bits(rule, type, row, column));
    }
  });
  return matrix;
}

std::vector<int> groups_of_rows(const TypedRules& rules) {
  std::vector<int> groups(static_cast<std::size_t>(rules.a.rows), rules.groups.empty() ? 0 : -1);
  for (std::size_t i = 0; i < rules.groups.size(); ++i)
    std::fill(groups.begin() + rules.groups[i].begin, groups.begin() + rules.groups[i].end,
              static_cast<int>(i));
  return groups;
}

std::vector<std::uint8_t> typed_a(const TypedRules& rules) {
  std::vector<std::uint8_t> matrix = typed_input(rules.a, rules.types.a, rules.types.major_a);
  if (rules.groups.empty()) return matrix;
  const std::size_t row_bytes = matrix.size() / static_cast<std::size_t>(rules.a.rows);
  const std::vector<int> groups = groups_of_rows(rules);
  for (std::size_t row = 0; row < groups.size(); ++row) {
    if (groups[row] < 0) std::fill_n(&matrix[row * row_bytes], row_bytes, kPoisonByte);
  }
  return matrix;
}

std::uint32_t typed_bits(const InputRule& rule, Type type, int row, int column) {
  return element_bits(rule, type, row, column);
}

std::uint8_t typed_poison(Type type, std::size_t index) {
  return type == Type::kInt8 ? static_cast<std::uint8_t>(mix64(index)) : kPoisonByte;
}

TypedAcceptance typed_acceptance(const TypedRules& rules) {
  constexpr double kSlack = 0x1p-22;  // a scale is the product of three, and so is the result of two
  const bool exact = is_exact(rules.a.pattern);
  std::vector<float> norm;
  const std::vector<double> value = sums_of(untouched_image(rules), rules, exact ? nullptr : &norm);
  TypedAcceptance acceptance;
  acceptance.low.resize(value.size());
  if (!exact) acceptance.high.resize(value.size());
  const double error = exact ? 0 : typed_error(rules.types, rules.shape().k, 1);
  parallel_for(static_cast<std::int64_t>(value.size()), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      if (exact) {
        acceptance.low[i] = stored(rules, value[i], 0);
        continue;
      }
      const double off = error * static_cast<double>(norm[i]);
      acceptance.low[i] = stored(rules, value[i] - off, -kSlack);
      acceptance.high[i] = stored(rules, value[i] + off, kSlack);
    }
  });
  if (!exact && rules.types.d == Type::kFp32) {
    acceptance.value = value;
    acceptance.norm = norm;
  }
  return acceptance;
}

TypedImage correct_image(const TypedRules& rules) {
  TypedImage image = untouched_image(rules);
  multiply(image, rules);
  return image;
}

namespace {

/// explain_rounding, for an exact pattern.
std::string rounded_to_one_side(const Survey& found, const TypedAcceptance& acceptance, Type type,
                                const std::uint8_t* d) {
  if (!acceptance.high.empty() || type == Type::kFp32) return "";
  const auto got = [&](std::size_t index) { return bits_at(type, d, static_cast<std::int64_t>(index)); };
  const auto right = [&](std::size_t index) { return encode(type, acceptance.low[index]); };
  const std::uint32_t sign = 1u << (8 * gemm::bytes_of(type) - 1);
  return explain_rounding(
      found, [&](std::size_t index) { return decode(type, got(index)) != acceptance.low[index]; },
      [&](std::size_t index) -> std::int64_t {
        if (type == Type::kInt8) {
          const auto by = static_cast<std::int64_t>(decode(type, got(index)) - acceptance.low[index]);
          return acceptance.low[index] < 0 ? -by : by;
        }
        if (((got(index) ^ right(index)) & sign) != 0) return 0;
        return static_cast<std::int64_t>(got(index)) - static_cast<std::int64_t>(right(index));
      },
      [&](std::size_t index) { return acceptance.low[index] < 0; });
}

/// Where all of these elements should be NaN and none is: what makes numbers of NaN.
std::string swallowed_nan(const TypedAcceptance& acceptance, Type type, const std::vector<std::size_t>& wrong,
                          const std::uint8_t* d) {
  const bool all = !wrong.empty() && std::all_of(wrong.begin(), wrong.end(), [&](std::size_t index) {
    return std::isnan(acceptance.low[index]) &&
           !std::isnan(decode(type, bits_at(type, d, static_cast<std::int64_t>(index))));
  });
  if (!all) return "";
  return "  These elements should be NaN, and something makes numbers of them: fmaxf and fminf return "
         "the other operand, and a comparison with NaN is false.\n";
}

constexpr std::uint8_t kNanScale = 0x7f;

float scale_value(std::uint8_t bits) {
  return gemm::to_float(gemm::e4m3{bits});
}

SumError error_of(const TypedRules& rules, const TypedImage& image, const TypedAcceptance& acceptance) {
  SumError error{.bound = typed_error(rules.types, rules.shape().k, 1)};
  double squares = 0;
  for (std::size_t i = 0; i < acceptance.value.size(); ++i) {
    const float got = decode(Type::kFp32, bits_at(Type::kFp32, image.d.data(), static_cast<std::int64_t>(i)));
    const double sum = static_cast<double>(got) / static_cast<double>(rules.scale());
    const double off = std::abs(sum - acceptance.value[i]) / static_cast<double>(acceptance.norm[i]);
    squares += off * off;
    error.largest = std::max(error.largest, off);
  }
  error.rms = std::sqrt(squares / static_cast<double>(acceptance.value.size()));
  return error;
}

}  // namespace

namespace {

/// Which rows of no group were written, or "". `is_poisoned(index)`: the element is as it was before.
template <typename IsPoisoned>
std::string written_guard_rows(const TypedRules& rules, const std::vector<int>& groups,
                               const IsPoisoned& is_poisoned) {
  const auto columns = static_cast<std::size_t>(rules.shape().n);
  std::int64_t count = 0;
  std::size_t first = 0;
  int behind = -1;  // the group before the first of them
  int group = -1;
  for (std::size_t row = 0; row < groups.size(); ++row) {
    group = std::max(group, groups[row]);
    for (std::size_t column = 0; groups[row] < 0 && column < columns; ++column) {
      if (is_poisoned(row * columns + column) || count++ > 0) continue;
      first = row * columns + column;
      behind = group;
    }
  }
  if (count == 0) return "";
  return fmt::format(
      "  [{}] {} element{} in rows that belong to no group {} written, the first at row {}, column {}{}\n"
      "  Hint: is the store of a group's last tile clipped at the group's last row?\n",
      kGuardRows, count, count == 1 ? "" : "s", count == 1 ? "was" : "were", first / columns, first % columns,
      behind < 0 ? "" : fmt::format(", after the last row of group {}", behind));
}

}  // namespace

CheckResult verify(const TypedRules& rules, const TypedImage& image, const TypedAcceptance& values,
                   const gemm::TileShape& tile) {
  constexpr std::size_t kListed = 8;
  const gemm::Shape shape = rules.shape();
  const Type type = rules.types.d;
  const bool quantises = rules.types.quantise_d();
  const QuantisedAcceptance blocks =
      quantises ? quantised_acceptance(shape, values, image.d) : QuantisedAcceptance{};
  const TypedAcceptance& acceptance = quantises ? blocks.elements : values;
  const auto scale_of = [&](std::size_t index) { return blocks.scales[index / gemm::kNvBlock]; };
  const auto size = static_cast<std::size_t>(gemm::bytes_of(type));
  const std::vector<float>& high = acceptance.high.empty() ? acceptance.low : acceptance.high;
  const auto got_at = [&](std::size_t index) {
    return decode(type, bits_at(type, image.d.data(), static_cast<std::int64_t>(index)));
  };
  const auto is_right = [&](std::size_t index) {
    const float got = got_at(index);
    if (std::isnan(acceptance.low[index])) return std::isnan(got);
    if (quantises && !scale_of(index).is_right()) return false;
    return acceptance.low[index] <= got && got <= high[index];
  };
  const auto is_poisoned = [&](std::size_t index) {
    if (quantises) return image.d[index / 2] == kPoisonByte && scale_of(index).got == kPoisonByte;
    bool poisoned = true;
    for (std::size_t byte = index * size; byte < (index + 1) * size; ++byte)
      poisoned = poisoned && image.d[byte] == typed_poison(type, byte);
    return poisoned;
  };
  const std::vector<int> groups = groups_of_rows(rules);
  const auto is_of_group = [&](std::size_t index) {
    return groups[index / static_cast<std::size_t>(shape.n)] >= 0;
  };
  const auto is_wrong = [&](std::size_t index) {
    return is_of_group(index) &&
           (!is_right(index) || (std::isnan(acceptance.low[index]) && is_poisoned(index)));
  };
  Survey found = survey(shape, tile, [&](std::size_t index) {
    if (!is_wrong(index)) return Wrong::kNot;
    if (is_poisoned(index)) return Wrong::kNeverWritten;
    const float got = got_at(index);
    if (std::isnan(got) || (quantises && scale_of(index).got == kNanScale)) return Wrong::kNan;
    return std::isinf(got) ? Wrong::kInfinity : Wrong::kValue;
  });
  constexpr std::int64_t kChance = 16;  // one in 256 wrong int8 is the noise that was there
  if (type == Type::kInt8 && found.never_written * kChance < found.wrong) {
    found.value += found.never_written;
    found.never_written = 0;
  }
  CheckResult result;
  std::string text;
  const std::int64_t total = gemm::offset(shape.m, 0, shape.n);
  const auto report = [&](const char* check, std::int64_t count, const char* meaning) {
    if (count == 0) return;
    result.failed.emplace_back(check);
    text += fmt::format("  [{}] {} of {} elements: {}\n", check, count, total, meaning);
  };
  report(kNeverWritten, found.never_written, "what was there before the run is still there");
  report(kNan, found.nan, "a NaN that the kernel computed");
  report(kInfinity, found.infinity, "infinite, although D saturates");
  report(kValue, found.value,
         acceptance.high.empty() ? "not the correctly rounded result" : "outside the error bound");
  std::vector<std::size_t> wrong;
  for (std::size_t row = 0; row < static_cast<std::size_t>(shape.m) && wrong.size() < kListed; ++row) {
    if (found.row_wrong[row] == 0) continue;
    for (std::size_t column = 0; column < static_cast<std::size_t>(shape.n); ++column) {
      const std::size_t index = row * static_cast<std::size_t>(shape.n) + column;
      if (!is_wrong(index)) continue;
      wrong.push_back(index);
      text += fmt::format(
          "    ({}, {}) in tile ({}, {}): got {}, {} {}\n", row, column,
          row / static_cast<std::size_t>(found.tile.m), column / static_cast<std::size_t>(found.tile.n),
          got_at(index), acceptance.high.empty() ? "expected" : "allowed",
          acceptance.high.empty() ? fmt::format("{}", acceptance.low[index])
                                  : fmt::format("{} .. {}", acceptance.low[index], high[index]));
      if (quantises) {
        const BlockScale scale = scale_of(index);
        text += fmt::format("      the scale of its block: got {}, {} {}\n", scale_value(scale.got),
                            scale.low == scale.high ? "expected" : "allowed",
                            scale.low == scale.high
                                ? fmt::format("{}", scale_value(scale.low))
                                : fmt::format("{} .. {}", scale_value(scale.low), scale_value(scale.high)));
      }
      if (wrong.size() == kListed) break;
    }
  }
  if (found.wrong > 0) text += fmt::format("  Where: {}\n", describe_place(found));
  text += swallowed_nan(acceptance, type, wrong, image.d.data());
  if (const std::string written = written_guard_rows(rules, groups, is_poisoned); !written.empty()) {
    result.failed.emplace_back(kGuardRows);
    text += written;
  }
  // Scales differ from row to row, but there are few: those of one row could be others' by chance.
  constexpr std::size_t kRows = 32;
  std::vector<std::size_t> spread = wrong;
  for (std::size_t row = 0; row < found.row_wrong.size() && spread.size() < kListed + kRows; ++row) {
    for (std::size_t column = static_cast<std::size_t>(shape.n); column-- > 0 && found.row_wrong[row] != 0;) {
      const std::size_t index = row * static_cast<std::size_t>(shape.n) + column;
      if (!is_wrong(index)) continue;
      spread.push_back(index);
      break;
    }
  }
  // By chance few rounded sums fit one of many explanations: more of the same warp's rows.
  constexpr std::size_t kWarpRows = 16;
  std::vector<std::size_t> nearby = wrong;
  const std::size_t columns = static_cast<std::size_t>(shape.n);
  const std::size_t corner = wrong.empty() ? 0 : wrong.front();
  const std::size_t first_row = corner / columns;
  const std::size_t first_column =
      corner % columns / static_cast<std::size_t>(found.tile.n) * static_cast<std::size_t>(found.tile.n);
  for (std::size_t row = first_row;
       !wrong.empty() &&
       row < std::min(static_cast<std::size_t>(shape.m), first_row / kWarpRows * kWarpRows + kWarpRows);
       ++row) {
    for (std::size_t column = std::min(columns, first_column + static_cast<std::size_t>(found.tile.n));
         column-- > first_column;) {
      const std::size_t index = row * columns + column;
      if (!is_wrong(index)) continue;
      nearby.push_back(index);
      break;
    }
  }
  if (quantises) {
    constexpr std::size_t kSamples = 4096;  // of many blocks
    std::vector<std::size_t> samples;
    for (std::size_t index = 0; index < acceptance.low.size() && samples.size() < kSamples; ++index) {
      if (is_wrong(index)) samples.push_back(index);
    }
    text += explain_quantised(blocks, values, samples, image.d);
  } else if (found.value > 0) {
    const std::string scales =
        explain(rules, tile.n, rules.types.scale_block() > 0 ? spread : wrong, image.d.data());
    std::string why = scales.empty() ? rounded_to_one_side(found, acceptance, type, image.d.data()) : scales;
    text += why.empty() ? explain_k(rules, tile, nearby, image.d.data()) : why;
  }
  if (found.value > 0 && !quantises) text += describe_registers(found, is_wrong);
  if (found.value > 0 && acceptance.high.empty())
    text += explain_pairs(rules, image.d.data(), acceptance.low);
  if (blocks.stray > 0) {
    if (found.value == 0) result.failed.emplace_back(kValue);
    text += fmt::format(
        "  [{}] {} scales of rows or blocks that D does not have are not 0: the next product reads those of "
        "blocks, and a NaN times zero is a NaN\n",
        kValue, blocks.stray);
  }
  const auto band = guard_band();
  if (image.before != band) {
    result.failed.emplace_back(kGuardBefore);
    text += fmt::format("  [{}] bytes before D were written\n", kGuardBefore);
  }
  if (image.after != band) {
    result.failed.emplace_back(kGuardAfter);
    text += fmt::format("  [{}] bytes after D were written\n", kGuardAfter);
  }
  for (const auto& [check, damage] :
       {std::pair{kInputA, input_damage(kInputA, image.a, typed_a(rules), rules.a, rules.types.a,
                                        rules.types.major_a)},
        std::pair{kInputB, rules.types.has_weights()
                               ? weight_damage(image, rules)
                               : input_damage(kInputB, image.b,
                                              typed_input(rules.b, rules.types.b, rules.types.major_b),
                                              rules.b, rules.types.b, rules.types.major_b)}}) {
    if (damage.empty()) continue;
    result.failed.emplace_back(check);
    text += damage;
  }
  result.ok = result.failed.empty();
  const std::string pattern = to_string(rules.a.pattern);
  if (result.ok) {
    result.summary = acceptance.high.empty()
                         ? fmt::format("{}: all {} elements match bit for bit", pattern, total)
                         : fmt::format("{}: all {} elements within the error bound", pattern, total);
    if (acceptance.value.empty()) return result;
    result.error = error_of(rules, image, acceptance);
    result.summary +=
        fmt::format(" (error of the sums / norm of the products: {:.1e}, at most {:.1e}, bound {:.1e})",
                    result.error->rms, result.error->largest, result.error->bound);
    return result;
  }
  result.summary = fmt::format("{}: failed {}; {} of {} elements are wrong", pattern,
                               fmt::join(result.failed, ", "), found.wrong, total);
  result.report = fmt::format(
      "wrong: {}, {}, pattern {}, seed {}{}, tile {} x {} x {}\n{}", to_string(shape), to_string(rules.types),
      pattern, rules.a.seed,
      rules.types.scale_block() > 0 && !rules.types.are_nv()
          ? ""
          : fmt::format(", scales {} * {} * {}", rules.scales[0], rules.scales[1], rules.scales[2]),
      tile.m, tile.n, tile.k, text);
  return result;
}

namespace {

void typed_miss_tile(TypedImage& image, const TypedRules& rules, const gemm::TileShape& tile) {
  const gemm::Shape shape = rules.shape();
  for (int row = (shape.m - 1) / tile.m * tile.m; row < shape.m; ++row) {
    for (int column = (shape.n - 1) / tile.n * tile.n; column < shape.n; ++column)
      restore_poison(image, rules, gemm::offset(row, column, shape.n));
  }
}

void typed_miss_slab(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  constexpr int kSlabBytes = 32;
  TypedImage other = untouched_image(rules);
  const int depth = std::min(8 * kSlabBytes / gemm::bits_of(rules.types.a), rules.a.columns);
  for (int row = 0; row < rules.a.rows; ++row) {
    for (int k = rules.a.columns - depth; k < rules.a.columns; ++k)
      put_bits(rules.types.a, other.a.data(), place_of(rules.a, rules.types.major_a, row, k), 0);
  }
  multiply(other, rules);
  image.d = other.d;
}

void typed_step_once(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  const gemm::Shape shape = rules.shape();
  const std::int64_t last = gemm::offset(shape.m - 1, shape.n - 1, shape.n);
  put_bits(rules.types.d, image.d.data(), last, bits_at(rules.types.d, image.d.data(), last) ^ 1u);
}

void with_scale(TypedImage& image, const TypedRules& rules, float factor) {
  TypedRules other = rules;
  other.scales[2] *= factor;
  multiply(image, other);
}
void typed_unscaled(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_scale(image, rules, 1 / rules.scale());
}
void typed_scaled_twice(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_scale(image, rules, rules.scale());
}

/// A kernel that takes an operand for one that lies the other way round.
Major other_way(Major major) {
  return major == Major::kK ? Major::kMn : Major::kK;
}
void typed_a_other_way(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  TypedRules other = rules;
  other.types.major_a = other_way(rules.types.major_a);
  multiply(image, other);
}
void typed_b_other_way(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  TypedRules other = rules;
  other.types.major_b = other_way(rules.types.major_b);
  multiply(image, other);
}

/// What a kernel computes that takes other scales.
using Damage = void (*)(TypedRules& other, const TypedRules& rules);
void with_blocks(TypedImage& image, const TypedRules& rules, Damage damage) {
  TypedRules other = rules;
  damage(other, rules);
  multiply(image, other);
}
void typed_blocks_unscaled(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules&) {
    std::fill(other.blocks_a.begin(), other.blocks_a.end(), 1.0f);
    std::fill(other.blocks_b.begin(), other.blocks_b.end(), 1.0f);
  });
}
/// The first block of K becomes the last.
void typed_next_block_a(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules&) {
    std::rotate(other.blocks_a.begin(), other.blocks_a.begin() + other.a.rows, other.blocks_a.end());
  });
}
void typed_next_block_b(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules& right) {
    const int blocks = other.blocks_of_k();
    if (right.types.have_scale_pieces())
      return void(
          std::rotate(other.blocks_b.begin(), other.blocks_b.begin() + other.b.rows, other.blocks_b.end()));
    for (auto row = other.blocks_b.begin(); row != other.blocks_b.end(); row += blocks)
      std::rotate(row, row + 1, row + blocks);
  });
}
void typed_other_row(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules& right) {
    for (int block = 0; block < right.blocks_of_k(); ++block) {
      for (int row = 0; row < right.a.rows; ++row)
        other.blocks_a[static_cast<std::size_t>(gemm::offset(block, row, right.a.rows))] = right.block_scale(
            Operand::kA, std::min(row ^ 8, right.a.rows - 1), block * right.types.scale_block());
    }
  });
}
/// Of the block of the last rows of B.
void typed_nan_scale(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules&) {
    other.blocks_b.back() = std::numeric_limits<float>::quiet_NaN();
  });
}

/// Row i of A is scaled as row i of B, and the other way round.
void typed_operands_exchanged(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules& right) {
    const int m = right.a.rows;
    const int n = right.b.rows;
    const int length = right.types.scale_block();
    for (int block = 0; block < right.blocks_of_k(); ++block) {
      for (int row = 0; row < m; ++row)
        other.blocks_a[static_cast<std::size_t>(gemm::offset(block, row, m))] =
            right.block_scale(Operand::kB, row % n, block * length);
      for (int row = 0; row < n; ++row)
        other.blocks_b[static_cast<std::size_t>(gemm::offset(block, row, n))] =
            right.block_scale(Operand::kA, row % m, block * length);
    }
  });
}
/// The scale factor ID stays 0.
void typed_one_id(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules& right) {
    for (int block = 0; block < right.blocks_of_k(); ++block) {
      for (int row = 0; row < right.a.rows; ++row)
        other.blocks_a[static_cast<std::size_t>(gemm::offset(block, row, right.a.rows))] =
            right.block_scale(Operand::kA, row, block / 4 * 4 * right.types.scale_block());
    }
  });
}

/// All instructions of a k-tile of 256 read the piece of the first.
void typed_one_piece(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules& right) {
    for (int block = 0; block < right.blocks_of_k(); ++block) {
      for (int row = 0; row < right.a.rows; ++row)
        other.blocks_a[static_cast<std::size_t>(gemm::offset(block, row, right.a.rows))] =
            right.block_scale(Operand::kA, row, (block / 16 * 16 + block % 4) * right.types.scale_block());
    }
  });
}
/// The element of the higher K is taken for that of the lower one.
void typed_nibbles_exchanged(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  TypedImage other = untouched_image(rules);
  for (std::uint8_t& pair : other.a) pair = static_cast<std::uint8_t>(pair << 4 | pair >> 4);
  multiply(other, rules);
  image.d = other.d;
}

/// The quantiser puts the lower column into the upper half of a byte.
void typed_d_nibbles_exchanged(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  for (std::size_t i = 0; i < quantised_scales_begin(rules.shape()); ++i)
    image.d[i] = static_cast<std::uint8_t>(image.d[i] << 4 | image.d[i] >> 4);
}
/// The words of D's scales have their bytes the other way round in pairs.
void typed_d_scales_exchanged(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  for (std::size_t i = quantised_scales_begin(rules.shape()); i < image.d.size(); i += 2)
    std::swap(image.d[i], image.d[i + 1]);
}
/// The last byte of the last row's piece, of a block or of a row that is not there.
void typed_d_stray_scale(TypedImage& image, const TypedRules&, const gemm::TileShape&) {
  image.d.back() = 1;
}

/// What a kernel makes of weights or scales that it takes for others.
void with_weights(TypedImage& image, const TypedRules& rules,
                  void (*change)(TypedImage&, const TypedRules&)) {
  TypedImage other = untouched_image(rules);
  change(other, rules);
  multiply(other, rules);
  image.d = other.d;
}
void weights_next_scale(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_weights(image, rules, [](TypedImage& other, const TypedRules& of) {
    std::rotate(other.group_scales.begin(),
                other.group_scales.begin() + std::ptrdiff_t{2} * of.types.scale_lines() * of.b.rows,
                other.group_scales.end());
  });
}
void weights_next_zero_point(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_weights(image, rules, [](TypedImage& other, const TypedRules& of) {
    const std::size_t line = std::size_t{2} * static_cast<std::size_t>(of.b.rows);
    const std::vector<std::uint8_t> before = other.group_scales;
    for (std::size_t at = line; at < before.size(); at += 2 * line)
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>((at + 2 * line) % before.size()), line,
                  other.group_scales.begin() + static_cast<std::ptrdiff_t>(at));
  });
}
void weights_unscaled(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_weights(image, rules, [](TypedImage& other, const TypedRules&) {
    for (std::size_t i = 0; i < other.group_scales.size() / 2; ++i)
      put_bits(Type::kBf16, other.group_scales.data(), static_cast<std::int64_t>(i), gemm::to_bf16(1).bits);
  });
}
void weights_other_sign(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_weights(image, rules, [](TypedImage& other, const TypedRules& of) {
    for (std::uint8_t& byte : other.b) byte ^= of.types.b == Type::kInt4 ? 0x88 : 0x80;
  });
}
void weights_nibbles_exchanged(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_weights(image, rules, [](TypedImage& other, const TypedRules& of) {
    for (std::size_t i = 0; i + 1 < other.b.size(); i += 2) {
      if (of.types.b == Type::kInt4) {
        for (std::size_t j : {i, i + 1})
          other.b[j] = static_cast<std::uint8_t>(other.b[j] << 4 | other.b[j] >> 4);
      } else {
        std::swap(other.b[i], other.b[i + 1]);
      }
    }
  });
}
void weights_of_the_next_thread(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_weights(image, rules, [](TypedImage& other, const TypedRules&) {
    std::rotate(other.b.begin(), other.b.begin() + 16, other.b.end());
  });
}

void typed_old_result(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  image.d = correct_image(typed_rules(rules.shape(), rules.types, rules.a.pattern, rules.a.seed + 1, true,
                                      rules.groups))
                .d;
}

/// What a kernel computes whose groups are others.
void with_groups(TypedImage& image, const TypedRules& rules, void (*change)(std::vector<gemm::GroupRows>&)) {
  TypedRules other = rules;
  change(other.groups);
  TypedImage changed = untouched_image(rules);
  multiply(changed, other);
  image.d = changed.d;
}
void groups_exchanged(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_groups(image, rules,
              [](std::vector<gemm::GroupRows>& groups) { std::swap(groups.front(), groups.back()); });
}
void group_past_its_end(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_groups(image, rules, [](std::vector<gemm::GroupRows>& groups) {
    groups[1].begin += 3;
    groups[0].end = groups[1].begin;
  });
}
void group_guard_row(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  const gemm::Shape shape = rules.shape();
  for (int column = 0; column < shape.n; ++column)
    put_bits(rules.types.d, image.d.data(), gemm::offset(rules.groups[1].end, column, shape.n), 0);
}
void group_missing(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  const gemm::Shape shape = rules.shape();
  for (std::int64_t index = gemm::offset(rules.groups.back().begin, 0, shape.n);
       index < gemm::offset(rules.groups.back().end, 0, shape.n); ++index)
    restore_poison(image, rules, index);
}
void group_scales_of_the_next(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  with_blocks(image, rules, [](TypedRules& other, const TypedRules& right) {
    const auto of_group = static_cast<std::ptrdiff_t>(right.blocks_b.size() / right.groups.size());
    std::rotate(other.blocks_b.begin(), other.blocks_b.begin() + of_group, other.blocks_b.end());
  });
}

}  // namespace

std::vector<TypedFault> typed_group_faults() {
  return {{"B and its scales of another group", kValue, "", true, groups_exchanged},
          {"scales of B of the next group", kValue, "", true, group_scales_of_the_next},
          {"tile past its group", kValue, "", true, group_past_its_end},
          {"guard row written", kGuardRows, "after the last row of group 1", false, group_guard_row},
          {"missing group", kNeverWritten, "", false, group_missing}};
}

std::vector<TypedFault> typed_faults(const Types& types) {
  std::vector<TypedFault> faults;
  const auto add = [&](const char* name, const char* check, bool exact_only,
                       decltype(TypedFault::damage) damage) {
    faults.push_back({name, check, "", exact_only, damage});
  };
  add("missing last tile", kNeverWritten, false, typed_miss_tile);
  add("missing last 32 bytes of K", kValue, true, typed_miss_slab);
  add("one bit of one element", kValue, true, typed_step_once);
  add("A read the other way round", kValue, true, typed_a_other_way);
  add("the result of other inputs", kValue, false, typed_old_result);
  add("a byte after D", kGuardAfter, false, flip_bit<&TypedImage::after, Place::kFirst>);
  add("a byte before D", kGuardBefore, false, flip_bit<&TypedImage::before, Place::kLast>);
  add("A overwritten", kInputA, false, flip_bit<&TypedImage::a, Place::kMiddle>);
  add("B overwritten", kInputB, false, flip_bit<&TypedImage::b, Place::kMiddle>);
  if (types.have_scale_pieces())
    add("the scales of A and of B exchanged", kValue, true, typed_operands_exchanged);
  if (types.are_mx()) add("A's scales of the first of four blocks", kValue, true, typed_one_id);
  if (types.are_nv()) {
    add("A's scales of the first instruction of a k-tile", kValue, true, typed_one_piece);
    add("the nibbles of A exchanged", kValue, true, typed_nibbles_exchanged);
  }
  if (types.quantise_d()) {
    add("the nibbles of D exchanged", kValue, true, typed_d_nibbles_exchanged);
    add("D's scales of the other block of a pair", kValue, true, typed_d_scales_exchanged);
    add("a scale of a row that D does not have", kValue, false, typed_d_stray_scale);
  }
  if (types.scale_block() > 0) {
    add("scales of blocks not applied", kValue, true, typed_blocks_unscaled);
    add("A's scales of the next block", kValue, true, typed_next_block_a);
    add("B's scales of the next block", kValue, true, typed_next_block_b);
    add("A's scales of other rows", kValue, true, typed_other_row);
    add("a scale that is NaN", kNan, false, typed_nan_scale);
  }
  if (types.are_nv() || (types.scale_block() == 0 && types.are_k_major() && !types.has_weights())) {
    add("scales not applied", kValue, true, typed_unscaled);
    add("scales applied twice", kValue, true, typed_scaled_twice);
  }
  if (!types.has_weights()) {
    add("B read the other way round", kValue, true, typed_b_other_way);
    return faults;
  }
  add("scales of the next group", kValue, true, weights_next_scale);
  if (types.zero_points) add("zero points of the next group", kValue, true, weights_next_zero_point);
  add("weights not scaled", kValue, true, weights_unscaled);
  add("weights without their offset", kValue, true, weights_other_sign);
  add("weights of two registers exchanged", kValue, true, weights_nibbles_exchanged);
  add("weights of the next thread", kValue, true, weights_of_the_next_thread);
  add("scales overwritten", kInputB, false, flip_bit<&TypedImage::group_scales, Place::kLast>);
  return faults;
}

}  // namespace harness
