// Which tile suits a shape: the one with the lowest limit in whole waves of tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "ptx/launch.cuh"

namespace gemm::step_46 {

/// A variant, and the CTAs that share each of its tiles along K.
struct Fitted {
  Variant variant;
  int ctas = 1;
};
using AllTiles = const std::vector<Fitted>&;

// Lesson: a k-tile takes a CTA as long as the slower of two units needs for it: the tensor cores, which do
// 32 x 128 multiplications of a column of K...

/// The clocks that tiles like this take for D, in waves of one CTA for each SM.
// ANCHOR: limit
inline double limit_clocks(const Fitted& fitted, const Shape& shape, int sms) {
  constexpr double kMultiplied = 4096;  // multiply-adds per clock and SM
  constexpr double kCopied = 48;        // bytes per clock and SM
  const auto [m, n, k] = fitted.variant.tile;
  const int waves = ceil_div(ceil_div(shape.m, m) * ceil_div(shape.n, n) * fitted.ctas, sms);
  const int k_tiles = ceil_div(ceil_div(shape.k, k), fitted.ctas);
  return waves * k_tiles * std::max(m * n * k / kMultiplied, (m + n) * k / kCopied);
}
// ANCHOR_END: limit

/// The tile whose limit is the lowest; where two are equal, the first.
inline const Variant& fitting(AllTiles all, const Shape& shape) {
  const int sms = ptx::this_card().sms;
  const auto sooner = [&](const Fitted& one, const Fitted& other) {
    return limit_clocks(one, shape, sms) < limit_clocks(other, shape, sms);
  };
  return std::min_element(all.begin(), all.end(), sooner)->variant;
}

/// The tiles, and before them a variant that stands for the one that suits the shape.
template <AllTiles (*kAll)()>
std::vector<Variant> with_choice() {
  Variant by_shape = kAll().front().variant;
  by_shape.name = "auto";
  by_shape.summary = "the one below that suits the shape";
  by_shape.launch_shape = [](const Shape& shape) { return fitting(kAll(), shape).launch_shape(shape); };
  by_shape.prepare = [](const Problem& problem) { return fitting(kAll(), problem.shape).prepare(problem); };
  by_shape.choose = [](const Shape& shape) {
    return Choice{fitting(kAll(), shape).name, "It has the lowest limit in whole waves of tiles."};
  };
  std::vector<Variant> all{by_shape};
  for (const Fitted& fitted : kAll()) all.push_back(fitted.variant);
  return all;
}

}  // namespace gemm::step_46
