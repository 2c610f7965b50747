#include "harness/record/population.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>

namespace harness {
namespace {

constexpr int kMost = 16384;
constexpr int kLeastNk = 64;
constexpr double kLeastFlop = 2e9;
constexpr double kMostFlop = 3e12;

/// The same numbers on every machine, unlike std::uniform_real_distribution.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double log_uniform(double least, double most) { return least * std::pow(most / least, uniform()); }

 private:
  std::mt19937_64 engine_;
};

int random_m(Random& random) {
  return std::min(kMost, static_cast<int>(random.log_uniform(1, kMost + 1)));
}

int random_nk(Random& random) {
  const int unit = random.uniform() < 0.5 ? 64 : 8;
  const long multiples = std::lround(random.log_uniform(kLeastNk, kMost) / unit);
  return std::clamp(static_cast<int>(multiples) * unit, kLeastNk, kMost);
}

std::string row(const char* name, const Distribution& all, bool lower_is_better) {
  if (all.count == 0) return fmt::format("  {:<34}  -\n", name);
  return lower_is_better ? fmt::format("  {:<34}  {:.3f}  a tenth above {:.3f}, highest {:.3f}\n", name,
                                       all.geometric_mean, all.highest_tenth, all.highest)
                         : fmt::format("  {:<34}  {:.3f}  a tenth below {:.3f}, lowest {:.3f}\n", name,
                                       all.geometric_mean, all.lowest_tenth, all.lowest);
}

}  // namespace

std::vector<gemm::Shape> population_shapes(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<gemm::Shape> shapes;
  while (shapes.size() < static_cast<std::size_t>(count)) {
    const int m = random_m(random);
    const int n = random_nk(random);
    const int k = random_nk(random);
    const double flop = 2.0 * m * n * k;
    if (flop < kLeastFlop || flop > kMostFlop) continue;
    const bool known = std::any_of(shapes.begin(), shapes.end(), [&](const gemm::Shape& other) {
      return other.m == m && other.n == n && other.k == k;
    });
    if (!known) shapes.push_back({m, n, k});
  }
  return shapes;
}

std::vector<gemm::Shape> grid_shapes(int count, std::uint64_t seed) {
  std::vector<gemm::Shape> shapes;
  for (const int m : kGridSizes) {
    for (const int n : kGridSizes) {
      for (const int k : kGridSizes) shapes.push_back({m, n, k});
    }
  }
  Random random(seed);
  const auto wanted = std::min(static_cast<std::size_t>(count), shapes.size());
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto left = static_cast<double>(shapes.size() - i);
    std::swap(shapes[i], shapes[i + static_cast<std::size_t>(random.uniform() * left)]);
  }
  shapes.resize(wanted);
  return shapes;
}

const std::vector<gemm::Shape>& deepgemm_shapes() {
  static const std::vector<gemm::Shape> shapes = [] {
    std::vector<gemm::Shape> all;
    for (const int m : {64, 128, 4096}) {
      for (const auto& [n, k] : {std::pair{2112, 7168}, std::pair{24576, 1536}, std::pair{32768, 512},
                                 std::pair{7168, 16384}, std::pair{4096, 7168}, std::pair{7168, 2048}})
        all.push_back({m, n, k});
    }
    return all;
  }();
  return shapes;
}

Distribution distribution(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("a distribution needs at least one value");
  double sum = 0;
  for (const double value : values) {
    if (!(value > 0)) throw std::invalid_argument(fmt::format("a distribution of {}", value));
    sum += std::log(value);
  }
  std::sort(values.begin(), values.end());
  const std::size_t tenth = values.size() / 10;
  return {.geometric_mean = std::exp(sum / static_cast<double>(values.size())),
          .lowest_tenth = values[tenth],
          .lowest = values.front(),
          .highest_tenth = values[values.size() - 1 - tenth],
          .highest = values.back(),
          .count = values.size()};
}

PopulationSummary summarize_population(const Record& record, const std::string& step,
                                       const std::string& variant) {
  std::vector<double> speed;
  std::vector<double> best;
  std::vector<double> regret;
  std::vector<double> off_sectors;
  std::vector<double> tuned;
  std::vector<double> handed_over;
  std::vector<double> handed_over_small;
  std::array<std::vector<double>, kWorkClasses.size() + 1> by_work;
  for (const ShapeRecord& shape : record.shapes) {
    const ContestantRecord* chosen = nullptr;
    const ContestantRecord* fastest = nullptr;
    const ContestantRecord* measured = nullptr;
    const ContestantRecord* other_step = nullptr;
    for (const ContestantRecord& one : shape.contestants) {
      if (one.name != step && one.kind == ContestantKind::kStep) other_step = &one;
      if (one.name != step) continue;
      if (one.variant == variant) chosen = &one;
      if (one.variant == shape.tuned) measured = &one;
      if (fastest == nullptr || one.median_us < fastest->median_us) fastest = &one;
    }
    if (chosen == nullptr || chosen->to_cublaslt.median == 0) continue;
    speed.push_back(chosen->to_cublaslt.median);
    best.push_back(fastest->to_cublaslt.median);
    regret.push_back(chosen->median_us / fastest->median_us);
    if (shape.shape.k % 16 != 0 || shape.shape.n % 16 != 0) off_sectors.push_back(speed.back());
    if (chosen->chosen == shape.tuned) measured = chosen;  // timed once, under the name of the choice
    if (measured != nullptr) tuned.push_back(measured->to_cublaslt.median);
    const double flop = 2.0 * shape.shape.m * shape.shape.n * shape.shape.k;
    const auto above = std::upper_bound(kWorkClasses.begin(), kWorkClasses.end(), flop);
    by_work[static_cast<std::size_t>(above - kWorkClasses.begin())].push_back(speed.back());
    handed_over.push_back((other_step == nullptr ? chosen : other_step)->to_cublaslt.median);
    if (flop < kWorkClasses[1]) handed_over_small.push_back(handed_over.back());
  }
  const auto of = [](const std::vector<double>& values) {
    return values.empty() ? Distribution{} : distribution(values);
  };
  PopulationSummary summary{
      of(speed), of(best), of(regret), of(off_sectors), of(tuned), of(handed_over), of(handed_over_small),
      {}};
  std::transform(by_work.begin(), by_work.end(), summary.by_work.begin(), of);
  return summary;
}

std::string human_table(const PopulationSummary& summary) {
  std::string classes;
  for (std::size_t i = 0; i < summary.by_work.size(); ++i) {
    if (summary.by_work[i].count == 0) continue;
    const std::string name =
        i < kWorkClasses.size()
            ? fmt::format("below {:g} GFLOP, {} shapes", kWorkClasses[i] / 1e9, summary.by_work[i].count)
            : fmt::format("from {:g} GFLOP, {} shapes", kWorkClasses.back() / 1e9, summary.by_work[i].count);
    classes += row(name.c_str(), summary.by_work[i], false);
  }
  return row("speed / cuBLASLt best", summary.speed, false) + classes +
         row("with other steps where faster", summary.handed_over, false) +
         row("the same below 10 GFLOP", summary.handed_over_small, false) +
         row("where K or N is an odd multiple of 8", summary.off_sectors, false) +
         row("with --autotune", summary.tuned, false) + row("the best variant's", summary.best, false) +
         row("time / the best variant's", summary.regret, true) +
         fmt::format("  geometric means over {} shapes\n", summary.speed.count);
}

}  // namespace harness
