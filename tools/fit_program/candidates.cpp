#include "candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "chosen_plan.h"
#include "gemm/fitted/fitted_plan.h"
#include "gemm/problem/gemm.h"
#include "ptx/card.h"

namespace {

using fit::Candidate;
using gemm::FittedPlan;
using gemm::Shape;
using gemm::step_22::kTiles;

/// Adds the `most` most promising of `from` that are not in `to`, at most two of a tile, and none that takes
/// `within` times as long as the best of them.
void add_best(std::vector<Candidate>& to, std::vector<Candidate> from, std::size_t most, double within) {
  constexpr int kMostOfTile = 2;
  std::sort(from.begin(), from.end(), [](const auto& one, const auto& other) { return one.us < other.us; });
  std::array<int, kTiles.size()> of_tile{};
  std::size_t added = 0;
  for (const Candidate& candidate : from) {
    if (added >= most || candidate.us > within * from.front().us) return;
    if (of_tile[candidate.tile] >= kMostOfTile) continue;
    ++of_tile[candidate.tile];
    const std::string line = fit::to_line(candidate);
    if (std::any_of(to.begin(), to.end(), [&](const auto& known) { return fit::to_line(known) == line; }))
      continue;
    to.push_back(candidate);
    ++added;
  }
}

}  // namespace

std::vector<Candidate> fit::candidates(const Shape& shape, const gemm::Card& card) {
  std::vector<Candidate> all;
  std::vector<Candidate> one_sided;
  std::vector<Candidate> two_sided;
  std::vector<Candidate> split;
  for (std::size_t tile = 0; tile < kTiles.size(); ++tile) {
    for (const FittedPlan& plan : gemm::step_22::plans_of(kTiles[tile], shape, card)) {
      const gemm::Prediction arithmetic = gemm::step_22::predict_by_arithmetic(tile, shape, plan, card);
      const double us = gemm::step_22::predict(tile, shape, plan, card).us * arithmetic.doubt;
      const Candidate mixed{tile, plan, std::sqrt(us * arithmetic.us * arithmetic.doubt)};
      all.push_back({tile, plan, us});
      if (plan.cluster.ctas() == 1 && plan.parts == 1) continue;
      if (kTiles[tile].split) {
        split.push_back(mixed);
      } else {
        (plan.cluster.m == 1 || plan.cluster.n == 1 ? one_sided : two_sided).push_back(mixed);
      }
    }
  }
  std::vector<Candidate> chosen;
  add_best(chosen, all, 15, 1.2);
  const double best = chosen.front().us;
  for (auto* const some : {&one_sided, &two_sided, &split}) {
    std::erase_if(*some, [best](const Candidate& candidate) { return candidate.us > 1.2 * best; });
    add_best(chosen, *some, 4, 1.15);
  }
  return chosen;
}

std::string fit::to_line(const Candidate& candidate) {
  const FittedPlan& plan = candidate.plan;
  return fmt::format("{} {:d} {} {} {} {} {} {}", kTiles[candidate.tile].name, plan.transposed,
                     plan.cluster.m, plan.cluster.n, plan.stream_k_tiles, plan.workers, plan.lockstep,
                     plan.parts);
}

std::vector<Shape> fit::weight_shapes(int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto log_uniform = [&random](double low, double high) {
    const double share = static_cast<double>(random()) / static_cast<double>(std::mt19937_64::max());
    return low * std::pow(high / low, share);
  };
  std::vector<Shape> shapes;
  for (int i = 0; i < count; ++i) {
    const int m = static_cast<int>(log_uniform(16, 256));
    const int n = static_cast<int>(log_uniform(2048, 49152) / 64) * 64;
    const int k = static_cast<int>(log_uniform(512, 16384) / 64) * 64;
    shapes.push_back({m, n, k});
  }
  return shapes;
}
