#include "harness/verify/epilogue/auxiliary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numbers>
#include <optional>

#include "harness/base/parallel.h"
#include "harness/base/problem.h"
#include "harness/verify/inputs.h"
#include "harness/verify/survey.h"
#include "harness/verify/types/sums.h"

namespace harness {
namespace {

using gemm::Auxiliary;

constexpr int kMaskPitch = 128;  // bits that the pitch of a mask is a multiple of

/// A mistake of a kernel: what a report explains wrong values with, and what injected faults do.
enum class Mistake {
  kNone,
  kNoBias,
  kNoSource,     // C is not added
  kNoBeta,       // C is added as it is
  kSourceByRow,  // its row and column are exchanged
  kNoActivation,
  kActivationLast,  // behind the residual
  kNoTensor,        // what is read has no effect
  kTensorByRow,     // its row and column are exchanged
  kTensorOfTile,    // it is indexed inside the tile
  kTensorPitch,     // its rows are taken to lie N apart
  kMaskInverted,    // and read as if 0 were 1
  kMaskPlaces,      // the bits of two parts of a subtile change places
  kGateExchanged,   // gate and value
  kGateNeighbours,  // the value of the pair before
  kOneMore,         // k + 1 of a row
  kSumOfAll,        // shares of the sum of all
  kTiesFromTheEnd,  // of equal elements those of higher columns
  kTiesOnce,        // equal elements count as one, and each gets a share
  kNoScale,         // of D
};

constexpr struct {
  Mistake mistake;
  const char* meaning;
} kExplanations[] = {
    {Mistake::kNoBias, "the bias is missing"},
    {Mistake::kNoSource, "beta * C is missing"},
    {Mistake::kNoBeta, "beta is missing"},
    {Mistake::kSourceByRow, "the row and the column of C are exchanged"},
    {Mistake::kNoActivation, "the activation is missing"},
    {Mistake::kActivationLast,
     "the activation is applied after the residual, f(x + r), instead of before it, f(x) + r: the nodes of a "
     "tree are applied in the order in which they are listed"},
    {Mistake::kNoTensor, "the auxiliary tensor has no effect"},
    {Mistake::kTensorByRow, "the row and the column of the auxiliary tensor are exchanged"},
    {Mistake::kTensorOfTile,
     "the auxiliary tensor is indexed inside the tile, without the row and the column where the tile begins"},
    {Mistake::kTensorPitch, "the auxiliary tensor is read with the row pitch of D instead of its own"},
    {Mistake::kMaskInverted, "0 and 1 are exchanged in the mask"},
    {Mistake::kGateExchanged, "gate and value are exchanged"},
    {Mistake::kGateNeighbours, "each gate is multiplied by the value of its neighbour"},
    {Mistake::kOneMore, "k + 1 elements of a row are taken instead of k"},
    {Mistake::kSumOfAll,
     "the shares are shares of the sum over the whole row instead of the sum over the k largest elements"},
    {Mistake::kTiesFromTheEnd,
     "among equal elements, those of higher columns are taken instead of those of lower columns"},
    {Mistake::kTiesOnce,
     "equal elements count once among the k and in the sum, although each of them gets a share: the search "
     "for the next element skips those that are equal to the previous one (it must compare the column as "
     "well)"},
    {Mistake::kNoScale, "the scale of D is missing"}};

TopKMistake of_top_k(Mistake mistake) {
  switch (mistake) {
    case Mistake::kOneMore:
      return TopKMistake::kOneMore;
    case Mistake::kSumOfAll:
      return TopKMistake::kSumOfAll;
    case Mistake::kTiesFromTheEnd:
      return TopKMistake::kTiesFromTheEnd;
    case Mistake::kTiesOnce:
      return TopKMistake::kTiesOnce;
    default:
      return TopKMistake::kNone;
  }
}

gemm::bf16 rounded(double value) {
  const gemm::bf16 bits = gemm::to_bf16(static_cast<float>(value));
  // No correct result of finite numbers is.
  const bool infinite = (bits.bits & 0x7fff) == 0x7f80 && std::isfinite(value);
  return infinite ? gemm::bf16{static_cast<std::uint16_t>(bits.bits - 1)} : bits;
}

/// What is stored of v: bf16, or the e4m3 next to v times the scale, as a bf16. `outwards` moves it by a
/// rounding of that product.
gemm::bf16 stored(const AuxRules& rules, double value, double outwards = 0,
                  Mistake mistake = Mistake::kNone) {
  if (rules.d == gemm::Type::kBf16) return rounded(value);
  const double scaled = value * static_cast<double>(mistake == Mistake::kNoScale ? 1 : rules.d_scale);
  const double moved = std::isfinite(scaled) ? scaled + outwards * 0x1p-22 * std::abs(scaled) : scaled;
  return gemm::to_bf16(gemm::to_float(gemm::to_e4m3(static_cast<float>(moved))));
}

gemm::Epilogue without_activation(gemm::Epilogue epilogue) {
  epilogue.activation = gemm::Activation::kNone;
  return epilogue;
}

/// Both ends moved outwards by a rounding or two of a binary32.
Interval widened(const Interval& interval) {
  return {interval.low - 0x1p-22 * std::abs(interval.low) - 0x1p-140,
          interval.high + 0x1p-22 * std::abs(interval.high) + 0x1p-140};
}

Interval product(const Interval& a, const Interval& b) {
  const double all[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return {*std::min_element(std::begin(all), std::end(all)),
          *std::max_element(std::begin(all), std::end(all))};
}

/// The element of the tensor that is read; 0 outside of it.
double tensor_at(const AuxRules& rules, int row, int column) {
  if (row < 0 || column < 0 || row >= rules.tensor.rows || column >= rules.tensor.columns) return 0;
  return static_cast<double>(gemm::to_float(input_value(rules.tensor, row, column, normal_quantiles())));
}

std::uint32_t mask_word(const AuxRules& rules, std::int64_t word) {
  return static_cast<std::uint32_t>(random_bits(rules.tensor.key, static_cast<std::uint64_t>(word)) >> 32);
}

bool input_bit(const AuxRules& rules, int row, int column) {
  if (row >= rules.base.a.rows || column >= rules.pitch) return false;
  if (row < 0 || column < 0) return false;
  const std::int64_t words = rules.pitch / gemm::kMaskWordBits;
  return (mask_word(rules, row * words + column / gemm::kMaskWordBits) >> (column % gemm::kMaskWordBits) &
          1) != 0;
}

/// What beta is multiplied by at (row, column) of D, with a mistake.
double source_of(const AuxRules& rules, int row, int column, Mistake mistake = Mistake::kNone) {
  if (mistake == Mistake::kNoSource || rules.base.c.rows == 0) return 0;
  const double c = source_at(rules.base, row, column);
  const double exchanged = source_at(rules.base, column, row);
  // A special element stays where it is, so that a fault has one consequence.
  if (mistake == Mistake::kSourceByRow && std::isfinite(c) && std::isfinite(exchanged)) return exchanged;
  return mistake == Mistake::kNoBeta ? c / static_cast<double>(rules.epilogue().beta) : c;
}

bool takes_top_k(const AuxRules& rules) {
  return rules.epilogue().reduction == gemm::Reduction::kTopKSoftmax;
}

/// A row of D where the k largest are taken; `sums` is the row of A * B^T.
std::vector<double> softmax_of_row(const AuxRules& rules, int row, const double* sums, Mistake mistake) {
  std::vector<double> values;
  for (int column = 0; column < rules.base.b.rows; ++column)
    values.push_back(epilogue_value(rules.epilogue(), sums[column], 0, bias_at(rules.base, row, column)));
  return top_k_softmax(values, rules.epilogue().top_k, of_top_k(mistake));
}

/// What is right at (row, column) of D, as far as binary64 goes, with a mistake. `sums` is the row of A *
/// B^T. What is read of the auxiliary tensor is so many rows and columns away from where it should be.
double result_at(const AuxRules& rules, int row, int column, const double* sums, Mistake mistake,
                 const gemm::TileShape& tile, const Element& away = {0, 0}) {
  gemm::Epilogue epilogue = rules.epilogue();
  if (mistake == Mistake::kNoActivation) epilogue.activation = gemm::Activation::kNone;
  const gemm::Epilogue linear = without_activation(epilogue);
  const auto value = [&](const gemm::Epilogue& which, int n) {
    return epilogue_value(which, sums[n], source_of(rules, row, n, mistake),
                          mistake == Mistake::kNoBias ? 0 : bias_at(rules.base, row, n));
  };
  int tensor_row = row + away.row;
  int tensor_column = column + away.column;
  if (mistake == Mistake::kTensorByRow) std::swap(tensor_row, tensor_column);
  if (mistake == Mistake::kTensorOfTile) {
    tensor_row %= tile.m;
    tensor_column %= tile.n;
  }
  if (mistake == Mistake::kTensorPitch && rules.pitch > 0) {
    const int multiple = gemm::is_mask(epilogue.auxiliary) ? kMaskPitch : 1;
    const std::int64_t flat =
        gemm::offset(row, column, gemm::ceil_div(rules.base.b.rows, multiple) * multiple);
    tensor_row = static_cast<int>(flat / rules.pitch);
    tensor_column = static_cast<int>(flat % rules.pitch);
  }
  if (mistake == Mistake::kMaskPlaces) {
    const bool lower = row % 16 >= 8;
    const bool right = column % tile.n % 64 >= 32;
    if (lower != right) {
      tensor_row += lower ? -8 : 8;
      tensor_column += lower ? 32 : -32;
    }
  }
  const bool without = mistake == Mistake::kNoTensor;
  if (epilogue.reduction == gemm::Reduction::kTopKSoftmax)
    return softmax_of_row(rules, row, sums, mistake)[at(column)];
  switch (epilogue.auxiliary) {
    case Auxiliary::kResidual:
      if (mistake == Mistake::kActivationLast) {
        gemm::Epilogue all = epilogue;
        all.beta = 1;
        return epilogue_value(all, sums[column], tensor_at(rules, row, column),
                              bias_at(rules.base, row, column));
      }
      return value(epilogue, column) + (without ? 0 : tensor_at(rules, tensor_row, tensor_column));
    case Auxiliary::kMaskBackward: {
      const bool bit = input_bit(rules, tensor_row, tensor_column) != (mistake == Mistake::kMaskInverted);
      return bit || without ? value(linear, column) : 0;
    }
    case Auxiliary::kPreActivationBackward:
      return value(linear, column) *
             (without ? 1 : gelu_derivative(tensor_at(rules, tensor_row, tensor_column)));
    case Auxiliary::kGate: {
      const bool exchanged = mistake == Mistake::kGateExchanged;
      const int of_value = mistake == Mistake::kGateNeighbours ? std::max(0, 2 * column - 1) : 2 * column + 1;
      return value(epilogue, exchanged ? of_value : 2 * column) *
             value(linear, exchanged ? 2 * column : of_value);
    }
    default:
      return value(epilogue, column);
  }
}

/// x, which a tensor that is written is about.
double linear_at(const AuxRules& rules, int row, int column, double sum, Mistake mistake = Mistake::kNone) {
  return epilogue_value(without_activation(rules.epilogue()), sum, source_of(rules, row, column, mistake),
                        mistake == Mistake::kNoBias ? 0 : bias_at(rules.base, row, column));
}

/// What an approximate tanh makes of the derivative of GELU, (1 + t) / 2 + z u' (1 - t^2) / 2: t is off by at
/// most 2^-11, and the derivative by (1 / 2 + |z u' t|) times that.
double approximate_slope_error(double z) {
  const double scale = std::sqrt(2 / std::numbers::pi);
  return 0x1p-11 * (0.5 + std::abs(z) * scale * (1 + 3 * 0.044715 * z * z));
}

/// Where a correct kernel's result lies; `error` is that of each accumulator of the row.
template <typename Error>
Interval result_interval(const AuxRules& rules, int row, int column, const double* sums, const Error& error,
                         const Allowance& allowance) {
  const gemm::Epilogue& epilogue = rules.epilogue();
  const auto interval = [&](gemm::Epilogue which, int n) {
    const double bias = bias_at(rules.base, row, n);
    const double c = source_of(rules, row, n);
    if (!allowance.product) return accepted_results(which, sums[n], error(n), c, bias);
    const Interval x = accepted_results(without_activation(which), sums[n], error(n), c, bias);
    const auto low = static_cast<double>(gemm::to_float(rounded(x.low)));
    const auto high = static_cast<double>(gemm::to_float(rounded(x.high)));
    which.alpha = 1;
    which.beta = 0;
    which.bias = gemm::Bias::kNone;
    return accepted_results(which, (low + high) / 2, (high - low) / 2, 0, 0);
  };
  const gemm::Epilogue linear = without_activation(epilogue);
  switch (epilogue.auxiliary) {
    case Auxiliary::kResidual: {
      const double added = tensor_at(rules, row, column);
      const Interval x = interval(epilogue, column);
      return widened({x.low + added, x.high + added});
    }
    case Auxiliary::kMaskBackward:
      if (!input_bit(rules, row, column)) return {0, 0};
      return interval(linear, column);
    case Auxiliary::kPreActivationBackward: {
      const double z = tensor_at(rules, row, column);
      const double slope = gelu_derivative(z);
      const double off = gelu_derivative_error(z) + (allowance.slope ? approximate_slope_error(z) : 0);
      return widened(product(interval(linear, column), {slope - off, slope + off}));
    }
    case Auxiliary::kGate:
      return widened(product(interval(epilogue, 2 * column), interval(linear, 2 * column + 1)));
    default:
      return interval(epilogue, column);
  }
}

std::vector<float> as_floats(const std::vector<gemm::bf16>& values) {
  std::vector<float> floats(values.size());
  std::transform(values.begin(), values.end(), floats.begin(),
                 [](gemm::bf16 value) { return gemm::to_float(value); });
  return floats;
}

std::vector<double> sums_of_rules(const AuxRules& rules, std::vector<float>* norm) {
  constexpr double kSmallest = 0x1p-149;  // of binary32
  std::vector<double> sums =
      trusted_sums(rules.shape(), as_floats(host_input(rules.base.a)), as_floats(host_input(rules.base.b)),
                   norm, rules.base.a.key, to_string(rules.epilogue()));
  // A product of two subnormal numbers is 0 in an accumulator.
  for (double& sum : sums) {
    if (std::abs(sum) < kSmallest) sum = 0;
  }
  return sums;
}

AuxImage image_before(const AuxRules& rules) {
  AuxImage image;
  image.a = host_input(rules.base.a);
  image.b = host_input(rules.base.b);
  if (rules.base.bias.rows > 0) image.bias = host_input(rules.base.bias);
  if (rules.base.c.rows > 0) image.c = host_input(rules.base.c);
  image.before = image.after = image.tensor_before = image.tensor_after = guard_band();
  image.reduced_before = image.reduced_after = guard_band();
  if (gemm::is_read(rules.epilogue().auxiliary)) {
    image.tensor = aux_input(rules);
  } else {
    image.tensor.resize(rules.tensor_bytes());
    for (std::size_t i = 0; i < image.tensor.size(); ++i)
      image.tensor[i] = aux_poison(rules.epilogue().auxiliary, i);
  }
  return image;
}

void put_bit(std::vector<std::uint8_t>& mask, int pitch, int row, int column, bool bit) {
  std::uint8_t& byte = mask[at(gemm::offset(row, column, pitch) / 8)];
  const auto one = static_cast<std::uint8_t>(1u << (column % 8));
  byte = static_cast<std::uint8_t>(bit ? byte | one : byte & ~one);
}

gemm::bf16 tensor_element(const AuxImage& image, int pitch, int row, int column) {
  gemm::bf16 element;
  std::memcpy(&element, &image.tensor[2 * at(gemm::offset(row, column, pitch))], sizeof element);
  return element;
}
void put_element(AuxImage& image, int pitch, int row, int column, gemm::bf16 element) {
  std::memcpy(&image.tensor[2 * at(gemm::offset(row, column, pitch))], &element, sizeof element);
}

/// The columns up to the end of the last word of a row of a mask.
int written_bits(const AuxRules& rules) {
  return gemm::ceil_div(rules.base.b.rows, gemm::kMaskWordBits) * gemm::kMaskWordBits;
}

/// Writes D and, where there is one, the tensor, from the rules' inputs. `mistake` is D's.
void compute_outputs(AuxImage& image, const AuxRules& rules, Mistake mistake, const gemm::TileShape& tile) {
  const gemm::Shape shape = rules.shape();
  const Auxiliary auxiliary = rules.epilogue().auxiliary;
  const std::vector<double> sums = sums_of_rules(rules, nullptr);
  image.d.resize(at(gemm::offset(shape.m, 0, rules.columns_of_d())));
  ReducedReference reference(rules.epilogue().reduction, shape);
  const bool reduces = gemm::is_written(rules.epilogue().reduction);
  for (int row = 0; row < shape.m; ++row) {
    const double* of_row = &sums[at(gemm::offset(row, 0, shape.n))];
    std::vector<double> whole_row;
    if (takes_top_k(rules)) whole_row = softmax_of_row(rules, row, of_row, mistake);
    for (int column = 0; column < rules.columns_of_d(); ++column) {
      // Where C is NaN or infinite nothing is wrong, so that a mistake has one consequence.
      const bool special = !std::isfinite(source_of(rules, row, column));
      const double value =
          whole_row.empty() ? result_at(rules, row, column, of_row, special ? Mistake::kNone : mistake, tile)
                            : whole_row[at(column)];
      image.d[at(gemm::offset(row, column, rules.columns_of_d()))] = stored(rules, value, 0, mistake);
      if (reduces) reference.add(row, column, {value, 0, 0});
    }
    for (int column = 0; column < (auxiliary == Auxiliary::kMask ? written_bits(rules) : 0); ++column)
      put_bit(image.tensor, rules.pitch, row, column,
              column < shape.n && linear_at(rules, row, column, of_row[column]) > 0);
    for (int column = 0; column < (auxiliary == Auxiliary::kPreActivation ? shape.n : 0); ++column)
      put_element(image, rules.pitch, row, column, rounded(linear_at(rules, row, column, of_row[column])));
  }
  image.reduced = reference.values();
}

/// What the checks of one matrix of a run found.
struct Findings {
  std::vector<std::string> failed;
  std::string text;
  std::int64_t wrong = 0;
};

struct CheckNames {
  const char* what;
  const char* never_written;
  const char* nan;
  const char* infinity;
  const char* value;
};
constexpr CheckNames kOfD{"D", kNeverWritten, kNan, kInfinity, kValue};
constexpr CheckNames kOfTensor{"the auxiliary tensor", kAuxNeverWritten, kAuxNan, kAuxInfinity, kAuxValue};

template <typename Describe>
void add_survey(Findings& findings, const Survey& found, const CheckNames& names, bool exact,
                const std::function<Wrong(std::size_t)>& wrong_at, const Describe& describe,
                std::vector<Element>* samples) {
  constexpr std::size_t kListed = 8;
  findings.wrong += found.wrong;
  const auto report = [&](const char* check, std::int64_t count, const char* meaning) {
    if (count == 0) return;
    findings.failed.emplace_back(check);
    findings.text += fmt::format("  [{}] {} of {} elements of {}: {}\n", check, count,
                                 gemm::offset(found.shape.m, 0, found.shape.n), names.what, meaning);
  };
  report(names.never_written, found.never_written, "what was there before the run is still there");
  report(names.nan, found.nan, "a NaN that the kernel computed");
  report(names.infinity, found.infinity, "infinite");
  report(names.value, found.value, exact ? "not the correctly rounded result" : "outside the error bound");
  std::size_t listed = 0;
  for (int row = 0; row < found.shape.m && listed < kListed; ++row) {
    if (found.row_wrong[at(row)] == 0) continue;
    for (int column = 0; column < found.shape.n && listed < kListed; ++column) {
      const Wrong wrong = wrong_at(at(gemm::offset(row, column, found.shape.n)));
      if (wrong == Wrong::kNot) continue;
      ++listed;
      if (samples != nullptr && wrong == Wrong::kValue) samples->push_back({row, column});
      findings.text += fmt::format("    ({}, {}) in tile ({}, {}): {}\n", row, column, row / found.tile.m,
                                   column / found.tile.n, describe(row, column));
    }
  }
  if (found.wrong > 0) findings.text += fmt::format("  Where: {}\n", describe_place(found));
}

std::string describe_number(gemm::bf16 low, gemm::bf16 high, gemm::bf16 got) {
  const std::string right = low.bits == high.bits
                                ? fmt::format("{}", gemm::to_float(low))
                                : fmt::format("{} .. {}", gemm::to_float(low), gemm::to_float(high));
  return fmt::format("got {}, expected {}",
                     got.bits == kPoison.bits ? "poison" : fmt::format("{}", gemm::to_float(got)), right);
}

/// What would aux_explain wrong elements of D, or "".
std::string aux_explain(const AuxRules& rules, const std::vector<Element>& samples, const gemm::bf16* d,
                        const gemm::TileShape& tile) {
  const double near = rules.d == gemm::Type::kBf16 ? 0x1p-7 : 0x1p-3;
  const auto as_stored = [&](double value, Mistake mistake) {
    if (rules.d == gemm::Type::kBf16) return value;
    return static_cast<double>(gemm::to_float(stored(rules, value, 0, mistake)));
  };
  if (samples.size() < 2) return "";
  const Inputs inputs(rules.base);
  std::vector<double> sums(at(rules.base.b.rows));
  std::vector<Mistake> left;
  for (const auto& one : kExplanations) left.push_back(one.mistake);
  for (const Element& sample : samples) {
    const int row = sample.row;
    const int column = sample.column;
    double norm = 0;
    const bool gates = rules.epilogue().auxiliary == Auxiliary::kGate;
    const bool whole = takes_top_k(rules);
    const int first = whole ? 0 : gates ? std::max(0, 2 * column - 1) : column;
    const int last = whole ? rules.base.b.rows - 1 : gates ? 2 * column + 1 : column;
    for (int n = first; n <= last; ++n) inputs.sum(row, n, sums[at(n)], norm);
    const double got =
        static_cast<double>(gemm::to_float(d[at(gemm::offset(row, column, rules.columns_of_d()))]));
    const double right =
        as_stored(result_at(rules, row, column, sums.data(), Mistake::kNone, tile), Mistake::kNone);
    left.erase(
        std::remove_if(left.begin(), left.end(),
                       [&](Mistake mistake) {
                         const double would =
                             as_stored(result_at(rules, row, column, sums.data(), mistake, tile), mistake);
                         return would == right || !(std::abs(would - got) <= near * std::abs(would) + 1e-30);
                       }),
        left.end());
  }
  for (const auto& one : kExplanations) {
    if (!left.empty() && one.mistake == left.front())
      return fmt::format("  These are the results that D has if {}.\n", one.meaning);
  }
  return "";
}

/// Of an inverted mask every element is wrong that is not 0 without one, and not only some.
bool nearly_all_of_a_tile(const Survey& found, const Element& one) {
  const int tile_row = one.row / found.tile.m;
  const int tile_column = one.column / found.tile.n;
  const std::int64_t height = std::min(found.tile.m, found.shape.m - tile_row * found.tile.m);
  const std::int64_t width = std::min(found.tile.n, found.shape.n - tile_column * found.tile.n);
  return found.tile_wrong[at(gemm::offset(tile_row, tile_column, found.tile_columns()))] * 10 >=
         height * width * 9;
}

/// Where the bit of a mask is taken that masks the elements of one column of a subtile, in the upper or the
/// lower eight of each 16 rows: so many rows below and columns behind its own.
struct BitPlace {
  int rows = 0;
  int columns = 0;
  friend bool operator==(const BitPlace&, const BitPlace&) = default;
};

/// Bits that mask elements in other places of a subtile of 64 columns than their own, by a rule that is that
/// of every subtile; or "". `kept(row, column)`: whether D has what is right without a mask there.
template <typename Kept>
std::string explain_mask_places(const AuxRules& rules, const Survey& found, const Kept& kept) {
  constexpr int kColumns = 64;  // of a subtile
  constexpr int kRows = 16;     // of a warp
  constexpr int kHalf = kRows / 2;
  constexpr int kMostRows = 128;
  const int rows = std::min(found.shape.m / kRows * kRows, kMostRows);
  BitPlace places[2][kColumns];
  for (int half = 0; half < 2; ++half) {
    for (int in_subtile = 0; in_subtile < kColumns; ++in_subtile) {
      std::vector<BitPlace> candidates{{0, 0}};
      for (int from = 0; from < kColumns; ++from) {
        for (const int below : {0, half == 0 ? kHalf : -kHalf}) {
          if (below != 0 || from != in_subtile) candidates.push_back({below, from - in_subtile});
        }
      }
      std::vector<int> misses(candidates.size());
      int seen = 0;
      for (int row = half * kHalf; row < rows; row += row % kHalf == kHalf - 1 ? kHalf + 1 : 1) {
        for (int first = 0; first + kColumns <= found.shape.n; first += kColumns) {
          if (first % found.tile.n % kColumns != 0 || first % found.tile.n + kColumns > found.tile.n)
            continue;
          const int column = first + in_subtile;
          const bool bit = kept(row, column);
          ++seen;
          for (std::size_t i = 0; i < candidates.size(); ++i)
            misses[i] += input_bit(rules, row + candidates[i].rows, column + candidates[i].columns) != bit;
        }
      }
      // What is 0 without a mask looks masked; any other place fits half of them.
      const auto best = std::min_element(misses.begin(), misses.end());
      const auto fitting =
          std::count_if(misses.begin(), misses.end(), [&](int one) { return one * 4 < seen; });
      if (seen < 2 * kRows || *best * 16 > seen || fitting != 1) return "";
      places[half][in_subtile] = candidates[at(best - misses.begin())];
    }
  }
  std::string list;
  for (int half = 0; half < 2; ++half) {
    for (int begin = 0; begin < kColumns;) {
      const BitPlace& place = places[half][begin];
      int end = begin + 1;
      while (end < kColumns && places[half][end] == place) ++end;
      if (!(place == BitPlace{})) {
        std::string where;
        if (place.rows != 0) where = place.rows > 0 ? "8 rows below" : "8 rows above";
        if (place.columns != 0)
          where += fmt::format("{}{} columns {}", where.empty() ? "" : " and ", std::abs(place.columns),
                               place.columns > 0 ? "after" : "before");
        list += fmt::format("{}in rows {} to {} of each 16, columns {} to {} use the bits {}",
                            list.empty() ? "" : "; ", half * kHalf, half * kHalf + kHalf - 1, begin, end - 1,
                            where);
      }
      begin = end;
    }
  }
  if (list.empty()) return "";
  return fmt::format(
      "  The bits of the mask are right but are read from the wrong places. In every 64 columns, {}. A bit "
      "must be looked up at the place in its word (by row, unit and column) at which it was packed.\n",
      list);
}

/// Units of 16 bytes that stand in each other's place in their rows, by a rule that depends on the row alone,
/// as when a tile is written with one swizzle and read with another; or "". `fits(row, from, to)`: the
/// element in column `to` is what is right in column `from`.
template <typename Fits>
std::string explain_units(const Survey& found, const char* what, const Fits& fits, int elements = 8) {
  constexpr int kUnits = 8;  // whose numbers a swizzle of up to 128 bytes changes
  constexpr int kRows = 64;  // that are looked at
  struct Row {
    int row;
    unsigned distances;  // bit x: unit u may hold what belongs to unit u ^ x
  };
  std::vector<Row> rows;
  for (int row = 0; row < found.shape.m && rows.size() < kRows; ++row) {
    if (found.row_wrong[at(row)] == 0) continue;
    Row one{row, 0xfe};
    for (int unit = 0; (unit + 1) * elements <= found.shape.n; ++unit) {
      unsigned here = 0;
      for (unsigned distance = 1; distance < kUnits; ++distance) {
        const int other = unit ^ static_cast<int>(distance);
        // What comes from behind the edge is not known.
        bool all = true;
        for (int i = 0; i < elements && (other + 1) * elements <= found.shape.n; ++i)
          all = all && fits(row, other * elements + i, unit * elements + i);
        if (all) here |= 1u << distance;
      }
      one.distances &= here;
    }
    if (one.distances == 0) return "";
    rows.push_back(one);
  }
  if (rows.size() < 2) return "";
  constexpr struct {
    const char* words;
    int shift;
    int modulus;
    const char* name;
  } kRules[] = {{"0", 0, 1, " (no swizzle)"},
                {"row % 8", 0, 8, " (the 128-byte swizzle)"},
                {"row / 2 % 4", 1, 4, " (the 64-byte swizzle)"},
                {"row / 4 % 2", 2, 2, " (the 32-byte swizzle)"},
                {"row % 4", 0, 4, ""},
                {"row % 2", 0, 2, ""},
                {"row / 2 % 8", 1, 8, ""},
                {"row / 4 % 4", 2, 4, ""},
                {"row / 8 % 8", 3, 8, ""}};
  const auto of = [](const auto& rule, int row) { return (row >> rule.shift) % rule.modulus; };
  std::string by;
  for (const auto& one : kRules) {
    for (const auto& other : kRules) {
      if (&one >= &other || !by.empty()) continue;
      const bool all = std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
        return (row.distances >> (of(one, row.row) ^ of(other, row.row)) & 1) != 0;
      });
      if (all)
        by = fmt::format(
            ", as if one side combined the unit's number by exclusive-or with {}{} and the other side with "
            "{}{}",
            one.words, one.name, other.words, other.name);
    }
  }
  int distance = 1;
  while ((rows.front().distances >> distance & 1) == 0) ++distance;
  return fmt::format(
      "  In each wrong row of {}, units of 16 bytes have changed places. In row {}, unit u holds what "
      "belongs to unit u ^ {}{}. Compare the swizzle of the store to shared memory with that of the tensor "
      "map.\n",
      what, rows.front().row, distance, by);
}

/// Subtiles of D that got another subtile of the tensor that is read, each place in a tile its own; or "".
std::string explain_subtiles(const AuxRules& rules, const Survey& found,
                             const std::function<Wrong(std::size_t)>& wrong_at, const gemm::bf16* d) {
  constexpr int kSide = 64;
  constexpr std::size_t kSamples = 16;
  const gemm::TileShape& tile = found.tile;
  if (!gemm::is_read(rules.epilogue().auxiliary) || tile.m % kSide != 0 || tile.n % kSide != 0) return "";
  const double near = rules.d == gemm::Type::kBf16 ? 0x1p-7 : 0x1p-3;
  const int high = tile.m / kSide;
  const int wide = tile.n / kSide;
  std::vector<std::vector<Element>> samples(at(std::int64_t{high} * wide));
  for (int row = 0; row < found.shape.m; ++row) {
    if (found.row_wrong[at(row)] == 0) continue;
    for (int column = row % 5; column < found.shape.n; column += 5) {  // of many rows
      std::vector<Element>& here = samples[at(row % tile.m / kSide * wide + column % tile.n / kSide)];
      if (here.size() < kSamples && wrong_at(at(gemm::offset(row, column, found.shape.n))) == Wrong::kValue)
        here.push_back({row, column});
    }
  }
  const Inputs inputs(rules.base);
  std::vector<double> sums(at(rules.base.b.rows));
  std::string list;
  bool exchanged = true;
  for (int place = 0; place < high * wide; ++place) {
    const std::vector<Element>& here = samples[at(place)];
    if (here.empty()) continue;
    if (here.size() < kSamples) return "";  // not the whole subtile
    const int i = place / wide;
    const int j = place % wide;
    std::vector<Element> fitting;  // subtiles, counted from the tile's first
    for (int from_i = -high; from_i < 2 * std::max(high, wide); ++from_i) {
      for (int from_j = -wide; from_j < 2 * std::max(high, wide); ++from_j) {
        const Element away{(from_i - i) * kSide, (from_j - j) * kSide};
        const bool fits = std::all_of(here.begin(), here.end(), [&](const Element& sample) {
          const auto [row, column] = sample;
          double norm = 0;
          inputs.sum(row, column, sums[at(column)], norm);
          const double would = result_at(rules, row, column, sums.data(), Mistake::kNone, tile, away);
          const auto got =
              static_cast<double>(gemm::to_float(d[at(gemm::offset(row, column, found.shape.n))]));
          return std::abs(would - got) <= near * std::abs(would) + 1e-30;
        });
        if (fits) fitting.push_back({from_i, from_j});
      }
    }
    if (fitting.size() != 1) return "";
    const Element from = fitting.front();
    exchanged = exchanged && from.row == j && from.column == i;
    list += fmt::format("{}({}, {}) used that of ({}, {})", list.empty() ? "" : ", ", i, j, from.row,
                        from.column);
  }
  if (list.empty()) return "";
  return fmt::format(
      "  Subtiles of 64 x 64 used the wrong subtile of the auxiliary tensor. In every tile, counted from its "
      "first subtile, {}.{}\n",
      list,
      exchanged
          ? " The row and the column of the subtile are exchanged where it is loaded or where it is read."
          : "");
}

/// Bits that are 1 only where one is that was stored before them in the same row of the tile; or "".
std::string explain_mask(const Survey& found, const AuxAcceptance& acceptance,
                         const std::function<Wrong(std::size_t)>& wrong_at) {
  const gemm::Shape& shape = found.shape;
  for (const int distance : {128, 64, 32}) {
    if (distance >= found.tile.n) continue;
    bool fits = found.value == found.wrong;
    for (int row = 0; row < shape.m && fits; ++row) {
      if (found.row_wrong[at(row)] == 0) continue;
      for (int column = 0; column < shape.n && fits; ++column) {
        const std::size_t index = at(gemm::offset(row, column, shape.n));
        if (wrong_at(index) == Wrong::kNot) continue;
        fits = acceptance.bits[index] == 1;  // and a 1 is there
        bool before = false;
        for (int back = distance; back <= column % found.tile.n; back += distance)
          before = before || (acceptance.bits[index - at(back)] & 2) != 0;
        fits = fits && before;
      }
    }
    if (fits)
      return fmt::format(
          "  Only bits that should be 0 are wrong, none of them is in the first {0} columns of a tile, and "
          "{0} columns (or a multiple of {0}) before each of them is a bit that is rightly 1: the words "
          "still hold the bits of earlier columns, and new bits are or-ed into them. Clear the words for "
          "every {0} columns.\n",
          distance);
  }
  constexpr int kRows = 64;  // of a subtile, which has as many columns
  // A 1 that is right at the same place of a subtile that was done before: of the same rows, or of those
  // above.
  const auto before = [&](int row, int column) {
    const int first_column = column / found.tile.n * found.tile.n + column % found.tile.n % kRows;
    const int end = std::min(shape.n, (column / found.tile.n + 1) * found.tile.n);
    for (int above = 0; above <= row % found.tile.m; above += kRows) {
      for (int other = first_column; other < (above == 0 ? column : end); other += kRows) {
        if ((acceptance.bits[at(gemm::offset(row - above, other, shape.n))] & 2) != 0) return true;
      }
    }
    return false;
  };
  bool fits = found.value == found.wrong;
  for (int row = 0; row < shape.m && fits; ++row) {
    for (int column = 0; column < shape.n && fits && found.row_wrong[at(row)] != 0; ++column) {
      const std::size_t index = at(gemm::offset(row, column, shape.n));
      fits = wrong_at(index) == Wrong::kNot || (acceptance.bits[index] == 1 && before(row, column));
    }
  }
  if (fits)
    return fmt::format(
        "  Only bits that should be 0 are wrong, and at the place of each of them, an earlier {0} x {0} "
        "subtile of the tile's warpgroup has a bit that is rightly 1: the words still hold the bits of "
        "earlier subtiles, and new bits are or-ed into them. Clear the words for every subtile.\n",
        kRows);
  return "";
}

/// What would explain all wrong elements of a pre-activation, or "".
std::string explain_linear(const AuxRules& rules, const Survey& found,
                           const std::function<Wrong(std::size_t)>& wrong_at, const AuxImage& image) {
  constexpr std::size_t kSamples = 8;
  std::vector<Element> samples;
  for (int row = 0; row < found.shape.m && samples.size() < kSamples; ++row) {
    for (int column = row % 5; column < found.shape.n && samples.size() < kSamples; column += 5) {
      if (wrong_at(at(gemm::offset(row, column, found.shape.n))) == Wrong::kValue)
        samples.push_back({row, column});
    }
  }
  const Inputs inputs(rules.base);
  for (const auto& [mistake, meaning] : kExplanations) {
    const bool fits = samples.size() > 1 &&
                      std::all_of(samples.begin(), samples.end(), [&, mistake = mistake](const Element& one) {
                        double sum = 0;
                        double norm = 0;
                        inputs.sum(one.row, one.column, sum, norm);
                        const double would = linear_at(rules, one.row, one.column, sum, mistake);
                        const auto got = static_cast<double>(
                            gemm::to_float(tensor_element(image, rules.pitch, one.row, one.column)));
                        return would != linear_at(rules, one.row, one.column, sum) &&
                               std::abs(would - got) <= 0x1p-7 * std::abs(would);
                      });
    if (fits) return fmt::format("  These are the elements that the auxiliary tensor has if {}.\n", meaning);
  }
  return "";
}

void check_tensor(Findings& findings, const AuxRules& rules, const AuxImage& image,
                  const AuxAcceptance& acceptance, const gemm::TileShape& tile) {
  const gemm::Shape shape = rules.shape();
  const Auxiliary auxiliary = rules.epilogue().auxiliary;
  const bool masked = auxiliary == Auxiliary::kMask;
  const auto place = [&](std::size_t index) {
    return Element{static_cast<int>(static_cast<std::int64_t>(index) / shape.n),
                   static_cast<int>(static_cast<std::int64_t>(index) % shape.n)};
  };
  const auto is_noise = [&](std::size_t byte, std::size_t bytes) {
    for (std::size_t i = byte; i < byte + bytes; ++i) {
      if (image.tensor[i] != aux_poison(auxiliary, i)) return false;
    }
    return true;
  };
  const std::vector<gemm::bf16>& high =
      acceptance.tensor_high.empty() ? acceptance.tensor_low : acceptance.tensor_high;
  const std::function<Wrong(std::size_t)> wrong_at = [&](std::size_t index) {
    const auto [row, column] = place(index);
    if (!masked)
      return classify(acceptance.tensor_low[index], high[index],
                      tensor_element(image, rules.pitch, row, column));
    const bool bit = mask_bit(image.tensor.data(), rules.pitch, row, column);
    if ((acceptance.bits[index] & (bit ? 2 : 1)) != 0) return Wrong::kNot;
    const std::size_t word = at(gemm::offset(row, column, rules.pitch) / gemm::kMaskWordBits) * 4;
    return is_noise(word, 4) ? Wrong::kNeverWritten : Wrong::kValue;
  };
  const auto describe = [&](int row, int column) {
    const std::size_t index = at(gemm::offset(row, column, shape.n));
    if (!masked)
      return describe_number(acceptance.tensor_low[index], high[index],
                             tensor_element(image, rules.pitch, row, column));
    return fmt::format("the bit is {}", mask_bit(image.tensor.data(), rules.pitch, row, column) ? 1 : 0);
  };
  const Survey found = survey(shape, tile, wrong_at);
  add_survey(findings, found, kOfTensor, acceptance.tensor_high.empty(), wrong_at, describe, nullptr);
  if (masked && found.wrong > 0) findings.text += explain_mask(found, acceptance, wrong_at);
  if (!masked && found.wrong > 0) {
    findings.text += explain_linear(rules, found, wrong_at, image);
    const auto fits = [&](int row, int from, std::int64_t flat) {
      const std::size_t right = at(gemm::offset(row, from, shape.n));
      return classify(acceptance.tensor_low[right], high[right],
                      tensor_element(image, rules.pitch, static_cast<int>(flat / rules.pitch),
                                     static_cast<int>(flat % rules.pitch))) == Wrong::kNot;
    };
    bool packed = rules.pitch > shape.n;  // the rows lie N apart
    for (int row = 0; row < shape.m && packed; ++row) {
      for (int column = 0; column < shape.n && packed; ++column)
        packed = fits(row, column, gemm::offset(row, column, shape.n));
    }
    if (packed)
      findings.text += fmt::format(
          "  Row r of the auxiliary tensor begins at element {0} r (N = {0}) but should begin at {1} r: it "
          "was stored with the row pitch of D instead of its own.\n",
          shape.n, rules.pitch);
    if (found.value > 0)
      findings.text += explain_units(found, kOfTensor.what, [&](int row, int from, int to) {
        return fits(row, from, gemm::offset(row, to, rules.pitch));
      });
  }
  if (acceptance.padding) return;
  // Between the rows.
  std::int64_t touched = 0;
  Element first{-1, 0};
  for (int row = 0; row < shape.m; ++row) {
    const int end = masked ? written_bits(rules) : shape.n;
    for (int column = shape.n; masked && column < end; ++column) {
      if (!mask_bit(image.tensor.data(), rules.pitch, row, column)) continue;
      if (is_noise(at(gemm::offset(row, column, rules.pitch) / gemm::kMaskWordBits) * 4, 4)) continue;
      if (touched++ == 0) first = {row, column};
    }
    const int bits = masked ? 1 : 16;
    for (std::int64_t byte = gemm::offset(row, end, rules.pitch) * bits / 8;
         byte < gemm::offset(row + 1, 0, rules.pitch) * bits / 8; ++byte) {
      if (image.tensor[at(byte)] == aux_poison(auxiliary, at(byte))) continue;
      if (touched++ == 0)
        first = {row, static_cast<int>(byte * 8 / bits - gemm::offset(row, 0, rules.pitch))};
    }
  }
  if (touched > 0) {
    findings.failed.emplace_back(kAuxPadding);
    findings.text += fmt::format(
        "  [{}] the auxiliary tensor has N = {} columns, but something was written after them, first at ({}, "
        "{})\n",
        kAuxPadding, shape.n, first.row, first.column);
  }
}

void check_matrix_input(Findings& findings, const char* check, const char* name, const InputRule& rule,
                        const std::vector<gemm::bf16>& values) {
  if (rule.rows == 0) return;
  InputDamage damage;
  compare_input(rule, 0, rule.rows, values.data(), damage);
  if (damage.count == 0) return;
  findings.failed.emplace_back(check);
  findings.text +=
      fmt::format("  [{}] the kernel wrote to its input {}: {} element{}, first ({}, {})\n", check, name,
                  damage.count, damage.count == 1 ? "" : "s", damage.row, damage.column);
}

/// C of a form whose beta is 0 is poison, and stays so.
void check_source(Findings& findings, const AuxRules& rules, const AuxImage& image) {
  if (image.c.empty()) return;
  check_matrix_input(findings, kInputC, "C", rules.base.c, image.c);
  if (rules.base.c.rows > 0 ||
      std::all_of(image.c.begin(), image.c.end(), [](gemm::bf16 one) { return one.bits == kPoison.bits; }))
    return;
  findings.failed.emplace_back(kInputC);
  findings.text += fmt::format("  [{}] the kernel wrote to its input C, although beta is 0\n", kInputC);
}

/// Smaller integers, where exact ones are summed up once more, or shall be equal now and then.
void make_small(AuxRules& rules, const gemm::Shape& shape) {
  const gemm::Reduction reduction = rules.epilogue().reduction;
  const double terms = reduction == gemm::Reduction::kColumnSums ? shape.m : shape.n;
  int range = rules.base.a.range;
  const auto typical = [&](int r) { return static_cast<double>(r) * r * std::sqrt(shape.k); };
  if (reduction == gemm::Reduction::kTopKSoftmax) range = 1;
  while (gemm::is_sum(reduction) && range > 1 && typical(range) * terms >= 0x1p22) --range;
  if (range == rules.base.a.range || rules.base.a.pattern == Pattern::kIdentity) return;
  rules.base.a.range = rules.base.b.range = range;
  if (rules.base.bias.rows == 0 || !is_exact(rules.base.a.pattern)) return;
  rules.base.bias.shift = 0;
  rules.base.bias.range = std::clamp(static_cast<int>(typical(range)), 1, 256);
}

/// The rows of A and B that are special where there is a reduction, so that what is lost shows. Of a row of D
/// that is summed up, or whose largest are taken, none of the columns is NaN everywhere, and of a column no
/// row. The largest magnitude is to find a NaN that is the only one of its tile: infinity times 0.
void choose_specials(AuxRules& rules) {
  constexpr unsigned kSubnormal = bit_of(Special::kSubnormal);
  constexpr unsigned kSmall = kSubnormal | bit_of(Special::kZero);
  constexpr unsigned kInfinite = bit_of(Special::kInfinity) | bit_of(Special::kMinusInfinity);
  // What infinity times a gate is depends on whether the gate is 0 in binary32.
  if (rules.epilogue().auxiliary == Auxiliary::kGate) {
    rules.base.a.kinds = rules.base.b.kinds = ~kInfinite;
    rules.base.bias.special = false;
  }
  switch (rules.epilogue().reduction) {
    case gemm::Reduction::kNone:
      return;
    case gemm::Reduction::kColumnSums:
      rules.base.a.kinds = kSmall;
      rules.base.b.kinds = ~kSubnormal;  // atomics make 0 of a sum that is subnormal
      break;
    case gemm::Reduction::kRowSums:
      rules.base.a.kinds = ~kSubnormal;
      rules.base.b.kinds = kSmall;
      break;
    case gemm::Reduction::kTopKSoftmax:
      rules.base.b.kinds = kSmall;
      break;
    case gemm::Reduction::kAmax:
      rules.base.a.kinds = kInfinite | kSubnormal;
      rules.base.b.kinds = kSmall;
      break;
  }
  rules.base.bias.special = false;  // step 33 promises nothing of such a bias
}

/// What a kernel computes in a row below the last one of D, where the product is 0; 0 where another tensor
/// has a part.
double padding_value(const AuxRules& rules, int column) {
  if (rules.epilogue().auxiliary != Auxiliary::kNone || rules.epilogue().bias != gemm::Bias::kColumn)
    return 0;
  return epilogue_value(rules.epilogue(), 0, 0, bias_at(rules.base, 0, column));
}

/// Of exact elements: alpha and beta are multiples of 2^-4 there.
double unit_of(const gemm::Epilogue& epilogue) {
  const auto is_whole = [](float factor) { return factor == std::floor(factor); };
  return is_whole(epilogue.alpha) && is_whole(epilogue.beta) ? 1 : 0x1p-4;
}

}  // namespace

std::size_t AuxRules::tensor_bytes() const {
  const std::int64_t elements = gemm::offset(base.a.rows, 0, pitch);
  return static_cast<std::size_t>(gemm::is_mask(epilogue().auxiliary) ? elements / 8 : 2 * elements);
}

AuxRules aux_rules(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                   const gemm::Epilogue& epilogue, int pitch, int bias_length, gemm::Type d, int c_pitch) {
  const Auxiliary auxiliary = epilogue.auxiliary;
  AuxRules rules;
  if (gemm::is_read(auxiliary) || gemm::is_written(auxiliary)) {
    const int least = gemm::is_mask(auxiliary) ? gemm::ceil_div(shape.n, kMaskPitch) * kMaskPitch : shape.n;
    rules.pitch = pitch > 0 ? pitch : least;
  }
  gemm::Epilogue asked = epilogue;
  asked.auxiliary = Auxiliary::kNone;
  const bool is_residual = auxiliary == Auxiliary::kResidual;
  if (is_residual) asked.beta = 1;  // a residual's numbers are C's
  rules.base = input_rules(shape, pattern, seed, asked, is_residual ? rules.pitch : c_pitch, bias_length);
  if (is_residual) std::swap(rules.tensor, rules.base.c);
  rules.base.epilogue = epilogue;
  rules.base.c.special =
      pattern == Pattern::kSpecial ||
      pattern == (epilogue.reduction == gemm::Reduction::kNone ? Pattern::kExact : Pattern::kArange);
  choose_specials(rules);
  if (auxiliary == Auxiliary::kPreActivationBackward) {
    const bool uniform = pattern == Pattern::kUniform;
    rules.tensor =
        input_rule(uniform ? Pattern::kUniform : Pattern::kNormal, seed, Operand::kC, shape.m, rules.pitch);
    rules.tensor.shift = uniform ? 1 : 0;
  }
  if (auxiliary == Auxiliary::kMaskBackward)
    rules.tensor.key = input_rule(pattern, seed, Operand::kC, 1, 1).key;
  make_small(rules, shape);
  rules.d = d;
  if (d == gemm::Type::kBf16) return rules;
  // Half of what e4m3 holds is where a sum of K products typically is: that of uniform numbers is a third.
  constexpr double kHalf = 224;
  const double of_factors = is_exact(pattern) ? rules.base.a.range * rules.base.b.range : 1.0;
  const double typical =
      of_factors * std::sqrt(shape.k) / (pattern == Pattern::kNormal ? 1 : 3) * std::abs(epilogue.alpha);
  const double scale = kHalf / std::max(typical, 0x1p-10);
  rules.d_scale = static_cast<float>(is_exact(pattern) ? std::exp2(std::floor(std::log2(scale))) : scale);
  return rules;
}

std::vector<std::uint8_t> aux_input(const AuxRules& rules) {
  std::vector<std::uint8_t> bytes(rules.tensor_bytes());
  if (gemm::is_mask(rules.epilogue().auxiliary)) {
    for (std::size_t word = 0; word < bytes.size() / 4; ++word) {
      const std::uint32_t bits = mask_word(rules, static_cast<std::int64_t>(word));
      std::memcpy(&bytes[4 * word], &bits, sizeof bits);
    }
  } else {
    const std::vector<gemm::bf16> values = host_input(rules.tensor);
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

std::uint8_t aux_poison(gemm::Auxiliary auxiliary, std::size_t index) {
  return gemm::is_mask(auxiliary) ? static_cast<std::uint8_t>(mix64(index)) : kPoisonByte;
}

bool mask_bit(const std::uint8_t* mask, int pitch, int row, int column) {
  return (mask[at(gemm::offset(row, column, pitch) / 8)] >> (column % 8) & 1) != 0;
}

double gelu_derivative(double z) {
  const double scale = std::sqrt(2 / std::numbers::pi);
  const double twice = 2 * scale * (z + 0.044715 * z * z * z);
  const double s = 1 / (1 + std::exp(-twice));
  const double rest = 1 / (1 + std::exp(twice));  // 1 - s, with all digits
  const double bend = s * rest == 0 ? 0 : 2 * z * s * rest * scale * (1 + 3 * 0.044715 * z * z);
  return s + bend;
}

double gelu_derivative_error(double z) {
  constexpr double kFarthest = 88;
  const double scale = std::sqrt(2 / std::numbers::pi);
  const double twice = 2 * scale * (z + 0.044715 * z * z * z);
  const double d = (3 * std::min(std::abs(twice), kFarthest) + 4) * 0x1p-23;
  const double s = 1 / (1 + std::exp(-twice));
  const double rest = 1 / (1 + std::exp(twice));
  const double bend = 2 * std::abs(z) * scale * (1 + 3 * 0.044715 * z * z) * s * rest;
  return s * (rest * d + 0x1p-20) + (std::isnan(bend) ? 0 : bend) * (3 * d + 0x1p-20) + 0x1p-100;
}

AuxAcceptance aux_acceptance(const AuxRules& rules, const Allowance& allowance) {
  constexpr double kHalfUnit = 0x1p-8;  // of bf16
  const gemm::Shape shape = rules.shape();
  const gemm::Epilogue& epilogue = rules.epilogue();
  const Pattern pattern = rules.base.a.pattern;
  const bool exact = is_exact(pattern, epilogue) && !allowance.product;
  const bool exact_reduction = exact && !allowance.summands && !allowance.reduction;
  const bool linear_exact = is_exact(pattern, without_activation(epilogue));
  std::vector<float> norm;
  const std::vector<double> sums = sums_of_rules(rules, is_exact(pattern) ? nullptr : &norm);
  const double error_per_norm = accumulation_error(shape.k, 1);
  AuxAcceptance acceptance;
  acceptance.padding = allowance.padding;
  const int columns = rules.columns_of_d();
  const auto elements = at(gemm::offset(shape.m, 0, columns));
  const bool has_tensor = epilogue.auxiliary == Auxiliary::kPreActivation;
  acceptance.low.resize(elements);
  if (!exact) acceptance.high.resize(elements);
  if (has_tensor) acceptance.tensor_low.resize(elements);
  if (has_tensor && !linear_exact) acceptance.tensor_high.resize(elements);
  if (epilogue.auxiliary == Auxiliary::kMask) acceptance.bits.resize(elements);
  normal_quantiles();  // made before threads ask for it
  gemm::Epilogue logits = epilogue;
  logits.reduction = gemm::Reduction::kNone;
  const bool exact_logits = is_exact(pattern, logits) && !allowance.product;
  const bool reduces = gemm::is_written(epilogue.reduction);
  ReducedReference reference(epilogue.reduction, shape);
  std::mutex mutex;
  parallel_for(shape.m, row_grain(shape.n), [&](std::int64_t begin, std::int64_t end) {
    std::optional<ReducedReference> own;
    if (reduces && !reference.is_by_row()) own.emplace(epilogue.reduction, shape);
    for (int row = static_cast<int>(begin); row < end; ++row) {
      const double* of_row = &sums[at(gemm::offset(row, 0, shape.n))];
      const auto error = [&](int column) {
        return norm.empty()
                   ? 0
                   : error_per_norm * static_cast<double>(norm[at(gemm::offset(row, column, shape.n))]);
      };
      std::vector<Interval> whole_row;
      for (int column = 0; takes_top_k(rules) && column < columns; ++column) {
        const double x = linear_at(rules, row, column, of_row[column]);
        whole_row.push_back(exact_logits ? Interval{x, x}
                                         : result_interval(rules, row, column, of_row, error, allowance));
      }
      if (takes_top_k(rules)) whole_row = top_k_intervals(whole_row, epilogue.top_k);
      for (int column = 0; column < columns; ++column) {
        const std::size_t index = at(gemm::offset(row, column, columns));
        Interval interval;
        double value = 0;
        const bool may_be_special = pattern == Pattern::kSpecial && !takes_top_k(rules);
        bool special = !std::isfinite(source_of(rules, row, column));
        if (exact || reduces || special || may_be_special)
          value = result_at(rules, row, column, of_row, Mistake::kNone, gemm::TileShape{1, 1, 1});
        special = special || (may_be_special && !std::isfinite(value));
        if (special) interval = {value, value};
        if (special && !acceptance.high.empty()) acceptance.high[index] = stored(rules, value);
        if (exact || special) {
          acceptance.low[index] = stored(rules, value);
        } else {
          interval = whole_row.empty() ? result_interval(rules, row, column, of_row, error, allowance)
                                       : whole_row[at(column)];
          acceptance.low[index] = stored(rules, interval.low, -1);
          acceptance.high[index] = stored(rules, interval.high, 1);
        }
        if (reduces) {
          Uncertain element{value, 0, 0};
          if (!exact && !special) {
            const auto farthest = [&](const Interval& range) {
              return std::max({range.high - value, value - range.low, 0.0});
            };
            element.systematic = farthest(result_interval(
                rules, row, column, of_row, [](int) { return 0.0; }, allowance));
            element.independent = std::max(0.0, farthest(interval) - element.systematic);
          }
          if (allowance.summands)
            element.independent += kHalfUnit * (std::abs(value) + element.independent + element.systematic);
          (own ? *own : reference).add(row, column, element);
        }
        if (!gemm::is_written(epilogue.auxiliary)) continue;
        const double x = linear_at(rules, row, column, of_row[column]);
        interval = {x, x};
        if (!linear_exact && !special && std::isfinite(x))
          interval = accepted_results(without_activation(epilogue), of_row[column], error(column),
                                      source_of(rules, row, column), bias_at(rules.base, row, column));
        if (!acceptance.bits.empty())
          acceptance.bits[index] =
              static_cast<std::uint8_t>((interval.low > 0 ? 0 : 1) | (interval.high > 0 ? 2 : 0));
        if (!has_tensor) continue;
        acceptance.tensor_low[index] = rounded(interval.low);
        if (!linear_exact) acceptance.tensor_high[index] = rounded(interval.high);
      }
    }
    if (!own) return;
    const std::lock_guard lock(mutex);
    reference.merge(*own);
  });
  if (!reduces) return acceptance;
  for (int column = 0; column < columns; ++column)
    reference.add_padding(column, padding_value(rules, column));
  acceptance.reduced = reference.acceptance(exact_reduction, unit_of(epilogue));
  if (allowance.reduction) {
    for (std::size_t i = 0; i < acceptance.reduced.low.size(); ++i) {
      float& low = acceptance.reduced.low[i];
      float& high = acceptance.reduced.high[i];
      low -= static_cast<float>(kHalfUnit) * std::abs(low) * 1.001F;
      high += static_cast<float>(kHalfUnit) * std::abs(high) * 1.001F;
    }
  }
  return acceptance;
}

AuxImage correct_image(const AuxRules& rules) {
  AuxImage image = image_before(rules);
  compute_outputs(image, rules, Mistake::kNone, {1, 1, 1});
  return image;
}

namespace {

/// Rows of the last tiles that are not of D.
int padding_rows(const gemm::Shape& shape, const gemm::TileShape& tile) {
  return gemm::ceil_div(shape.m, tile.m) * tile.m - shape.m;
}

/// ", and all sums": what a summary says of the reduction.
std::string also_reduced(const AuxRules& rules, const AuxAcceptance& acceptance) {
  if (!gemm::is_written(rules.epilogue().reduction)) return "";
  const auto count = static_cast<std::int64_t>(acceptance.reduced.low.size());
  return fmt::format("; {} of {} results of the reduction are exact", acceptance.reduced.exact, count);
}

}  // namespace

CheckResult verify(const AuxRules& rules, const AuxImage& image, const AuxAcceptance& acceptance,
                   const gemm::TileShape& tile) {
  const gemm::Shape shape = rules.shape();
  const gemm::Epilogue& epilogue = rules.epilogue();
  const int columns = rules.columns_of_d();
  Findings findings;
  const std::vector<gemm::bf16>& high = acceptance.high.empty() ? acceptance.low : acceptance.high;
  const std::function<Wrong(std::size_t)> wrong_at = [&](std::size_t index) {
    return classify(acceptance.low[index], high[index], image.d[index]);
  };
  const auto describe = [&](int row, int column) {
    const std::size_t index = at(gemm::offset(row, column, columns));
    return describe_number(acceptance.low[index], high[index], image.d[index]);
  };
  const gemm::TileShape tile_of_d{tile.m, epilogue.columns_of_d(tile.n), tile.k};
  std::vector<Element> samples;
  const Survey found = survey({shape.m, columns, shape.k}, tile_of_d, wrong_at);
  add_survey(findings, found, kOfD, acceptance.high.empty(), wrong_at, describe, &samples);
  if (found.value > 0) {
    std::string places;
    if (epilogue.auxiliary == Auxiliary::kMaskBackward && !samples.empty() &&
        !nearly_all_of_a_tile(found, samples.front()))
      places = explain_mask_places(rules, found, [&](int row, int column) {
        return (image.d[at(gemm::offset(row, column, columns))].bits & 0x7fff) != 0;
      });
    if (places.empty()) places = aux_explain(rules, samples, image.d.data(), tile_of_d);
    if (places.empty()) places = explain_subtiles(rules, found, wrong_at, image.d.data());
    findings.text += places;
    findings.text += explain_units(
        found, kOfD.what,
        [&](int row, int from, int to) {
          const std::size_t right = at(gemm::offset(row, from, columns));
          return classify(acceptance.low[right], high[right], image.d[at(gemm::offset(row, to, columns))]) ==
                 Wrong::kNot;
        },
        16 / gemm::bytes_of(rules.d));
  }
  if (gemm::is_written(epilogue.auxiliary)) check_tensor(findings, rules, image, acceptance, tile);
  if (gemm::is_written(epilogue.reduction))
    check_reduced(epilogue.reduction, acceptance.reduced, padding_rows(shape, tile), image.reduced,
                  findings.failed, findings.text, tile_of_d.n);
  if (epilogue.reduction == gemm::Reduction::kAmax && rules.d_scale != 1) {
    const float unscaled = image.reduced.front() / rules.d_scale;
    const float low = acceptance.reduced.low.front() * (1 - 0x1p-20F);
    if (image.reduced.front() > acceptance.reduced.high.front() || image.reduced.front() < low) {
      if (low <= unscaled && unscaled <= acceptance.reduced.high.front() * (1 + 0x1p-20F))
        findings.text +=
            "  This is the right result times the scale of D: the largest magnitude is that of v before it "
            "is scaled.\n";
    }
  }

  const std::vector<std::uint8_t> band = guard_band();
  const auto check_band = [&](const std::vector<std::uint8_t>& bytes, const char* check, const char* where) {
    if (bytes == band) return;
    findings.failed.emplace_back(check);
    findings.text += fmt::format("  [{}] bytes {} were written\n", check, where);
  };
  check_band(image.before, kGuardBefore, "before D");
  check_band(image.after, kGuardAfter, "after D");
  check_band(image.tensor_before, kAuxGuardBefore, "before the auxiliary tensor");
  check_band(image.tensor_after, kAuxGuardAfter, "after the auxiliary tensor");
  check_band(image.reduced_before, kReducedGuardBefore, "before the result of the reduction");
  check_band(image.reduced_after, kReducedGuardAfter, "after the result of the reduction");
  check_matrix_input(findings, kInputA, "A", rules.base.a, image.a);
  check_matrix_input(findings, kInputB, "B", rules.base.b, image.b);
  check_matrix_input(findings, kInputBias, "bias", rules.base.bias, image.bias);
  check_source(findings, rules, image);
  if (gemm::is_read(epilogue.auxiliary) && image.tensor != aux_input(rules)) {
    findings.failed.emplace_back(kInputAux);
    findings.text += fmt::format("  [{}] the kernel wrote to its input, the auxiliary tensor\n", kInputAux);
  }

  CheckResult result;
  result.ok = findings.failed.empty();
  result.failed = findings.failed;
  const std::string pattern = to_string(rules.base.a.pattern);
  const std::int64_t total = gemm::offset(shape.m, 0, columns);
  const char* const also = gemm::is_written(epilogue.auxiliary) ? ", and so does the auxiliary tensor" : "";
  const char* const within =
      gemm::is_written(epilogue.auxiliary) ? ", and the auxiliary tensor is right as well" : "";
  if (result.ok) {
    result.summary =
        acceptance.high.empty()
            ? fmt::format("{}: all {} elements match bit for bit{}", pattern, total, also)
            : fmt::format("{}: all {} elements within the error bound{}", pattern, total, within);
    result.summary += also_reduced(rules, acceptance);
    return result;
  }
  result.summary = fmt::format("{}: failed {}; {} elements are wrong", pattern,
                               fmt::join(result.failed, ", "), findings.wrong);
  result.report =
      fmt::format("wrong: {}, {}, pattern {}, seed {}, tile {} x {} x {}\n{}", to_string(shape),
                  to_string(epilogue), pattern, rules.base.a.seed, tile.m, tile.n, tile.k, findings.text);
  return result;
}

namespace {

template <Mistake kMistake>
void computed_wrongly(AuxImage& image, const AuxRules& rules, const gemm::TileShape& tile) {
  const std::vector<float> reduced = image.reduced;
  compute_outputs(image, rules, kMistake, {tile.m, rules.epilogue().columns_of_d(tile.n), tile.k});
  if (!reduced.empty()) image.reduced = reduced;  // the check of D alone is to find it
}

void aux_miss_last_tile(AuxImage& image, const AuxRules& rules, const gemm::TileShape& tile) {
  const int columns = rules.columns_of_d();
  const int width = rules.epilogue().columns_of_d(tile.n);
  for (int row = (rules.shape().m - 1) / tile.m * tile.m; row < rules.shape().m; ++row) {
    for (int column = (columns - 1) / width * width; column < columns; ++column)
      image.d[at(gemm::offset(row, column, columns))] = kPoison;
  }
}

void aux_miss_last_tile_of_tensor(AuxImage& image, const AuxRules& rules, const gemm::TileShape& tile) {
  const Auxiliary auxiliary = rules.epilogue().auxiliary;
  const int bits = gemm::is_mask(auxiliary) ? 1 : 16;
  const gemm::Shape shape = rules.shape();
  const int begin = (shape.n - 1) / tile.n * tile.n;
  const int end = gemm::is_mask(auxiliary) ? written_bits(rules) : shape.n;
  for (int row = (shape.m - 1) / tile.m * tile.m; row < shape.m; ++row) {
    for (std::int64_t byte = gemm::offset(row, begin, rules.pitch) * bits / 8;
         byte < gemm::offset(row, end, rules.pitch) * bits / 8; ++byte)
      image.tensor[at(byte)] = aux_poison(auxiliary, at(byte));
  }
}

void aux_flip_one_bit(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  if (rules.d == gemm::Type::kBf16) {
    image.d[image.d.size() / 2].bits ^= 1;
    return;
  }
  // The lowest bit of an e4m3, or, where that would make a NaN of 448, the one above it.
  gemm::bf16& element = image.d[image.d.size() / 2];
  const gemm::e4m3 bits = gemm::to_e4m3(gemm::to_float(element));
  element = gemm::to_bf16(gemm::to_float(
      gemm::e4m3{static_cast<std::uint8_t>(bits.bits ^ ((bits.bits & 0x7f) == 0x7e ? 2 : 1))}));
}

/// The first NaN becomes 0, as with a maximum that ignores NaN.
template <std::vector<gemm::bf16> AuxImage::*kMember>
void swallow_nan(AuxImage& image, const AuxRules&, const gemm::TileShape&) {
  std::vector<gemm::bf16>& values = image.*kMember;
  const auto nan =
      std::find_if(values.begin(), values.end(), [](gemm::bf16 one) { return (one.bits & 0x7fff) > 0x7f80; });
  if (nan != values.end()) *nan = {0};
}

/// As if D were written in one half of its range, and too large became a NaN.
void aux_overflow(AuxImage& image, const AuxRules&, const gemm::TileShape&) {
  image.d[image.d.size() / 3] = gemm::to_bf16(std::numeric_limits<float>::quiet_NaN());
}
void reduced_of_scaled(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  for (float& one : image.reduced) one *= rules.d_scale;
}
void aux_flip_one_bit_of_tensor(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  const int row = rules.shape().m / 2;
  const int bits = gemm::is_mask(rules.epilogue().auxiliary) ? 1 : 16;
  image.tensor[at(gemm::offset(row, 8, rules.pitch) * bits / 8)] ^= 1;
}

/// The pre-activation with a mistake that D does not have.
template <Mistake kMistake>
void linear_computed_wrongly(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  const gemm::Shape shape = rules.shape();
  const std::vector<double> sums = sums_of_rules(rules, nullptr);
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      const double sum = sums[at(gemm::offset(row, column, shape.n))];
      put_element(image, rules.pitch, row, column, rounded(linear_at(rules, row, column, sum, kMistake)));
    }
  }
}

/// D and the tensor are exchanged, as if x were stored behind the activation.
void store_the_result(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  const gemm::Shape shape = rules.shape();
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column)
      put_element(image, rules.pitch, row, column, image.d[at(gemm::offset(row, column, shape.n))]);
  }
}

/// The bits of each whole word the other way round.
void reverse_words(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  const gemm::Shape shape = rules.shape();
  const AuxImage right = image;
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n / 32 * 32; ++column)
      put_bit(image.tensor, rules.pitch, row, column / 32 * 32 + 31 - column % 32,
              mask_bit(right.tensor.data(), rules.pitch, row, column));
  }
}
void invert_mask(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  for (int row = 0; row < rules.shape().m; ++row) {
    for (int column = 0; column < rules.shape().n; ++column)
      put_bit(image.tensor, rules.pitch, row, column,
              !mask_bit(image.tensor.data(), rules.pitch, row, column));
  }
}
/// A bit behind N, in the word that N ends in; a word behind that where it ends with N.
void aux_write_padding(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  if (gemm::is_mask(rules.epilogue().auxiliary)) {
    const int n = rules.shape().n;
    put_bit(image.tensor, rules.pitch, 1, n, !mask_bit(image.tensor.data(), rules.pitch, 1, n));
    return;
  }
  put_element(image, rules.pitch, 1, rules.shape().n, {0});
}

void of_other_inputs(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  AuxRules other =
      aux_rules(rules.shape(), rules.base.a.pattern, rules.base.a.seed + 1, rules.epilogue(), rules.pitch);
  other.base.c = rules.base.c;  // whose special elements have consequences of their own
  image.tensor = correct_image(other).tensor;
}

using AuxDamage = decltype(AuxFault::damage);
constexpr AuxDamage kAuxWriteBehind = flip_bit<&AuxImage::after, Place::kFirst>;
constexpr AuxDamage kAuxWriteInFront = flip_bit<&AuxImage::before, Place::kLast>;
constexpr AuxDamage kAuxWriteBehindTensor = flip_bit<&AuxImage::tensor_after, Place::kFirst>;
constexpr AuxDamage kAuxWriteInFrontOfTensor = flip_bit<&AuxImage::tensor_before, Place::kLast>;
constexpr AuxDamage kAuxClobberA = flip_bit<&AuxImage::a, Place::kMiddle>;
constexpr AuxDamage kAuxClobberB = flip_bit<&AuxImage::b, Place::kMiddle>;
constexpr AuxDamage kAuxClobberBias = flip_bit<&AuxImage::bias, Place::kMiddle>;
constexpr AuxDamage kAuxClobberC = flip_bit<&AuxImage::c, Place::kMiddle>;
constexpr AuxDamage kAuxClobberTensor = flip_bit<&AuxImage::tensor, Place::kMiddle>;

void change_lowest_bit(float& value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits ^= 1;
  std::memcpy(&value, &bits, sizeof bits);
}

/// The results of the reduction from other elements: (row, column, element) gives what is added there.
template <typename Element>
void reduce_again(AuxImage& image, const AuxRules& rules, const Element& element) {
  const gemm::Shape shape = rules.shape();
  const std::vector<double> sums = sums_of_rules(rules, nullptr);
  ReducedReference reference(rules.epilogue().reduction, shape);
  for (int row = 0; row < shape.m; ++row) {
    const double* of_row = &sums[at(gemm::offset(row, 0, shape.n))];
    for (int column = 0; column < shape.n; ++column) {
      const double value = result_at(rules, row, column, of_row, Mistake::kNone, {1, 1, 1});
      reference.add(row, column, {element(row, column, value), 0, 0});
    }
  }
  image.reduced = reference.values();
}

void reduced_flip_one_bit(AuxImage& image, const AuxRules&, const gemm::TileShape&) {
  change_lowest_bit(image.reduced[image.reduced.size() / 2]);
}
void reduced_never_written(AuxImage& image, const AuxRules&, const gemm::TileShape&) {
  std::memset(&image.reduced.back(), kPoisonByte, sizeof(float));
}
void reduced_nan(AuxImage& image, const AuxRules&, const gemm::TileShape&) {
  image.reduced.front() = std::numeric_limits<float>::quiet_NaN();
}
void reduced_twice(AuxImage& image, const AuxRules&, const gemm::TileShape&) {
  for (float& one : image.reduced) one *= 2;
}
/// The tiles of the last row of tiles, or the last column, have no part.
void reduced_without_last_tiles(AuxImage& image, const AuxRules& rules, const gemm::TileShape& tile) {
  const gemm::Shape shape = rules.shape();
  const bool by_row = rules.epilogue().reduction == gemm::Reduction::kRowSums;
  const int rows = by_row ? shape.m : (shape.m - 1) / tile.m * tile.m;
  const int columns = by_row ? (shape.n - 1) / tile.n * tile.n : shape.n;
  reduce_again(image, rules,
               [&](int row, int column, double value) { return row < rows && column < columns ? value : 0; });
}
void reduced_without_last_element(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  const gemm::Shape shape = rules.shape();
  const bool by_row = rules.epilogue().reduction == gemm::Reduction::kRowSums;
  reduce_again(image, rules, [&](int row, int column, double value) {
    return (by_row ? column + 1 < shape.n : row + 1 < shape.m) ? value : 0;
  });
}
void reduced_of_rounded(AuxImage& image, const AuxRules& rules, const gemm::TileShape&) {
  reduce_again(image, rules,
               [](int, int, double value) { return static_cast<double>(gemm::to_float(rounded(value))); });
}
void reduced_with_padding(AuxImage& image, const AuxRules& rules, const gemm::TileShape& tile) {
  for (int column = 0; column < rules.shape().n; ++column)
    image.reduced[at(column)] +=
        static_cast<float>(padding_rows(rules.shape(), tile) * padding_value(rules, column));
}
/// As if one lane had given away the sum of its neighbour.
void reduced_neighbours(AuxImage& image, const AuxRules&, const gemm::TileShape&) {
  std::rotate(image.reduced.begin(), image.reduced.begin() + 1, image.reduced.end());
}
constexpr AuxDamage kWriteInFrontOfReduced = flip_bit<&AuxImage::reduced_before, Place::kLast>;
constexpr AuxDamage kWriteBehindReduced = flip_bit<&AuxImage::reduced_after, Place::kFirst>;

/// Those of a reduction.
void add_reduced_faults(std::vector<AuxFault>& faults, const gemm::Epilogue& epilogue) {
  const auto add = [&](const char* name, const char* check, const char* phrase, bool exact_only,
                       auto damage) {
    faults.push_back({name, check, phrase, exact_only, damage});
  };
  if (epilogue.reduction == gemm::Reduction::kTopKSoftmax) {
    add("one more of a row", kValue, "k + 1 elements of a row", false, computed_wrongly<Mistake::kOneMore>);
    add("shares of the whole row", kValue, "the sum over the whole row", false,
        computed_wrongly<Mistake::kSumOfAll>);
    add("ties from the end", kValue, "of higher columns", true, computed_wrongly<Mistake::kTiesFromTheEnd>);
    add("ties counted once", kValue, "count once", true, computed_wrongly<Mistake::kTiesOnce>);
  }
  if (!gemm::is_written(epilogue.reduction)) return;
  const bool is_exact_result = is_exact(Pattern::kExact, epilogue);
  if (is_exact_result) {
    add("one bit of a result", kReducedValue, "outside the allowed range", true, reduced_flip_one_bit);
    add("reduced after rounding", kReducedValue, "rounded elements of D", true, reduced_of_rounded);
  }
  add("a result never written", kReducedNeverWritten, "still there", false, reduced_never_written);
  add("a NaN", kReducedNan, "a NaN that", false, reduced_nan);
  add("added to what was there", kReducedValue, "twice the right", false, reduced_twice);
  add("a byte before the results", kReducedGuardBefore, "before the result", false, kWriteInFrontOfReduced);
  add("a byte after the results", kReducedGuardAfter, "after the result", false, kWriteBehindReduced);
  if (!gemm::is_sum(epilogue.reduction)) return;
  add("the last tiles' sums missing", kReducedValue, "outside the allowed range", false,
      reduced_without_last_tiles);
  add("the last row or column missing", kReducedValue, "outside the allowed range", false,
      reduced_without_last_element);
  add("the neighbour's sum", kReducedValue, "outside the allowed range", false, reduced_neighbours);
  if (epilogue.reduction == gemm::Reduction::kColumnSums && epilogue.auxiliary == Auxiliary::kNone &&
      epilogue.bias == gemm::Bias::kColumn)
    add("rows outside D in the sums", kReducedValue, "outside D", false, reduced_with_padding);
}

}  // namespace

std::vector<AuxFault> aux_faults(const gemm::Epilogue& epilogue, gemm::Type d) {
  std::vector<AuxFault> faults{{"missing last tile", kNeverWritten, "still there", false, aux_miss_last_tile},
                               {"a byte after D", kGuardAfter, "after D", false, kAuxWriteBehind},
                               {"a byte before D", kGuardBefore, "before D", false, kAuxWriteInFront},
                               {"A overwritten", kInputA, "wrote to its input A", false, kAuxClobberA},
                               {"B overwritten", kInputB, "wrote to its input B", false, kAuxClobberB}};
  const auto add = [&](const char* name, const char* check, const char* phrase, bool exact_only,
                       auto damage) {
    faults.push_back({name, check, phrase, exact_only, damage});
  };
  if (is_exact(Pattern::kExact, epilogue))
    add("one bit of one element", kValue, "not the correctly rounded result", true, aux_flip_one_bit);
  if (epilogue.bias != gemm::Bias::kNone)
    add("the bias overwritten", kInputBias, "wrote to its input bias", false, kAuxClobberBias);
  // Where x is written, a kernel without a bias has that wrong, too.
  if (epilogue.bias != gemm::Bias::kNone && !gemm::is_written(epilogue.auxiliary))
    add("bias missing", kValue, "the bias is missing", false, computed_wrongly<Mistake::kNoBias>);
  if (epilogue.activation != gemm::Activation::kNone &&
      epilogue.auxiliary != Auxiliary::kPreActivationBackward)
    add("activation missing", kValue, "the activation is missing", false,
        computed_wrongly<Mistake::kNoActivation>);
  if (epilogue.beta != 0) {
    add("C overwritten", kInputC, "wrote to its input C", false, kAuxClobberC);
    add("C missing in D", kValue, "beta * C is missing", false, computed_wrongly<Mistake::kNoSource>);
    add("row and column of C exchanged", kValue, "the row and the column of C are exchanged", false,
        computed_wrongly<Mistake::kSourceByRow>);
    if (epilogue.beta != 1)
      add("C without beta", kValue, "beta is missing", false, computed_wrongly<Mistake::kNoBeta>);
    if (epilogue.reduction == gemm::Reduction::kNone)
      add("a NaN of C that is swallowed", kValue, "expected nan", true, swallow_nan<&AuxImage::d>);
  }
  if (gemm::is_read(epilogue.auxiliary)) {
    add("no effect of the tensor", kValue, "has no effect", false, computed_wrongly<Mistake::kNoTensor>);
    add("row and column of the tensor exchanged", kValue,
        "the row and the column of the auxiliary tensor are exchanged", false,
        computed_wrongly<Mistake::kTensorByRow>);
    add("the tensor's first tile for all", kValue, "indexed inside the tile", false,
        computed_wrongly<Mistake::kTensorOfTile>);
    add("the tensor overwritten", kInputAux, "wrote to its input, the auxiliary", false, kAuxClobberTensor);
  }
  if (epilogue.auxiliary == Auxiliary::kResidual && epilogue.activation != gemm::Activation::kNone)
    add("the activation after the residual", kValue, "after the residual", false,
        computed_wrongly<Mistake::kActivationLast>);
  if (epilogue.auxiliary == Auxiliary::kMaskBackward)
    add("the mask inverted", kValue, "0 and 1 are exchanged", false,
        computed_wrongly<Mistake::kMaskInverted>);
  if (epilogue.auxiliary == Auxiliary::kMaskBackward && epilogue.reduction == gemm::Reduction::kNone)
    add("parts of the mask exchanged", kValue, "use the bits 8 rows below and 32 columns before", false,
        computed_wrongly<Mistake::kMaskPlaces>);
  if (epilogue.auxiliary == Auxiliary::kGate) {
    add("gate and value exchanged", kValue, "gate and value are exchanged", false,
        computed_wrongly<Mistake::kGateExchanged>);
    add("the neighbour's value", kValue, "the value of its neighbour", false,
        computed_wrongly<Mistake::kGateNeighbours>);
  }
  if (d != gemm::Type::kBf16) {
    add("D not scaled", kValue, "the scale of D is missing", false, computed_wrongly<Mistake::kNoScale>);
    add("an overflow that becomes NaN", kNan, "a NaN that", false, aux_overflow);
    if (epilogue.reduction == gemm::Reduction::kAmax)
      add("the scale in the magnitude", kReducedValue, "times the scale of D", false, reduced_of_scaled);
  }
  add_reduced_faults(faults, epilogue);
  if (!gemm::is_written(epilogue.auxiliary)) return faults;
  add("missing last tile of the tensor", kAuxNeverWritten, "of the auxiliary tensor", false,
      aux_miss_last_tile_of_tensor);
  add("one bit of the tensor", kAuxValue, "of the auxiliary tensor", true, aux_flip_one_bit_of_tensor);
  add("the tensor of other inputs", kAuxValue, "of the auxiliary tensor", false, of_other_inputs);
  add("a byte after the tensor", kAuxGuardAfter, "after the auxiliary", false, kAuxWriteBehindTensor);
  add("a byte before the tensor", kAuxGuardBefore, "before the auxiliary", false, kAuxWriteInFrontOfTensor);
  add("written between its rows", kAuxPadding, "something was written after them", false, aux_write_padding);
  if (epilogue.auxiliary == Auxiliary::kPreActivation && epilogue.beta != 0)
    add("C missing in the tensor", kAuxValue, "beta * C is missing", false,
        linear_computed_wrongly<Mistake::kNoSource>);
  if (epilogue.auxiliary == Auxiliary::kPreActivation && epilogue.bias != gemm::Bias::kNone)
    add("bias missing in the tensor", kAuxValue, "the bias is missing", false,
        linear_computed_wrongly<Mistake::kNoBias>);
  if (epilogue.auxiliary == Auxiliary::kPreActivation)
    add("the result in the tensor", kAuxValue, "of the auxiliary tensor", false, store_the_result);
  if (epilogue.auxiliary == Auxiliary::kMask) {
    add("the bits of a word reversed", kAuxValue, "of the auxiliary tensor", false, reverse_words);
    add("the mask inverted", kAuxValue, "of the auxiliary tensor", false, invert_mask);
  }
  return faults;
}

}  // namespace harness
