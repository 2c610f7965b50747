#include "harness/verify/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace harness {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

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

std::vector<std::string> explain(const Acceptance& acceptance, const gemm::bf16* d, const Inputs& inputs,
                                 const gemm::TileShape& tile, const std::vector<Element>& samples) {
  return Explainer(acceptance, d, inputs, tile, samples).run();
}

}  // namespace harness
