// What the learned correction knows of a plan: the one place where its features have names. The program
// computes them, tools/fit_choice.py asks for them, and learned_network.h says which it was fitted to.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "gemm/fitted/prediction.h"
#include "gemm/problem/gemm.h"
#include "ptx/card.h"

namespace gemm {

/// Where rows of A and B start: 0: all on a line of the L2, 128 bytes; 1: on a sector, 32 bytes; 2: on none.
constexpr int rows_start(const Shape& shape) {
  if (shape.k % 64 == 0) return 0;
  return shape.k % 16 == 0 ? 1 : 2;
}

/// A prediction by arithmetic, and what several features need of it.
struct PlanFacts {
  const FittedTile& tile;
  const Prediction& prediction;
  const Shape& shape;
  const Card& card;
  const FittedPlan& plan = prediction.plan;
  const Decomposition& all = prediction.decomposition;
  TileMatrix matrix{shape, plan};
  bool cut = all.stream_k_tiles > 0;
  double whole = all.tiles - all.stream_k_tiles;
  double waves = whole / (tile.split ? card.sms / plan.cluster.ctas() : all.workers);
  double rounds = ceil_div(all.tiles - all.stream_k_tiles, all.workers);
  double range = static_cast<double>(all.stream_k_tiles) * all.k_tiles / all.workers;
  double busy_ctas = plan.cluster.ctas() * (cut ? all.workers : std::min(all.tiles, all.workers));
  double tile_rows = ceil_div(matrix.rows, tile.m);
  double tile_columns = ceil_div(matrix.columns, tile.n);
  bool rows_larger = matrix.rows > matrix.columns;  // which operand is the larger one
};

struct PlanFeature {
  std::string_view name;
  double (*value)(const PlanFacts&);
};

/// All of them are small numbers or ratios, so that they mean the same on another card.
inline constexpr std::array kPlanFeatures{
    PlanFeature{"tile_m", [](const PlanFacts& of) { return 1.0 * of.tile.m; }},
    PlanFeature{"tile_n", [](const PlanFacts& of) { return 1.0 * of.tile.n; }},
    PlanFeature{"tile_k", [](const PlanFacts& of) { return 1.0 * of.tile.k; }},
    PlanFeature{"groups", [](const PlanFacts& of) { return 1.0 * of.tile.groups; }},
    PlanFeature{"warpgroups", [](const PlanFacts& of) { return 1.0 * of.tile.warpgroups; }},
    PlanFeature{"cluster_m", [](const PlanFacts& of) { return 1.0 * of.plan.cluster.m; }},
    PlanFeature{"cluster_n", [](const PlanFacts& of) { return 1.0 * of.plan.cluster.n; }},
    PlanFeature{"transposed", [](const PlanFacts& of) { return of.plan.transposed ? 1.0 : 0.0; }},
    PlanFeature{"lockstep", [](const PlanFacts& of) { return of.plan.lockstep > 0 ? 1.0 : 0.0; }},
    PlanFeature{"split", [](const PlanFacts& of) { return of.tile.split ? 1.0 : 0.0; }},
    PlanFeature{"parts", [](const PlanFacts& of) { return 1.0 * of.plan.parts; }},
    PlanFeature{
        "workers_of_tile",
        [](const PlanFacts& of) { return of.cut ? 1.0 * of.all.workers / of.all.stream_k_tiles : 0; }},
    PlanFeature{"unequal_parts",
                [](const PlanFacts& of) {
                  return of.cut && of.all.workers % of.all.stream_k_tiles != 0 ? 1.0 : 0.0;
                }},
    PlanFeature{"rounds", [](const PlanFacts& of) { return of.rounds; }},
    PlanFeature{"wave_filled",
                [](const PlanFacts& of) { return of.waves / std::max(std::ceil(of.waves), 1.0); }},
    PlanFeature{"waves", [](const PlanFacts& of) { return std::min(of.waves, 8.0); }},
    PlanFeature{"log_k_tiles_of_worker",
                [](const PlanFacts& of) { return std::log(of.rounds * of.all.k_tiles + of.range); }},
    PlanFeature{"log_k_tiles", [](const PlanFacts& of) { return std::log(ceil_div(of.shape.k, of.tile.k)); }},
    PlanFeature{"rows_start", [](const PlanFacts& of) { return 1.0 * rows_start(of.shape); }},
    PlanFeature{"d_starts_on_sectors", [](const PlanFacts& of) { return of.shape.n % 16 == 0 ? 1.0 : 0.0; }},
    PlanFeature{
        "log_rows_used",
        [](const PlanFacts& of) { return std::log(std::min(1.0 * of.matrix.rows / of.tile.m, 1.0)); }},
    PlanFeature{
        "log_columns_used",
        [](const PlanFacts& of) { return std::log(std::min(1.0 * of.matrix.columns / of.tile.n, 1.0)); }},
    PlanFeature{"log_dram_share",
                [](const PlanFacts& of) { return std::log(of.prediction.dram_us / of.prediction.us); }},
    PlanFeature{"log_sms_busy", [](const PlanFacts& of) { return std::log(of.busy_ctas / of.card.sms); }},
    PlanFeature{"log_us", [](const PlanFacts& of) { return std::log(of.prediction.us); }},
    PlanFeature{"log_math_share",
                [](const PlanFacts& of) { return std::log(of.prediction.math_us / of.prediction.us); }},
    PlanFeature{"log_bytes_share",
                [](const PlanFacts& of) { return std::log(of.prediction.bytes_us / of.prediction.us); }},
    PlanFeature{
        "log_tiles_along_larger",
        [](const PlanFacts& of) { return std::log(of.rows_larger ? of.tile_columns : of.tile_rows); }},
    PlanFeature{"rows_larger", [](const PlanFacts& of) { return of.rows_larger ? 1.0 : 0.0; }},
    PlanFeature{
        "log_tiles_of_larger",
        [](const PlanFacts& of) { return std::log(of.rows_larger ? of.tile_rows : of.tile_columns); }},
    PlanFeature{"log_larger_operand_of_l2",
                [](const PlanFacts& of) {
                  return std::log(2.0 * std::max(of.matrix.rows, of.matrix.columns) * of.shape.k / 5e7);
                }},
    PlanFeature{"l2_rate", [](const PlanFacts& of) { return of.card.l2_rate; }}};

/// Their values, in this order.
inline std::array<double, kPlanFeatures.size()> features_of(const FittedTile& tile,
                                                            const Prediction& prediction, const Shape& shape,
                                                            const Card& card) {
  const PlanFacts facts{tile, prediction, shape, card};
  std::array<double, kPlanFeatures.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kPlanFeatures[i].value(facts);
  return values;
}

}  // namespace gemm
