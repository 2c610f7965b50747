// Which tile of step 22 suits a shape, and how it is used there: a small model of what each would cost. Plain
// C++, so that a test can ask it without a GPU.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/decomposition.h"
#include "gemm/fitted_plan.h"
#include "gemm/gemm.h"
#include "ptx/card.h"

namespace gemm::step_22 {

/// A tile that a kernel is built for: rows, columns, consumer groups, and warpgroups that share the tile.
struct FittedTile {
  const char* name;
  int m, n;
  int groups;
  int warpgroups;
};

/// The kernels. Twenty-one of them are enough: among 48 that were measured on 110 random shapes
/// and the 18 of DeepGEMM's table, these lose 0.2 %.
inline constexpr std::array kTiles{FittedTile{"128x176_ping_pong", 128, 176, 2, 1},
                                   FittedTile{"128x160_ping_pong", 128, 160, 2, 1},
                                   FittedTile{"128x144_ping_pong", 128, 144, 2, 1},
                                   FittedTile{"128x128_ping_pong", 128, 128, 2, 1},
                                   FittedTile{"128x112_ping_pong", 128, 112, 2, 1},
                                   FittedTile{"128x80_ping_pong", 128, 80, 2, 1},
                                   FittedTile{"128x48_ping_pong", 128, 48, 2, 1},
                                   FittedTile{"64x192_ping_pong", 64, 192, 2, 1},
                                   FittedTile{"64x160_ping_pong", 64, 160, 2, 1},
                                   FittedTile{"64x144_ping_pong", 64, 144, 2, 1},
                                   FittedTile{"64x128_ping_pong", 64, 128, 2, 1},
                                   FittedTile{"64x112_ping_pong", 64, 112, 2, 1},
                                   FittedTile{"64x80_ping_pong", 64, 80, 2, 1},
                                   FittedTile{"64x64_ping_pong", 64, 64, 2, 1},
                                   FittedTile{"128x256", 128, 256, 1, 2},
                                   FittedTile{"128x240", 128, 240, 1, 2},
                                   FittedTile{"128x224", 128, 224, 1, 2},
                                   FittedTile{"128x208", 128, 208, 1, 2},
                                   FittedTile{"128x192", 128, 192, 1, 2},
                                   FittedTile{"256x160", 256, 160, 1, 2},
                                   FittedTile{"256x96", 256, 96, 1, 2}};
inline constexpr int kTileK = 64;

/// The number of the tile with this name.
constexpr std::size_t number_of(std::string_view name) {
  for (std::size_t i = 0; i < kTiles.size(); ++i) {
    if (kTiles[i].name == name) return i;
  }
  throw std::invalid_argument("no tile has this name");
}

// What the model knows, fitted to 110 random shapes on an H200 (seed 21, which no published population has).
// Clocks, unless a name says otherwise.
struct ModelConstants {
  double launch_us = 3.7;                // before the first k-tile and behind the last
  double cooperative_us = 1.5;           // more, where two warpgroups share a tile
  double clock_share = 0.93;             // of the card's highest clock, under load
  double dram_share = 0.84;              // of the card's bandwidth
  double math = 1.19;                    // of a k-tile, over 4096 FLOP a clock
  double producer = 80;                  // of a k-tile: what the producer takes to ask for it
  double producer_cluster = 21;          // more with each doubling of the cluster
  double request_bytes = 77;             // a clock, that a CTA asks the L2 for
  double ragged_bytes = 28;              // the same where rows of A and B start on no sector
  double apart = 0.6;                    // times as many where CTAs are at different k
  double arriving_bytes = 71;            // a clock, into an SM
  double epilogue = 1395;                // of a tile
  double epilogue_element = 0.036;       // more for each element; where the tile's rows are columns of D:
  double transposed = 1.6;               // times as many
  double cluster_us = 1.2;               // of the launch, with each doubling of the cluster
  double reduction_us = 4.0;             // of stream-K tiles
  double reduction_element_us = 2.7e-4;  // more for each element of a tile, over its warpgroups
  double reduction_parts_us = 1.2;       // more with each doubling of the parts of a tile
  double lockstep = 0.99;                // the time with it over that without, where it pays
  double lockstep_from_us = 600;         // which is from here on
  // What the model flatters: a plan must be better by that much.
  double doubt_tail = 1.06;     // stream-K tiles beside whole ones
  double doubt_unequal = 1.04;  // parts of a tile that differ in length
  double doubt_cluster = 1.02;  // clusters where rows start on sectors
};
inline constexpr ModelConstants kModel;

/// A tile on a shape with a plan.
struct Prediction {
  std::size_t tile = 0;
  FittedPlan plan;
  Decomposition decomposition;
  double us = 0;
  double math_us = 0;    // the tensor cores of the busiest SM
  double bytes_us = 0;   // the bytes that reach it, and those that it asks for
  double dram_us = 0;    // every byte once, at the card's bandwidth
  double reduce_us = 0;  // partials through the workspace
};

/// Whether every row of A and B starts on a sector of the L2, 32 bytes.
constexpr bool starts_on_sectors(const Shape& shape) {
  return shape.k % 16 == 0;
}

/// The time of this tile with this plan.
inline Prediction predict(std::size_t number, const Shape& shape, const FittedPlan& plan, const Card& card) {
  const FittedTile& tile = kTiles[number];
  const ModelConstants& model = kModel;
  const int rows = plan.transposed ? shape.n : shape.m;
  const int columns = plan.transposed ? shape.m : shape.n;
  const int ctas = plan.cluster.ctas();
  const int most = std::max(1, card.resident_clusters(ctas));
  Prediction prediction{.tile = number, .plan = plan};
  Decomposition& all = prediction.decomposition;
  all.tiles = ceil_div(rows, tile.m * plan.cluster.m) * ceil_div(columns, tile.n * plan.cluster.n);
  all.k_tiles = ceil_div(shape.k, kTileK);
  all.workers = plan.workers == 0 ? most : std::min(plan.workers, most);
  all.stream_k_tiles = plan.stream_k_tiles;

  const double clock = card.clock_mhz * model.clock_share;  // a microsecond's
  const double doublings = std::log2(ctas);
  const double area = static_cast<double>(tile.m) * tile.n;
  const double loaded_rows = std::min(tile.m, rows);
  const double loaded_columns = std::min(tile.n, columns);
  const double math = area * 2 * kTileK / 4096 * model.math;
  const double producer = model.producer + model.producer_cluster * doublings;
  const bool apart = all.stream_k_tiles > 0 && all.workers % all.stream_k_tiles != 0;
  const double request = 2 * kTileK * (loaded_rows / plan.cluster.n + loaded_columns / plan.cluster.m) /
                         (starts_on_sectors(shape) ? model.request_bytes : model.ragged_bytes) /
                         (apart ? model.apart : 1);
  const double arriving = 2 * kTileK * (loaded_rows + loaded_columns) / model.arriving_bytes;
  // The largest decides; two that are about as large hinder each other.
  const double k_tile = std::pow(
      std::pow(math, 6) + std::pow(producer, 6) + std::pow(request, 6) + std::pow(arriving, 6), 1.0 / 6);
  const int rounds = ceil_div(all.tiles - all.stream_k_tiles, all.workers);
  const double range = static_cast<double>(all.stream_k_tiles) * all.k_tiles / all.workers;
  const double epilogue = model.epilogue + area * model.epilogue_element *
                                               (plan.transposed ? model.transposed : 1) / tile.warpgroups;
  const double main = all.k_tiles * k_tile;
  const double whole = tile.groups == 2 ? rounds * std::max(main, epilogue) + (rounds > 0 ? epilogue : 0)
                                        : rounds * (main + epilogue);
  const double busy_us = (whole + range * k_tile) / clock;
  const double elements = static_cast<double>(shape.m) * shape.k + static_cast<double>(shape.n) * shape.k +
                          static_cast<double>(shape.m) * shape.n;
  prediction.math_us = (rounds * all.k_tiles + range) * math / clock;
  prediction.bytes_us = (rounds * all.k_tiles + range) * std::max(request, arriving) / clock;
  prediction.dram_us = 2 * elements / (card.dram_bytes_per_us * model.dram_share);
  prediction.us = std::pow(std::pow(busy_us, 8) + std::pow(prediction.dram_us, 8), 1.0 / 8) +
                  model.launch_us + (tile.warpgroups == 2 ? model.cooperative_us : 0) +
                  model.cluster_us * doublings;
  if (all.stream_k_tiles > 0) {
    const double parts = static_cast<double>(all.workers) / all.stream_k_tiles;
    prediction.reduce_us = model.reduction_us + area * model.reduction_element_us / tile.warpgroups +
                           model.reduction_parts_us * std::log2(std::max(parts, 1.0));
    prediction.us += prediction.reduce_us;
  }
  if (plan.lockstep > 0) prediction.us *= model.lockstep;
  if (all.stream_k_tiles > 0 && rounds > 0) prediction.us *= model.doubt_tail;
  if (apart && rounds == 0) prediction.us *= model.doubt_unequal;
  if (ctas > 1 && starts_on_sectors(shape)) prediction.us *= model.doubt_cluster;
  return prediction;
}

/// Tiles, or clusters of tiles, in a raster group: as many as make a wave about square.
constexpr int raster_group(const FittedTile& tile, const ClusterShape& cluster, int sms) {
  const int height = tile.m * cluster.m;
  int group = 1;
  while (static_cast<double>(group + 1) * height * (group * height) <
         static_cast<double>(sms) * tile.m * tile.n)
    ++group;
  return group;
}

/// The plans that are worth a prediction, of one tile on a shape.
inline std::vector<FittedPlan> plans_of(const FittedTile& tile, const Shape& shape, const Card& card) {
  std::vector<FittedPlan> plans;
  for (const ClusterShape cluster : {ClusterShape{1, 1}, ClusterShape{2, 1}, ClusterShape{1, 2},
                                     ClusterShape{2, 2}, ClusterShape{4, 1}, ClusterShape{1, 4}}) {
    if (card.resident_clusters(cluster.ctas()) == 0 || !shares_columns(cluster, tile.n)) continue;
    for (const bool transposed : {false, true}) {
      const int rows = transposed ? shape.n : shape.m;
      const int columns = transposed ? shape.m : shape.n;
      // No CTA of a cluster is idle for good.
      if ((cluster.m - 1) * tile.m >= rows || (cluster.n - 1) * tile.n >= columns) continue;
      FittedPlan plan{.transposed = transposed,
                      .cluster = cluster,
                      .raster_group = raster_group(tile, cluster, card.sms)};
      plans.push_back(plan);
      const int workers = card.resident_clusters(cluster.ctas());
      const int tiles = ceil_div(rows, tile.m * cluster.m) * ceil_div(columns, tile.n * cluster.n);
      const int k_tiles = ceil_div(shape.k, kTileK);
      if (tiles > 4 * workers) {
        plan.lockstep = 16;
        plans.push_back(plan);
        plan.lockstep = 0;
      }
      if (tiles >= workers) {  // what does not fill a wave, alone or with a whole one
        for (const int stream_k_tiles : {tiles % workers, tiles % workers + workers}) {
          plan.stream_k_tiles = stream_k_tiles;
          if (tiles % workers != 0 && stream_k_tiles <= tiles) plans.push_back(plan);
        }
      } else if (k_tiles > 1) {  // every tile in as many parts, or all workers
        plan.stream_k_tiles = tiles;
        plans.push_back(plan);
        for (int parts = 2; parts * tiles <= workers && parts <= std::min(16, k_tiles); ++parts) {
          plan.workers = parts * tiles;
          if (plan.workers != workers) plans.push_back(plan);
        }
      }
    }
  }
  return plans;
}

/// The best plan for a tile.
inline Prediction best_plan(std::size_t number, const Shape& shape, const Card& card) {
  Prediction best;
  double without_lockstep = 0;
  for (const FittedPlan& plan : plans_of(kTiles[number], shape, card)) {
    const Prediction prediction = predict(number, shape, plan, card);
    if (plan.lockstep == 0) without_lockstep = prediction.us;
    if (plan.lockstep > 0 && without_lockstep < kModel.lockstep_from_us) continue;
    if (best.us == 0 || prediction.us < best.us) best = prediction;
  }
  return best;
}

/// The tile that is predicted to be fastest, and its plan.
inline Prediction choose(const Shape& shape, const Card& card) {
  Prediction best;
  for (std::size_t number = 0; number < kTiles.size(); ++number) {
    const Prediction prediction = best_plan(number, shape, card);
    if (best.us == 0 || prediction.us < best.us) best = prediction;
  }
  return best;
}

/// How sure the choice is: the share of the time that the next best tile would take longer.
inline double margin(const Shape& shape, const Card& card) {
  const Prediction best = choose(shape, card);
  double next = 0;
  for (std::size_t number = 0; number < kTiles.size(); ++number) {
    const double us = best_plan(number, shape, card).us;
    if (number != best.tile && (next == 0 || us < next)) next = us;
  }
  return next / best.us - 1;
}

/// Why: what the choice does, what limits it, and how much the next best would cost.
inline std::string explain(const Prediction& best, const Shape& shape, const Card& card) {
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
  const long percent = std::lround(100 * margin(shape, card));
  return why + "); the next best tile is predicted to take " + std::to_string(percent) + " % longer";
}

}  // namespace gemm::step_22
