// Which problems are so small that a launch is over before roles and a ring of barriers pay.
#pragma once

#include "gemm/problem/gemm.h"

namespace gemm {

/// Whether every SM gets at most one tile of 64 x 64, or one part of its K, with at most 16 k-tiles of depth
/// 64. At all such shapes in small_grid_h200.json and small_grid_2_h200.json (docs/results), step 23 was
/// faster than step 22. K is cut into up to 8 parts, as long as the CTAs fit in clusters: 120 on 132 SMs.
// ANCHOR: is_small
constexpr bool is_small(const Shape& shape, int sms) {
  constexpr int kMostParts = 8;
  constexpr int kMostKTiles = 16;
  const auto tiles = static_cast<long long>(ceil_div(shape.m, 64)) * ceil_div(shape.n, 64);
  if (tiles > sms) return false;
  int parts = 1;
  while (2 * parts <= kMostParts && tiles * 2 * parts <= sms * 10 / 11) parts *= 2;
  return ceil_div(ceil_div(shape.k, 64), parts) <= kMostKTiles;
}
// ANCHOR_END: is_small

}  // namespace gemm
