#include "harness/verify/typed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "harness/base/parallel.h"
#include "harness/base/problem.h"
#include "harness/verify/sums.h"
#include "harness/verify/survey.h"

namespace harness {
namespace {

using gemm::Type;
using gemm::Types;

constexpr std::size_t kTypes = static_cast<std::size_t>(Type::kFp32) + 1;
constexpr float kIntegerDeviation = 32;  // of the normal pattern's int8 operands

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
    default:
      return 0;
  }
}

float normal_value(Type type, float quantile) {
  return type == Type::kInt8 ? kIntegerDeviation * quantile : quantile;
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

/// The bits of an element. The patterns are those of unshifted_value, but that the operand which is no
/// identity holds the exact pattern's integers, for most types have no room for a position.
std::uint32_t element_bits(const InputRule& rule, Type type, int row, int column) {
  const std::uint64_t random =
      random_bits(rule.key, static_cast<std::uint64_t>(gemm::offset(row, column, rule.columns)));
  switch (rule.pattern) {
    case Pattern::kNormal: {
      if (type != Type::kTf32) return encoded_quantiles(type)[(random >> 49) << 1 | (random & 1)];
      const float magnitude = gemm::to_float(normal_quantiles()[random >> 49]);
      const float value =
          (random & 1) != 0 ? -magnitude : magnitude;  // with bits that the tensor cores do not see
      return std::bit_cast<std::uint32_t>(value) | static_cast<std::uint32_t>(random >> 16 & 0xffffu);
    }
    case Pattern::kUniform: {
      const float value = static_cast<float>(2 * static_cast<int>(random >> 48) - 65535) / 65536.0f;
      return encode(type, type == Type::kInt8 ? 127 * value : value);
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
      break;
  }
  const std::uint64_t magnitude = 1 + (((random >> 32) * static_cast<std::uint64_t>(rule.range)) >> 32);
  const auto value = static_cast<float>(magnitude);
  return encode(type, (random & 1) != 0 ? -value : value);
}

std::vector<float> decoded(const std::vector<std::uint8_t>& matrix, Type type) {
  std::vector<float> values(matrix.size() / static_cast<std::size_t>(gemm::bytes_of(type)));
  parallel_for(static_cast<std::int64_t>(values.size()), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      values[static_cast<std::size_t>(i)] = decode(type, bits_at(type, matrix.data(), i));
  });
  return values;
}

/// What a kernel stores for this sum, decoded.
float stored(const TypedRules& rules, double sum, double slack) {
  const float scaled = static_cast<float>(sum) * rules.scale();
  const float moved = scaled + static_cast<float>(slack * std::abs(static_cast<double>(scaled)));
  return decode(rules.types.d, encode(rules.types.d, moved));
}

/// Standard deviation of a sum, roughly: for scales only.
double typical_sum(const TypedRules& rules) {
  const double root = std::sqrt(static_cast<double>(rules.a.columns));
  const bool integers = rules.types.a == Type::kInt8;
  const double range = rules.a.range;
  switch (rules.a.pattern) {
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
  return trusted_sums(shape, decoded(image.a, rules.types.a), decoded(image.b, rules.types.b), norm,
                      rules.a.key, to_string(rules.types));
}

TypedImage untouched_image(const TypedRules& rules) {
  TypedImage image;
  image.a = typed_input(rules.a, rules.types.a);
  image.b = typed_input(rules.b, rules.types.b);
  image.before = guard_band();
  image.after = guard_band();
  return image;
}

/// D from the image's operands.
void multiply(TypedImage& image, const TypedRules& rules) {
  const std::vector<double> value = sums_of(image, rules, nullptr);
  image.d.resize(value.size() * static_cast<std::size_t>(gemm::bytes_of(rules.types.d)));
  for (std::size_t i = 0; i < value.size(); ++i) {
    const float scaled = static_cast<float>(value[i]) * rules.scale();
    put_bits(rules.types.d, image.d.data(), static_cast<std::int64_t>(i), encode(rules.types.d, scaled));
  }
}

bool matches(const TypedRules& rules, float got, double sum, float scale) {
  return got == decode(rules.types.d, encode(rules.types.d, static_cast<float>(sum) * scale));
}

/// What would explain wrong values of an exact pattern, or "".
std::string explain(const TypedRules& rules, const std::vector<std::size_t>& samples, const std::uint8_t* d) {
  if (samples.empty() || !is_exact(rules.a.pattern)) return "";
  const TypedImage inputs = untouched_image(rules);
  const gemm::Shape shape = rules.shape();
  const float scale = rules.scale();
  const std::array<std::pair<float, const char*>, 5> candidates{
      {{1.0f, "the sums without any scale"},
       {scale * scale, "what every scale applied twice gives"},
       {rules.scales[0] * rules.scales[1], "the sums without the scale of D"},
       {rules.scales[1] * rules.scales[2], "the sums without the scale of A"},
       {rules.scales[0] * rules.scales[2], "the sums without the scale of B"}}};
  std::array<bool, 5> fits;
  fits.fill(true);
  for (const std::size_t index : samples) {
    double sum = 0;
    for (int k = 0; k < shape.k; ++k) {
      const auto row = static_cast<std::int64_t>(index) / shape.n;
      const auto column = static_cast<std::int64_t>(index) % shape.n;
      sum += static_cast<double>(
                 decode(rules.types.a, bits_at(rules.types.a, inputs.a.data(), row * shape.k + k))) *
             static_cast<double>(
                 decode(rules.types.b, bits_at(rules.types.b, inputs.b.data(), column * shape.k + k)));
    }
    const float got = decode(rules.types.d, bits_at(rules.types.d, d, static_cast<std::int64_t>(index)));
    for (std::size_t i = 0; i < fits.size(); ++i)
      fits[i] = fits[i] && candidates[i].first != scale && matches(rules, got, sum, candidates[i].first);
  }
  for (std::size_t i = 0; i < fits.size(); ++i) {
    if (fits[i]) return fmt::format("  These are {}.\n", candidates[i].second);
  }
  return "";
}

/// K-tiles that begin elsewhere, are missing, or are there twice, in exact patterns: or "".
std::string explain_k(const TypedRules& rules, int tile_k, const std::vector<std::size_t>& samples,
                      const std::uint8_t* d) {
  if (samples.size() < 4 || tile_k < 2 || !is_exact(rules.a.pattern)) return "";
  const TypedImage inputs = untouched_image(rules);
  const gemm::Shape shape = rules.shape();
  const int k_tiles = gemm::ceil_div(shape.k, tile_k);
  const auto value = [&](const std::vector<std::uint8_t>& matrix, Type type, std::int64_t row, int k) {
    return k >= shape.k ? 0.0
                        : static_cast<double>(decode(type, bits_at(type, matrix.data(), row * shape.k + k)));
  };
  /// A k-tile of A that begins at `of_a` times one of B that begins at `of_b`.
  const auto product = [&](std::size_t index, int of_a, int of_b) {
    double sum = 0;
    for (int k = 0; k < tile_k; ++k)
      sum += value(inputs.a, rules.types.a, static_cast<std::int64_t>(index) / shape.n, of_a + k) *
             value(inputs.b, rules.types.b, static_cast<std::int64_t>(index) % shape.n, of_b + k);
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
          "  These are the sums with k-tiles of {} that begin {} elements apart instead of {}: k-tile i at k "
          "= "
          "{} * i{}{}. A coordinate along K counts elements of this type, and a k-tile has {} of them, in {} "
          "bytes.\n",
          which == 0   ? "A and B"
          : which == 1 ? "A"
                       : "B",
          step, tile_k, step, step < tile_k ? "; parts of K are read twice" : "",
          never.empty() ? "" : (step < tile_k ? ", and " : "; ") + never, tile_k,
          tile_k * gemm::bytes_of(rules.types.a));
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
      const std::string has = twice < 0 ? "" : fmt::format("k-tile {} is there twice", twice);
      return fmt::format("  These are the sums in which {}{}{} (of k-tiles 0 to {}).\n", lacks,
                         lacks.empty() || has.empty() ? "" : " and ", has, k_tiles - 1);
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
  return "  Each of these is the right one of a pair, holds -1, and stands behind a negative element: the "
         "left "
         "one was extended with its sign when the two were packed into 16 bits. Take its low 8 bits alone (a "
         "cast to std::uint8_t, or & 0xff).\n";
}

/// Where an input was written, or "".
std::string input_damage(const char* check, const std::vector<std::uint8_t>& now, const InputRule& rule,
                         Type type) {
  const std::vector<std::uint8_t> expected = typed_input(rule, type);
  if (now == expected) return "";
  const auto first = std::mismatch(now.begin(), now.end(), expected.begin()).first - now.begin();
  const auto element = static_cast<std::int64_t>(first) / gemm::bytes_of(type);
  return fmt::format("  [{}] the kernel wrote to an input: the first element that changed is ({}, {})\n",
                     check, element / rule.columns, element % rule.columns);
}

}  // namespace

std::string to_string(const Types& types) {
  return fmt::format("{} x {} -> {}", gemm::name_of(types.a), gemm::name_of(types.b), gemm::name_of(types.d));
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
    case Type::kTf32:
    case Type::kFp32:
      break;
  }
  return std::bit_cast<std::uint32_t>(value);
}

std::uint32_t bits_at(Type type, const std::uint8_t* matrix, std::int64_t index) {
  std::uint32_t bits = 0;
  const auto size = static_cast<std::size_t>(gemm::bytes_of(type));
  std::memcpy(&bits, matrix + static_cast<std::size_t>(index) * size, size);
  return bits;
}

void put_bits(Type type, std::uint8_t* matrix, std::int64_t index, std::uint32_t bits) {
  const auto size = static_cast<std::size_t>(gemm::bytes_of(type));
  std::memcpy(matrix + static_cast<std::size_t>(index) * size, &bits, size);
}

int typed_range(const Types& types, Pattern pattern, int k) {
  const bool narrow = gemm::is_fp8(types.a);
  const double limit = narrow ? 0x1p13 : types.a == Type::kInt8 ? 0x1p31 : 0x1p24;
  const auto largest_sum = [&](double range) {
    const double all = range * range * k;
    if (!narrow) return all;
    if (pattern == Pattern::kArange) return std::min(all, range * range * (4 * range * range - 1));
    return std::min(all, 9 * range * range * std::sqrt(static_cast<double>(k)));
  };
  int range = std::min(largest_integer(types.a), largest_integer(types.b));
  while (range > 1 && largest_sum(range) >= limit) --range;
  return range;
}

double typed_error(const Types& types, int k, double norm) {
  if (types.a == Type::kInt8) return 0;
  if (!gemm::is_fp8(types.a)) return accumulation_error(k, norm);
  const double root = std::sqrt(static_cast<double>(k));
  const double g = (k / 16.0 + std::min<double>(k, 9 * root)) * 0x1p-13;
  return (g < 1 ? g / (1 - g) : std::numeric_limits<double>::infinity()) * std::min(root, 9.0) * norm;
}

TypedRules typed_rules(const gemm::Shape& shape, const Types& types, Pattern pattern, std::uint64_t seed) {
  TypedRules rules{.types = types,
                   .a = input_rule(pattern, seed, Operand::kA, shape.m, shape.k),
                   .b = input_rule(pattern, seed, Operand::kB, shape.n, shape.k)};
  rules.a.range = rules.b.range = typed_range(types, pattern, shape.k);
  const bool exact = is_exact(pattern);
  rules.scales = exact ? std::array{0.5f, 8.0f, 0x1p-7f} : std::array{0.37f, 1.9f, 0.6f};
  if (const double largest = largest_of_narrow(types.d); largest > 0) {
    const double wanted =
        largest / 2 / typical_sum(rules) / static_cast<double>(rules.scales[0] * rules.scales[1]);
    rules.scales[2] = static_cast<float>(exact ? std::exp2(std::floor(std::log2(wanted))) : wanted);
    if (rules.scale() == 1) rules.scales[2] = 0.25f;  // then it would not show whether anything scales
  }
  return rules;
}

std::vector<std::uint8_t> typed_input(const InputRule& rule, Type type) {
  const std::int64_t elements = gemm::offset(rule.rows, 0, rule.columns);
  std::vector<std::uint8_t> matrix(static_cast<std::size_t>(elements * gemm::bytes_of(type)));
  normal_quantiles();  // made before threads ask for it
  parallel_for(rule.rows, row_grain(rule.columns), [&](std::int64_t begin, std::int64_t end) {
    for (int row = static_cast<int>(begin); row < end; ++row) {
      for (int column = 0; column < rule.columns; ++column)
        put_bits(type, matrix.data(), gemm::offset(row, column, rule.columns),
                 element_bits(rule, type, row, column));
    }
  });
  return matrix;
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
  return acceptance;
}

TypedImage correct_image(const TypedRules& rules) {
  TypedImage image = untouched_image(rules);
  multiply(image, rules);
  return image;
}

CheckResult verify(const TypedRules& rules, const TypedImage& image, const TypedAcceptance& acceptance,
                   const gemm::TileShape& tile) {
  constexpr std::size_t kListed = 8;
  const gemm::Shape shape = rules.shape();
  const Type type = rules.types.d;
  const auto size = static_cast<std::size_t>(gemm::bytes_of(type));
  const std::vector<float>& high = acceptance.high.empty() ? acceptance.low : acceptance.high;
  const auto got_at = [&](std::size_t index) {
    return decode(type, bits_at(type, image.d.data(), static_cast<std::int64_t>(index)));
  };
  Survey found = survey(shape, tile, [&](std::size_t index) {
    const float got = got_at(index);
    if (acceptance.low[index] <= got && got <= high[index]) return Wrong::kNot;
    bool poisoned = true;
    for (std::size_t byte = index * size; byte < (index + 1) * size; ++byte)
      poisoned = poisoned && image.d[byte] == typed_poison(type, byte);
    if (poisoned) return Wrong::kNeverWritten;
    if (std::isnan(got)) return Wrong::kNan;
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
  report(kInfinity, found.infinity, "infinite, where D saturates");
  report(kValue, found.value,
         acceptance.high.empty() ? "not the correctly rounded result" : "outside the error bound");
  std::vector<std::size_t> wrong;
  for (std::size_t row = 0; row < static_cast<std::size_t>(shape.m) && wrong.size() < kListed; ++row) {
    if (found.row_wrong[row] == 0) continue;
    for (std::size_t column = 0; column < static_cast<std::size_t>(shape.n); ++column) {
      const std::size_t index = row * static_cast<std::size_t>(shape.n) + column;
      const float got = got_at(index);
      if (acceptance.low[index] <= got && got <= high[index]) continue;
      wrong.push_back(index);
      text += fmt::format(
          "    ({}, {}) in tile ({}, {}): {}, and {} {}\n", row, column,
          row / static_cast<std::size_t>(found.tile.m), column / static_cast<std::size_t>(found.tile.n), got,
          acceptance.high.empty() ? "right is" : "allowed is",
          acceptance.high.empty() ? fmt::format("{}", acceptance.low[index])
                                  : fmt::format("{} .. {}", acceptance.low[index], high[index]));
      if (wrong.size() == kListed) break;
    }
  }
  if (found.wrong > 0) text += fmt::format("  Where: {}\n", describe_place(found));
  if (found.value > 0) {
    const std::string scales = explain(rules, wrong, image.d.data());
    text += scales.empty() ? explain_k(rules, tile.k, wrong, image.d.data()) : scales;
  }
  if (found.value > 0 && acceptance.high.empty())
    text += explain_pairs(rules, image.d.data(), acceptance.low);
  const auto band = guard_band();
  if (image.before != band) {
    result.failed.emplace_back(kGuardBefore);
    text += fmt::format("  [{}] bytes in front of D were written\n", kGuardBefore);
  }
  if (image.after != band) {
    result.failed.emplace_back(kGuardAfter);
    text += fmt::format("  [{}] bytes behind D were written\n", kGuardAfter);
  }
  for (const auto& [check, damage] :
       {std::pair{kInputA, input_damage(kInputA, image.a, rules.a, rules.types.a)},
        std::pair{kInputB, input_damage(kInputB, image.b, rules.b, rules.types.b)}}) {
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
    return result;
  }
  result.summary = fmt::format("{}: failed {}; {} of {} elements are wrong", pattern,
                               fmt::join(result.failed, ", "), found.wrong, total);
  result.report =
      fmt::format("wrong: {}, {}, pattern {}, seed {}, scales {} * {} * {}, tile {} x {} x {}\n{}",
                  to_string(shape), to_string(rules.types), pattern, rules.a.seed, rules.scales[0],
                  rules.scales[1], rules.scales[2], tile.m, tile.n, tile.k, text);
  return result;
}

namespace {

void restore_poison(TypedImage& image, const TypedRules& rules, std::int64_t index) {
  const auto size = static_cast<std::size_t>(gemm::bytes_of(rules.types.d));
  for (std::size_t byte = static_cast<std::size_t>(index) * size;
       byte < (static_cast<std::size_t>(index) + 1) * size; ++byte)
    image.d[byte] = typed_poison(rules.types.d, byte);
}

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
  const int row_bytes = rules.a.columns * gemm::bytes_of(rules.types.a);
  for (int row = 0; row < rules.a.rows; ++row) {
    const auto end = other.a.begin() + gemm::offset(row + 1, 0, row_bytes);
    std::fill(end - std::min(kSlabBytes, row_bytes), end, std::uint8_t{0});
  }
  multiply(other, rules);
  image.d = other.d;
}

void typed_step_once(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  const std::int64_t last = gemm::offset(rules.a.rows - 1, rules.b.rows - 1, rules.b.rows);
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

void typed_old_result(TypedImage& image, const TypedRules& rules, const gemm::TileShape&) {
  image.d = correct_image(typed_rules(rules.shape(), rules.types, rules.a.pattern, rules.a.seed + 1)).d;
}

void typed_write_behind(TypedImage& image, const TypedRules&, const gemm::TileShape&) {
  image.after.front() ^= 1;
}
void typed_write_in_front(TypedImage& image, const TypedRules&, const gemm::TileShape&) {
  image.before.back() ^= 1;
}
void typed_clobber_a(TypedImage& image, const TypedRules&, const gemm::TileShape&) {
  image.a[image.a.size() / 2] ^= 1;
}
void typed_clobber_b(TypedImage& image, const TypedRules&, const gemm::TileShape&) {
  image.b[image.b.size() / 2] ^= 1;
}

}  // namespace

const std::vector<TypedFault>& typed_faults() {
  static const std::vector<TypedFault> kFaults{
      {"missing last tile", kNeverWritten, false, typed_miss_tile},
      {"missing last 32 bytes of K", kValue, true, typed_miss_slab},
      {"one bit of one element", kValue, true, typed_step_once},
      {"scales not applied", kValue, true, typed_unscaled},
      {"scales applied twice", kValue, true, typed_scaled_twice},
      {"the result of other inputs", kValue, false, typed_old_result},
      {"a byte behind D", kGuardAfter, false, typed_write_behind},
      {"a byte in front of D", kGuardBefore, false, typed_write_in_front},
      {"A overwritten", kInputA, false, typed_clobber_a},
      {"B overwritten", kInputB, false, typed_clobber_b}};
  return kFaults;
}

}  // namespace harness
