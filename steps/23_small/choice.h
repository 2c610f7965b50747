// Which tile of step 23 suits a shape, and in how many parts its K is cut. Plain C++, so that a test can ask
// it.
#pragma once

#include <algorithm>
#include <array>

#include "gemm/problem/gemm.h"

namespace gemm::step_23 {

/// What a launch takes in microseconds, fitted to launches at 26 random shapes on an H200: `launch_us`, and
/// `k_tile_us` for every k-tile that a CTA multiplies.
struct Cost {
  const char* name;
  int tile_n;
  int parts;
  double launch_us;
  double k_tile_us;
};
// ANCHOR: costs
inline constexpr std::array<Cost, 9> kCosts{{
    {"64x64", 64, 1, 4.36, 0.202},
    {"64x64_2", 64, 2, 4.32, 0.210},
    {"64x64_4", 64, 4, 4.42, 0.209},
    {"64x64_8", 64, 8, 4.50, 0.213},
    {"64x32", 32, 1, 3.95, 0.165},
    {"64x32_2", 32, 2, 4.09, 0.165},
    {"64x32_4", 32, 4, 4.14, 0.167},
    {"64x16", 16, 1, 3.66, 0.168},
    {"64x16_2", 16, 2, 3.90, 0.169},
}};
// ANCHOR_END: costs

/// The CTAs of a launch.
constexpr int ctas(const Cost& cost, const Shape& shape) {
  return ceil_div(shape.m, 64) * ceil_div(shape.n, cost.tile_n) * cost.parts;
}

/// The time of a launch on a card with this many SMs, as if an SM held one CTA and every wave were a launch
/// of its own. That is too long for several waves, and two CTAs with a narrow tile fit on an SM. Clusters of
/// four or more do not fill every GPC: 120 of their CTAs fit on 132 SMs.
constexpr double predicted_us(const Cost& cost, const Shape& shape, int sms) {
  const int k_tiles = ceil_div(ceil_div(shape.k, 64), cost.parts);
  const int room = cost.parts < 4 ? sms : std::max(1, sms * 10 / 11);
  return ceil_div(ctas(cost, shape), room) * (cost.launch_us + k_tiles * cost.k_tile_us);
}

/// The index in kCosts of the variant with the shortest predicted time.
inline int fastest(const Shape& shape, int sms) {
  const auto shorter = [&](const Cost& one, const Cost& other) {
    return predicted_us(one, shape, sms) < predicted_us(other, shape, sms);
  };
  return static_cast<int>(std::min_element(kCosts.begin(), kCosts.end(), shorter) - kCosts.begin());
}

}  // namespace gemm::step_23
