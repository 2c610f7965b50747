#include "harness/verify/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>

#include "harness/base/parallel.h"
#include "harness/base/problem.h"
#include "harness/verify/diagnosis.h"
#include "harness/verify/reference.h"
#include "harness/verify/survey.h"

namespace harness {
namespace {

constexpr std::size_t kListed = 8;           // wrong elements that a report shows
constexpr std::size_t kListedUnwritten = 2;  // the same when none was written: they all look alike
constexpr int kSamples = 32;                 // wrong elements that the search for an explanation looks at

// Through binary32, although `value` is a binary64: it is the bound of a binary32 accumulator, and binary64
// to binary32 to bf16 is monotonic, so the bound stays a bound. Never infinite where the sum is not: no
// correct result is.
gemm::bf16 round_bound(double value) {
  const gemm::bf16 rounded = gemm::to_bf16(static_cast<float>(value));
  const bool infinite = (rounded.bits & 0x7fff) == 0x7f80 && std::isfinite(value);
  return infinite ? gemm::bf16{static_cast<std::uint16_t>(rounded.bits - 1)} : rounded;
}

const char* plural(std::int64_t count) {
  return count == 1 ? "" : "s";
}

std::string count_of(std::int64_t count, std::int64_t total) {
  const double percent = 100.0 * static_cast<double>(count) / static_cast<double>(total);
  return fmt::format("{} of {} elements ({:.3g} %)", count, total, percent);
}

std::string number(gemm::bf16 value) {
  if (value.bits == kPoison.bits) return "poison";
  return fmt::format("{}", gemm::to_float(value));
}

/// How many bf16 values lie between two, for finite ones of any sign.
int steps_between(gemm::bf16 from, gemm::bf16 to) {
  const auto ordinal = [](gemm::bf16 value) {
    const int magnitude = value.bits & 0x7fff;
    return (value.bits & 0x8000) != 0 ? -magnitude : magnitude;
  };
  return ordinal(to) - ordinal(from);
}

std::string describe_wrong(Wrong wrong, gemm::bf16 low, gemm::bf16 high, gemm::bf16 got,
                           const Inputs& inputs) {
  switch (wrong) {
    case Wrong::kNot:
    case Wrong::kInfinity:
      return "";
    case Wrong::kNeverWritten:
      return "never written";
    case Wrong::kNan:
      return fmt::format("bits {:#06x}", got.bits);
    case Wrong::kValue:
      break;
  }
  const InputRule& a = inputs.rule(Operand::kA);
  if (inputs.rules().epilogue.is_plain() && a.pattern == Pattern::kIdentity && is_position_code(got)) {
    const auto [row, column] = decode_position(got);
    return fmt::format("this is {}({}, {}), both mod 128", is_identity(a) ? "B" : "A", row, column);
  }
  const int steps =
      gemm::to_float(got) > gemm::to_float(high) ? steps_between(high, got) : steps_between(low, got);
  if (std::abs(steps) > 4) return "";
  return fmt::format("{} bf16 step{} too {}", std::abs(steps), plural(std::abs(steps)),
                     steps > 0 ? "high" : "low");
}

/// The first wrong elements in row-major order.
std::vector<Element> first_wrong(const Survey& survey, const Acceptance& acceptance, const gemm::bf16* d) {
  const std::vector<gemm::bf16>& high = acceptance.high.empty() ? acceptance.low : acceptance.high;
  const std::size_t wanted = survey.never_written == survey.wrong ? kListedUnwritten : kListed;
  std::vector<Element> elements;
  for (int row = 0; row < survey.shape.m; ++row) {
    if (survey.row_wrong[static_cast<std::size_t>(row)] == 0) continue;
    for (int column = 0; column < survey.shape.n; ++column) {
      const auto index = static_cast<std::size_t>(gemm::offset(row, column, survey.shape.n));
      if (classify(acceptance.low[index], high[index], d[index]) == Wrong::kNot) continue;
      elements.push_back({row, column});
      if (elements.size() == wanted) return elements;
    }
  }
  return elements;
}

/// Wrong values, spread evenly over all of them.
std::vector<Element> sample_values(const Survey& survey, const Acceptance& acceptance, const gemm::bf16* d) {
  const std::vector<gemm::bf16>& high = acceptance.high.empty() ? acceptance.low : acceptance.high;
  std::vector<Element> elements;
  std::int64_t seen = 0;
  const auto wanted = [&] { return survey.value * static_cast<std::int64_t>(elements.size()) / kSamples; };
  for (int row = 0; row < survey.shape.m; ++row) {
    const std::int64_t here = survey.row_value[static_cast<std::size_t>(row)];
    if (seen + here <= wanted()) {
      seen += here;
      continue;
    }
    for (int column = 0; column < survey.shape.n; ++column) {
      const auto index = static_cast<std::size_t>(gemm::offset(row, column, survey.shape.n));
      if (classify(acceptance.low[index], high[index], d[index]) != Wrong::kValue) continue;
      if (seen++ < wanted()) continue;
      elements.push_back({row, column});
      if (elements.size() == kSamples) return elements;
    }
  }
  return elements;
}

std::string list_elements(const std::vector<Element>& elements, const Survey& survey,
                          const Acceptance& acceptance, const gemm::bf16* d, const Inputs& inputs) {
  const bool exact = acceptance.high.empty();
  std::string text = fmt::format("    {:>6} {:>6}  {:<10} {:>14} {}{:>12}\n", "row", "column", "tile",
                                 exact                                ? "expected"
                                 : inputs.rules().epilogue.is_plain() ? "exact sum"
                                                                      : "exact",
                                 exact ? "" : fmt::format("{:>24} ", "allowed"), "got");
  for (const auto [row, column] : elements) {
    const auto index = static_cast<std::size_t>(gemm::offset(row, column, survey.shape.n));
    const gemm::bf16 low = acceptance.low[index];
    const gemm::bf16 high = exact ? low : acceptance.high[index];
    std::string expected = number(low);
    std::string allowed;
    if (!exact) {
      double sum = 0;
      double norm = 0;
      inputs.sum(row, column, sum, norm);
      expected = fmt::format("{:.7g}", inputs.result(row, column, sum));
      allowed =
          fmt::format("{:>24} ", low.bits == high.bits ? number(low)
                                                       : fmt::format("{} .. {}", number(low), number(high)));
    }
    const Wrong wrong = classify(low, high, d[index]);
    const std::string note = describe_wrong(wrong, low, high, d[index], inputs);
    text += fmt::format("    {:>6} {:>6}  {:<10} {:>14} {}{:>12}{}{}\n", row, column,
                        fmt::format("({}, {})", row / survey.tile.m, column / survey.tile.n), expected,
                        allowed, number(d[index]), note.empty() ? "" : "  ", note);
  }
  if (static_cast<std::int64_t>(elements.size()) < survey.wrong)
    text += fmt::format("    ... and {} more\n", survey.wrong - static_cast<std::int64_t>(elements.size()));
  return text;
}

std::string never_written_hint(const Survey& survey) {
  if (survey.never_written == static_cast<std::int64_t>(survey.shape.m) * survey.shape.n)
    return "Nothing was stored at all: was the kernel launched, and did it return early?";
  std::int64_t whole_tiles = 0;
  for (int row = 0; row < survey.tile_rows(); ++row) {
    for (int column = 0; column < survey.tile_columns(); ++column) {
      const std::int64_t rows = std::min(survey.tile.m, survey.shape.m - row * survey.tile.m);
      const std::int64_t columns = std::min(survey.tile.n, survey.shape.n - column * survey.tile.n);
      const auto index = static_cast<std::size_t>(gemm::offset(row, column, survey.tile_columns()));
      if (survey.tile_wrong[index] == rows * columns) whole_tiles += rows * columns;
    }
  }
  if (whole_tiles == survey.wrong) {
    // A grid that is not rounded up lacks the last row of tiles, the last column, or both.
    bool last_only = true;
    std::string first_missing;
    for (int row = 0; row < survey.tile_rows(); ++row) {
      for (int column = 0; column < survey.tile_columns(); ++column) {
        const auto index = static_cast<std::size_t>(gemm::offset(row, column, survey.tile_columns()));
        if (survey.tile_wrong[index] == 0) continue;
        if (first_missing.empty()) first_missing = fmt::format("({}, {})", row, column);
        last_only = last_only && (row + 1 == survey.tile_rows() || column + 1 == survey.tile_columns());
      }
    }
    if (last_only) {
      return fmt::format(
          "{}: is the grid rounded up (ceil_div), and does the schedule reach them (the last raster group "
          "may be lower than the others)?",
          kNoBlockStored);
    }
    return fmt::format(
        "{}. They are more than the last row or column of tiles, so the cause is not a grid that is not "
        "rounded up: the schedule never reaches tile {}. Check the last raster group (it is lower than the "
        "others and ends sooner), a CTA's next tile number, and the number of tiles.",
        kNoBlockStored, first_missing);
  }
  return "The blocks ran but skipped these elements: check the guard of the store, and which thread stores "
         "which elements.";
}

/// Whether each group lacks what is left of its rows behind whole parts; or "".
std::string missing_parts(const Survey& survey, const std::vector<gemm::GroupRows>& groups) {
  constexpr std::size_t kListed = 4;
  for (const int part : {256, 128, 64, 32, 16, 8}) {
    std::vector<std::string> lacking;
    bool some_whole_part = false;
    bool fits = true;
    for (std::size_t group = 0; group < groups.size() && fits; ++group) {
      const gemm::GroupRows& rows = groups[group];
      const int left = rows.count() % part;
      for (int row = rows.begin; row < rows.end && fits; ++row)
        fits = survey.row_wrong[at(row)] == (row >= rows.end - left ? survey.shape.n : 0);
      some_whole_part = some_whole_part || rows.count() >= part;
      if (left > 0)
        lacking.push_back(fmt::format("{} of the {} rows of group {}", left, rows.count(), group));
    }
    if (!fits || !some_whole_part || lacking.empty()) continue;
    const std::size_t more = lacking.size() - std::min(kListed, lacking.size());
    lacking.resize(lacking.size() - more);
    return fmt::format(
        "Each group lacks its last rows, those that do not fill a part of {0} rows: {1}{2}. The number of "
        "parts is rounded down, but it must be rounded up, (rows + {3}) / {0}, and the store must leave out "
        "the rows outside the group.",
        part, fmt::join(lacking, ", "), more > 0 ? fmt::format(" and {} more groups", more) : "", part - 1);
  }
  return "";
}

/// "Groups 1 to 5 are wrong ..." where some are and others are not; or "".
std::string wrong_groups(const Survey& survey, const std::vector<gemm::GroupRows>& groups,
                         const gemm::bf16* d, const std::function<bool(std::size_t)>& is_wrong) {
  std::vector<std::uint32_t> wrong;
  std::vector<std::uint32_t> right;
  bool zeros = true;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    bool any = false;
    for (int row = groups[group].begin; row < groups[group].end; ++row) {
      if (survey.row_wrong[at(row)] == 0) continue;
      any = true;
      for (int column = 0; column < survey.shape.n && zeros; ++column) {
        const std::size_t index = at(gemm::offset(row, column, survey.shape.n));
        zeros = !is_wrong(index) || (d[index].bits & 0x7fff) == 0;
      }
    }
    if (groups[group].count() > 0) (any ? wrong : right).push_back(static_cast<std::uint32_t>(group));
  }
  if (wrong.empty() || right.empty()) return "";
  const auto text = [](const std::vector<std::uint32_t>& numbers) {
    constexpr std::size_t kListed = 8;
    std::string list;
    std::size_t runs = 0;
    for (std::size_t i = 0; i < numbers.size();) {
      std::size_t end = i + 1;
      while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
      if (runs++ == kListed) return list + fmt::format(" and {} more", numbers.size() - i);
      list +=
          (list.empty() ? "" : ", ") + (end - i == 1 ? fmt::format("{}", numbers[i])
                                                     : fmt::format("{} to {}", numbers[i], numbers[end - 1]));
      i = end;
    }
    return list;
  };
  return fmt::format(
      "By groups: wrong in {}{}, right in {}. Check what differs between these groups in how the kernel "
      "finds a group's rows of A, its B and its rows of D.",
      text(wrong), zeros ? ", where every wrong element is 0" : "", text(right));
}

/// Which groups lack rows, where some lack all of them; or "".
std::string missing_groups(const Survey& survey, const std::vector<gemm::GroupRows>& groups) {
  std::string missing;
  int lacking = 0;
  int whole = 0;
  int part = 0;
  int first = -1;  // of a run of groups that lack all
  const int count = static_cast<int>(groups.size());
  for (int group = 0; group <= count; ++group) {
    bool lacks_all = false;
    if (group < count) {
      const gemm::GroupRows& rows = groups[at(group)];
      int wrong = 0;
      for (int row = rows.begin; row < rows.end; ++row)
        wrong += survey.row_wrong[at(row)] == survey.shape.n ? 1 : 0;
      if (rows.count() == 0 && first >= 0) continue;  // a run goes on over it
      lacks_all = rows.count() > 0 && wrong == rows.count();
      lacking += lacks_all ? 1 : 0;
      whole += rows.count() > 0 && wrong == 0 ? 1 : 0;
      part += wrong > 0 && wrong < rows.count() ? 1 : 0;
    }
    if (lacks_all && first < 0) first = group;
    if (lacks_all || first < 0) continue;
    int last = group - 1;
    while (groups[at(last)].count() == 0) --last;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ",
                           first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last));
    first = -1;
  }
  if (lacking == 0 || whole + part == 0) return "";
  return fmt::format(
      "No row of group{} {} was stored{}. Either no CTA took the tiles of {}, or they were taken for others: "
      "check how the kernel finds the group of a tile number, and the number at which a group begins (it "
      "adds up the tiles of all groups before it, and a warp looks at 32 groups at once).",
      lacking == 1 ? "" : "s", missing,
      part == 0 ? fmt::format(", and every row of the other{}", whole == 1 ? "" : "s") : "",
      lacking == 1 ? "this group" : "these groups");
}

}  // namespace

std::vector<std::uint8_t> guard_band() {
  std::vector<std::uint8_t> band(kGuardBytes);
  for (std::size_t i = 0; i < kGuardBytes; ++i) band[i] = guard_byte(i);
  return band;
}

double accumulation_error(int k, double norm) {
  constexpr double kUnit = 0x1p-24;         // half a unit in the last place of 1.0 in binary32
  constexpr double kUnitsPerProduct = 3;    // the coarsest published tensor core (Volta); Hopper needs 0.7
  constexpr double kLargestPartialSum = 9;  // times the norm; exceeded with probability 4 exp(-81/2) = 1e-17
  const double g = kUnitsPerProduct * (k + 2.0) * kUnit;
  return g / (1 - g) * std::min(std::sqrt(static_cast<double>(k)), kLargestPartialSum) * norm;
}

Acceptance make_acceptance(const gemm::Shape& shape, Pattern pattern, const gemm::Epilogue& epilogue) {
  const auto elements = static_cast<std::size_t>(gemm::offset(shape.m, 0, shape.n));
  Acceptance acceptance{.shape = shape, .pattern = pattern};
  acceptance.low.resize(elements);
  if (is_exact(pattern, epilogue)) return acceptance;
  acceptance.high.resize(elements);
  acceptance.nearest.resize(elements);
  return acceptance;
}

void accept_rows(Acceptance& acceptance, int first_row, int rows, const double* value, const float* norm) {
  const int columns = acceptance.shape.n;
  const auto first = static_cast<std::size_t>(gemm::offset(first_row, 0, columns));
  const bool exact = is_exact(acceptance.pattern);
  const double error_per_norm = accumulation_error(acceptance.shape.k, 1);
  std::mutex mutex;
  parallel_for(rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
    float largest = 0;
    for (auto i = static_cast<std::size_t>(begin * columns); i < static_cast<std::size_t>(end * columns);
         ++i) {
      if (exact) {
        acceptance.low[first + i] = round_bound(value[i]);
        continue;
      }
      const double error = error_per_norm * static_cast<double>(norm[i]);
      acceptance.low[first + i] = round_bound(value[i] - error);
      acceptance.high[first + i] = round_bound(value[i] + error);
      acceptance.nearest[first + i] = round_bound(value[i]);
      largest = std::max(largest, norm[i]);
    }
    const std::scoped_lock lock(mutex);
    acceptance.largest_bound =
        std::max(acceptance.largest_bound, error_per_norm * static_cast<double>(largest));
  });
}

void accept_rows(Acceptance& acceptance, const InputRules& rules, bool through_bf16, int first_row, int rows,
                 const double* value, const float* norm) {
  if (rules.epilogue.is_plain() && !through_bf16) {
    accept_rows(acceptance, first_row, rows, value, norm);
    return;
  }
  const int columns = acceptance.shape.n;
  const bool exact = acceptance.high.empty();
  const double error_per_norm = accumulation_error(acceptance.shape.k, 1);
  std::mutex mutex;
  parallel_for(rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
    double largest = 0;
    for (int row = static_cast<int>(begin); row < end; ++row) {
      for (int column = 0; column < columns; ++column) {
        const auto from = static_cast<std::size_t>(gemm::offset(row, column, columns));
        const auto to = static_cast<std::size_t>(gemm::offset(first_row + row, column, columns));
        const double c = source_at(rules, first_row + row, column);
        const double bias = bias_at(rules, first_row + row, column);
        const double nearest = epilogue_value(rules.epilogue, value[from], c, bias);
        if (exact) {
          acceptance.low[to] = round_bound(nearest);
          continue;
        }
        // Exact sums have no norm: only the epilogue rounds.
        const double error = norm == nullptr ? 0 : error_per_norm * static_cast<double>(norm[from]);
        double sum = value[from];
        double sum_error = error;
        if (through_bf16) {
          const auto low = static_cast<double>(gemm::to_float(round_bound(sum - error)));
          const auto high = static_cast<double>(gemm::to_float(round_bound(sum + error)));
          sum = (low + high) / 2;
          sum_error = (high - low) / 2;
        }
        const Interval interval = accepted_results(rules.epilogue, sum, sum_error, c, bias);
        acceptance.low[to] = round_bound(interval.low);
        acceptance.high[to] = round_bound(interval.high);
        acceptance.nearest[to] = round_bound(nearest);
        largest = std::max(largest, (interval.high - interval.low) / 2);
      }
    }
    const std::scoped_lock lock(mutex);
    acceptance.largest_bound = std::max(acceptance.largest_bound, largest);
  });
}

Verification::Verification(const InputRule& a, const InputRule& b, const gemm::TileShape& tile)
    : Verification(InputRules{.a = a, .b = b, .epilogue = {}, .c = {}, .bias = {}}, tile) {}

Verification::Verification(const InputRules& rules, const gemm::TileShape& tile)
    : rules_(rules), shape_(rules.shape()), tile_(tile) {}

std::vector<gemm::bf16> Verification::check_guard_rows(const gemm::bf16* d) {
  std::vector<gemm::bf16> of_groups(d, d + gemm::offset(shape_.m, 0, shape_.n));
  std::int64_t count = 0;
  Element first;
  int behind = -1;                  // the group in front of the first element
  bool all_of_empty_groups = true;  // whose room begins in front of what was written
  std::size_t room = 0;             // the last group that begins at this row or before
  for (int row = 0, group = -1; row < shape_.m; ++row) {
    while (room + 1 < rules_.groups.size() && rules_.groups[room + 1].begin <= row) ++room;
    const int of_row = rules_.group_of(row);
    if (of_row >= 0) {
      group = of_row;
      continue;
    }
    for (int column = 0; column < shape_.n; ++column) {
      gemm::bf16& element = of_groups[static_cast<std::size_t>(gemm::offset(row, column, shape_.n))];
      if (element.bits != kPoison.bits && count++ == 0) {
        first = {row, column};
        behind = group;
      }
      if (element.bits != kPoison.bits && rules_.groups[room].count() > 0) all_of_empty_groups = false;
      element = {0};
    }
  }
  if (count == 0) return of_groups;
  failed_.emplace_back(kGuardRows);
  report_ += fmt::format(
      "  [{}] {} element{} in rows that belong to no group {} written, the first at row {}, column {}{}\n",
      kGuardRows, count, plural(count), count == 1 ? "was" : "were", first.row, first.column,
      behind < 0 ? "" : fmt::format(", after the last row of group {}", behind));
  report_ +=
      all_of_empty_groups
          ? "  Hint: all of these rows are room of groups without rows. A count that is 0 or less must "
            "give no tile.\n"
          : "  Hint: is the store of a group's last tile clipped at the group's last row?\n";
  return of_groups;
}

void Verification::check_values(const Acceptance& acceptance, const gemm::bf16* d) {
  const std::int64_t total = gemm::offset(shape_.m, 0, shape_.n);
  std::vector<gemm::bf16> of_groups;
  if (!rules_.groups.empty()) {
    of_groups = check_guard_rows(d);
    d = of_groups.data();
  }
  const Inputs inputs(rules_);
  const Survey found = survey(acceptance, d, tile_);
  if (found.wrong == 0) {
    success_ = acceptance.high.empty()
                   ? fmt::format("{}: all {} elements match bit for bit", to_string(rules_.a.pattern), total)
                   : fmt::format(
                         "{}: all {} elements within the error bound (accumulator: observed error {:.2g}, "
                         "bound {:.2g})",
                         to_string(rules_.a.pattern), total, observed_error(acceptance, d, inputs),
                         acceptance.largest_bound);
    return;
  }
  wrong_ = found.wrong;

  const auto report = [&](const char* check, std::int64_t count, const std::string& meaning) {
    if (count == 0) return;
    failed_.emplace_back(check);
    report_ += fmt::format("  [{}] {}: {}\n", check, count_of(count, total), meaning);
  };
  report(kNeverWritten, found.never_written, "the poison from before the run is still there");
  report(kNan, found.nan, "a NaN that the kernel computed");
  report(kInfinity, found.infinity, "infinite");
  report(kValue, found.value,
         !acceptance.high.empty()     ? "outside the error bound"
         : rules_.epilogue.is_plain() ? "not the correctly rounded sum"
                                      : "not the correctly rounded result");
  report_ += list_elements(first_wrong(found, acceptance, d), found, acceptance, d, inputs);
  report_ += fmt::format("  Where: {}\n", describe_place(found));
  if (found.value > 0) {
    const std::string by_group = wrong_groups(found, rules_.groups, d, [&](std::size_t index) {
      return classify(acceptance.low[index],
                      acceptance.high.empty() ? acceptance.low[index] : acceptance.high[index],
                      d[index]) != Wrong::kNot;
    });
    if (!by_group.empty()) report_ += fmt::format("  {}\n", by_group);
  }
  if (found.never_written > 0) {
    std::string by_group = missing_parts(found, rules_.groups);
    if (by_group.empty()) by_group = missing_groups(found, rules_.groups);
    report_ += fmt::format("  Hint: {}\n", by_group.empty() ? never_written_hint(found) : by_group);
    if (!clue_.empty()) report_ += fmt::format("  Hint: {}\n", clue_);
  }
  if (found.nan > 0) {
    report_ += kNanHint;
    report_ +=
        ": shared memory that was read before its data arrived, accumulators that were never set to zero, or "
        "operands beyond an edge that were not filled with zeros.\n";
  }
  if (found.value > 0) {
    const std::vector<Element> samples = sample_values(found, acceptance, d);
    const std::vector<std::string> explanations = explain(acceptance, d, inputs, tile_, samples);
    for (const std::string& explanation : explanations) report_ += fmt::format("  Fits: {}\n", explanation);
    if (!clue_.empty() && found.never_written == 0) report_ += fmt::format("  Fits: {}\n", clue_);
    if (explanations.empty() && clue_.empty()) {
      report_ += kNoMistakeFits;
      report_ +=
          " (a part of K that is missing or counted twice, results stored in the wrong place, operands read "
          "wrongly, wrong rounding). If another run gives other values, suspect a race.\n";
    }
  }
}

void Verification::check_guard(const std::uint8_t* band, bool before) {
  std::int64_t count = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < kGuardBytes; ++i) {
    if (band[i] == guard_byte(i)) continue;
    if (count++ == 0) first = i;
    last = i;
  }
  if (count == 0) return;
  failed_.emplace_back(before ? kGuardBefore : kGuardAfter);
  const std::int64_t columns = shape_.n;
  const auto place = [&](std::size_t byte) {
    const std::int64_t elements =
        before ? -static_cast<std::int64_t>((kGuardBytes - byte + 1) / 2)
               : gemm::offset(shape_.m, 0, shape_.n) + static_cast<std::int64_t>(byte / 2);
    const std::int64_t row = elements >= 0 ? elements / columns : -((-elements + columns - 1) / columns);
    return fmt::format("({}, {})", row, elements - row * columns);
  };
  const auto distance = [&](std::size_t byte) { return before ? kGuardBytes - byte : byte + 1; };
  const std::size_t nearest = before ? last : first;
  const std::size_t farthest = before ? first : last;
  report_ += fmt::format("  [{}] {} byte{} {} D {} overwritten, ", before ? kGuardBefore : kGuardAfter, count,
                         plural(count), before ? "before" : "after", count == 1 ? "was" : "were");
  report_ += count == 1
                 ? fmt::format("{} from its {}; in D ({} x {}), it would be element {}\n", distance(nearest),
                               before ? "start" : "end", shape_.m, shape_.n, place(nearest))
                 : fmt::format("{} to {} from its {}; in D ({} x {}), they would be elements {} to {}\n",
                               distance(nearest), distance(farthest), before ? "start" : "end", shape_.m,
                               shape_.n, place(first), place(last));
  report_ += before ? "  Hint: look for an index that went negative.\n"
                    : "  Hint: check the guard of the store in the last tile row (row < M), and the row "
                      "pitch of D, which must be N.\n";
}

void Verification::check_input(Operand operand, const InputDamage& damage) {
  if (damage.count == 0) return;
  struct Names {
    const char* check;
    const char* input;
    const char* column;
  };
  constexpr Names kNames[] = {
      {kInputA, "A", "k"}, {kInputB, "B", "k"}, {kInputC, "C", "column"}, {kInputBias, "bias", "element"}};
  const Names& names = kNames[static_cast<int>(operand)];
  failed_.emplace_back(names.check);
  report_ += fmt::format(
      "  [{}] the kernel wrote to its input {}: {} element{} changed, the first at row {}, {} {}: was {}, is "
      "{}\n",
      names.check, names.input, damage.count, plural(damage.count), damage.row, names.column, damage.column,
      number(damage.expected), number(damage.got));
}

CheckResult Verification::result() const {
  CheckResult result;
  result.ok = failed_.empty();
  result.failed = failed_;
  if (result.ok) {
    result.summary = success_;
    return result;
  }
  const std::int64_t total = gemm::offset(shape_.m, 0, shape_.n);
  result.summary = fmt::format("{}: failed {}{}", to_string(rules_.a.pattern), fmt::join(failed_, ", "),
                               wrong_ > 0 ? fmt::format("; {} are wrong", count_of(wrong_, total)) : "");
  result.report = fmt::format("wrong: {}, pattern {}, seed {}, tile {} x {} x {}{}\n{}", to_string(shape_),
                              to_string(rules_.a.pattern), rules_.a.seed, tile_.m, tile_.n, tile_.k,
                              rules_.epilogue.is_plain() ? "" : ", " + to_string(rules_.epilogue), report_);
  return result;
}

namespace {

/// [m][n], of A * B^T as it lies in the image; norm only where it is wanted.
std::vector<double> host_sums(const RunImage& image, std::vector<float>* norm) {
  const auto [m, n, k] = image.shape();
  std::vector<double> value(static_cast<std::size_t>(gemm::offset(m, 0, n)));
  if (norm != nullptr) norm->resize(value.size());
  for_groups(image.groups, 0, m, [&, n = n, k = k](int group, int row, int rows) {
    const std::int64_t to = gemm::offset(row, 0, n);
    host_reference({{rows, n, k},
                    image.a.data() + gemm::offset(row, 0, k),
                    image.b.data() + gemm::offset(group * n, 0, k),
                    nullptr},
                   value.data() + to, norm != nullptr ? norm->data() + to : nullptr);
  });
  return value;
}

/// Inputs and guard bands as they should be; no D.
RunImage untouched_image(const InputRules& rules) {
  RunImage image;
  image.a_rule = rules.a;
  image.b_rule = rules.b;
  image.epilogue = rules.epilogue;
  image.c_rule = rules.c;
  image.bias_rule = rules.bias;
  image.groups = rules.groups;
  image.a = host_input(rules.a);
  for (int row = 0; row < rules.a.rows; ++row) {
    if (rules.group_of(row) >= 0) continue;  // the others hold what no kernel may use
    const auto begin = image.a.begin() + gemm::offset(row, 0, rules.a.columns);
    std::fill(begin, begin + rules.a.columns, kPoison);
  }
  image.b = host_input(rules.b);
  image.c = host_input(rules.c);
  image.bias = host_input(rules.bias);
  image.before = guard_band();
  image.after = guard_band();
  return image;
}

Acceptance acceptance_of(const InputRules& rules) {
  const RunImage image = untouched_image(rules);
  const Pattern pattern = rules.a.pattern;
  std::vector<float> norm;
  const std::vector<double> value = host_sums(image, is_exact(pattern) ? nullptr : &norm);
  Acceptance acceptance = make_acceptance(rules.shape(), pattern, rules.epilogue);
  accept_rows(acceptance, rules, false, 0, rules.a.rows, value.data(),
              is_exact(pattern) ? nullptr : norm.data());
  return acceptance;
}

RunImage image_of(const InputRules& rules) {
  RunImage image = untouched_image(rules);
  const std::vector<double> value = host_sums(image, nullptr);
  const Inputs inputs(rules);
  const gemm::Shape shape = rules.shape();
  for (int row = 0; row < shape.m; ++row) {
    const bool of_group = rules.group_of(row) >= 0;
    for (int column = 0; column < shape.n; ++column) {
      const double sum = value[static_cast<std::size_t>(gemm::offset(row, column, shape.n))];
      image.d.push_back(of_group ? gemm::to_bf16(static_cast<float>(inputs.result(row, column, sum)))
                                 : kPoison);
    }
  }
  return image;
}

}  // namespace

Acceptance host_acceptance(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                           const gemm::Epilogue& epilogue) {
  return acceptance_of(input_rules(shape, pattern, seed, epilogue));
}

Acceptance host_acceptance(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                           const std::vector<gemm::GroupRows>& groups) {
  return acceptance_of(grouped_rules(shape, pattern, seed, groups));
}

RunImage correct_image(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                       const gemm::Epilogue& epilogue) {
  return image_of(input_rules(shape, pattern, seed, epilogue));
}

RunImage correct_image(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                       const std::vector<gemm::GroupRows>& groups) {
  return image_of(grouped_rules(shape, pattern, seed, groups));
}

CheckResult verify(const RunImage& image, const Acceptance& acceptance, const gemm::TileShape& tile) {
  Verification verification(image.rules(), tile);
  verification.check_values(acceptance, image.d.data());
  verification.check_guard(image.before.data(), true);
  verification.check_guard(image.after.data(), false);
  const auto check_input = [&](const InputRule& rule, const std::vector<gemm::bf16>& values) {
    InputDamage damage;
    compare_input(rule, 0, rule.rows, values.data(), damage);
    verification.check_input(rule.operand, damage);
  };
  InputDamage damage_of_a;
  for_groups(image.groups, 0, image.a_rule.rows, [&](int, int row, int rows) {
    compare_input(image.a_rule, row, rows, image.a.data() + gemm::offset(row, 0, image.a_rule.columns),
                  damage_of_a);
  });
  verification.check_input(Operand::kA, damage_of_a);
  check_input(image.b_rule, image.b);
  if (image.c_rule.rows > 0) check_input(image.c_rule, image.c);
  if (image.bias_rule.rows > 0) check_input(image.bias_rule, image.bias);
  return verification.result();
}

}  // namespace harness
