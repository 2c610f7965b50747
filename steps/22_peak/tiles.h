// The tiles of step 22, and which kernels each is built as.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "gemm/fitted/prediction.h"

namespace gemm::step_22 {

inline constexpr int kTileK = 64;
inline constexpr unsigned kAllKinds = kWhole | kStreamK | kWholeInClusters | kStreamKInClusters;

/// A kind of plans that a tile has no kernel for is one that no measured shape needs: without it the fastest
/// plan takes 0.02 % longer in the mean of 4882 shapes, and 3 % at most. Twenty-one tiles are enough for
/// most shapes; those of 256 x 136 to 152, of 192 rows, and with an odd multiple of 8 columns are for shapes
/// that they cover in a wave fewer.
inline constexpr std::array<FittedTile, 44> kTiles{
    FittedTile{"128x176_ping_pong", 128, 176, 2, 1, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x168_ping_pong", 128, 168, 2, 1, kWhole | kStreamK | kStreamKInClusters},
    FittedTile{"128x160_ping_pong", 128, 160, 2, 1, kAllKinds},
    FittedTile{"128x144_ping_pong", 128, 144, 2, 1, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x136_ping_pong", 128, 136, 2, 1, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x128_ping_pong", 128, 128, 2, 1, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x120_ping_pong", 128, 120, 2, 1, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x112_ping_pong", 128, 112, 2, 1, kAllKinds},
    FittedTile{"128x104_ping_pong", 128, 104, 2, 1, kWhole | kStreamK | kWholeInClusters},
    FittedTile{"128x80_ping_pong", 128, 80, 2, 1, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x48_ping_pong", 128, 48, 2, 1, kWhole | kWholeInClusters},
    FittedTile{"64x208_ping_pong", 64, 208, 2, 1, kWhole},
    FittedTile{"64x192_ping_pong", 64, 192, 2, 1, kAllKinds},
    FittedTile{"64x160_ping_pong", 64, 160, 2, 1, kWhole | kStreamK | kWholeInClusters},
    FittedTile{"64x144_ping_pong", 64, 144, 2, 1, kWhole | kWholeInClusters},
    FittedTile{"64x128_ping_pong", 64, 128, 2, 1, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"64x112_ping_pong", 64, 112, 2, 1, kWhole | kStreamK | kWholeInClusters},
    FittedTile{"64x80_ping_pong", 64, 80, 2, 1, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"64x64_ping_pong", 64, 64, 2, 1, kWhole | kWholeInClusters},
    FittedTile{"128x256", 128, 256, 1, 2, kWhole | kWholeInClusters},
    FittedTile{"128x240", 128, 240, 1, 2, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x224", 128, 224, 1, 2, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x208", 128, 208, 1, 2, kAllKinds},
    FittedTile{"256x160", 256, 160, 1, 2, kWhole | kWholeInClusters},
    FittedTile{"256x96", 256, 96, 1, 2, kWhole | kWholeInClusters},
    FittedTile{"256x152", 256, 152, 1, 2, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"256x144", 256, 144, 1, 2, kWhole | kWholeInClusters},
    FittedTile{"256x136", 256, 136, 1, 2, kWhole | kWholeInClusters},
    FittedTile{"192x208", 192, 208, 1, 3, kWhole | kWholeInClusters},
    FittedTile{"192x192", 192, 192, 1, 3, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"192x176", 192, 176, 1, 3, kWhole | kWholeInClusters | kStreamKInClusters},
    FittedTile{"128x192_ping_pong", 128, 192, 2, 1, kAllKinds},
    FittedTile{"128x184_ping_pong", 128, 184, 2, 1, kWhole | kStreamK | kStreamKInClusters},
    FittedTile{"64x64x128_split", 64, 64, 1, 1, kWhole | kWholeInClusters, 128, true},
    FittedTile{"64x80_split", 64, 80, 1, 1, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"64x96_split", 64, 96, 1, 1, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"64x112_split", 64, 112, 1, 1, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"64x128_split", 64, 128, 1, 1, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"64x160_split", 64, 160, 1, 1, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"128x80_split", 128, 80, 1, 2, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"128x96_split", 128, 96, 1, 2, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"128x144_split", 128, 144, 1, 2, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"128x160_split", 128, 160, 1, 2, kWhole | kWholeInClusters, kTileK, true},
    FittedTile{"192x256", 192, 256, 1, 3, kWhole}};

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

}  // namespace gemm::step_22
