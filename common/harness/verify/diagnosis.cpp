#include "harness/verify/diagnosis.h"

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

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// ---- Where
// ---------------------------------------------------------------------------------------------------

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
    return fmt::format(" It repeats: {}s {} mod {}, {} in {}.", name,
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

// ---- Why
// -----------------------------------------------------------------------------------------------------

/// Counts, for many candidates, how many samples each would explain.
class Tally {
 public:
  explicit Tally(std::int64_t candidates) : counts_(at(candidates)) {}
  void hit(std::int64_t candidate) { ++counts_[at(candidate)]; }
  /// The candidates with the highest count, if that is nearly all of the samples.
  std::vector<std::int64_t> winners(std::size_t samples) const {
    const int best = *std::max_element(counts_.begin(), counts_.end());
    if (best == 0 || best * 10 < static_cast<int>(samples) * 9) return {};
    std::vector<std::int64_t> winners;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == best) winners.push_back(static_cast<std::int64_t>(i));
    }
    return winners;
  }

 private:
  std::vector<int> counts_;
};

class Explainer {
 public:
  Explainer(const Acceptance& acceptance, const gemm::bf16* d, const Inputs& inputs,
            const gemm::TileShape& tile, const std::vector<Element>& samples)
      : acceptance_(acceptance),
        d_(d),
        inputs_(inputs),
        shape_(inputs.shape()),
        tile_k_(std::max(1, tile.k)),
        samples_(samples) {
    for (const auto [row, column] : samples_) {
      double sum = 0;
      double norm = 0;
      inputs_.sum(row, column, sum, norm);
      sums_.push_back(sum);
      norms_.push_back(norm);
    }
  }

  std::vector<std::string> run() {
    constexpr std::size_t kShown = 3;
    if (samples_.empty()) return {};
    explain_values();
    // Many candidates need several witnesses, or one of them fits by chance.
    if (samples_.size() >= 4) {
      explain_k();
      explain_stored_elsewhere();
      explain_operands();
    }
    if (found_.size() > kShown) found_.resize(kShown);
    return found_;
  }

 private:
  gemm::bf16 got(std::size_t sample) const {
    return d_[gemm::offset(samples_[sample].row, samples_[sample].column, shape_.n)];
  }

  /// Would a kernel whose accumulator ends at `sum` have stored what sample holds?
  bool matches(std::size_t sample, double sum) const {
    const double error = acceptance_.high.empty() ? 0 : accumulation_error(shape_.k, norms_[sample]);
    return accepted(gemm::to_bf16(static_cast<float>(sum - error)),
                    gemm::to_bf16(static_cast<float>(sum + error)), got(sample));
  }

  /// Is what sample holds the right result for D(row, column)?
  bool matches_element(std::size_t sample, std::int64_t row, std::int64_t column) const {
    if (row < 0 || row >= shape_.m || column < 0 || column >= shape_.n) return false;
    const std::size_t index = at(row * shape_.n + column);
    const gemm::bf16 low = acceptance_.low[index];
    return accepted(low, acceptance_.high.empty() ? low : acceptance_.high[index], got(sample));
  }

  template <typename Predicate>
  bool nearly_all(const Predicate& predicate) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < samples_.size(); ++i) count += predicate(i) ? 1 : 0;
    return count * 10 >= samples_.size() * 9;
  }

  void add(std::string text) { found_.push_back(std::move(text)); }

  void explain_values() {
    if (nearly_all([&](std::size_t i) { return (got(i).bits & 0x7fff) == 0; })) {
      add("they are all zero: nothing was accumulated, or zeros were stored instead of the accumulators.");
      return;
    }
    if (samples_.size() > 1 && nearly_all([&](std::size_t i) { return got(i).bits == got(0).bits; }))
      add(fmt::format("they all hold the same value, {}.", gemm::to_float(got(0))));
    if (nearly_all([&](std::size_t i) { return truncated(i); }))
      add("they are the right accumulators with the low 16 bits cut off: convert with "
          "round-to-nearest-even.");
    if (nearly_all([&](std::size_t i) { return matches(i, 2 * sums_[i]); }))
      add("they are twice the right result: everything was accumulated twice, or added to an old D.");
    if (nearly_all([&](std::size_t i) { return matches(i, -sums_[i]); }))
      add("they are the right result with the wrong sign.");
  }

  bool truncated(std::size_t sample) const {
    const double error = acceptance_.high.empty() ? 0 : accumulation_error(shape_.k, norms_[sample]);
    for (const double sum : {sums_[sample] - error, sums_[sample], sums_[sample] + error}) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(sum));
      if (got(sample).bits == bits >> 16) return true;
    }
    return false;
  }

  /// "k 32 to 47, k-tile 2 of 0 to 4"
  std::string k_range(int begin, int end) const {
    std::string text =
        begin + 1 == end ? fmt::format("k = {}", begin) : fmt::format("k = {} to {}", begin, end - 1);
    const int last_tile = (shape_.k - 1) / tile_k_;
    if (tile_k_ > 1 && begin % tile_k_ == 0 && (end % tile_k_ == 0 || end == shape_.k)) {
      const int first = begin / tile_k_;
      const int last = (end - 1) / tile_k_;
      text += first == last ? fmt::format(" (k-tile {} of 0 to {})", first, last_tile)
                            : fmt::format(" (k-tiles {} to {} of 0 to {})", first, last, last_tile);
    }
    return text;
  }

  /// Of several k that fit equally well, the one a kernel is most likely to get wrong.
  std::int64_t most_aligned(const std::vector<std::int64_t>& candidates) const {
    std::int64_t best = candidates.front();
    int best_rank = -1;
    for (const std::int64_t candidate : candidates) {
      int rank = 0;
      for (const int unit : {2, 4, 8, 16}) rank += candidate % unit == 0 ? 1 : 0;
      if (candidate % tile_k_ == 0 && tile_k_ > 1) rank += 10;
      if (rank > best_rank) {
        best_rank = rank;
        best = candidate;
      }
    }
    return best;
  }

  /// A part of K missing, doubled, or replaced by another.
  void explain_k() {
    const int k = shape_.k;
    const int padded = gemm::ceil_div(k, tile_k_) * tile_k_;
    std::vector<int> units;  // lengths of the pieces of K that may be missing or doubled
    for (const int unit : {tile_k_, 64, 32, 16, 8}) {
      if (unit > 1 && unit < k && std::find(units.begin(), units.end(), unit) == units.end())
        units.push_back(unit);
    }
    const int tiles = gemm::ceil_div(k, tile_k_);
    const bool try_replaced = tile_k_ > 1 && tiles > 1 && tiles <= 64;

    Tally stops(padded + 1);  // the sum covers k < candidate
    Tally starts(k + 1);      // the sum covers k >= candidate
    std::vector<Tally> missing;
    std::vector<Tally> doubled;
    for (const int unit : units) {
      missing.emplace_back(gemm::ceil_div(k, unit));
      doubled.emplace_back(gemm::ceil_div(k, unit));
    }
    Tally replaced(try_replaced ? static_cast<std::int64_t>(tiles) * tiles : 1);

    std::vector<double> prefix(at(padded) + 1);  // [k]: the sum of the products before k
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const std::int64_t a_row = gemm::offset(samples_[i].row, 0, k);
      const std::int64_t b_row = gemm::offset(samples_[i].column, 0, k);
      for (int j = 0; j < padded; ++j) {
        prefix[at(j) + 1] =
            prefix[at(j)] + inputs_.flat(Operand::kA, a_row + j) * inputs_.flat(Operand::kB, b_row + j);
      }
      const double total = prefix[at(k)];
      const auto piece = [&](int unit, int index) {
        return prefix[at(std::min(k, (index + 1) * unit))] - prefix[at(index) * at(unit)];
      };
      for (int j = 0; j <= padded; ++j) {
        if (j != k && matches(i, prefix[at(j)])) stops.hit(j);
      }
      for (int j = 1; j < k; ++j) {
        if (matches(i, total - prefix[at(j)])) starts.hit(j);
      }
      for (std::size_t u = 0; u < units.size(); ++u) {
        for (int index = 0; index * units[u] < k; ++index) {
          if (matches(i, total - piece(units[u], index))) missing[u].hit(index);
          if (matches(i, total + piece(units[u], index))) doubled[u].hit(index);
        }
      }
      if (!try_replaced) continue;
      for (int gone = 0; gone < tiles; ++gone) {
        for (int twice = 0; twice < tiles; ++twice) {
          if (gone != twice && matches(i, total - piece(tile_k_, gone) + piece(tile_k_, twice)))
            replaced.hit(gone * tiles + twice);
        }
      }
    }

    if (const auto winners = stops.winners(samples_.size()); !winners.empty()) {
      const auto stop = static_cast<int>(most_aligned(winners));
      if (stop > k) {
        add(
            fmt::format("the accumulation runs on to k = {}, past K = {}, into the next row of A and B: the "
                        "last, incomplete "
                        "k-tile is not zero-filled.",
                        stop - 1, k));
      } else if (stop > 0) {
        add(
            fmt::format("the end of K is missing: {}. Is the number of k-tiles rounded up, is the last one "
                        "multiplied?",
                        k_range(stop, k)));
        return;  // the same as a missing or short last piece
      }
    }
    if (const auto winners = starts.winners(samples_.size()); !winners.empty()) {
      add(fmt::format(
          "the beginning of K is missing: {}. Are the accumulators overwritten after the first k-tile?",
          k_range(0, static_cast<int>(most_aligned(winners)))));
      return;
    }
    for (std::size_t u = 0; u < units.size(); ++u) {
      const auto end = [&](std::int64_t index) {
        return std::min(k, static_cast<int>(index + 1) * units[u]);
      };
      if (const auto winners = missing[u].winners(samples_.size()); !winners.empty()) {
        add(fmt::format("a part of K is missing: {}.",
                        k_range(static_cast<int>(winners.front()) * units[u], end(winners.front()))));
        return;
      }
      if (const auto winners = doubled[u].winners(samples_.size()); !winners.empty()) {
        add(fmt::format("a part of K is counted twice: {}.",
                        k_range(static_cast<int>(winners.front()) * units[u], end(winners.front()))));
        return;
      }
    }
    if (const auto winners = replaced.winners(samples_.size()); try_replaced && !winners.empty()) {
      add(fmt::format(
          "k-tile {} is missing and k-tile {} is there twice: a stage was read before its copy arrived, or "
          "overwritten while it was still being read.",
          winners.front() / tiles, winners.front() % tiles));
    }
  }

  /// A right result in a wrong place.
  void explain_stored_elsewhere() {
    constexpr int kReach = 128;
    const std::int64_t m = shape_.m;
    const std::int64_t n = shape_.n;
    const bool transposed =
        nearly_all([&](std::size_t i) { return matches_element(i, samples_[i].column, samples_[i].row); });
    if (transposed)
      add("D(row, column) holds the result for D(column, row): the operands are swapped, or D is stored "
          "transposed.");
    else if (m != n && nearly_all([&](std::size_t i) {
               const std::int64_t flat = samples_[i].row * n + samples_[i].column;
               return matches_element(i, flat % m, flat / m);
             }))
      add("D is stored column by column: as N x M instead of M x N.");

    for (const int block : {8, 16, 32, 64, 128}) {
      if (transposed) break;  // of the whole, so also of every block that is not smaller
      const auto in_block = [&](std::size_t i) {
        const auto [row, column] = samples_[i];
        return matches_element(i, row - row % block + column % block, column - column % block + row % block);
      };
      if (!nearly_all(in_block)) continue;
      add(fmt::format(
          "each {} x {} block is transposed inside itself: look at the fragment layout (ldmatrix with or "
          "without .trans, rows and columns of the accumulator).",
          block, block));
      break;
    }

    Tally shifts((2 * kReach + 1) * (2 * kReach + 1));
    Tally masks(kReach * kReach);
    Tally pitches(2 * kReach + 3);
    const auto pitch = [&](std::int64_t candidate) {
      return candidate <= 2 * kReach ? n - kReach + candidate : (candidate == 2 * kReach + 1 ? m : shape_.k);
    };
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const auto [row, column] = samples_[i];
      for (int dr = -kReach; dr <= kReach; ++dr) {
        for (int dc = -kReach; dc <= kReach; ++dc) {
          if (matches_element(i, row + dr, column + dc))
            shifts.hit((dr + kReach) * (2 * kReach + 1) + dc + kReach);
        }
      }
      for (int r = 0; r < kReach; ++r) {
        for (int c = 0; c < kReach; ++c) {
          if (matches_element(i, row ^ r, column ^ c)) masks.hit(r * kReach + c);
        }
      }
      const std::int64_t flat = row * n + column;
      for (std::int64_t candidate = 0; candidate < 2 * kReach + 3; ++candidate) {
        const std::int64_t columns = pitch(candidate);
        if (columns > 0 && columns != n && matches_element(i, flat / columns, flat % columns))
          pitches.hit(candidate);
      }
    }
    if (const auto winners = pitches.winners(samples_.size()); !winners.empty()) {
      const std::int64_t columns = pitch(winners.front());
      add(fmt::format("D is stored with a row pitch (leading dimension) of {} elements instead of N = {}{}.",
                      columns, n, columns == m ? "; that is M" : (columns == shape_.k ? "; that is K" : "")));
      return;
    }
    // Shift and exclusive-or describe many of the same mistakes; the smaller one is easier to understand.
    if (const auto winners = masks.winners(samples_.size()); !winners.empty()) {
      const std::int64_t r = winners.front() / kReach;
      const std::int64_t c = winners.front() % kReach;
      add(fmt::format(
          "D(row, column) holds the result for D(row ^ {}, column ^ {}): a swizzle that only one side "
          "applies, or neighbours exchanged.",
          r, c));
      return;
    }
    if (const auto winners = shifts.winners(samples_.size()); !winners.empty()) {
      const std::int64_t dr = winners.front() / (2 * kReach + 1) - kReach;
      const std::int64_t dc = winners.front() % (2 * kReach + 1) - kReach;
      add(fmt::format(
          "D(row, column) holds the result for D(row {} {}, column {} {}): operands or results are off by "
          "that much.",
          dr < 0 ? '-' : '+', std::abs(dr), dc < 0 ? '-' : '+', std::abs(dc)));
    }
  }

  /// Operands read with the wrong pitch, or as if they were stored the other way round.
  void explain_operands() {
    const int k = shape_.k;
    struct Reading {
      std::int64_t row_step;
      std::int64_t k_step;
      std::string words;
    };
    const auto readings = [&](const char* name, const char* rows_name, int rows, const char* other_name,
                              int other) {
      std::vector<Reading> result{{k, 1, ""}};
      const auto add_pitch = [&](std::int64_t pitch, const std::string& origin) {
        for (const Reading& reading : result) {
          if (reading.k_step == 1 && reading.row_step == pitch) return;
        }
        if (pitch > 0)
          result.push_back(
              {pitch, 1,
               fmt::format("{} is read with a row pitch (leading dimension) of {}{} instead of K = {}", name,
                           pitch, origin, k)});
      };
      add_pitch(rows, fmt::format(" = {}", rows_name));
      add_pitch(other, fmt::format(" = {}", other_name));
      add_pitch(gemm::ceil_div(k, tile_k_) * tile_k_, ", K rounded up to whole k-tiles,");
      for (const int offset : {-8, -1, 1, 8}) add_pitch(k + offset, "");
      if (rows > 1 && k > 1)
        result.push_back({1, rows, fmt::format("{} is read as if it were stored K x {}", name, rows_name)});
      return result;
    };
    const std::vector<Reading> of_a = readings("A", "M", shape_.m, "N", shape_.n);
    const std::vector<Reading> of_b = readings("B", "N", shape_.n, "M", shape_.m);
    const std::size_t checked = std::min<std::size_t>(8, samples_.size());
    for (const Reading& a : of_a) {
      for (const Reading& b : of_b) {
        if (a.words.empty() && b.words.empty()) continue;
        bool fits = true;
        for (std::size_t i = 0; i < checked && fits; ++i) {
          double sum = 0;
          for (int j = 0; j < k; ++j) {
            sum += inputs_.flat(Operand::kA, samples_[i].row * a.row_step + j * a.k_step) *
                   inputs_.flat(Operand::kB, samples_[i].column * b.row_step + j * b.k_step);
          }
          fits = matches(i, sum);
        }
        if (!fits) continue;
        add(fmt::format("{}{}{}.", a.words, a.words.empty() || b.words.empty() ? "" : ", and ", b.words));
        return;
      }
    }
  }

  const Acceptance& acceptance_;
  const gemm::bf16* d_;
  const Inputs& inputs_;
  gemm::Shape shape_;
  int tile_k_;
  const std::vector<Element>& samples_;
  std::vector<double> sums_;
  std::vector<double> norms_;
  std::vector<std::string> found_;
};

}  // namespace

Wrong classify(gemm::bf16 low, gemm::bf16 high, gemm::bf16 got) {
  if (accepted(low, high, got)) return Wrong::kNot;
  if (got.bits == kPoison.bits) return Wrong::kNeverWritten;
  const unsigned magnitude = got.bits & 0x7fffu;
  if (magnitude > 0x7f80) return Wrong::kNan;
  return magnitude == 0x7f80 ? Wrong::kInfinity : Wrong::kValue;
}

Survey survey(const Acceptance& acceptance, const gemm::bf16* d, const gemm::TileShape& tile) {
  const gemm::Shape shape = acceptance.shape;
  const std::vector<gemm::bf16>& high = acceptance.high.empty() ? acceptance.low : acceptance.high;
  Survey result{.shape = shape, .tile = tile};
  result.tile.m = tile.m < 1 ? shape.m : std::min(tile.m, shape.m);
  result.tile.n = tile.n < 1 ? shape.n : std::min(tile.n, shape.n);
  result.row_wrong.resize(at(shape.m));
  result.row_value.resize(at(shape.m));

  // First only count: usually that is all there is to do, and this loop vectorizes.
  parallel_for(shape.m, row_grain(shape.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const gemm::bf16* low_row = &acceptance.low[at(row * shape.n)];
      const gemm::bf16* high_row = &high[at(row * shape.n)];
      const gemm::bf16* got = d + row * shape.n;
      int right = 0;
      for (int column = 0; column < shape.n; ++column)
        right += accepted(low_row[column], high_row[column], got[column]) ? 1 : 0;
      result.row_wrong[at(row)] = shape.n - right;
    }
  });
  for (const std::int64_t count : result.row_wrong) result.wrong += count;
  result.column_wrong.resize(at(shape.n));
  result.tile_wrong.resize(at(static_cast<std::int64_t>(result.tile_rows()) * result.tile_columns()));
  if (result.wrong == 0) return result;

  std::mutex mutex;
  parallel_for(result.tile_rows(), 1, [&](std::int64_t tile_row, std::int64_t) {
    std::vector<std::int64_t> columns(at(shape.n));
    std::array<std::int64_t, 5> kinds{};
    const std::int64_t end = std::min<std::int64_t>(shape.m, (tile_row + 1) * result.tile.m);
    for (std::int64_t row = tile_row * result.tile.m; row < end; ++row) {
      if (result.row_wrong[at(row)] == 0) continue;
      for (int column = 0; column < shape.n; ++column) {
        const std::size_t index = at(row * shape.n + column);
        const Wrong wrong = classify(acceptance.low[index], high[index], d[index]);
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
  return result;
}

std::string describe_place(const Survey& survey) {
  const auto [m, n, k] = survey.shape;
  const std::int64_t total = static_cast<std::int64_t>(m) * n;
  if (survey.wrong == total) return "every element of D.";
  if (survey.wrong * 100 >= total * 97)
    return "nearly every element of D; the few right ones look like chance.";
  const std::vector<int> rows = non_zero(survey.row_wrong);
  const std::vector<int> columns = non_zero(survey.column_wrong);
  const std::string edge_row = ragged_edge("row", rows, survey.tile.m, m);
  const std::string edge_column = ragged_edge("column", columns, survey.tile.n, n);
  std::string edges;
  if (!edge_row.empty() || !edge_column.empty()) {
    edges = fmt::format(" All of it is in the incomplete last tile {}{}{}.", edge_row,
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
    text += fmt::format("; inside the tile only {}{}{}", in_rows,
                        in_rows.empty() || in_columns.empty() ? "" : ", ", in_columns);
  return text + "." + repeats + edges;
}

double Inputs::flat(Operand operand, std::int64_t index) const {
  const InputRule& from = rule(operand);
  if (index < 0 || index >= static_cast<std::int64_t>(from.rows) * from.columns) return 0;
  const gemm::bf16 value = input_value(from, static_cast<int>(index / from.columns),
                                       static_cast<int>(index % from.columns), normal_quantiles());
  return static_cast<double>(gemm::to_float(value));
}

void Inputs::sum(int row, int column, double& value, double& norm) const {
  const int k = a_.columns;
  double squares = 0;
  value = 0;
  for (int i = 0; i < k; ++i) {
    const double product =
        flat(Operand::kA, gemm::offset(row, i, k)) * flat(Operand::kB, gemm::offset(column, i, k));
    value += product;
    squares += product * product;
  }
  norm = std::sqrt(squares);
}

std::vector<std::string> explain(const Acceptance& acceptance, const gemm::bf16* d, const Inputs& inputs,
                                 const gemm::TileShape& tile, const std::vector<Element>& samples) {
  return Explainer(acceptance, d, inputs, tile, samples).run();
}

}  // namespace harness
