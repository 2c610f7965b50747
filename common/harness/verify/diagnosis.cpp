#include "harness/verify/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace harness {
namespace {

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
        tile_m_(tile.m),
        tile_n_(tile.n),
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
    if (!inputs_.rules().epilogue.is_plain()) {
      explain_addends();
      if (found_.empty() && samples_.size() >= 4) explain_stored_elsewhere();
      return found_;
    }
    if (!inputs_.rules().groups.empty()) {
      explain_groups();
      return found_;
    }
    explain_values();
    // Many candidates need several witnesses, or one of them fits by chance.
    if (samples_.size() >= 4) {
      explain_k();
      if (found_.empty()) explain_swizzled_store();
      if (found_.empty()) explain_stored_elsewhere();
      explain_operands();
      // Longer shots, where nothing simpler fits.
      if (found_.empty()) explain_exchanged_stores();
      if (found_.empty()) explain_taken_corner();
      if (found_.empty()) explain_tiles();
      if (found_.empty()) explain_k_ranges();
      if (found_.empty()) explain_stale_edge();
      if (found_.empty()) explain_slices();
      if (found_.empty()) explain_fragments();
      if (found_.empty()) explain_row_groups();
      if (found_.empty()) explain_swizzled_loads();
      if (found_.empty()) explain_coordinates();
    }
    if (found_.size() > kShown) found_.resize(kShown);
    return found_;
  }

 private:
  gemm::bf16 got(std::size_t sample) const {
    return d_[gemm::offset(samples_[sample].row, samples_[sample].column, shape_.n)];
  }

  /// The B of another group, as far from the right one in nine of ten samples.
  void explain_groups() {
    const InputRules& rules = inputs_.rules();
    const auto groups = static_cast<int>(rules.groups.size());
    Tally distances(2 * groups - 1);
    Tally taken(groups);  // the group itself
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const auto [row, column] = samples_[i];
      const int right = rules.group_of(row);
      for (int group = 0; group < groups; ++group) {
        double sum = 0;
        double norm = 0;
        inputs_.sum_with(group, row, column, sum, norm);
        if (group == right || !matches(i, sum)) continue;
        distances.hit(group - right + groups - 1);
        taken.hit(group);
      }
    }
    const bool of_several = std::any_of(samples_.begin(), samples_.end(), [&](const Element& element) {
      return rules.group_of(element.row) != rules.group_of(samples_.front().row);
    });
    for (const std::int64_t winner : taken.winners(samples_.size())) {
      if (!of_several) break;
      found_.push_back(fmt::format(
          "the rows of all these groups are A times the B of group {0}, although they belong to different "
          "groups: the coordinate (or the address) from which B is loaded does not depend on the group. The "
          "B of group g begins {1} rows of B (N) after the B of group g - 1",
          winner, rules.n()));
    }
    if (!found_.empty()) return;
    for (const std::int64_t winner : distances.winners(samples_.size())) {
      const int distance = static_cast<int>(winner) - (groups - 1);
      const int right = rules.group_of(samples_.front().row);
      found_.push_back(fmt::format(
          "rows of group {0} are A times the B of group {1}: either a tile of group {1} was stored past that "
          "group's last row, or a tile of group {0} was taken for a tile of group {1}",
          right, right + distance));
    }
  }

  /// Would a kernel with this epilogue, C and bias have stored what nine in ten samples hold?
  template <typename SourceAt, typename BiasAt>
  bool epilogue_fits(const gemm::Epilogue& epilogue, const SourceAt& source, const BiasAt& bias) const {
    return results_fit([&](double sum, double error, int row, int column) {
      return accepted_results(epilogue, sum, error, source(row, column), bias(row, column));
    });
  }

  /// The same of one that makes this Interval of a sum, its error, the row and the column.
  template <typename Result>
  bool results_fit(const Result& result) const {
    const bool exact = is_exact(inputs_.rule(Operand::kA).pattern);
    return nearly_all([&](std::size_t i) {
      const auto [row, column] = samples_[i];
      const auto [low, high] =
          result(sums_[i], exact ? 0 : accumulation_error(shape_.k, norms_[i]), row, column);
      return accepted(gemm::to_bf16(static_cast<float>(low)), gemm::to_bf16(static_cast<float>(high)),
                      got(i));
    });
  }

  /// The steps of the epilogue in another order.
  void explain_order() {
    const InputRules& rules = inputs_.rules();
    const gemm::Epilogue& asked = rules.epilogue;
    const bool bends = asked.activation != gemm::Activation::kNone;
    const bool has_bias = asked.bias != gemm::Bias::kNone;
    gemm::Epilogue changed = asked;
    const auto c = [&](int row, int column) { return source_at(rules, row, column); };
    const auto bias = [&](int row, int column) { return bias_at(rules, row, column); };
    const auto plus = [](const Interval& value, double more) {
      return Interval{value.low + more, value.high + more};
    };
    // Large numbers hide what an activation does, and then two orders may fit.
    const bool unknown = found_.empty();
    const auto try_order = [&](bool applies, const auto& result, const char* sentence) {
      if (applies && unknown && results_fit(result)) add(sentence);
    };
    try_order(
        bends && has_bias,
        [&](double sum, double error, int row, int column) {
          return plus(accepted_results(asked, sum, error, c(row, column), 0), bias(row, column));
        },
        "the activation is applied before the bias is added, f(x) + bias instead of f(x + bias).");
    changed.beta = 0;
    try_order(
        bends && asked.beta != 0,
        [&](double sum, double error, int row, int column) {
          return plus(accepted_results(changed, sum, error, 0, bias(row, column)),
                      static_cast<double>(asked.beta) * c(row, column));
        },
        "the activation is applied before beta * C is added, f(x) + beta * C instead of f(x + beta * C).");
    const auto alpha = static_cast<double>(asked.alpha);
    try_order(
        asked.alpha != 1 && has_bias,
        [&](double sum, double error, int row, int column) {
          return accepted_results(asked, sum, error, c(row, column), alpha * bias(row, column));
        },
        "alpha multiplies the bias as well: the bias is added to the sum before alpha is applied.");
    changed = asked;
    changed.alpha = 1;
    try_order(
        asked.alpha != 1 && bends,
        [&](double sum, double error, int row, int column) {
          const Interval value = accepted_results(changed, sum, error, c(row, column), bias(row, column));
          return Interval{std::min(alpha * value.low, alpha * value.high),
                          std::max(alpha * value.low, alpha * value.high)};
        },
        "alpha is applied after the activation instead of to the sum.");
  }

  /// Mistakes in what the epilogue adds, and in what it does with it.
  void explain_addends() {
    const InputRules& rules = inputs_.rules();
    const gemm::Epilogue& asked = rules.epilogue;
    const auto c = [&](int row, int column) { return source_at(rules, row, column); };
    const auto bias = [&](int row, int column) { return bias_at(rules, row, column); };
    const auto none = [](int, int) { return 0.0; };
    const auto try_epilogue = [&](const gemm::Epilogue& epilogue, const std::string& sentence) {
      if (!(epilogue == asked) && epilogue_fits(epilogue, c, bias)) add(sentence);
    };
    const auto try_source = [&](const auto& source, const char* sentence) {
      if (asked.beta != 0 && found_.empty() && epilogue_fits(asked, source, bias)) add(sentence);
    };
    const auto try_bias = [&](const auto& other, const char* sentence) {
      if (asked.bias != gemm::Bias::kNone && found_.empty() && epilogue_fits(asked, c, other)) add(sentence);
    };
    gemm::Epilogue other = asked;
    other.alpha = 1;
    try_epilogue(other, "alpha is missing: the sum is not scaled.");
    other = asked;
    other.beta = 1;
    if (asked.beta != 0) try_epilogue(other, "beta is missing: C is added without its factor.");
    other = asked;
    other.activation = gemm::Activation::kNone;
    try_epilogue(other, "the activation is missing.");
    for (const gemm::Activation activation :
         {gemm::Activation::kRelu, gemm::Activation::kLeakyRelu, gemm::Activation::kGelu,
          gemm::Activation::kGeluErf, gemm::Activation::kSilu}) {
      other.activation = activation;
      if (asked.activation != gemm::Activation::kNone && found_.empty())
        try_epilogue(other, fmt::format("the activation is {} instead of {}.", to_string(activation),
                                        to_string(asked.activation)));
    }
    try_source(none, "beta * C is missing.");
    try_source([&](int row, int column) { return c(column, row); },
               "C is transposed: C(column, row) is added.");
    try_source([&](int row, int column) { return 2 * c(row, column); }, "beta * C is added twice.");
    for (const auto& [rows, columns] :
         {std::pair(0, tile_n_), std::pair(0, -tile_n_), std::pair(tile_m_, 0), std::pair(-tile_m_, 0),
          std::pair(0, 64), std::pair(0, -64), std::pair(64, 0), std::pair(-64, 0)}) {
      const auto moved = [&, i = rows, j = columns](int row, int column) { return c(row + i, column + j); };
      const bool of_subtile = std::abs(rows + columns) == 64;
      try_source(moved,
                 of_subtile
                     ? "C of the neighbouring subtile of 64 x 64 is added instead of the subtile's own."
                     : "C of the neighbouring tile is added instead of the tile's own.");
    }
    try_source(
        [&](int row, int column) {
          const std::int64_t index = static_cast<std::int64_t>(row) * (rules.c.columns + 8) + column;
          return c(static_cast<int>(index / rules.c.columns), static_cast<int>(index % rules.c.columns));
        },
        "C is read with a row pitch (leading dimension) that is 8 too large.");
    if (rules.c.columns != shape_.n) {
      try_source(
          [&](int row, int column) {
            const std::int64_t index = static_cast<std::int64_t>(row) * shape_.n + column;
            return c(static_cast<int>(index / rules.c.columns), static_cast<int>(index % rules.c.columns));
          },
          "C is read with the row pitch of D instead of its own.");
    }
    try_bias(none, "the bias is missing.");
    try_bias([&](int row, int column) { return bias(column, row); },
             "the bias is indexed by the row instead of the column, or the other way round.");
    try_bias([&](int row, int column) { return bias(row % tile_m_, column % tile_n_); },
             "the bias is indexed inside the tile: the row or column where the tile begins is not added to "
             "the index.");
    for (const int by : {8, -8, 1, -1})
      try_bias([&](int row, int column) { return bias(row + by, column + by); },
               "the bias is read a few elements too early or too late.");
    for (const auto& [rows, columns] :
         {std::pair(tile_m_, tile_n_), std::pair(-tile_m_, -tile_n_), std::pair(64, 64), std::pair(-64, -64)})
      try_bias([&, i = rows, j = columns](int row, int column) { return bias(row + i, column + j); },
               std::abs(rows) == 64 && std::abs(columns) == 64
                   ? "the bias of the neighbouring subtile of 64 x 64 is added instead of the subtile's own."
                   : "the bias of the neighbouring tile is added instead of the tile's own.");
    explain_order();
  }

  /// Would a kernel whose accumulator ends at `sum` have stored what sample holds?
  bool matches(std::size_t sample, double sum) const {
    return matches_value(got(sample), sum, norms_[sample]);
  }
  bool matches_value(gemm::bf16 value, double sum, double norm) const {
    const double error = acceptance_.high.empty() ? 0 : accumulation_error(shape_.k, norm);
    return accepted(gemm::to_bf16(static_cast<float>(sum - error)),
                    gemm::to_bf16(static_cast<float>(sum + error)), value);
  }

  /// Is what sample holds the right result for D(row, column)?
  bool matches_element(std::size_t sample, std::int64_t row, std::int64_t column) const {
    if (row < 0 || row >= shape_.m || column < 0 || column >= shape_.n) return false;
    const std::size_t index = at(row * shape_.n + column);
    const gemm::bf16 low = acceptance_.low[index];
    return accepted(low, acceptance_.high.empty() ? low : acceptance_.high[index], got(sample));
  }

  /// Is D right at (row, column)?
  bool is_right(std::int64_t row, std::int64_t column) const {
    if (row < 0 || row >= shape_.m || column < 0 || column >= shape_.n) return false;
    const std::size_t index = at(row * shape_.n + column);
    const gemm::bf16 low = acceptance_.low[index];
    return accepted(low, acceptance_.high.empty() ? low : acceptance_.high[index], d_[index]);
  }

  /// Nine in ten samples, like nearly_all; gives up as soon as that is out of reach.
  template <typename Sum>
  bool sums_fit(const Sum& sum) const {
    std::size_t misses = 0;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (matches(i, sum(samples_[i]))) continue;
      if (++misses * 10 > samples_.size()) return false;
    }
    return true;
  }

  double a_at(std::int64_t row, std::int64_t k) const { return at_or_zero(Operand::kA, row, k, shape_.m); }
  double b_at(std::int64_t row, std::int64_t k) const { return at_or_zero(Operand::kB, row, k, shape_.n); }
  double at_or_zero(Operand operand, std::int64_t row, std::int64_t k, int rows) const {
    return row < 0 || row >= rows || k < 0 || k >= shape_.k ? 0 : inputs_.flat(operand, row * shape_.k + k);
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
    // Far beyond any sum of these inputs: bits that no arithmetic of theirs has made.
    if (nearly_all([&](std::size_t i) { return std::abs(gemm::to_float(got(i))) > 1e30f; })) {
      add(fmt::format(
          "they are as large as {:.2g}, which is more than any sum of these inputs: the accumulators were "
          "never initialised. Zero them, or let the first wgmma (or mma) of a tile overwrite them.",
          gemm::to_float(got(0))));
      return;
    }
    if (samples_.size() > 1 && nearly_all([&](std::size_t i) { return got(i).bits == got(0).bits; }))
      add(fmt::format("they all hold the same value, {}.", gemm::to_float(got(0))));
    else if (const auto offset = common_offset())
      add(fmt::format("each of them is the right result plus {}: the accumulators do not start at zero.",
                      *offset));
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

  /// The number that was added to every sum, as far as it can be told: neither 0 nor lost in the rounding.
  std::optional<double> common_offset() const {
    if (samples_.size() < 4) return std::nullopt;
    double low = -1e300;
    double high = 1e300;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const auto value = static_cast<double>(gemm::to_float(got(i)));
      const double error =
          std::abs(value) / 256 + (acceptance_.high.empty() ? 0 : accumulation_error(shape_.k, norms_[i]));
      low = std::max(low, value - error - sums_[i]);
      high = std::min(high, value + error - sums_[i]);
    }
    if (low > high || (low <= 0 && high >= 0)) return std::nullopt;
    const double middle = (low + high) / 2;
    const double rounded =
        low <= std::round(middle) && std::round(middle) <= high ? std::round(middle) : middle;
    if (!nearly_all([&](std::size_t i) { return matches(i, sums_[i] + rounded); })) return std::nullopt;
    return rounded;
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

  /// Where the first `start` elements of K are missing: which multiplication overwrites the accumulators.
  std::string overwritten_by(int start) const {
    constexpr int kSlice = 16;  // of one instruction
    if (start >= tile_k_ || start % kSlice != 0) {
      return start == tile_k_ || start % tile_k_ != 0
                 ? "Are the accumulators overwritten after the first k-tile?"
                 : fmt::format("Are the accumulators overwritten by k-tile {}?", start / tile_k_);
    }
    return fmt::format(
        "This is only a part of the first k-tile, which has {} elements of K: its multiplication at k = {} "
        "overwrites the accumulators{}. Only the first multiplication of a tile of D, at k = 0, may "
        "overwrite them (scale-d 0). All others must add to them, also in the first k-tile.",
        tile_k_, start,
        start > kSlice
            ? fmt::format(", and so does each multiplication before it (each is {} elements of K long)",
                          kSlice)
            : std::string());
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
            fmt::format("the accumulation continues to k = {}, beyond K = {} and into the next row of A and "
                        "B: the last, incomplete k-tile is not filled with zeros.",
                        stop - 1, k));
      } else if (stop > 0) {
        add(
            fmt::format("the end of K is missing: {}. Is the number of k-tiles rounded up, and is the last "
                        "one multiplied?",
                        k_range(stop, k)));
        return;  // the same as a missing or short last piece
      }
    }
    if (const auto winners = starts.winners(samples_.size()); !winners.empty()) {
      const auto start = static_cast<int>(most_aligned(winners));
      add(fmt::format("the beginning of K is missing: {}. {}", k_range(0, start), overwritten_by(start)));
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
      add(
          fmt::format("k-tile {} is missing and k-tile {} is counted twice: a stage was read before its copy "
                      "arrived, or overwritten while it was still being read.",
                      winners.front() / tiles, winners.front() % tiles));
    }
  }

  static constexpr std::int64_t kReach = 128;  // of a shift
  static std::pair<std::int64_t, std::int64_t> shift(std::int64_t candidate) {
    return {candidate / (2 * kReach + 1) - kReach, candidate % (2 * kReach + 1) - kReach};
  }
  /// Whether a shift fits, and what it says lies elsewhere is right there, too.
  bool shift_of_copies(const Tally& shifts) const {
    const auto winners = shifts.winners(samples_.size());
    if (winners.empty()) return false;
    const auto [dr, dc] = shift(winners.front());
    return !loaded_twice(dr, dc).empty();
  }
  /// What is right where it belongs, too, has been loaded twice, and not stored elsewhere.
  std::string loaded_twice(std::int64_t dr, std::int64_t dc) const {
    if ((dr != 0 && dc != 0) ||
        !nearly_all([&](std::size_t i) { return is_right(samples_[i].row + dr, samples_[i].column + dc); }))
      return {};
    const std::int64_t distance = dr + dc;
    const char* operand = dr == 0 ? "B" : "A";
    return fmt::format(
        " The result is right at that place as well, so it was not stored in the wrong place: a part of {} "
        "was loaded or read from {} rows {} its own rows. Check the coordinates with which that part is "
        "loaded, and where its descriptor (or its address) begins in the stage.",
        operand, std::abs(distance), distance < 0 ? "before" : "after");
  }

  /// A right result in a wrong place.
  void explain_stored_elsewhere() {
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
      add(
          fmt::format("each {} x {} block is transposed in place: check the fragment layout (ldmatrix with "
                      "or without .trans, or the rows and columns of the accumulator).",
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
      for (std::int64_t dr = -kReach; dr <= kReach; ++dr) {
        for (std::int64_t dc = -kReach; dc <= kReach; ++dc) {
          if (matches_element(i, row + dr, column + dc))
            shifts.hit((dr + kReach) * (2 * kReach + 1) + dc + kReach);
        }
      }
      for (std::int64_t r = 0; r < kReach; ++r) {
        for (std::int64_t c = 0; c < kReach; ++c) {
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
      add(fmt::format(
          "D is stored with a row pitch (leading dimension) of {0} elements{2} instead of N = {1}.", columns,
          n, columns == m ? " (which is M)" : (columns == shape_.k ? " (which is K)" : "")));
      return;
    }
    // By whole tiles: explain_tiles() says so in its words.
    const auto whole_tiles = [&](std::int64_t rows, std::int64_t columns) {
      return tile_m_ > 0 && tile_n_ > 0 && rows % tile_m_ == 0 && columns % tile_n_ == 0;
    };
    // Shift and exclusive-or describe many of the same mistakes; the smaller one is easier to understand.
    if (const auto winners = masks.winners(samples_.size()); !winners.empty() && !shift_of_copies(shifts)) {
      const std::int64_t r = winners.front() / kReach;
      const std::int64_t c = winners.front() % kReach;
      if (whole_tiles(r, c)) return;
      add(
          fmt::format("D(row, column) holds the result for D(row ^ {}, column ^ {}): either only one side "
                      "applies a swizzle, or neighbours are exchanged.",
                      r, c));
      return;
    }
    if (const auto winners = shifts.winners(samples_.size()); !winners.empty()) {
      const auto [dr, dc] = shift(winners.front());
      if (whole_tiles(dr, dc)) return;
      add(fmt::format(
          "D(row, column) holds the result for D(row {} {}, column {} {}): the operands or the results are "
          "shifted by that much.{}",
          dr < 0 ? '-' : '+', std::abs(dr), dc < 0 ? '-' : '+', std::abs(dc), loaded_twice(dr, dc)));
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
      add_pitch(std::int64_t{gemm::ceil_div(k, tile_k_)} * tile_k_, ", K rounded up to whole k-tiles,");
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

  /// One operand's tile begins where the other operand's does.
  void explain_taken_corner() {
    if (tile_m_ < 1 || tile_n_ < 1) return;
    const auto sum = [&](std::int64_t a_row, std::int64_t b_row) {
      double total = 0;
      for (int k = 0; k < shape_.k; ++k) total += a_at(a_row, k) * b_at(b_row, k);
      return total;
    };
    if (sums_fit([&](const Element& element) {
          return sum(element.row, element.row / tile_m_ * tile_m_ + element.column % tile_n_);
        })) {
      add("the tiles of B begin at the row of D's tile, as those of A do, instead of at its column: a "
          "coordinate is wrong in the copies of B, and the copies of A are right.");
    } else if (sums_fit([&](const Element& element) {
                 return sum(element.column / tile_n_ * tile_n_ + element.row % tile_m_, element.column);
               })) {
      add("the tiles of A begin at the column of D's tile, as those of B do, instead of at its row: a "
          "coordinate is wrong in the copies of A, and the copies of B are right.");
    }
  }

  /// What another work tile has left, or what belongs to another one.
  void explain_tiles() {
    constexpr std::int64_t kMostTiles = 512;
    constexpr int kTried = 8;
    if (tile_m_ < 1 || tile_n_ < 1) return;
    const int rows = gemm::ceil_div(shape_.m, tile_m_);
    const int columns = gemm::ceil_div(shape_.n, tile_n_);
    if (rows * columns < 2 || static_cast<std::int64_t>(rows) * columns > kMostTiles) return;
    std::vector<int> tried;
    for (const auto [row, column] : samples_) {
      const int tile = row / tile_m_ * columns + column / tile_n_;
      if (std::find(tried.begin(), tried.end(), tile) != tried.end()) continue;
      tried.push_back(tile);
      if (tried.size() > kTried) return;
      for (int other = 0; other < rows * columns; ++other) {
        if (other == tile) continue;
        const auto name = [&](int t) { return fmt::format("({}, {})", t / columns, t % columns); };
        if (tile_holds(tile, other, columns, true)) {
          add(fmt::format(
              "tile {} holds its own result plus that of tile {}: the accumulators were not zeroed between "
              "two work tiles (the first multiplication of a tile must overwrite them: scale-d 0).",
              name(tile), name(other)));
          return;
        }
        if (tile_holds(tile, other, columns, false)) {
          add(
              fmt::format("tile {} holds the result of tile {}: either it was loaded for one work tile and "
                          "stored as another, or the row and the column of the work tile are exchanged.",
                          name(tile), name(other)));
          return;
        }
      }
    }
  }

  /// Does `tile` hold what belongs to `other`, added to its own result or instead of it?
  bool tile_holds(int tile, int other, int columns, bool added) const {
    constexpr int kPlaces = 16;
    const int row0 = tile / columns * tile_m_;
    const int column0 = tile % columns * tile_n_;
    const int height = std::min(tile_m_, shape_.m - row0);
    const int width = std::min(tile_n_, shape_.n - column0);
    int misses = 0;
    int inside = 0;
    for (int place = 0; place < kPlaces; ++place) {
      const int r =
          static_cast<int>(random_bits(1, static_cast<std::uint64_t>(place)) % static_cast<unsigned>(height));
      const int c =
          static_cast<int>(random_bits(2, static_cast<std::uint64_t>(place)) % static_cast<unsigned>(width));
      const int other_row = other / columns * tile_m_ + r;
      const int other_column = other % columns * tile_n_ + c;
      double sum = 0;
      double norm = 0;
      if (other_row < shape_.m && other_column < shape_.n) {
        inputs_.sum(other_row, other_column, sum, norm);
        ++inside;
      }
      if (added) {
        double own = 0;
        double own_norm = 0;
        inputs_.sum(row0 + r, column0 + c, own, own_norm);
        sum += own;
        norm += own_norm;
      }
      if (!matches_value(d_[gemm::offset(row0 + r, column0 + c, shape_.n)], sum, norm) && ++misses > 1)
        return false;
    }
    return inside > kPlaces / 2;
  }

  /// A range of k-tiles of one tile of D that is multiplied in place of another one of the same length.
  void explain_k_ranges() {
    constexpr int kMostKTiles = 64;
    constexpr std::size_t kPlaces = 16;
    const int k_tiles = gemm::ceil_div(shape_.k, tile_k_);
    if (tile_m_ < 1 || tile_n_ < 1 || k_tiles < 3 || k_tiles > kMostKTiles) return;
    const int row0 = samples_[0].row / tile_m_ * tile_m_;
    const int column0 = samples_[0].column / tile_n_ * tile_n_;
    struct Place {
      gemm::bf16 got;
      double norm;
      std::vector<double> prefix;  // [k-tile]: the sum of the products before it
    };
    std::vector<Place> places;
    for (std::uint64_t i = 0; i < kPlaces; ++i) {
      const auto pick = [&](std::uint64_t key, int first, int tile, int end) {
        return first + static_cast<int>(random_bits(key, i) %
                                        static_cast<std::uint64_t>(std::min(tile, end - first)));
      };
      const int row = pick(3, row0, tile_m_, shape_.m);
      const int column = pick(4, column0, tile_n_, shape_.n);
      Place place{d_[gemm::offset(row, column, shape_.n)], 0, {0}};
      double sum = 0;
      inputs_.sum(row, column, sum, place.norm);
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        double part = 0;
        for (int j = 0; j < tile_k_; ++j)
          part += a_at(row, k_tile * tile_k_ + j) * b_at(column, k_tile * tile_k_ + j);
        place.prefix.push_back(place.prefix.back() + part);
      }
      places.push_back(std::move(place));
    }
    const auto fits = [&](int gone, int instead, int length) {
      std::size_t misses = 0;
      for (const Place& place : places) {
        const auto part = [&](int first) {
          return place.prefix[at(std::min(first + length, k_tiles))] -
                 place.prefix[at(std::min(first, k_tiles))];
        };
        if (!matches_value(place.got, place.prefix.back() - part(gone) + part(instead), place.norm) &&
            ++misses > 1)
          return false;
      }
      return true;
    };
    const auto words = [&](int first, int length) {
      const int last = std::min(first + length, k_tiles) - 1;
      return first == last ? fmt::format("k-tile {}", first) : fmt::format("k-tiles {} to {}", first, last);
    };
    for (int length = 1; length < k_tiles; ++length) {
      for (int gone = 0; gone + length <= k_tiles; ++gone) {
        for (int instead = 0; instead <= k_tiles; ++instead) {
          if (instead == gone || !fits(gone, instead, length)) continue;
          add(fmt::format(
              "in tile ({}, {}), {} {} missing, and {}: a part of the tile is multiplied at the wrong k. A "
              "work tile that begins in the middle of its range must continue at the beginning of the range, "
              "not past its end.",
              row0 / tile_m_, column0 / tile_n_, words(gone, length), length == 1 ? "is" : "are",
              instead == k_tiles
                  ? "columns beyond K are multiplied instead"
                  : words(instead, length) + (length == 1 ? " is" : " are") + " counted twice"));
          return;
        }
      }
    }
  }

  /// What an earlier k-tile has left behind the end of K, in the last, incomplete one.
  void explain_stale_edge() {
    const int last = (shape_.k - 1) / tile_k_;
    const int inside = shape_.k - last * tile_k_;  // of the last k-tile
    if (tile_k_ < 2 || inside == tile_k_ || last == 0) return;
    for (int other = last - 1; other >= 0; --other) {
      const bool fits = sums_fit([&](const Element& element) {
        double sum = 0;
        for (int k = 0; k < shape_.k; ++k) sum += a_at(element.row, k) * b_at(element.column, k);
        for (int k = other * tile_k_ + inside; k < (other + 1) * tile_k_; ++k)
          sum += a_at(element.row, k) * b_at(element.column, k);
        return sum;
      });
      if (!fits) continue;
      add(
          fmt::format("the values beyond K were not zero: columns {} to {} of the last, incomplete k-tile {} "
                      "(k = {} to {}) still hold values of k-tile {}, which was in the same registers or "
                      "stage before. Set them to zero in every k-tile, not only once.",
                      inside, tile_k_ - 1, last, shape_.k, (last + 1) * tile_k_ - 1, other));
      return;
    }
  }

  /// Blocks of 8 x 8 of an operand in each other's place: what ldmatrix is told by its lanes.
  void explain_fragments() {
    struct Reading {
      const char* words;
      Element (*from)(int row, int k);
    };
    static constexpr Reading kReadings[] = {
        {"",
         [](int row, int k) {
           return Element{row, k};
         }},
        {"in each 16 x 16 block of {}, the 8 x 8 blocks at (rows 0-7, k 8-15) and (rows 8-15, k 0-7) are "
         "exchanged: they are matrices 1 and 2 of ldmatrix.x4",
         [](int row, int k) {
           return Element{(row & ~8) | (k & 8), (k & ~8) | (row & 8)};
         }},
        {"in {}, k 0-7 and k 8-15 of every 16 are exchanged",
         [](int row, int k) {
           return Element{row, k ^ 8};
         }},
        {"in {}, rows 0-7 and rows 8-15 of every 16 are exchanged",
         [](int row, int k) {
           return Element{row ^ 8, k};
         }},
        {"each 8 x 8 block of {} is transposed: ldmatrix has .trans where it must not, or lacks it",
         [](int row, int k) {
           return Element{(row & ~7) | (k & 7), (k & ~7) | (row & 7)};
         }}};
    const int padded = gemm::ceil_div(shape_.k, 16) * 16;
    for (const Reading& a : kReadings) {
      for (const Reading& b : kReadings) {
        if (a.words[0] == 0 && b.words[0] == 0) continue;
        const bool fits = sums_fit([&](const Element& element) {
          double sum = 0;
          for (int k = 0; k < padded; ++k) {
            const Element of_a = a.from(element.row, k);
            const Element of_b = b.from(element.column, k);
            sum += a_at(of_a.row, of_a.column) * b_at(of_b.row, of_b.column);
          }
          return sum;
        });
        if (!fits) continue;
        const std::string of_a = fmt::format(fmt::runtime(a.words), "A");
        const std::string of_b = fmt::format(fmt::runtime(b.words), "B");
        add(fmt::format("{}{}{}. Check the address that each lane gives, and the order of the registers.",
                        of_a, of_a.empty() || of_b.empty() ? "" : ", and ", of_b));
        return;
      }
    }
  }

  /// Groups of 8 rows at a wrong distance: stride_bytes in the descriptor of wgmma.
  void explain_row_groups() {
    constexpr int kRows = 8;        // of a group
    constexpr int kWgmmaRows = 64;  // of A
    if (tile_n_ < 1) return;
    for (const int of_a : {kRows, 0, 1, 2, 4}) {
      for (const int of_b : {kRows, 0, 1, 2, 4}) {
        if (of_a == kRows && of_b == kRows) continue;
        const auto from = [](int row, int block, int distance) {
          return row / block * block + row % block / kRows * distance + row % kRows;
        };
        const bool fits = sums_fit([&](const Element& element) {
          const int row = from(element.row, kWgmmaRows, of_a);
          const int column = from(element.column, tile_n_, of_b);
          double sum = 0;
          for (int k = 0; k < shape_.k; ++k) sum += a_at(row, k) * b_at(column, k);
          return sum;
        });
        if (!fits) continue;
        const auto words = [&](const char* name, int distance) {
          return fmt::format("groups of 8 rows of {} are read {} rows apart instead of 8", name, distance);
        };
        const int distance = of_a == kRows ? of_b : of_a;
        add(
            fmt::format("{}{}{}: the descriptor's stride_bytes is {}/8 of what it must be (1024 with the "
                        "128-byte swizzle).",
                        of_a == kRows ? "" : words("A", of_a), of_a == kRows || of_b == kRows ? "" : ", and ",
                        of_b == kRows ? "" : words("B", of_b), distance));
        return;
      }
    }
  }

  /// The steps of 16 along K inside a k-tile: some skipped, some twice, or at a wrong distance.
  void explain_slices() {
    constexpr int kSlice = 16;
    const int slices = tile_k_ / kSlice;
    if (slices < 2 || slices > 8 || tile_k_ % kSlice != 0) return;
    using Starts = std::vector<int>;  // where each slice begins
    Starts right;
    for (int i = 0; i < slices; ++i) right.push_back(kSlice * i);
    const auto sum = [&](const Element& element, const Starts& a, const Starts& b) {
      double total = 0;
      for (int k0 = 0; k0 < shape_.k; k0 += tile_k_) {
        for (std::size_t i = 0; i < a.size(); ++i) {
          for (int j = 0; j < kSlice; ++j)
            total += a_at(element.row, k0 + a[i] + j) * b_at(element.column, k0 + b[i] + j);
        }
      }
      return total;
    };
    const auto fits = [&](const Starts& a, const Starts& b) {
      return sums_fit([&](const Element& element) { return sum(element, a, b); });
    };
    const std::string where = fmt::format("in every k-tile of {} columns,", tile_k_);
    for (int i = 0; i < slices; ++i) {
      Starts less = right;
      less.erase(less.begin() + i);
      if (fits(less, less)) {
        add(fmt::format("{} the k16 slice {} (k = {} to {}) is skipped.", where, i, kSlice * i,
                        kSlice * i + 15));
        return;
      }
      Starts more = right;
      more.push_back(kSlice * i);
      if (fits(more, more)) {
        add(fmt::format("{} the k16 slice {} (k = {} to {}) is multiplied twice.", where, i, kSlice * i,
                        kSlice * i + 15));
        return;
      }
    }
    const auto words = [&](const char* name, int step) {
      return fmt::format("the k16 slices of {} begin {} elements apart instead of 16, so they {}", name, step,
                         step < kSlice ? "overlap" : "skip some of K");
    };
    // What lies behind a k-tile's row is not known, so a step stays inside it.
    std::vector<std::pair<int, Starts>> steps{{kSlice, right}};
    for (const int step : {0, 2, 4, 8, 12, 24, 32, 64}) {
      Starts starts;
      for (int i = 0; i < slices; ++i) starts.push_back(step * i % tile_k_);
      if (std::all_of(starts.begin(), starts.end(), [&](int start) { return start + kSlice <= tile_k_; }))
        steps.emplace_back(step, starts);
    }
    for (const auto& [a_step, a] : steps) {
      for (const auto& [b_step, b] : steps) {
        if ((a_step == kSlice && b_step == kSlice) || !fits(a, b)) continue;
        const std::string of_a = a_step == kSlice ? "" : words("A", a_step);
        const std::string of_b = b_step == kSlice ? "" : words("B", b_step);
        add(fmt::format("{} {}{}{}: check the step along K of the descriptor or the address.", where, of_a,
                        of_a.empty() || of_b.empty() ? "" : ", and ", of_b));
        return;
      }
    }
    for (int i = 0; i < slices; ++i) {
      for (int other = 0; other < slices; ++other) {
        if (i == other) continue;
        Starts changed = right;
        changed[static_cast<std::size_t>(i)] = kSlice * other;
        for (const int which : {0, 1, 2}) {
          if (!fits(which == 1 ? right : changed, which == 0 ? right : changed)) continue;
          add(fmt::format("{} the k16 slice {} of {} is skipped, and slice {} is used twice.", where, i,
                          which == 0   ? "A"
                          : which == 1 ? "B"
                                       : "both operands",
                          other));
          return;
        }
      }
    }
  }

  /// What a swizzle adds, exclusive-or, to the number of the 16 bytes in a row. With two: what is left when
  /// one side applies the first and the other side the second.
  struct Swizzle {
    int bytes;  // 0: none
    int other;
    int of(std::int64_t row) const { return one(bytes, row) ^ one(other, row); }
    static int one(int bytes, std::int64_t row) {
      if (bytes == 128) return static_cast<int>(row % 8);
      if (bytes == 64) return static_cast<int>(row / 2 % 4);
      return bytes == 32 ? static_cast<int>(row / 4 % 2) : 0;
    }
    std::string words() const {
      const std::string formula = bytes == 128 ? "row % 8" : bytes == 64 ? "row / 2 % 4" : "row / 4 % 2";
      return other == 0
                 ? fmt::format("only one side applies the {}-byte swizzle (16-byte unit ^ {})", bytes,
                               formula)
                 : fmt::format("one side applies the {}-byte swizzle and the other the {}-byte swizzle",
                               bytes, other);
    }
  };
  static constexpr Swizzle kSwizzles[] = {{128, 0}, {64, 0}, {32, 0}, {128, 64}, {128, 32}, {64, 32}};
  static constexpr int kUnit = 8;  // elements of 16 bytes

  void explain_swizzled_store() {
    for (const Swizzle& swizzle : kSwizzles) {
      const auto stored = [&](std::size_t i) {
        const auto [row, column] = samples_[i];
        return matches_element(i, row, column ^ (kUnit * swizzle.of(row)));
      };
      if (!nearly_all(stored)) continue;
      add(
          fmt::format("in each row of D, units of 8 columns are exchanged, depending on the row: {}. Check "
                      "where the tile of D is written and where it is stored from.",
                      swizzle.words()));
      return;
    }
  }

  void explain_swizzled_loads() {
    const int padded = gemm::ceil_div(shape_.k, 64) * 64;
    const Swizzle none{0, 0};
    std::vector<const Swizzle*> all{&none};
    for (const Swizzle& swizzle : kSwizzles) all.push_back(&swizzle);
    for (const Swizzle* a : all) {
      for (const Swizzle* b : all) {
        if (a == &none && b == &none) continue;
        const bool fits = sums_fit([&](const Element& element) {
          const int of_a = kUnit * a->of(element.row);
          const int of_b = kUnit * b->of(element.column);
          double sum = 0;
          for (int k = 0; k < padded; ++k)
            sum += a_at(element.row, k ^ of_a) * b_at(element.column, k ^ of_b);
          return sum;
        });
        if (!fits) continue;
        const std::string of_a = a == &none ? "" : "in the rows of A, " + a->words();
        const std::string of_b = b == &none ? "" : "in the rows of B, " + b->words();
        add(fmt::format("{}{}{}. Check where the tile is written and where it is read from.", of_a,
                        of_a.empty() || of_b.empty() ? "" : ", and ", of_b));
        return;
      }
    }
  }

  /// Copies of tiles with their two coordinates exchanged.
  void explain_coordinates() {
    if (tile_m_ < 1 || tile_n_ < 1) return;
    const auto exchanged = [&](Operand operand, int index, int tile, int k) {
      // Box (k0, row0) was copied from (row0, k0).
      const int first = index / tile * tile;
      const std::int64_t row = k / tile_k_ * tile_k_ + (index - first);
      const std::int64_t column = first + k % tile_k_;
      return operand == Operand::kA ? a_at(row, column) : b_at(row, column);
    };
    for (const int which : {0, 1, 2}) {
      const bool fits = sums_fit([&](const Element& element) {
        double sum = 0;
        for (int k = 0; k < shape_.k; ++k) {
          const double a =
              which == 1 ? a_at(element.row, k) : exchanged(Operand::kA, element.row, tile_m_, k);
          const double b =
              which == 0 ? b_at(element.column, k) : exchanged(Operand::kB, element.column, tile_n_, k);
          sum += a * b;
        }
        return sum;
      });
      if (!fits) continue;
      add(
          fmt::format("{} loaded with exchanged coordinates, (row, k) instead of (k, row): the innermost "
                      "coordinate comes first.",
                      which == 0   ? "A is"
                      : which == 1 ? "B is"
                                   : "A and B are"));
      return;
    }
  }

  /// Tiles of D that were stored at (row, column) instead of (column, row).
  void explain_exchanged_stores() {
    constexpr int kBox =
        64;  // of a store by the copy engine: rows, and columns that fill the 128-byte swizzle
    for (const auto& [height, width] : {std::pair(tile_m_, tile_n_), std::pair(kBox, kBox)}) {
      if (height < 1 || width < 1) continue;
      const bool stored = nearly_all([&, m = height, n = width](std::size_t i) {
        const auto [row, column] = samples_[i];
        for (int c0 = row / n * n; c0 >= 0 && row - c0 < m; c0 -= n) {
          for (int r0 = column / m * m; r0 >= 0 && column - r0 < n; r0 -= m) {
            const int from_row = r0 + row - c0;
            const int from_column = c0 + column - r0;
            const bool outside = from_row >= shape_.m || from_column >= shape_.n;  // zeros
            if (outside ? (got(i).bits & 0x7fff) == 0 : matches_element(i, from_row, from_column))
              return true;
          }
        }
        return false;
      });
      if (!stored) continue;
      add("tiles of D are stored with exchanged coordinates, (row, column) instead of (column, row): the "
          "innermost coordinate comes first.");
      return;
    }
  }

  const Acceptance& acceptance_;
  const gemm::bf16* d_;
  const Inputs& inputs_;
  gemm::Shape shape_;
  int tile_m_;
  int tile_n_;
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
