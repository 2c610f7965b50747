// Which plans of a tile are worth a prediction.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "gemm/fitted/fitted_plan.h"
#include "gemm/fitted/plan_features.h"
#include "gemm/fitted/prediction.h"
#include "gemm/problem/gemm.h"
#include "ptx/card.h"
#include "tiles.h"

namespace gemm::step_22 {

/// Rows of tiles, or of clusters of tiles, that make a wave about square.
constexpr int square_group(const FittedTile& tile, const ClusterShape& cluster, int sms) {
  const int height = tile.m * cluster.m;
  int group = 1;
  while (static_cast<double>(group + 1) * height * (group * height) <
         static_cast<double>(sms) * tile.m * tile.n)
    ++group;
  return group;
}

/// Rows in a raster group: about so many, and the last group is about as high as the others. `rows`: in all.
constexpr int raster_group(const FittedTile& tile, const ClusterShape& cluster, int rows, int sms) {
  const int square = square_group(tile, cluster, sms);
  return ceil_div(rows, std::max(1, (rows + square / 2) / square));
}

/// k-tiles between two barriers of a lockstep. Without clusters requests of a GPC meet the better the closer
/// its CTAs keep to the same k; but with 2, launches of one or two waves take 8 % longer.
inline constexpr int kLockstepPeriod = 4;
constexpr int lockstep_period(const ClusterShape& cluster) {
  return cluster.ctas() == 1 ? kLockstepPeriod : 16;
}

/// The plans of a tile whose K is cut in a cluster: as long as all clusters fit at once.
inline std::vector<FittedPlan> split_plans_of(const FittedTile& tile, const Shape& shape, const Card& card) {
  std::vector<FittedPlan> plans;
  for (const ClusterShape cluster :
       {ClusterShape{1, 1}, ClusterShape{2, 1}, ClusterShape{1, 2}, ClusterShape{4, 1}, ClusterShape{1, 4}}) {
    if (!shares_columns(cluster, tile.n)) continue;
    for (const bool transposed : {false, true}) {
      const TileMatrix matrix(shape, {.transposed = transposed});
      if ((cluster.m - 1) * tile.m >= matrix.rows || (cluster.n - 1) * tile.n >= matrix.columns) continue;
      const int tiles =
          ceil_div(matrix.rows, tile.m * cluster.m) * ceil_div(matrix.columns, tile.n * cluster.n);
      const int most = std::min(8 / cluster.ctas(), most_parts(tile.m, tile.n, tile.k, tile.warpgroups));
      for (int parts = 1; parts <= std::min(most, ceil_div(shape.k, tile.k)); ++parts) {
        // Clusters of a size that is no power of two leave SMs of a GPC idle: the next power of two asks.
        const int ctas = parts * cluster.ctas();
        const int clusters =
            card.resident_clusters(static_cast<int>(std::bit_ceil(static_cast<unsigned>(ctas))));
        if (tiles * ctas <= card.sms && (tiles <= clusters || ctas * tiles <= card.sms / 8 * 7))
          plans.push_back({.transposed = transposed, .cluster = cluster, .parts = parts});
      }
    }
  }
  return plans;
}

/// The plans that are worth a prediction, of one tile on a shape.
inline std::vector<FittedPlan> plans_of(const FittedTile& tile, const Shape& shape, const Card& card) {
  if (tile.split) return split_plans_of(tile, shape, card);
  std::vector<FittedPlan> plans;
  const auto add = [&](const FittedPlan& plan) {
    if (tile.has(plan.needs())) plans.push_back(plan);
  };
  for (const ClusterShape cluster :
       {ClusterShape{1, 1}, ClusterShape{2, 1}, ClusterShape{1, 2}, ClusterShape{2, 2}, ClusterShape{4, 1},
        ClusterShape{1, 4}, ClusterShape{2, 4}, ClusterShape{4, 2}}) {
    if (cluster.ctas() > 4 && rows_start(shape) < 2) break;  // at 153 shapes it was worth 2 % once
    if (card.resident_clusters(cluster.ctas()) == 0 || !shares_columns(cluster, tile.n)) continue;
    for (const bool transposed : {false, true}) {
      const TileMatrix matrix(shape, {.transposed = transposed});
      // No CTA of a cluster is idle for good.
      if ((cluster.m - 1) * tile.m >= matrix.rows || (cluster.n - 1) * tile.n >= matrix.columns) continue;
      const int tile_rows = ceil_div(matrix.rows, tile.m * cluster.m);
      const int workers = card.resident_clusters(cluster.ctas());
      const int tiles = tile_rows * ceil_div(matrix.columns, tile.n * cluster.n);
      const int k_tiles = ceil_div(shape.k, tile.k);
      // Where rows start on a sector, K is not short and a launch has more than two rounds, a cluster of four
      // was the fastest plan at 4 of 3381 shapes, by at most 3 %. So few were measured that the correction
      // flatters them.
      if (cluster.ctas() == 4 && rows_start(shape) < 2 && k_tiles > 4 && tiles > 2 * workers) continue;
      FittedPlan plan{.transposed = transposed,
                      .cluster = cluster,
                      .raster_group = raster_group(tile, cluster, tile_rows, card.sms)};
      add(plan);
      if (tiles > 4 * workers && k_tiles >= 32) {
        plan.lockstep = lockstep_period(cluster);
        add(plan);
        plan.lockstep = 0;
      }
      if (tiles >= workers) {  // what does not fill a wave, alone or with a whole one
        for (const int stream_k_tiles : {tiles % workers, tiles % workers + workers}) {
          plan.stream_k_tiles = stream_k_tiles;
          if (tiles % workers != 0 && stream_k_tiles <= tiles) add(plan);
        }
      } else if (k_tiles > 1) {  // every tile in as many parts, or all workers
        plan.stream_k_tiles = tiles;
        add(plan);
        for (int parts = 2; parts * tiles <= workers && parts <= std::min(16, k_tiles); ++parts) {
          plan.workers = parts * tiles;
          if (plan.workers != workers) add(plan);
        }
      }
    }
  }
  return plans;
}

}  // namespace gemm::step_22
