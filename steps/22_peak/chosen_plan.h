// The plan of step 22 for a shape on a card: chosen once, and then launch, workspace, arguments and
// explanation come from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <string>
#include <tuple>
#include <vector>

#include "choice.h"
#include "gemm/fitted/choosing.h"
#include "gemm/fitted/correction.h"
#include "gemm/fitted/prediction.h"
#include "gemm/fitted/remembered.h"
#include "gemm/problem/gemm.h"
#include "plans.h"
#include "ptx/card.h"
#include "tiles.h"

namespace gemm::step_22 {

/// A prediction that was chosen.
struct Plan : Prediction {
  double next_us = 0;                // the time of the next best tile, doubts included
  std::vector<std::size_t> tiles{};  // at most four: its own, then the next best ones
  double host_us = 0;                // processor time that choosing it took

  /// How sure the choice is: the share of the time that the next best tile would take longer.
  double margin() const { return next_us / weighed_us() - 1; }
};

/// The time of this tile with this plan.
inline Prediction predict(std::size_t number, const Shape& shape, const FittedPlan& plan, const Card& card) {
  Prediction prediction = predict_by_arithmetic(number, shape, plan, card);
  prediction.us *= std::exp(correction(kTiles[number], prediction, shape, card));
  return prediction;
}

// Lesson: where requests meet, a byte comes out of the L2 once for several SMs. That saves no time where
// tensor cores are the limit, but energy, and with it the clock is higher. Half a percent is too little for
// the correction to learn.

/// Whether a plan is faster in lockstep, whatever the model says: 1.007 times as fast in the mean of 174
/// plans of 113 random shapes, at worst 0.987. Tiles of 64 rows lose: probably their k-tiles are shorter than
/// a barrier.
inline bool gains_in_lockstep(const Prediction& prediction) {
  const FittedTile& tile = kTiles[prediction.tile];
  const Decomposition& all = prediction.decomposition;
  return !tile.split && prediction.plan.cluster.ctas() == 1 && all.stream_k_tiles == 0 && tile.m >= 128 &&
         all.tiles > all.workers && all.k_tiles >= 16 && prediction.us >= 50;
}

/// Plans of a tile that by arithmetic take longer than this many times its shortest are left out: the
/// correction was learned from plans that were worth a measurement, and flatters others.
inline constexpr double kWorthIt = 1.15;

/// The best plan for a tile; its time is 0 where no plan suits the shape.
inline Prediction best_plan(std::size_t number, const Shape& shape, const Card& card,
                            Choosing by = choosing) {
  std::vector<Prediction> all;
  Prediction first;
  for (const FittedPlan& plan : plans_of(kTiles[number], shape, card)) {
    all.push_back(predict_by_arithmetic(number, shape, plan, card));
    if (better(all.back(), first)) first = all.back();
  }
  Prediction best = first;
  if (by == Choosing::kCorrected) {
    best = {};
    for (Prediction& prediction : all) {
      if (prediction.weighed_us() > kWorthIt * first.weighed_us()) continue;
      prediction.us *= std::exp(correction(kTiles[number], prediction, shape, card));
      if (better(prediction, best)) best = prediction;
    }
  }
  if (best.us > 0 && gains_in_lockstep(best)) best.plan.lockstep = kLockstepPeriod;
  return best;
}

/// The best plan of each tile that has one for the shape; the one that is predicted to be fastest first.
inline std::vector<Prediction> ranked(const Shape& shape, const Card& card, Choosing by = choosing) {
  std::vector<Prediction> all;
  for (std::size_t number = 0; number < kTiles.size(); ++number) {
    const Prediction prediction = best_plan(number, shape, card, by);
    if (prediction.us > 0) all.push_back(prediction);
  }
  std::stable_sort(all.begin(), all.end(), better);
  return all;
}

/// The tile that is predicted to be fastest, and its plan.
inline Plan choose(const Shape& shape, const Card& card, Choosing by = choosing) {
  const std::vector<Prediction> all = ranked(shape, card, by);
  Plan plan{all.front(), all.size() > 1 ? all[1].weighed_us() : 0};
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 4); ++i) plan.tiles.push_back(all[i].tile);
  return plan;
}

/// What a plan is chosen for. `tile`: its number, or that of none for whichever suits the shape.
struct PlanKey {
  Shape shape;
  Card card;
  std::size_t tile = kTiles.size();
  Choosing by = choosing;

  auto parts() const { return std::tie(shape.m, shape.n, shape.k, card, tile, by); }
  bool operator<(const PlanKey& other) const { return parts() < other.parts(); }
};

/// The plan for it, which is chosen once.
inline Plan plan_for(const PlanKey& key) {
  static Remembered<PlanKey, Plan> plans;
  return plans.find_or(key, [&key] {
    const std::clock_t begin = std::clock();
    Plan plan = key.tile == kTiles.size() ? choose(key.shape, key.card, key.by)
                                          : Plan{best_plan(key.tile, key.shape, key.card, key.by)};
    if (plan.us == 0)  // no plan of this tile suits the shape: whole tiles, which are right anywhere
      plan = {predict_by_arithmetic(key.tile, key.shape, FittedPlan{}, key.card)};
    plan.host_us = 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    return plan;
  });
}

/// Why: what the choice does, what limits it, and how much the next best would cost.
inline std::string explain(const Plan& best) {
  const auto us = [](double time) { return std::to_string(std::lround(time)) + " us"; };
  const Decomposition& all = best.decomposition;
  const ClusterShape& cluster = best.plan.cluster;
  const int whole = all.tiles - all.stream_k_tiles;
  std::string why = std::to_string(all.tiles) +
                    (cluster.ctas() > 1 ? " clusters of tiles on " : " tiles on ") +
                    std::to_string(all.workers) + (cluster.ctas() > 1 ? " clusters of SMs: " : " SMs: ");
  if (all.stream_k_tiles > 0) why += std::to_string(all.stream_k_tiles) + " cut along K";
  if (all.stream_k_tiles > 0 && whole > 0) why += ", then ";
  if (whole > 0) {
    const int rounds = ceil_div(whole, all.workers);
    why +=
        std::to_string(whole) + " whole in " + std::to_string(rounds) + (rounds == 1 ? " round" : " rounds");
  }
  if (best.plan.transposed) why += "; rows of B are rows of the tiles";
  if (cluster.ctas() > 1)
    why += "; clusters of " + std::to_string(cluster.m) + "x" + std::to_string(cluster.n);
  if (best.plan.lockstep > 0) why += "; in lockstep";
  why += ". Predicted " + us(best.us) + " (tensor cores " + us(best.math_us) + ", bytes " +
         us(best.bytes_us) + ", DRAM " + us(best.dram_us);
  if (best.reduce_us > 0) why += ", partials " + us(best.reduce_us);
  return why + "); the next best tile is " + std::to_string(std::lround(100 * best.margin())) +
         " % behind, doubts included";
}

}  // namespace gemm::step_22
