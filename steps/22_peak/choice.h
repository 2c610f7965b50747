// What a tile of step 22 with a plan would cost on a card, by arithmetic; chosen_plan.h chooses. Plain C++,
// so that a test can ask it without a GPU; the chapter works one shape through.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <tuple>

#include "gemm/fitted/fitted_plan.h"
#include "gemm/fitted/plan_features.h"
#include "gemm/fitted/prediction.h"
#include "gemm/problem/gemm.h"
#include "gemm/schedule/decomposition.h"
#include "ptx/card.h"
#include "tiles.h"

namespace gemm::step_22 {

// What the model knows, fitted to 632 random shapes on an H200 and to 190 with few rows, short K, or few
// tiles. Times are in clocks unless a name ends with _us; a factor says what it multiplies.
struct ModelConstants {
  // A launch.
  double launch_us = 3.35;         // before the first k-tile and after the last
  double launch_split_us = 0.949;  // the same, where K is cut in a cluster
  double cooperative_us = 0.642;   // added where two warpgroups share a tile
  double clock_share = 0.911;      // factor: the clock under load over the card's highest
  double dram_share = 0.94;        // factor: the bandwidth that a launch gets over the card's

  // A k-tile.
  double math = 1.22;            // factor: its multiplications over the least that its wgmma take
  double wgmma_a = 30.3;         // what a wgmma takes to read 64 rows of A
  double producer = 196.5;       // what the producer takes to ask for 64 of K
  double producer_cluster = 43;  // added for each doubling of the cluster
  double sm_bytes = 77.3;        // bytes per clock that an SM of an H200 takes, when others share its lines
  std::array<double, 2> request_bytes{58.8, 27.4};  // the same where rows start on no line, by rows_start()
  double apart = 0.825;                             // factor on these where CTAs are at different k

  // An epilogue.
  double epilogue = 1640;           // clocks, for a tile of any size
  double epilogue_element = 0.047;  // added per element of the tile
  double transposed = 1.19;         // factor on it where rows of the tile are columns of D

  // Partials.
  double fixup_us = 4.3;                  // for stream-K tiles of any size
  double fixup_element_us = 0.0002;       // added per element of a tile and warpgroup
  double fixup_peer_us = 0.00002;         // added per such element and peer
  double fixup_before_us = 2.5;           // added where whole tiles follow
  double exchange_element_us = 0.000761;  // in a cluster: per element of a tile and warpgroup
  double store_element_us = 0.000611;     // where K is cut: per element that a CTA finishes

  // What overlaps, and what is doubtful.
  double lockstep = 0.972;  // factor: a launch of lockstep_us or more with a lockstep over one without
  double lockstep_us = 2000;
  double norm_k_tile = 4.04;  // the order of the norm of a k-tile's limits: how much they hinder each other
  double norm_whole = 3.59;   // the same of multiplying and loading in the whole launch
  double doubt_tail = 1.05;   // factor by which stream-K tiles beside whole ones must be better
};
inline constexpr ModelConstants kModel;

/// The largest of the terms, or a little more where some are about equal.
inline double norm(double order, std::initializer_list<double> terms) {
  double sum = 0;
  for (const double term : terms) sum += std::pow(term, order);
  return std::pow(sum, 1 / order);
}

/// The work tiles of this tile with this plan. Where K is cut in clusters, what a CTA does is a tile.
inline Decomposition decomposition_of(const FittedTile& tile, const Shape& shape, const FittedPlan& plan,
                                      const Card& card) {
  const TileMatrix matrix(shape, plan);
  Decomposition all;
  all.tiles =
      ceil_div(matrix.rows, tile.m * plan.cluster.m) * ceil_div(matrix.columns, tile.n * plan.cluster.n);
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

/// What the arithmetic is about.
struct Setting {
  const FittedTile& tile;
  const Shape& shape;
  const FittedPlan& plan;
  const Card& card;
  Decomposition all = decomposition_of(tile, shape, plan, card);
  TileMatrix matrix{shape, plan};
  double area = static_cast<double>(tile.m) * tile.n;
  double clocks_per_us = card.clock_mhz * kModel.clock_share;
  /// CTAs are at different k: their ranges of the stream-K tiles begin anywhere.
  bool apart = all.stream_k_tiles > 0 && all.workers % all.stream_k_tiles != 0;
};

/// Limits: clocks that a CTA takes for one k-tile.
struct KTileClocks {
  double math;      // the tensor cores
  double producer;  // until it has asked for the k-tile
  double requests;  // until the L2 has answered them, where rows start on no line of it
  double arrival;   // until the bytes are there
  double all;       // the first three, where they hinder each other
};
inline KTileClocks clocks_of_k_tile(const Setting& of) {
  const auto& [tile, cluster] = std::tie(of.tile, of.plan.cluster);
  const double rows = std::min(tile.m, of.matrix.rows);
  const double columns = std::min(tile.n, of.matrix.columns);
  const int start = rows_start(of.shape);
  KTileClocks clocks{};
  // ANCHOR: math
  // With 64 rows and 16 elements of K, a wgmma takes half a clock per column, or as long as reading A.
  const double wgmma = std::max(tile.n / 2.0, tile.n / 4.0 + kModel.wgmma_a);
  clocks.math = tile.m / 64.0 * wgmma * tile.k / 16 * kModel.math;
  // ANCHOR_END: math
  clocks.producer = (kModel.producer + kModel.producer_cluster * std::log2(cluster.ctas())) * tile.k / 64;
  if (start > 0) {  // the CTAs of a cluster share what they ask for
    const double bytes = 2 * tile.k * (rows / cluster.n + columns / cluster.m);
    const double rate = kModel.request_bytes[static_cast<std::size_t>(start) - 1] * of.card.l2_rate;
    clocks.requests = bytes / (rate * (of.apart ? kModel.apart : 1));
  }
  clocks.arrival = 2 * tile.k * (rows + columns) / (kModel.sm_bytes * of.card.l2_rate);
  clocks.all = norm(kModel.norm_k_tile, {clocks.math, clocks.producer, clocks.requests});
  return clocks;
}

/// Waves: what the busiest worker does.
struct BusiestWorker {
  int rounds;      // whole tiles
  double range;    // k-tiles of the stream-K tiles
  double k_tiles;  // in all
};
inline BusiestWorker busiest_worker(const Setting& of) {
  const Decomposition& all = of.all;
  const int rounds = ceil_div(all.tiles - all.stream_k_tiles, all.workers);
  const double range = static_cast<double>(all.stream_k_tiles) * all.k_tiles / all.workers;
  return {rounds, range, rounds * all.k_tiles + range};
}

/// Rounds: clocks of its whole tiles. A second consumer group hides one of an epilogue and a main loop.
inline double clocks_of_rounds(const Setting& of, int rounds, double k_tile) {
  // ANCHOR: rounds
  const double main_loop = of.all.k_tiles * k_tile;
  if (of.tile.split) return main_loop;
  const double turned = of.plan.transposed ? kModel.transposed : 1;
  const double epilogue = kModel.epilogue + of.area * kModel.epilogue_element * turned / of.tile.warpgroups;
  if (of.tile.groups == 2) return rounds * std::max(main_loop, epilogue) + (rounds > 0 ? epilogue : 0);
  return rounds * (main_loop + epilogue);
  // ANCHOR_END: rounds
}

/// Bytes: A, B and D once, at what the device memory gives.
inline double dram_us(const Shape& shape, const Card& card) {
  const double m = shape.m;
  const double elements = m * shape.k + static_cast<double>(shape.n) * shape.k + m * shape.n;
  return 2 * elements / (card.dram_bytes_per_us * kModel.dram_share);
}

/// Where all SMs load at once, they share what the device memory gives. Those that are left in the last round
/// may get more each, but no more than an SM takes.
inline double loads_us(const Setting& of, const BusiestWorker& busiest, double arrival, double dram) {
  const Decomposition& all = of.all;
  if (all.stream_k_tiles > 0) return std::max(dram, busiest.k_tiles * arrival / of.clocks_per_us);
  const auto round_us = [&](int workers) {
    return std::max(dram * workers / all.tiles, all.k_tiles * arrival / of.clocks_per_us);
  };
  const int last = all.tiles % all.workers;
  const int full_rounds = all.tiles / all.workers;
  return full_rounds * round_us(all.workers) + (last > 0 ? round_us(last) : 0);
}

/// What the launch itself takes.
inline double fixed_us(const Setting& of) {
  if (!of.tile.split) return kModel.launch_us + (of.tile.warpgroups == 2 ? kModel.cooperative_us : 0);
  const double turned = of.plan.transposed ? kModel.transposed : 1;
  const double finished = of.area / of.tile.warpgroups / of.plan.parts * turned;
  return kModel.launch_split_us + finished * kModel.store_element_us;
}

/// What adding partials takes: in a cluster, or through the workspace.
inline double partials_us(const Setting& of, int rounds) {
  const double elements = of.area / of.tile.warpgroups;
  if (of.tile.split) return of.plan.parts > 1 ? elements * kModel.exchange_element_us : 0;
  if (of.all.stream_k_tiles == 0) return 0;
  const double workers_of_tile = static_cast<double>(of.all.workers) / of.all.stream_k_tiles;
  const double peers = of.apart ? std::max(workers_of_tile, 1.0) : workers_of_tile - 1;
  return kModel.fixup_us + elements * (kModel.fixup_element_us + kModel.fixup_peer_us * peers) +
         (rounds > 0 ? kModel.fixup_before_us : 0);
}

/// The time of this tile with this plan, by arithmetic alone.
inline Prediction predict_by_arithmetic(std::size_t number, const Shape& shape, const FittedPlan& plan,
                                        const Card& card) {
  const Setting of{kTiles[number], shape, plan, card};
  const KTileClocks k_tile = clocks_of_k_tile(of);
  const BusiestWorker busiest = busiest_worker(of);
  const double rounds = clocks_of_rounds(of, busiest.rounds, k_tile.all);

  Prediction prediction{.tile = number, .plan = plan, .decomposition = of.all};
  prediction.math_us = busiest.k_tiles * k_tile.math / of.clocks_per_us;
  prediction.bytes_us = busiest.k_tiles * std::max(k_tile.requests, k_tile.arrival) / of.clocks_per_us;
  prediction.dram_us = dram_us(shape, card);
  prediction.reduce_us = partials_us(of, busiest.rounds);
  // ANCHOR: total
  const double work_us = (rounds + busiest.range * k_tile.all) / of.clocks_per_us;
  const double loads = loads_us(of, busiest, k_tile.arrival, prediction.dram_us);
  prediction.us = norm(kModel.norm_whole, {work_us, loads}) + fixed_us(of) + prediction.reduce_us;
  // ANCHOR_END: total
  if (plan.lockstep > 0 && plan.cluster.ctas() == 1) {  // the longer a launch, the further CTAs drift apart
    const double drift = std::clamp(1 + 0.4 * std::log2(prediction.us / kModel.lockstep_us), 0.0, 1.0);
    prediction.us *= 1 + (kModel.lockstep - 1) * drift;
  }
  if (of.all.stream_k_tiles > 0 && busiest.rounds > 0) prediction.doubt = kModel.doubt_tail;
  return prediction;
}

}  // namespace gemm::step_22
