#include "harness/verify/survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>

#include "harness/base/parallel.h"

namespace harness {
namespace {

/// "3", "3 and 5", "0 to 7, 16 to 23 and 2 more ranges"
std::string ranges(const std::vector<int>& sorted) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    parts.push_back(end == i + 1 ? fmt::format("{}", sorted[i])
                                 : fmt::format("{} to {}", sorted[i], sorted[end - 1]));
    i = end;
  }
  if (parts.size() > kShown) {
    const std::size_t more = parts.size() - kShown;
    parts.resize(kShown);
    return fmt::format("{} and {} more", fmt::join(parts, ", "), more);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<int> non_zero(const std::vector<std::int64_t>& counts) {
  std::vector<int> indices;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

std::string tile_list(const std::vector<int>& tiles, int tile_columns) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, tiles.size()); ++i)
    text += fmt::format("{}({}, {})", i == 0 ? "" : ", ", tiles[i] / tile_columns, tiles[i] % tile_columns);
  if (tiles.size() > kShown) text += fmt::format(" and {} more", tiles.size() - kShown);
  return text;
}

/// Wrong results can be right by chance, one in a few hundred, so "whole" means at least nine in ten.
bool nearly_whole(std::int64_t wrong, std::int64_t all) {
  return wrong * 10 >= all * 9;
}
const char* completely(bool all) {
  return all ? "completely" : "almost completely";
}

/// "tile (1, 1)" when all wrong elements are in (nearly) whole tiles, otherwise nothing.
std::optional<std::string> whole_tiles(const Survey& survey) {
  const int rows = survey.tile_rows();
  const int columns = survey.tile_columns();
  std::vector<int> touched;
  std::vector<int> untouched;
  bool all = true;
  for (int tile = 0; tile < rows * columns; ++tile) {
    const std::int64_t height = std::min(survey.tile.m, survey.shape.m - tile / columns * survey.tile.m);
    const std::int64_t width = std::min(survey.tile.n, survey.shape.n - tile % columns * survey.tile.n);
    const std::int64_t wrong = survey.tile_wrong[at(tile)];
    if (wrong == 0) {
      untouched.push_back(tile);
    } else if (nearly_whole(wrong, height * width)) {
      touched.push_back(tile);
      all = all && wrong == height * width;
    } else {
      return std::nullopt;
    }
  }
  const std::string grid = fmt::format("{} x {} tiles", rows, columns);
  std::set<int> in_rows;
  std::set<int> in_columns;
  for (const int tile : touched) {
    in_rows.insert(tile / columns);
    in_columns.insert(tile % columns);
  }
  if (untouched.empty()) return fmt::format("each of the {}, {}.", grid, completely(all));
  if (touched.size() == 1)
    return fmt::format("{} tile {} of {} and nothing else.", all ? "the whole" : "nearly the whole",
                       tile_list(touched, columns), grid);
  if (at(static_cast<std::int64_t>(in_rows.size()) * columns) == touched.size())
    return fmt::format("tile row{} {} of {}, {}.", in_rows.size() == 1 ? "" : "s",
                       ranges({in_rows.begin(), in_rows.end()}), grid, completely(all));
  if (at(static_cast<std::int64_t>(in_columns.size()) * rows) == touched.size())
    return fmt::format("tile column{} {} of {}, {}.", in_columns.size() == 1 ? "" : "s",
                       ranges({in_columns.begin(), in_columns.end()}), grid, completely(all));
  if (untouched.size() <= 3) return fmt::format("all of the {} but {}.", grid, tile_list(untouched, columns));
  return fmt::format("{} of the {}, each {}: {}.", touched.size(), grid, completely(all),
                     tile_list(touched, columns));
}

/// Lines (rows or columns) that are wrong (nearly) from end to end and hold all wrong elements.
std::optional<std::string> whole_lines(const char* name, const std::vector<std::int64_t>& counts, int length,
                                       std::int64_t wrong) {
  const std::vector<int> lines = non_zero(counts);
  for (const int line : lines) {
    if (!nearly_whole(counts[at(line)], length)) return std::nullopt;
  }
  const bool all = static_cast<std::int64_t>(lines.size()) * length == wrong;
  return fmt::format("{}{} {}, {}from end to end.", name, lines.size() == 1 ? "" : "s", ranges(lines),
                     all ? "" : "almost ");
}

/// "Columns 3 mod 8: one column in 8." when the wrong lines repeat with a power of two.
std::string periodic(const char* name, const std::vector<std::int64_t>& counts) {
  const std::vector<int> lines = non_zero(counts);
  if (lines.size() < 2) return "";
  const int first = lines.front();
  const int last = lines.back();
  for (int period = 2; period <= 128 && last - first + 1 >= 2 * period; period *= 2) {
    std::set<int> residues;
    for (const int line : lines) residues.insert(line % period);
    if (static_cast<int>(residues.size()) > period / 2) continue;
    bool all = true;
    for (int line = first; line <= last; ++line)
      all = all && (!residues.contains(line % period) || counts[at(line)] != 0);
    if (!all) continue;
    return fmt::format(" The pattern repeats: {}s {} mod {}, {} in {}.", name,
                       ranges({residues.begin(), residues.end()}), period, residues.size(), period);
  }
  return "";
}

/// The part of a tile that the wrong lines stay in, or "".
std::string inside_tile(const char* name, const std::vector<int>& lines, int tile, int length) {
  int first = tile;
  int last = -1;
  for (const int line : lines) {
    first = std::min(first, line % tile);
    last = std::max(last, line % tile);
  }
  if (first == 0 && last >= std::min(tile, length) - 1) return "";
  return fmt::format("{}s {} to {}", name, first, last);
}

/// "row (24 of 128 rows)" when all wrong lines are in an incomplete last tile, otherwise "".
std::string ragged_edge(const char* name, const std::vector<int>& lines, int tile, int length) {
  const int last_begin = (length - 1) / tile * tile;
  if (last_begin == 0 || length == last_begin + tile || lines.front() < last_begin) return "";
  return fmt::format("{} ({} of {} {}s)", name, length - last_begin, tile, name);
}

/// The least that an accumulator can be from `sum` when it is rounded to `got`, which `sum` is not.
double distance_to_tie(gemm::bf16 got, double sum) {
  const double value = static_cast<double>(gemm::to_float(got));
  const bool up = sum > value;
  gemm::bf16 neighbour{static_cast<std::uint16_t>(up ? 0x0001 : 0x8001)};  // of a zero
  if (value != 0) neighbour.bits = static_cast<std::uint16_t>(got.bits + ((value > 0) == up ? 1 : -1));
  const double tie = (value + static_cast<double>(gemm::to_float(neighbour))) / 2;
  return std::max(0.0, up ? sum - tie : tie - sum);
}

}  // namespace

Wrong classify(gemm::bf16 low, gemm::bf16 high, gemm::bf16 got) {
  if (accepted(low, high, got)) return Wrong::kNot;
  if (got.bits == kPoison.bits) return Wrong::kNeverWritten;
  const unsigned magnitude = got.bits & 0x7fffu;
  const unsigned wanted = low.bits & 0x7fffu;
  if (wanted > 0x7f80) return magnitude > 0x7f80 ? Wrong::kNot : Wrong::kValue;
  if (wanted == 0x7f80) return Wrong::kValue;
  if (magnitude > 0x7f80) return Wrong::kNan;
  return magnitude == 0x7f80 ? Wrong::kInfinity : Wrong::kValue;
}

namespace {

Survey empty_survey(const gemm::Shape& shape, const gemm::TileShape& tile) {
  Survey result{.shape = shape, .tile = tile};
  result.tile.m = tile.m < 1 ? shape.m : std::min(tile.m, shape.m);
  result.tile.n = tile.n < 1 ? shape.n : std::min(tile.n, shape.n);
  result.row_wrong.resize(at(shape.m));
  result.row_value.resize(at(shape.m));
  result.column_wrong.resize(at(shape.n));
  result.tile_wrong.resize(at(static_cast<std::int64_t>(result.tile_rows()) * result.tile_columns()));
  return result;
}

/// Everything but row_wrong, which is there.
template <typename Classify>
void complete(Survey& result, const Classify& classify_at) {
  for (const std::int64_t count : result.row_wrong) result.wrong += count;
  if (result.wrong == 0) return;
  const gemm::Shape shape = result.shape;
  std::mutex mutex;
  parallel_for(result.tile_rows(), 1, [&](std::int64_t tile_row, std::int64_t) {
    std::vector<std::int64_t> columns(at(shape.n));
    std::array<std::int64_t, 5> kinds{};
    const std::int64_t end = std::min<std::int64_t>(shape.m, (tile_row + 1) * result.tile.m);
    for (std::int64_t row = tile_row * result.tile.m; row < end; ++row) {
      if (result.row_wrong[at(row)] == 0) continue;
      for (int column = 0; column < shape.n; ++column) {
        const Wrong wrong = classify_at(at(row * shape.n + column));
        if (wrong == Wrong::kNot) continue;
        ++kinds[static_cast<std::size_t>(wrong)];
        ++columns[at(column)];
        ++result.tile_wrong[at(tile_row * result.tile_columns() + column / result.tile.n)];
        if (wrong == Wrong::kValue) ++result.row_value[at(row)];
      }
    }
    const std::scoped_lock lock(mutex);
    for (int column = 0; column < shape.n; ++column) result.column_wrong[at(column)] += columns[at(column)];
    result.never_written += kinds[static_cast<std::size_t>(Wrong::kNeverWritten)];
    result.nan += kinds[static_cast<std::size_t>(Wrong::kNan)];
    result.infinity += kinds[static_cast<std::size_t>(Wrong::kInfinity)];
    result.value += kinds[static_cast<std::size_t>(Wrong::kValue)];
  });
}

}  // namespace

Survey survey(const gemm::Shape& shape, const gemm::TileShape& tile,
              const std::function<Wrong(std::size_t)>& classify) {
  Survey result = empty_survey(shape, tile);
  parallel_for(shape.m, row_grain(shape.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (int column = 0; column < shape.n; ++column)
        result.row_wrong[at(row)] += classify(at(row * shape.n + column)) == Wrong::kNot ? 0 : 1;
    }
  });
  complete(result, classify);
  return result;
}

Survey survey(const Acceptance& acceptance, const gemm::bf16* d, const gemm::TileShape& tile) {
  const gemm::Shape shape = acceptance.shape;
  const std::vector<gemm::bf16>& high = acceptance.high.empty() ? acceptance.low : acceptance.high;
  Survey result = empty_survey(shape, tile);

  // First only count: usually that is all there is to do, and this loop vectorizes.
  parallel_for(shape.m, row_grain(shape.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const gemm::bf16* low_row = &acceptance.low[at(row * shape.n)];
      const gemm::bf16* high_row = &high[at(row * shape.n)];
      const gemm::bf16* got = d + row * shape.n;
      int right = 0;
      for (int column = 0; column < shape.n; ++column)
        right += accepted(low_row[column], high_row[column], got[column]) ? 1 : 0;
      // What is to be NaN was counted as wrong.
      for (int column = 0; right < shape.n && column < shape.n; ++column) {
        if ((low_row[column].bits & 0x7fff) > 0x7f80)
          right += classify(low_row[column], high_row[column], got[column]) == Wrong::kNot ? 1 : 0;
      }
      result.row_wrong[at(row)] = shape.n - right;
    }
  });
  complete(result, [&](std::size_t index) { return classify(acceptance.low[index], high[index], d[index]); });
  return result;
}

double observed_error(const Acceptance& acceptance, const gemm::bf16* d, const Inputs& inputs) {
  constexpr std::int64_t kLookedAt = 1024;  // each costs a sum over K
  const int m = acceptance.shape.m;
  const int n = acceptance.shape.n;
  const auto is_off = [&](std::size_t index) {
    const float nearest = gemm::to_float(acceptance.nearest[index]);
    return std::isfinite(nearest) && gemm::to_float(d[index]) != nearest;
  };
  std::vector<std::int64_t> before(at(m) + 1);  // [m]: how many elements of the rows above are off
  parallel_for(m, row_grain(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      int off = 0;
      for (int column = 0; column < n; ++column) off += is_off(at(row * n + column)) ? 1 : 0;
      before[at(row) + 1] = off;
    }
  });
  for (std::size_t row = 1; row < before.size(); ++row) before[row] += before[row - 1];
  const std::int64_t step = std::max<std::int64_t>(1, before.back() / kLookedAt);

  std::mutex mutex;
  double largest = 0;
  parallel_for(m, 1, [&](std::int64_t row, std::int64_t) {
    std::int64_t ordinal = before[at(row)];
    if (ordinal == before[at(row) + 1]) return;
    double largest_here = 0;
    for (int column = 0; column < n; ++column) {
      const std::size_t index = at(row * n + column);
      if (!is_off(index) || ordinal++ % step != 0) continue;
      double sum = 0;
      double norm = 0;
      inputs.sum(static_cast<int>(row), column, sum, norm);
      const double result = inputs.result(static_cast<int>(row), column, sum);
      largest_here = std::max(largest_here, distance_to_tie(d[index], result));
    }
    const std::scoped_lock lock(mutex);
    largest = std::max(largest, largest_here);
  });
  return largest;
}

std::string explain_rounding(const Survey& survey, const std::function<bool(std::size_t)>& is_wrong,
                             const std::function<std::int64_t(std::size_t)>& step,
                             const std::function<bool(std::size_t)>& negative) {
  constexpr std::int64_t kFew = 4;
  if (survey.value < kFew || survey.value != survey.wrong) return "";
  bool nearer = true;  // to zero
  bool further = true;
  bool below = true;
  bool above = true;
  for (int row = 0; row < survey.shape.m; ++row) {
    if (survey.row_wrong[at(row)] == 0) continue;
    for (int column = 0; column < survey.shape.n; ++column) {
      const std::size_t index = at(gemm::offset(row, column, survey.shape.n));
      if (!is_wrong(index)) continue;
      const std::int64_t by = step(index);
      if (by != 1 && by != -1) return "";
      (by < 0 ? further : nearer) = false;
      ((by < 0) == negative(index) ? below : above) = false;
      if (!nearer && !further && !below && !above) return "";
    }
  }
  const char* const side = nearer    ? "toward zero"
                           : further ? "away from zero"
                           : below   ? "downward"
                                     : "upward";
  const char* const how = nearer    ? "toward zero, so the bits that do not fit D's type are cut off"
                          : further ? "away from zero"
                          : below   ? "down"
                                    : "up";
  return fmt::format(
      "  Each of these differs from the right result by one step of D's type, {}: the results are computed "
      "correctly, but they are rounded {}. Convert with round-to-nearest-even (cvt.rn).\n",
      side, how);
}

std::string describe_registers(const Survey& survey, const std::function<bool(std::size_t)>& is_wrong) {
  constexpr std::int64_t kFew = 64;
  constexpr int kRows = 16;  // of a fragment
  if (survey.wrong < kFew || survey.tile.m % kRows != 0 || survey.tile.n % 8 != 0) return "";
  std::int64_t wrong[2][2] = {};  // [row half][column of a pair]
  for (int row = 0; row < survey.shape.m; ++row) {
    if (survey.row_wrong[at(row)] == 0) continue;
    for (int column = 0; column < survey.shape.n; ++column) {
      if (is_wrong(at(gemm::offset(row, column, survey.shape.n))))
        ++wrong[row % kRows / (kRows / 2)][column % 2];
    }
  }
  std::string list;
  int classes = 0;
  for (int half = 0; half < 2; ++half) {
    for (int odd = 0; odd < 2; ++odd) {
      if (wrong[half][odd] == 0) continue;
      ++classes;
      list += fmt::format("{}the {} columns of rows {} of each 16", list.empty() ? "" : " and ",
                          odd == 0 ? "even" : "odd", half == 0 ? "0 to 7" : "8 to 15");
    }
  }
  // Half of all columns, or half of all rows, are other mistakes.
  const bool crossed = classes == 2 && (wrong[0][0] > 0) == (wrong[1][1] > 0);
  if (classes != 1 && !crossed) return "";
  return fmt::format(
      "  All of them are in {}. A thread's registers 0 to 3 in a 16 x 8 fragment hold two neighbouring "
      "columns of its upper row and then the same columns of the row 8 below: register j belongs to row j / "
      "2 and column j % 2. Here, one of the two was used instead of the other.\n",
      list);
}

std::string describe_place(const Survey& survey) {
  const auto [m, n, k] = survey.shape;
  const std::int64_t total = static_cast<std::int64_t>(m) * n;
  if (survey.wrong == total) return "every element of D.";
  if (survey.wrong * 100 >= total * 97)
    return "nearly every element of D; the few right ones are probably right by chance.";
  const std::vector<int> rows = non_zero(survey.row_wrong);
  const std::vector<int> columns = non_zero(survey.column_wrong);
  const std::string edge_row = ragged_edge("row", rows, survey.tile.m, m);
  const std::string edge_column = ragged_edge("column", columns, survey.tile.n, n);
  std::string edges;
  if (!edge_row.empty() || !edge_column.empty()) {
    edges = fmt::format(" All of them are in the incomplete last tile {}{}{}.", edge_row,
                        edge_row.empty() || edge_column.empty() ? "" : " and ", edge_column);
  }
  if (const auto text = whole_tiles(survey)) return *text + edges;
  const std::string repeats = periodic("row", survey.row_wrong) + periodic("column", survey.column_wrong);
  if (const auto text = whole_lines("row", survey.row_wrong, n, survey.wrong)) return *text + repeats + edges;
  if (const auto text = whole_lines("column", survey.column_wrong, m, survey.wrong))
    return *text + repeats + edges;
  if (survey.wrong == 1)
    return fmt::format("one element, D({}, {}); inside its tile that is ({}, {}).", rows[0], columns[0],
                       rows[0] % survey.tile.m, columns[0] % survey.tile.n);

  std::string text =
      fmt::format("{} elements in rows {} and columns {}", survey.wrong, ranges(rows), ranges(columns));
  const std::vector<int> tiles = non_zero(survey.tile_wrong);
  text += tiles.size() == 1 ? fmt::format(", all in tile {}", tile_list(tiles, survey.tile_columns()))
                            : fmt::format(", in {} of {} x {} tiles", tiles.size(), survey.tile_rows(),
                                          survey.tile_columns());
  const std::string in_rows = inside_tile("row", rows, survey.tile.m, m);
  const std::string in_columns = inside_tile("column", columns, survey.tile.n, n);
  if (!in_rows.empty() || !in_columns.empty())
    text += fmt::format("; in a tile, only {}{}{}", in_rows,
                        in_rows.empty() || in_columns.empty() ? "" : ", ", in_columns);
  return text + "." + repeats + edges;
}

}  // namespace harness
