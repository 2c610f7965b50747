// Which tile suits a shape: the one whose limits are the lowest, in whole waves of tiles.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "ptx/launch.cuh"

namespace gemm::step_46 {

// Lesson: a k-tile takes a CTA as long as the slower of two units needs for it: the tensor cores, or the
// copies from the L2. A tile that is cut along K costs the way of the partials in each wave.

/// The clocks that tiles like this take for all of D, if `parts` CTAs share each tile along K.
// ANCHOR: limit
inline double limit_clocks(const TileShape& tile, int parts, const Shape& shape, int sms) {
  constexpr double kMultiplied = 4096;  // multiply-adds per clock and SM
  constexpr double kCopied = 50;        // bytes per clock and SM
  constexpr double kExchange = 2000;    // clocks, where K is cut
  const auto [m, n, k] = tile;
  const int waves = ceil_div(ceil_div(shape.m, m) * ceil_div(shape.n, n) * parts, sms);
  const int k_tiles = ceil_div(ceil_div(shape.k, k), parts);
  const double k_tile = std::max(m * n * k / kMultiplied, (m + n) * k / kCopied);
  return waves * (k_tiles * k_tile + (parts > 1 ? kExchange : 0));
}
// ANCHOR_END: limit

/// The tile whose limit is the lowest; where two are equal, the first. 128x256_whole is slow at K = 512 and
/// fast at K = 1536 (measured; the cause is not known), so it is left out where K is short.
inline const Variant& fitting(const std::vector<Variant>& tiles, const Shape& shape) {
  constexpr int kShortK = 1024;
  const int sms = ptx::this_card().sms;
  const auto clocks = [&](const Variant& tile) {
    if (shape.k <= kShortK && tile.name == "128x256_whole") return std::numeric_limits<double>::max();
    return limit_clocks(tile.tile, static_cast<int>(tile.launch_shape(shape).cluster.count()), shape, sms);
  };
  return *std::min_element(tiles.begin(), tiles.end(), [&](const Variant& one, const Variant& other) {
    return clocks(one) < clocks(other);
  });
}

/// The tiles, and before them a variant that stands for the one that suits the shape.
template <const std::vector<Variant>& (*kTiles)()>
std::vector<Variant> with_choice() {
  Variant by_shape = kTiles().front();
  by_shape.name = "auto";
  by_shape.summary = "the one below that suits the shape";
  by_shape.launch_shape = [](const Shape& shape) { return fitting(kTiles(), shape).launch_shape(shape); };
  by_shape.prepare = [](const Problem& problem) { return fitting(kTiles(), problem.shape).prepare(problem); };
  by_shape.choose = [](const Shape& shape) {
    return Choice{fitting(kTiles(), shape).name, "It has the lowest limit in whole waves of tiles."};
  };
  std::vector<Variant> all{by_shape};
  all.insert(all.end(), kTiles().begin(), kTiles().end());
  return all;
}

}  // namespace gemm::step_46
