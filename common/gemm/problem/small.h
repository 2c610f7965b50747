// Which problems are so small that a launch is over before a pipeline pays.
#pragma once

#include "gemm/problem/gemm.h"

namespace gemm {

/// Whether every SM gets at most one tile of 64 x 64, or a part of its K, and at most 16 k-tiles of 64 of it.
/// There step 23 is faster than step 22. Up to 8 parts, as many as CTAs fit in clusters: on 132 SMs 120.
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
