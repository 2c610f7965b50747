// Which configuration of step 22 suits a shape: a small model of what each would cost. Plain C++, so that a
// test can ask it without a GPU.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gemm/decomposition.h"
#include "gemm/gemm.h"
#include "gemm/raster.h"

namespace gemm::step_22 {

/// A configuration, as far as the model cares. `teams` of consumers: one, or two that alternate. `period`:
/// k-tiles between two meetings of all CTAs; 0: no meetings. `cluster`: CTAs with tiles below each other that
/// share B.
struct Configuration {
  const char* name;
  TileShape tile;
  int teams;
  int period;
  int cluster = 1;

  /// Whether sums can be passed on: not from three warpgroups, whose registers are full, and not where CTAs
  /// wait for each other. Who waits for sums comes to no meeting, and who is at a meeting leaves no sums.
  constexpr bool passes_sums() const { return tile.m < 192 && period == 0 && cluster == 1; }
  /// Who work on tiles, or on pairs of tiles.
  constexpr int workers(int ctas) const { return ctas < cluster ? 1 : ctas / cluster; }
  constexpr int tiles(const Shape& shape) const {
    return ceil_div(shape.m, tile.m * cluster) * ceil_div(shape.n, tile.n);
  }
};

inline constexpr std::array kConfigurations{Configuration{"128x256", {128, 256, 64}, 1, 0},
                                            Configuration{"128x256_in_step", {128, 256, 64}, 1, 16},
                                            Configuration{"192x256_in_step", {192, 256, 64}, 1, 16},
                                            Configuration{"128x192_ping_pong", {128, 192, 64}, 2, 0},
                                            Configuration{"128x192_ping_pong_in_step", {128, 192, 64}, 2, 16},
                                            Configuration{"128x128_ping_pong", {128, 128, 64}, 2, 0},
                                            Configuration{"64x128", {64, 128, 64}, 1, 0},
                                            Configuration{"64x64x128", {64, 64, 128}, 1, 0},
                                            Configuration{"128x256_2x1", {128, 256, 64}, 1, 0, 2}};

/// The number of the one with this name.
constexpr int number_of(std::string_view name) {
  for (std::size_t i = 0; i < kConfigurations.size(); ++i) {
    if (kConfigurations[i].name == name) return static_cast<int>(i);
  }
  throw std::invalid_argument("no configuration has this name");
}

// What the model knows of an H200; docs/results/suite_h200.json shows how well.
inline constexpr double kClock = 1750;              // cycles in a microsecond, under load
inline constexpr double kFlopPerCycle = 4096;       // of an SM's tensor cores, dense bf16
inline constexpr double kL2BytesPerCycle = 58;      // into an SM, when CTAs ask for the same lines together
inline constexpr double kTapeBytesPerCycle = 38;    // when each is at a k of its own
inline constexpr double kRaggedBytesPerCycle = 29;  // the same, when rows do not start on sectors
inline constexpr double kClusterCost = 1.01;        // the time with clusters over that without, bytes apart
inline constexpr double kDramBytesPerUs = 4.1e6;    // of the whole GPU
inline constexpr double kEpilogueCycles = 7000;  // of a 128 x 256 tile; two teams hide all but the last one
inline constexpr double kLeaveCycles = 12000;    // to leave a 128 x 256 tile's sums, and to be waited for
inline constexpr double kAddCycles = 9000;       // to add those of one slot
inline constexpr double kFetchedCycles = 3500;   // the same when they come through the ring
inline constexpr double kExposedPassing = 0.6;   // of leaving and adding, what two teams cannot hide
inline constexpr double kWorthAWorkspace = 0.9995;  // a tape must take less than this of the time without
inline constexpr double kPowerLimitUs = 800;        // no tape in a longer launch: idle SMs leave others power
inline constexpr double kEnergyUs = 2000;           // a longer one is limited by power alone
inline constexpr double kBytesAreEnergy = 0.10;     // the share of the bytes, in the time of 128 x 256 tiles
inline constexpr double kInStepBytes = 55e6;        // of A and B that a wave reads; with more, meetings pay
inline constexpr double kInStepGain = 0.985;  // the time with meetings over that without, where they pay
inline constexpr double kInStepCost = 1.01;   // and where they do not

/// A configuration on a shape.
struct Prediction {
  Decomposition decomposition;
  double us = 0;          // of the kernel's work; what every launch costs is not in it
  double math_us = 0;     // the tensor cores of the busiest SM
  double l2_us = 0;       // the bytes that it reads of the L2
  double dram_us = 0;     // every byte once, at full bandwidth
  double passing_us = 0;  // sums through the workspace
};

/// Whether every row of A and B starts on a sector of the L2, 32 bytes.
constexpr bool starts_on_sectors(const Shape& shape) {
  return shape.k % 16 == 0;
}

/// The time of this decomposition. A launch of more than 2 ms runs into the power limit: then epilogues
/// cost next to nothing, for tensor cores that wait leave the others a higher clock, and bytes cost time.
constexpr Prediction predict(const Configuration& configuration, const Shape& shape,
                             const Decomposition& decomposition, bool limited_by_power) {
  const auto [tile_m, tile_n, tile_k] = configuration.tile;
  const double area = static_cast<double>(tile_m) * tile_n;
  const double size = area / (128 * 256);
  const int rows = tile_m < shape.m ? tile_m : shape.m;
  const double k_tiles = busiest_k_tiles(decomposition);
  const double tape =
      static_cast<double>(decomposition.stream_k_tiles) * decomposition.k_tiles / decomposition.workers;
  const double math = 2 * area * tile_k / kFlopPerCycle;  // cycles of a k-tile
  const double bytes_of_k_tile = 2.0 * (rows + static_cast<double>(tile_n) / configuration.cluster) * tile_k;
  const bool sectors = starts_on_sectors(shape);
  const double together = bytes_of_k_tile / (sectors ? kL2BytesPerCycle : kRaggedBytesPerCycle);
  const double apart = bytes_of_k_tile / (sectors ? kTapeBytesPerCycle : kRaggedBytesPerCycle);
  Prediction prediction{decomposition};
  prediction.math_us = k_tiles * math / kClock;
  prediction.l2_us = ((k_tiles - tape) * together + tape * apart) / kClock;
  const double elements = static_cast<double>(shape.m) * shape.k + static_cast<double>(shape.n) * shape.k +
                          static_cast<double>(shape.m) * shape.n;
  prediction.dram_us = 2 * elements / kDramBytesPerUs;
  if (decomposition.stream_k_tiles > 0 && decomposition.stream_k_tiles % decomposition.workers != 0) {
    const int sharing =
        (decomposition.ranges() + decomposition.stream_k_tiles - 1) / decomposition.stream_k_tiles;
    const bool fetched = configuration.teams == 1 || decomposition.data_parallel() == 0;
    prediction.passing_us =
        size * (kLeaveCycles + (fetched ? kFetchedCycles : kAddCycles) * sharing) / kClock;
    // Two teams: one passes sums while the other one multiplies whole tiles.
    if (configuration.teams == 2 && decomposition.data_parallel() > 0)
      prediction.passing_us *= kExposedPassing;
  }
  const double tiles = configuration.teams == 2 ? 1 : k_tiles / decomposition.k_tiles;
  const double epilogue_us = size * kEpilogueCycles * (tiles < 1 ? 1 : tiles) / kClock;
  const double busy =
      ((k_tiles - tape) * (math > together ? math : together) + tape * (math > apart ? math : apart)) /
      kClock;
  prediction.us = (busy > prediction.dram_us ? busy : prediction.dram_us) + prediction.passing_us;
  if (limited_by_power) {
    const double bytes = (tile_m + tile_n) / area / (384.0 / 32768);  // relative to 128 x 256 tiles
    prediction.us *= 1 + kBytesAreEnergy * (bytes - 1);
  } else {
    prediction.us += epilogue_us;
  }
  if (configuration.period > 0) {
    // A wave of about as many rows of D as columns: its side squared is the wave's area.
    const double side_squared = area * decomposition.workers;
    const double bytes = 4.0 * shape.k;  // of one row and one column
    const bool pays = decomposition.stream_k_tiles == 0 && decomposition.tiles > 4 * decomposition.workers &&
                      side_squared * bytes * bytes > kInStepBytes * kInStepBytes;
    prediction.us *= pays ? kInStepGain : kInStepCost;
  }
  return prediction;
}

/// The best decomposition for a configuration: whole tiles, or the tiles that do not fill a wave as a tape,
/// alone or with one whole wave.
constexpr Prediction predict(const Configuration& configuration, const Shape& shape, int ctas) {
  const int tiles = configuration.tiles(shape);
  const Decomposition whole{tiles, ceil_div(shape.k, configuration.tile.k), configuration.workers(ctas), 0,
                            1};
  Prediction best = predict(configuration, shape, whole, false);
  if (best.us > kEnergyUs) best = predict(configuration, shape, whole, true);
  if (configuration.cluster > 1) best.us *= kClusterCost;
  if (best.us > kPowerLimitUs || !configuration.passes_sums()) return best;
  double limit = kWorthAWorkspace * best.us;
  for (const int stream_k_tiles : {tiles % ctas, tiles % ctas + ctas}) {
    if (stream_k_tiles == 0 || stream_k_tiles > tiles) continue;
    Decomposition other = whole;
    other.stream_k_tiles = stream_k_tiles;
    const Prediction prediction = predict(configuration, shape, other, false);
    if (prediction.us >= limit) continue;
    best = prediction;
    limit = prediction.us;
  }
  return best;
}

/// How often each CTA meets the others: as often as the busiest one.
constexpr int meetings(const Decomposition& all, int period) {
  const int rounds = (all.data_parallel() + all.workers - 1) / all.workers;
  const int longest = all.range_begin(1) - all.range_begin(0) + rounds * all.k_tiles;
  return (longest + period - 1) / period;
}

/// Rows of tiles, or of pairs of tiles, in a band of the raster: 16 tiles, as in the steps before, or 12 when
/// the rows of A in 16 are more than stays in the L2 from one wave to the next.
constexpr int band_of(const Configuration& configuration, const Shape& shape) {
  return (16.0 * configuration.tile.m * shape.k * 2 > 25e6 ? 12 : 16) / configuration.cluster;
}

/// The number in kConfigurations of the one that is predicted to be fastest.
constexpr int choose(const Shape& shape, int ctas) {
  int best = 0;
  double time = 0;
  for (int i = 0; i < static_cast<int>(kConfigurations.size()); ++i) {
    const Configuration& configuration = kConfigurations[static_cast<std::size_t>(i)];
    const Prediction prediction = predict(configuration, shape, ctas);
    if (i > 0 && (configuration.cluster > ctas || prediction.us >= time)) continue;
    best = i;
    time = prediction.us;
  }
  return best;
}

/// Why: what the choice does, what limits it, and what the next best would cost.
inline std::string explain(const Shape& shape, int ctas) {
  const auto us = [](double time) { return std::to_string(std::lround(time)) + " us"; };
  const auto chosen = static_cast<std::size_t>(choose(shape, ctas));
  const Prediction best = predict(kConfigurations[chosen], shape, ctas);
  const Decomposition& all = best.decomposition;
  const int whole = all.tiles - all.stream_k_tiles;
  const bool pairs = kConfigurations[chosen].cluster == 2;
  std::string why = std::to_string(all.tiles) + (pairs ? " pairs of tiles on " : " tiles on ") +
                    std::to_string(all.workers) + (pairs ? " pairs of SMs: " : " SMs: ");
  if (all.stream_k_tiles > 0) why += std::to_string(all.stream_k_tiles) + " as a tape of k-tiles";
  if (all.stream_k_tiles > 0 && whole > 0) why += ", then ";
  if (whole > 0) {
    const std::int64_t rounds = ceil_div(whole, all.workers);
    why +=
        std::to_string(whole) + " whole in " + std::to_string(rounds) + (rounds == 1 ? " round" : " rounds");
  }
  why += ". Predicted " + us(best.us) + " (tensor cores " + us(best.math_us) + ", L2 " + us(best.l2_us) +
         ", DRAM " + us(best.dram_us);
  if (best.passing_us > 0) why += ", passing sums " + us(best.passing_us);
  why += ")";
  const char* separator = "; ";
  for (std::size_t i = 0; i < kConfigurations.size(); ++i) {
    if (i == chosen) continue;
    why += separator + std::string(kConfigurations[i].name) + " " +
           us(predict(kConfigurations[i], shape, ctas).us);
    separator = ", ";
  }
  return why;
}

}  // namespace gemm::step_22
