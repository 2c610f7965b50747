// Which tile of step 22 suits a shape, and how it is used there: a small model of what each would cost. Plain
// C++, so that a test can ask it without a GPU.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/fitted/fitted_plan.h"
#include "gemm/problem/gemm.h"
#include "gemm/schedule/decomposition.h"
#include "learned.h"
#include "ptx/card.h"

namespace gemm::step_22 {

inline constexpr int kTileK = 64;

/// A tile that a kernel is built for: rows, columns, consumer groups, and warpgroups that share the tile.
struct FittedTile {
  const char* name;
  int m, n;
  int groups;
  int warpgroups;
  bool split = false;  // its K is cut in a cluster (split.cuh); otherwise fitted_kernel.cuh
  int k = kTileK;
  BuiltFor built_for = BuiltFor::kClusters;  // no plan needs more
};

/// The kernels. Twenty-one of them are enough for most shapes: among 48 that were measured on 110 random
/// shapes and the 18 of DeepGEMM's table, they lose 0.2 %. Those of 256 x 136 to 152, of 192 rows, and with
/// an odd multiple of 8 columns are for shapes that they cover in a wave fewer.
inline constexpr std::array kTiles{FittedTile{"128x176_ping_pong", 128, 176, 2, 1},
                                   FittedTile{"128x168_ping_pong", 128, 168, 2, 1},
                                   FittedTile{"128x160_ping_pong", 128, 160, 2, 1},
                                   FittedTile{"128x144_ping_pong", 128, 144, 2, 1},
                                   FittedTile{"128x136_ping_pong", 128, 136, 2, 1},
                                   FittedTile{"128x128_ping_pong", 128, 128, 2, 1},
                                   FittedTile{"128x120_ping_pong", 128, 120, 2, 1},
                                   FittedTile{"128x112_ping_pong", 128, 112, 2, 1},
                                   FittedTile{"128x104_ping_pong", 128, 104, 2, 1},
                                   FittedTile{"128x80_ping_pong", 128, 80, 2, 1},
                                   FittedTile{"128x48_ping_pong", 128, 48, 2, 1},
                                   FittedTile{"64x208_ping_pong", 64, 208, 2, 1},
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
                                   FittedTile{"256x160", 256, 160, 1, 2},
                                   FittedTile{"256x96", 256, 96, 1, 2},
                                   FittedTile{"256x152", 256, 152, 1, 2},
                                   FittedTile{"256x144", 256, 144, 1, 2},
                                   FittedTile{"256x136", 256, 136, 1, 2},
                                   FittedTile{"192x208", 192, 208, 1, 3},
                                   FittedTile{"192x192", 192, 192, 1, 3},
                                   FittedTile{"192x176", 192, 176, 1, 3},
                                   FittedTile{"128x192_ping_pong", 128, 192, 2, 1},
                                   FittedTile{"128x184_ping_pong", 128, 184, 2, 1},
                                   FittedTile{"64x64x128_split", 64, 64, 1, 1, true, 128},
                                   FittedTile{"64x80_split", 64, 80, 1, 1, true},
                                   FittedTile{"64x96_split", 64, 96, 1, 1, true},
                                   FittedTile{"64x112_split", 64, 112, 1, 1, true},
                                   FittedTile{"64x128_split", 64, 128, 1, 1, true},
                                   FittedTile{"64x160_split", 64, 160, 1, 1, true},
                                   FittedTile{"128x80_split", 128, 80, 1, 2, true},
                                   FittedTile{"128x96_split", 128, 96, 1, 2, true},
                                   FittedTile{"128x144_split", 128, 144, 1, 2, true},
                                   FittedTile{"128x160_split", 128, 160, 1, 2, true},
                                   FittedTile{.name = "192x256",
                                              .m = 192,
                                              .n = 256,
                                              .groups = 1,
                                              .warpgroups = 3,
                                              .built_for = BuiltFor::kWholeTiles}};

/// CTAs of a cluster that share the K of a tile, at most: as many as every GPU allows in a cluster, and as
/// their partials leave room for four stages. Each of them finishes its share of n / 8 units.
constexpr int most_parts(int m, int n, int k, int warpgroups) {
  const int unit_bytes = 128 * warpgroups * 16;
  int parts = 1;
  while (parts < 8 && 225 * 1024 - parts * ceil_div(n / 8, parts + 1) * unit_bytes >= 4 * 2 * (m + n) * k)
    ++parts;
  return parts;
}

/// The number of the tile with this name.
constexpr std::size_t number_of(std::string_view name) {
  for (std::size_t i = 0; i < kTiles.size(); ++i) {
    if (kTiles[i].name == name) return i;
  }
  throw std::invalid_argument("no tile has this name");
}

// What the model knows, fitted to 632 random shapes on an H200 and to 190 with few rows, short K, or few
// tiles (seeds 31, 7741 and others; the correction is of these, of 106 of seed 8080 and of 84 of seed 1729).
// Clocks, unless a name says otherwise.
struct ModelConstants {
  double launch_us = 3.35;                          // before the first k-tile and behind the last
  double launch_split_us = 0.949;                   // the same, of tiles whose K is cut in a cluster
  double cooperative_us = 0.642;                    // more, where two warpgroups share a tile
  double clock_share = 0.911;                       // of the card's highest clock, under load
  double dram_share = 0.94;                         // of the card's bandwidth
  double math = 1.22;                               // of a k-tile, over what its wgmma take at least
  double wgmma_a = 30.3;                            // of a wgmma: what reading its 64 rows of A takes
  double producer = 196.5;                          // of 64 k: what the producer takes to ask for it
  double producer_cluster = 43.0;                   // more with each doubling of the cluster
  double sm_bytes = 77.3;                           // a clock, that an SM of an H200 takes
  std::array<double, 2> request_bytes{58.8, 27.4};  // where rows start on no line: by rows_start()
  double apart = 0.825;                             // times as many where CTAs are at different k
  double epilogue = 1640;                           // of a tile
  double epilogue_element = 0.047;        // more for each element; where the tile's rows are columns of D:
  double transposed = 1.19;               // times as many
  double fixup_us = 4.3;                  // of stream-K tiles
  double fixup_element_us = 0.0002;       // more for each element of a tile, over its warpgroups
  double fixup_peer_us = 0.00002;         // more for each such element of a peer
  double fixup_before_us = 2.5;           // more where whole tiles follow
  double exchange_element_us = 0.000761;  // of partials in a cluster: for each element, over its warpgroups
  double store_element_us = 0.000611;     // of a tile whose K is cut, for each element that a CTA finishes
  double lockstep = 0.972;  // the time with it over that without, in a launch of lockstep_us or more
  double lockstep_us = 2000;
  double norm_k_tile = 4.04;  // how much two limits that meet hinder each other, in a k-tile
  double norm_whole = 3.59;   // and in the whole
  // What is seldom worth it: such a plan must be better by that much, and the correction learns nothing of
  // it.
  double doubt_tail = 1.05;  // stream-K tiles beside whole ones
};
inline constexpr ModelConstants kModel;

/// A tile on a shape with a plan.
struct Prediction {
  std::size_t tile = 0;
  FittedPlan plan;
  Decomposition decomposition;
  double us = 0;
  double doubt = 1;      // what the plan must be better by
  double math_us = 0;    // the tensor cores of the busiest SM
  double bytes_us = 0;   // the bytes that reach it, and those that it asks for
  double dram_us = 0;    // every byte once, at the card's bandwidth
  double reduce_us = 0;  // partials through the workspace
};

/// Where rows of A and B start: 0: all on a line of the L2, 128 bytes; 1: on a sector, 32 bytes; 2: on none.
constexpr std::size_t rows_start(const Shape& shape) {
  if (shape.k % 64 == 0) return 0;
  return shape.k % 16 == 0 ? 1 : 2;
}

/// The largest of the terms, or a little more where some are about equal.
inline double norm(double order, std::initializer_list<double> terms) {
  double sum = 0;
  for (const double term : terms) sum += std::pow(term, order);
  return std::pow(sum, 1 / order);
}

/// The work tiles of this tile with this plan. Where K is cut in clusters, what a CTA does is a tile.
inline Decomposition decomposition_of(const FittedTile& tile, const Shape& shape, const FittedPlan& plan,
                                      const Card& card) {
  const int rows = plan.transposed ? shape.n : shape.m;
  const int columns = plan.transposed ? shape.m : shape.n;
  Decomposition all;
  all.tiles = ceil_div(rows, tile.m * plan.cluster.m) * ceil_div(columns, tile.n * plan.cluster.n);
  all.k_tiles = ceil_div(shape.k, tile.k);
  const int most = std::max(1, card.resident_clusters(plan.cluster.ctas()));
  all.workers = plan.workers == 0 ? most : std::min(plan.workers, most);
  all.stream_k_tiles = plan.stream_k_tiles;
  if (tile.split) {
    all.tiles *= plan.parts;
    all.workers = all.tiles;  // plans_of() leaves out what does not fit at once
    all.k_tiles = ceil_div(all.k_tiles, plan.parts);
  }
  return all;
}

/// The time of this tile with this plan, by arithmetic alone.
inline Prediction predict_by_arithmetic(std::size_t number, const Shape& shape, const FittedPlan& plan,
                                        const Card& card) {
  const FittedTile& tile = kTiles[number];
  const ModelConstants& model = kModel;
  Prediction prediction{.tile = number, .plan = plan};
  const Decomposition& all = prediction.decomposition = decomposition_of(tile, shape, plan, card);
  const int rows = plan.transposed ? shape.n : shape.m;
  const int columns = plan.transposed ? shape.m : shape.n;
  const int ctas = plan.cluster.ctas();
  const double clock = card.clock_mhz * model.clock_share;  // a microsecond's
  const double doublings = std::log2(ctas);
  const double sm_bytes = model.sm_bytes * card.l2_rate;
  const double area = static_cast<double>(tile.m) * tile.n;
  const double loaded_rows = std::min(tile.m, rows);
  const double loaded_columns = std::min(tile.n, columns);
  const std::size_t start = rows_start(shape);
  const bool apart = all.stream_k_tiles > 0 && all.workers % all.stream_k_tiles != 0;

  const double math =
      tile.m / 64.0 * std::max(tile.n / 2.0, tile.n / 4.0 + model.wgmma_a) * tile.k / 16 * model.math;
  const double producer = (model.producer + model.producer_cluster * doublings) * tile.k / 64;
  const double asked_for = 2 * tile.k * (loaded_rows / plan.cluster.n + loaded_columns / plan.cluster.m);
  const double arriving = 2 * tile.k * (loaded_rows + loaded_columns) / sm_bytes;
  const double request =
      start == 0 ? 0
                 : asked_for / (model.request_bytes[start - 1] * card.l2_rate * (apart ? model.apart : 1));
  const double k_tile = norm(model.norm_k_tile, {math, producer, request});

  const int rounds = ceil_div(all.tiles - all.stream_k_tiles, all.workers);
  const double range = static_cast<double>(all.stream_k_tiles) * all.k_tiles / all.workers;
  const double turned = plan.transposed ? model.transposed : 1;
  const double epilogue = model.epilogue + area * model.epilogue_element * turned / tile.warpgroups;
  const double main = all.k_tiles * k_tile;
  double whole = rounds * (main + epilogue);
  if (tile.groups == 2) whole = rounds * std::max(main, epilogue) + (rounds > 0 ? epilogue : 0);
  if (tile.split) whole = main;
  const double elements = static_cast<double>(shape.m) * shape.k + static_cast<double>(shape.n) * shape.k +
                          static_cast<double>(shape.m) * shape.n;
  const double k_tiles = rounds * all.k_tiles + range;
  prediction.math_us = k_tiles * math / clock;
  prediction.bytes_us = k_tiles * std::max(request, arriving) / clock;
  prediction.dram_us = 2 * elements / (card.dram_bytes_per_us * model.dram_share);
  // Where all SMs load at once, they share what the DRAM gives. Those that are left in the last round may get
  // more each, but no more than an SM takes.
  const auto round_us = [&](int workers) {
    return std::max(prediction.dram_us * workers / all.tiles, all.k_tiles * arriving / clock);
  };
  double loads_us = std::max(prediction.dram_us, k_tiles * arriving / clock);
  if (all.stream_k_tiles == 0) {
    const int full = all.tiles / all.workers;
    const int last = all.tiles % all.workers;
    loads_us = full * round_us(all.workers) + (last > 0 ? round_us(last) : 0);
  }
  prediction.us = norm(model.norm_whole, {(whole + range * k_tile) / clock, loads_us});
  if (tile.split) {
    const double finished = area / tile.warpgroups / plan.parts * turned;
    prediction.us += model.launch_split_us + finished * model.store_element_us;
    if (plan.parts > 1) prediction.reduce_us = area / tile.warpgroups * model.exchange_element_us;
  } else {
    prediction.us += model.launch_us + (tile.warpgroups == 2 ? model.cooperative_us : 0);
  }
  if (all.stream_k_tiles > 0) {
    const double parts = static_cast<double>(all.workers) / all.stream_k_tiles;
    const double peers = apart ? std::max(parts, 1.0) : parts - 1;
    prediction.reduce_us = model.fixup_us +
                           area / tile.warpgroups * (model.fixup_element_us + model.fixup_peer_us * peers) +
                           (rounds > 0 ? model.fixup_before_us : 0);
  }
  prediction.us += prediction.reduce_us;
  if (plan.lockstep > 0 && ctas == 1) {  // the longer a launch, the further CTAs drift apart without it
    const double drift = std::clamp(1 + 0.4 * std::log2(prediction.us / model.lockstep_us), 0.0, 1.0);
    prediction.us *= 1 + (model.lockstep - 1) * drift;
  }
  if (all.stream_k_tiles > 0 && rounds > 0) prediction.doubt *= model.doubt_tail;
  return prediction;
}

/// Of the card's bandwidth, in a feature: the trees are fitted to it, so it need not be the model's
/// dram_share.
inline constexpr double kDramShareOfFeature = 0.833;
inline constexpr std::size_t kFeatures = 32;

/// What the correction knows of a prediction. All of it is small numbers or ratios, so that it means the same
/// on another card.
inline std::array<double, kFeatures> features_of(const Prediction& prediction, const Shape& shape,
                                                 const Card& card) {
  const FittedTile& tile = kTiles[prediction.tile];
  const FittedPlan& plan = prediction.plan;
  const Decomposition& all = prediction.decomposition;
  const int rows = plan.transposed ? shape.n : shape.m;
  const int columns = plan.transposed ? shape.m : shape.n;
  const bool cut = all.stream_k_tiles > 0;
  const int whole = all.tiles - all.stream_k_tiles;
  const double waves =
      static_cast<double>(whole) / (tile.split ? card.sms / plan.cluster.ctas() : all.workers);
  const double rounds = ceil_div(whole, all.workers);
  const double range = static_cast<double>(all.stream_k_tiles) * all.k_tiles / all.workers;
  const int busy_ctas = plan.cluster.ctas() * (cut ? all.workers : std::min(all.tiles, all.workers));
  const double elements = static_cast<double>(shape.m) * shape.k + static_cast<double>(shape.n) * shape.k +
                          static_cast<double>(shape.m) * shape.n;
  const bool rows_larger = rows > columns;  // which operand is the larger one
  const double tile_rows = ceil_div(rows, tile.m);
  const double tile_columns = ceil_div(columns, tile.n);
  return {static_cast<double>(tile.m),
          static_cast<double>(tile.n),
          static_cast<double>(tile.k),
          static_cast<double>(tile.groups),
          static_cast<double>(tile.warpgroups),
          static_cast<double>(plan.cluster.m),
          static_cast<double>(plan.cluster.n),
          plan.transposed ? 1.0 : 0.0,
          plan.lockstep > 0 ? 1.0 : 0.0,
          tile.split ? 1.0 : 0.0,
          static_cast<double>(plan.parts),
          cut ? static_cast<double>(all.workers) / all.stream_k_tiles : 0.0,
          cut && all.workers % all.stream_k_tiles != 0 ? 1.0 : 0.0,
          rounds,
          waves / std::max(std::ceil(waves), 1.0),
          std::min(waves, 8.0),
          std::log(rounds * all.k_tiles + range),
          std::log(ceil_div(shape.k, tile.k)),
          static_cast<double>(rows_start(shape)),
          shape.n % 16 == 0 ? 1.0 : 0.0,
          std::log(std::min(static_cast<double>(rows) / tile.m, 1.0)),
          std::log(std::min(static_cast<double>(columns) / tile.n, 1.0)),
          std::log(2 * elements / (card.dram_bytes_per_us * kDramShareOfFeature) / prediction.us),
          std::log(static_cast<double>(busy_ctas) / card.sms),
          std::log(prediction.us),
          std::log(prediction.math_us / prediction.us),
          std::log(prediction.bytes_us / prediction.us),
          std::log(rows_larger ? tile_columns : tile_rows),
          rows_larger ? 1.0 : 0.0,
          std::log(rows_larger ? tile_rows : tile_columns),
          std::log(2.0 * std::max(rows, columns) * shape.k / 5e7),  // of the larger operand: of the L2
          card.l2_rate};
}

/// The logarithm of how much longer it takes than the arithmetic says: a sum over decision trees.
inline double correction(const std::array<double, kFeatures>& features) {
  double sum = kLearnedMean;
  for (const int root : kLearnedTrees) {
    const LearnedNode* const tree = &kLearnedNodes[static_cast<std::size_t>(root)];
    const LearnedNode* node = tree;
    while (node->feature >= 0) {
      const bool left =
          features[static_cast<unsigned char>(node->feature)] <= static_cast<double>(node->value);
      node = tree + (left ? node->left : node->right);
    }
    sum += static_cast<double>(node->value);
  }
  return sum;
}

/// The time of this tile with this plan.
inline Prediction predict(std::size_t number, const Shape& shape, const FittedPlan& plan, const Card& card) {
  Prediction prediction = predict_by_arithmetic(number, shape, plan, card);
  prediction.us *= std::exp(correction(features_of(prediction, shape, card)));
  return prediction;
}

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
      const int rows = transposed ? shape.n : shape.m;
      const int columns = transposed ? shape.m : shape.n;
      if ((cluster.m - 1) * tile.m >= rows || (cluster.n - 1) * tile.n >= columns) continue;
      const int tiles = ceil_div(rows, tile.m * cluster.m) * ceil_div(columns, tile.n * cluster.n);
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
  for (const ClusterShape cluster :
       {ClusterShape{1, 1}, ClusterShape{2, 1}, ClusterShape{1, 2}, ClusterShape{2, 2}, ClusterShape{4, 1},
        ClusterShape{1, 4}, ClusterShape{2, 4}, ClusterShape{4, 2}}) {
    if (cluster.ctas() > 1 && tile.built_for < BuiltFor::kClusters) break;
    if (cluster.ctas() > 4 && rows_start(shape) < 2) break;  // at 153 shapes it was worth 2 % once
    if (card.resident_clusters(cluster.ctas()) == 0 || !shares_columns(cluster, tile.n)) continue;
    for (const bool transposed : {false, true}) {
      const int rows = transposed ? shape.n : shape.m;
      const int columns = transposed ? shape.m : shape.n;
      // No CTA of a cluster is idle for good.
      if ((cluster.m - 1) * tile.m >= rows || (cluster.n - 1) * tile.n >= columns) continue;
      const int tile_rows = ceil_div(rows, tile.m * cluster.m);
      FittedPlan plan{.transposed = transposed,
                      .cluster = cluster,
                      .raster_group = raster_group(tile, cluster, tile_rows, card.sms)};
      plans.push_back(plan);
      const int workers = card.resident_clusters(cluster.ctas());
      const int tiles = tile_rows * ceil_div(columns, tile.n * cluster.n);
      const int k_tiles = ceil_div(shape.k, kTileK);
      if (tiles > 4 * workers && k_tiles >= 32) {
        plan.lockstep = lockstep_period(cluster);
        plans.push_back(plan);
        plan.lockstep = 0;
      }
      if (tile.built_for < BuiltFor::kStreamK) continue;
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

/// Of a tile's plans those that arithmetic alone says take longer than this many times the shortest are left
/// out: the correction was learned from plans that were worth a measurement, and flatters others.
inline constexpr double kWorthIt = 1.15;

/// Whether the first is to be chosen. A prediction whose time is 0 is none.
inline bool better(const Prediction& one, const Prediction& other) {
  return one.us > 0 && (other.us == 0 || one.us * one.doubt < other.us * other.doubt);
}

// Lesson: where requests meet, a byte comes out of the L2 once for several SMs. That saves no time where
// tensor cores are the limit, but energy, and with it the clock is higher. The trees cannot learn half a
// percent.

/// Whether a plan is faster in lockstep, whatever the model says: 1.007 times as fast in the mean of 174
/// plans of 113 random shapes, at worst 0.987. Tiles of 64 rows lose: probably their k-tiles are shorter than
/// a barrier.
inline bool gains_in_lockstep(const Prediction& prediction) {
  const FittedTile& tile = kTiles[prediction.tile];
  const Decomposition& all = prediction.decomposition;
  return !tile.split && prediction.plan.cluster.ctas() == 1 && all.stream_k_tiles == 0 && tile.m >= 128 &&
         all.tiles > all.workers && all.k_tiles >= 16 && prediction.us >= 50;
}

/// The best plan for a tile; its time is 0 where no plan suits the shape.
inline Prediction best_plan(std::size_t number, const Shape& shape, const Card& card) {
  std::vector<Prediction> all;
  Prediction first;
  for (const FittedPlan& plan : plans_of(kTiles[number], shape, card)) {
    all.push_back(predict_by_arithmetic(number, shape, plan, card));
    if (better(all.back(), first)) first = all.back();
  }
  Prediction best;
  for (Prediction& prediction : all) {
    if (prediction.us * prediction.doubt > kWorthIt * first.us * first.doubt) continue;
    prediction.us *= std::exp(correction(features_of(prediction, shape, card)));
    if (better(prediction, best)) best = prediction;
  }
  if (best.us > 0 && gains_in_lockstep(best)) best.plan.lockstep = kLockstepPeriod;
  return best;
}

/// The tile that is predicted to be fastest, and its plan.
inline Prediction choose(const Shape& shape, const Card& card) {
  Prediction best;
  for (std::size_t number = 0; number < kTiles.size(); ++number) {
    const Prediction prediction = best_plan(number, shape, card);
    if (better(prediction, best)) best = prediction;
  }
  return best;
}

/// How sure the choice is: the share of the time that the next best tile would take longer, doubts included.
inline double margin(const Shape& shape, const Card& card) {
  const Prediction best = choose(shape, card);
  Prediction next;
  for (std::size_t number = 0; number < kTiles.size(); ++number) {
    const Prediction other = number == best.tile ? Prediction{} : best_plan(number, shape, card);
    if (better(other, next)) next = other;
  }
  return next.us * next.doubt / (best.us * best.doubt) - 1;
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
  return why + "); the next best tile is " + std::to_string(percent) + " % behind, doubts included";
}

}  // namespace gemm::step_22
