#include "harness/verify/epilogue/reductions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "gemm/problem/bf16.h"
#include "harness/verify/survey.h"
#include "harness/verify/verify.h"

namespace harness {
namespace {

constexpr double kLargestDeviation = 9;  // see accumulation_error

/// The binary32 numbers around an interval.
float below(double value) {
  const auto rounded = static_cast<float>(value);
  return static_cast<double>(rounded) > value
             ? std::nextafter(rounded, -std::numeric_limits<float>::infinity())
             : rounded;
}
/// NaN where one of them is.
double larger(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}
float above(double value) {
  return -below(-value);
}

double rounded_to_bf16(double value) {
  return static_cast<double>(gemm::to_float(gemm::to_bf16(static_cast<float>(value))));
}

bool is_poison(float value) {
  return std::bit_cast<std::uint32_t>(value) == kPoisonByte * 0x01010101u;
}

/// Whether (value, column) is taken before another one.
bool is_taken_before(const std::vector<double>& row, int i, int j, bool ties_from_the_end) {
  if (std::isnan(row[at(i)]) != std::isnan(row[at(j)])) return std::isnan(row[at(j)]);
  if (std::isnan(row[at(i)])) return i < j;
  if (row[at(i)] != row[at(j)]) return row[at(i)] > row[at(j)];
  return ties_from_the_end ? i > j : i < j;
}

/// The sum of the `count` largest.
double sum_of_largest(std::vector<double> values, int count) {
  count = std::min(count, static_cast<int>(values.size()));
  std::partial_sort(values.begin(), values.begin() + count, values.end(), std::greater<>());
  return std::accumulate(values.begin(), values.begin() + count, 0.0);
}

}  // namespace

double summation_error(std::int64_t terms, double magnitude) {
  const auto count = static_cast<double>(terms);
  return std::min(count, kLargestDeviation * std::sqrt(count)) * 0x1p-24 * magnitude + count * 0x1p-125;
}

ReducedReference::ReducedReference(gemm::Reduction reduction, const gemm::Shape& shape)
    : reduction_(reduction),
      terms_(reduction == gemm::Reduction::kColumnSums ? shape.m : shape.n),
      value_(at(gemm::reduced_elements(reduction, shape))),
      magnitude_(value_),
      independent_(value_),
      squares_(value_),
      systematic_(value_),
      of_rounded_(value_),
      of_padding_(value_) {
  constexpr std::size_t kMostParts = 1u << 20;
  const auto parts = at(gemm::ceil_div(shape.n, kReducedPart));
  if (reduction != gemm::Reduction::kRowSums || value_.size() * parts > kMostParts) return;
  parts_of_row_ = parts;
  parts_.resize(value_.size() * parts);
}

std::size_t ReducedReference::index(int row, int column) const {
  if (reduction_ == gemm::Reduction::kColumnSums) return at(column);
  return reduction_ == gemm::Reduction::kRowSums ? at(row) : 0;
}

void ReducedReference::add(int row, int column, const Uncertain& element) {
  const std::size_t i = index(row, column);
  const double size = std::abs(element.value);
  if (reduction_ == gemm::Reduction::kAmax) {
    const double off = element.independent + element.systematic;
    value_[i] = larger(value_[i], size);
    magnitude_[i] = larger(magnitude_[i], size - off);
    systematic_[i] = larger(systematic_[i], size + off);
    of_rounded_[i] = std::max(of_rounded_[i], rounded_to_bf16(size));
    return;
  }
  value_[i] += element.value;
  if (!parts_.empty()) parts_[i * parts_of_row_ + at(column / kReducedPart)] += element.value;
  magnitude_[i] += size + element.independent + element.systematic;
  independent_[i] += element.independent;
  squares_[i] += element.independent * element.independent;
  systematic_[i] += element.systematic;
  of_rounded_[i] += rounded_to_bf16(element.value);
}

void ReducedReference::add_padding(int column, double value) {
  if (reduction_ == gemm::Reduction::kColumnSums) of_padding_[at(column)] = value;
  if (reduction_ == gemm::Reduction::kAmax) of_padding_[0] = std::max(of_padding_[0], std::abs(value));
}

void ReducedReference::merge(const ReducedReference& other) {
  const bool is_maximum = reduction_ == gemm::Reduction::kAmax;
  for (auto member :
       {&ReducedReference::value_, &ReducedReference::magnitude_, &ReducedReference::independent_,
        &ReducedReference::squares_, &ReducedReference::systematic_, &ReducedReference::of_rounded_}) {
    for (std::size_t i = 0; i < value_.size(); ++i) {
      double& mine = (this->*member)[i];
      const double more = (other.*member)[i];
      mine = is_maximum ? larger(mine, more) : mine + more;
    }
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i] += other.parts_[i];
}

ReducedAcceptance ReducedReference::acceptance(bool is_exact, double unit) const {
  constexpr double kIntegers = 0x1p24;  // of binary32
  ReducedAcceptance acceptance;
  acceptance.of_rounded = of_rounded_;
  acceptance.of_padding = of_padding_;
  acceptance.parts = parts_;
  for (std::size_t i = 0; i < value_.size(); ++i) {
    Interval interval{magnitude_[i], systematic_[i]};  // of a maximum
    bool unique = is_exact;
    if (reduction_ != gemm::Reduction::kAmax) {
      unique = unique && magnitude_[i] < kIntegers * unit;
      const double off = std::min(kLargestDeviation * std::sqrt(squares_[i]), independent_[i]) +
                         systematic_[i] + summation_error(terms_, magnitude_[i]);
      unique = unique || !std::isfinite(value_[i]);
      interval = {value_[i] - (unique ? 0 : off), value_[i] + (unique ? 0 : off)};
    }
    acceptance.exact += unique ? 1 : 0;
    acceptance.low.push_back(below(interval.low));
    acceptance.high.push_back(above(interval.high));
  }
  return acceptance;
}

std::vector<float> ReducedReference::values() const {
  return {value_.begin(), value_.end()};
}

namespace {

/// How often each subtile of a tile may have been counted, so that all results come out; or "".
std::string explain_parts(const ReducedAcceptance& acceptance, std::size_t rows, int tile_columns,
                          const std::function<bool(const std::function<double(std::size_t)>&)>& all_are) {
  constexpr int kMostSubtiles = 4;
  constexpr int kMostTimes = 4;
  const int subtiles = tile_columns / kReducedPart;
  if (acceptance.parts.empty() || tile_columns % kReducedPart != 0 || subtiles < 2 ||
      subtiles > kMostSubtiles)
    return "";
  const std::size_t parts = acceptance.parts.size() / rows;
  int combinations = 1;
  for (int i = 0; i < subtiles; ++i) combinations *= kMostTimes + 1;
  for (int code = 0; code < combinations; ++code) {
    std::vector<int> times;
    for (int i = 0, rest = code; i < subtiles; ++i, rest /= kMostTimes + 1)
      times.push_back(rest % (kMostTimes + 1));
    if (!all_are([&](std::size_t row) {
          double sum = 0;
          for (std::size_t part = 0; part < parts; ++part)
            sum += times[part % times.size()] * acceptance.parts[row * parts + part];
          return sum;
        }))
      continue;
    bool running = true;
    for (int i = 0; i < subtiles; ++i) running = running && times[at(i)] == subtiles - i;
    const bool lacks = std::find(times.begin(), times.end(), 0) != times.end();
    return fmt::format(
        "  These are the sums in which the {} subtiles of {} columns of each tile count {} times{}.\n",
        subtiles, kReducedPart, fmt::join(times, ", "),
        running ? ": a thread adds what it has summed up so far after every subtile, but must add it only "
                  "after the last one"
        : lacks ? ": one of them is missing"
                : "");
  }
  return "";
}

/// Whether results have changed places inside each `period` of them, everywhere in the same way: or "".
/// `is(i, j)`: whether i holds what is right for j.
std::string explain_permutation(std::size_t count, const char* what,
                                const std::function<bool(std::size_t, std::size_t)>& is) {
  for (const std::size_t period : {2, 4, 8, 16, 32, 64}) {
    if (count < 2 * period) return "";
    std::vector<std::size_t> from;  // for each place of a period
    std::vector<bool> taken(period);
    for (std::size_t place = 0; place < period; ++place) {
      std::size_t found = period;
      // Its own first: equal results are no exchange.
      for (std::size_t distance = 0; distance < period && found == period; ++distance) {
        const std::size_t other = place ^ distance;
        bool fits = !taken[other];
        for (std::size_t first = 0; fits && first + std::max(place, other) < count; first += period)
          fits = is(first + place, first + other);
        if (fits) found = other;
      }
      if (found == period) break;
      taken[found] = true;
      from.push_back(found);
    }
    if (from.size() < period) continue;
    bool pairs = true;
    bool one_mask = true;
    std::string list;
    for (std::size_t place = 0; place < period; ++place) {
      pairs = pairs && from[from[place]] == place;
      one_mask = one_mask && (from[place] ^ place) == (from[0] ^ 0);
    }
    constexpr std::size_t kListed = 8;
    std::size_t listed = 0;
    for (std::size_t place = 0; place < period; ++place) {
      if (from[place] == place || (pairs && from[place] < place)) continue;
      if (listed++ == kListed) {
        list += " and so on";
        break;
      }
      list += pairs ? fmt::format("{}{} and {}", list.empty() ? "" : ", ", place, from[place])
                    : fmt::format("{}{} has the result of {}", list.empty() ? "" : ", ", place, from[place]);
    }
    // Which bits of the place are exchanged, where it is that.
    std::string bits;
    const auto bit = [](std::size_t value, unsigned number) { return value >> number & 1; };
    for (unsigned low = 0; std::size_t{1} << low < period && bits.empty(); ++low) {
      for (unsigned high = low + 1; std::size_t{1} << high < period; ++high) {
        const bool exchanged = [&] {
          for (std::size_t place = 0; place < period; ++place) {
            const std::size_t mask = std::size_t{1} << low | std::size_t{1} << high;
            if (from[place] != (bit(place, low) == bit(place, high) ? place : place ^ mask)) return false;
          }
          return true;
        }();
        if (exchanged) bits = fmt::format("bits {} and {} of its number are exchanged", low, high);
      }
    }
    if (one_mask) bits = fmt::format("its number is combined with {} by exclusive-or", from[0]);
    return fmt::format(
        "  These are right results in wrong places: in each {} {}s, {}{}. {}A lane writes to a place that is "
        "not that of the {} that it has summed up, or reads from the wrong place.\n",
        period, what, pairs ? "these have changed places: " : "", list,
        bits.empty() ? std::string()
                     : "For each place, " + bits +
                           ", so the place is computed from the wrong bits of the lane's number. ",
        what);
  }
  return "";
}

}  // namespace

void check_reduced(gemm::Reduction reduction, const ReducedAcceptance& acceptance, int padding,
                   const std::vector<float>& got, std::vector<std::string>& failed, std::string& text,
                   int tile_columns) {
  constexpr std::size_t kListed = 8;
  const char* const what = reduction == gemm::Reduction::kColumnSums ? "column"
                           : reduction == gemm::Reduction::kRowSums  ? "row"
                                                                     : "largest magnitude";
  std::int64_t never_written = 0;
  std::int64_t nan = 0;
  std::vector<std::size_t> values;
  std::string listed;
  std::size_t count = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float value = got[i];
    if (acceptance.low[i] <= value && value <= acceptance.high[i]) continue;
    if (std::isnan(acceptance.low[i]) && std::isnan(value) && !is_poison(value)) continue;
    if (is_poison(value)) {
      ++never_written;
    } else if (std::isnan(value)) {
      ++nan;
    } else {
      values.push_back(i);
    }
    if (count++ < kListed)
      listed += fmt::format("    {} {}: got {}, expected {} .. {}\n", what, i,
                            is_poison(value) ? "poison" : fmt::format("{}", value), acceptance.low[i],
                            acceptance.high[i]);
  }
  const auto report = [&](const char* check, std::int64_t wrong, const char* meaning) {
    if (wrong == 0) return;
    failed.emplace_back(check);
    text += fmt::format("  [{}] {} of {} results of the reduction: {}\n", check, wrong, got.size(), meaning);
  };
  report(kReducedNeverWritten, never_written, "what was there before the run is still there");
  report(kReducedNan, nan, "a NaN that the kernel computed");
  report(kReducedValue, static_cast<std::int64_t>(values.size()), "outside the allowed range");
  text += listed;
  if (values.empty()) return;
  const auto all_are = [&](const std::function<double(std::size_t)>& would) {
    return std::all_of(values.begin(), values.end(), [&](std::size_t i) {
      const double expected = would(i);
      const double width = static_cast<double>(acceptance.high[i]) - static_cast<double>(acceptance.low[i]);
      return std::abs(expected - static_cast<double>(got[i])) <= width + 0x1p-20 * std::abs(expected);
    });
  };
  const auto middle = [&](std::size_t i) {
    return 0.5 * (static_cast<double>(acceptance.low[i]) + static_cast<double>(acceptance.high[i]));
  };
  const bool has_sums = gemm::is_sum(reduction);
  if (padding > 0 && all_are([&](std::size_t i) {
        return has_sums ? middle(i) + padding * acceptance.of_padding[i] : acceptance.of_padding[i];
      })) {
    text += "  These results include the rows of the last tiles that lie outside D.\n";
  } else if (all_are([&](std::size_t i) { return 2 * middle(i); })) {
    text +=
        "  These are twice the right results, as if they had been added to the results of another launch.\n";
  } else if (all_are([&](std::size_t i) { return acceptance.of_rounded[i]; })) {
    text +=
        "  These are the results of the rounded elements of D instead of the elements before they were "
        "rounded.\n";
  } else if (const std::size_t first = values.front();
             first > 0 && values.size() > 1 && all_are([&](std::size_t i) { return middle(i % first); })) {
    text += fmt::format(
        "  These are the right results of the first {0} {1}s: {1} {2} has the result of {1} 0, and so on. An "
        "index inside the tile is used where an index into the whole result is needed (the tile's first {1} "
        "is not added to it).\n",
        first, what, first);
  } else if (const std::string parts = explain_parts(acceptance, got.size(), tile_columns, all_are);
             !parts.empty()) {
    text += parts;
  } else {
    constexpr int kFarthest = 256;
    for (int shift = -kFarthest; shift <= kFarthest && values.size() > 1; ++shift) {
      if (shift == 0 || !all_are([&](std::size_t i) {
            const std::int64_t from = static_cast<std::int64_t>(i) + shift;
            return from < 0 || from >= static_cast<std::int64_t>(got.size())
                       ? std::numeric_limits<double>::quiet_NaN()
                       : middle(static_cast<std::size_t>(from));
          }))
        continue;
      text +=
          fmt::format("  These are right results of other {0}s: each belongs to the {0} that lies {1} {2}.\n",
                      what, std::abs(shift), shift < 0 ? "further back" : "further on");
      return;
    }
    const std::string permuted = explain_permutation(got.size(), what, [&](std::size_t i, std::size_t j) {
      const double width = static_cast<double>(acceptance.high[j]) - static_cast<double>(acceptance.low[j]);
      return std::abs(middle(j) - static_cast<double>(got[i])) <= width + 0x1p-20 * std::abs(middle(j));
    });
    if (!permuted.empty()) {
      text += permuted;
      return;
    }
    text +=
        fmt::format("  Where: {}s {} to {}{}. No simple mistake fits.\n", what, values.front(), values.back(),
                    values.back() - values.front() + 1 == values.size() ? ", all of them" : "");
  }
}

std::vector<double> top_k_softmax(const std::vector<double>& row, int k, TopKMistake mistake) {
  const auto columns = static_cast<int>(row.size());
  const bool from_the_end = mistake == TopKMistake::kTiesFromTheEnd;
  std::vector<int> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int i, int j) { return is_taken_before(row, i, j, from_the_end); });
  const double largest = row[at(order.front())];
  std::vector<double> weights(row.size());
  double sum = 0;
  if (mistake == TopKMistake::kTiesOnce) {
    std::vector<int> distinct;  // the first column of each value
    for (const int column : order) {
      if (distinct.empty() || row[at(column)] != row[at(distinct.back())]) distinct.push_back(column);
    }
    const bool all = static_cast<int>(distinct.size()) < k;
    if (!all) distinct.resize(at(k));
    for (const int column : distinct) sum += std::exp(row[at(column)] - largest);
    for (int j = 0; j < columns; ++j) {
      const double value = row[at(j)];
      if (all || value > row[at(distinct.back())] || j == distinct.back())
        weights[at(j)] = std::exp(value - largest) / sum;
    }
    return weights;
  }
  const int taken = std::min(columns, mistake == TopKMistake::kOneMore ? k + 1 : k);
  for (int i = 0; i < (mistake == TopKMistake::kSumOfAll ? columns : taken); ++i) {
    const double one = row[at(order[at(i)])];
    if (!std::isnan(one)) sum += std::exp(one - largest);
  }
  for (int i = 0; i < taken; ++i) {
    const int column = order[at(i)];
    if (std::isnan(row[at(column)])) continue;
    weights[at(column)] = std::exp(row[at(column)] - largest) / sum;
  }
  // A search that has run out of elements ends at minus infinity, and takes all of these.
  const double last = row[at(order[at(taken - 1)])];
  for (int j = 0; j < columns && !(last > -std::numeric_limits<double>::infinity()); ++j) {
    const double one = row[at(j)];
    if (std::isinf(one) && one < 0) weights[at(j)] = std::exp(one - largest) / sum;
  }
  return weights;
}

std::vector<Interval> top_k_intervals(const std::vector<Interval>& row, int k) {
  constexpr double kFarthest = 88;
  const auto columns = static_cast<int>(row.size());
  double largest = -std::numeric_limits<double>::infinity();
  for (const Interval& one : row) largest = std::max(largest, one.high);
  std::vector<Interval> weights(row.size());
  if (std::any_of(row.begin(), row.end(), [](const Interval& one) { return !std::isfinite(one.low); })) {
    std::vector<double> values;
    for (const Interval& one : row) values.push_back(one.low);
    const std::vector<double> right = top_k_softmax(values, k);
    const double off = (4 * kFarthest + k + 12) * 0x1p-23;
    std::transform(right.begin(), right.end(), weights.begin(), [&](double weight) {
      return Interval{weight * (1 - off), weight * (1 + off) + 0x1p-125};
    });
    return weights;
  }
  for (int j = 0; j < columns; ++j) {
    const Interval& mine = row[at(j)];
    int certainly_before = 0;
    int possibly_before = 0;
    for (int i = 0; i < columns; ++i) {
      if (i == j) continue;
      const Interval& other = row[at(i)];
      const bool is_lower = i < j;  // column
      certainly_before += other.low > mine.high || (other.low == mine.high && is_lower) ? 1 : 0;
      possibly_before += other.high > mine.low || (other.high == mine.low && is_lower) ? 1 : 0;
    }
    if (certainly_before >= k) continue;
    std::vector<double> low;
    std::vector<double> high;
    for (int i = 0; i < columns; ++i) {
      if (i == j) continue;
      low.push_back(std::exp(row[at(i)].low - mine.high));
      high.push_back(std::exp(row[at(i)].high - mine.low));
    }
    Interval& weight = weights[at(j)];
    weight.low = 1 / (1 + sum_of_largest(high, k - 1));
    weight.high = 1 / (1 + sum_of_largest(low, k - 1));
    const double d = std::min(largest - mine.low, kFarthest);
    const double off = (4 * d + k + 12) * 0x1p-23;
    weight.low = weight.low * (1 - off) - 0x1p-125;
    weight.high = weight.high * (1 + off) + 0x1p-125;
    if (possibly_before >= k) weight.low = 0;
    weight.low = std::max(weight.low, 0.0);
  }
  return weights;
}

}  // namespace harness
