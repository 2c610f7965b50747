// What the host decides for a shape about a kernel with fitted tiles, beside the kernel.
#pragma once

namespace gemm {

/// m CTAs with tiles below each other times n with tiles beside each other, each 1, 2, 4 or 8.
struct ClusterShape {
  int m = 1;
  int n = 1;
  constexpr int ctas() const { return m * n; }
};

/// Whether the CTAs of such a cluster can share the loads of a tile this wide: shares start where the swizzle
/// does, every 8 rows.
constexpr bool shares_columns(const ClusterShape& cluster, int columns) {
  return columns % (8 * cluster.m) == 0;
}

/// What of a plan a kernel is built for. Without clusters: whole tiles, or stream-K tiles as well. In
/// clusters the same two. Or any plan, whichever way round.
enum class BuiltFor { kWholeTiles, kStreamK, kWholeInClusters, kClusters, kAnyPlan };

struct FittedPlan {
  bool transposed = false;  // rows of the tiles are rows of B, and columns of D
  ClusterShape cluster;
  int stream_k_tiles = 0;  // here and below a tile is a cluster's: as many as it has CTAs
  int workers = 0;         // clusters, at most those that fit onto the GPU; 0: those
  int raster_group = 16;   // tiles
  int lockstep = 0;        // k-tiles between two barriers of all producers; 0: none
  int parts = 1;           // CTAs that share the K of each tile, a cluster of them: step 22

  /// Whether tiles go in strips (strip_raster.h). Requests meet in lockstep only, and clusters are not placed
  /// GPC by GPC.
  constexpr bool strips() const { return lockstep > 0 && cluster.ctas() == 1; }

  /// What a kernel must be built for at least.
  constexpr BuiltFor needs() const {
    if (cluster.ctas() > 1) return stream_k_tiles > 0 ? BuiltFor::kClusters : BuiltFor::kWholeInClusters;
    return stream_k_tiles > 0 ? BuiltFor::kStreamK : BuiltFor::kWholeTiles;
  }
};

}  // namespace gemm
