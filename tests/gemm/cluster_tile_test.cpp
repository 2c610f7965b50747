// Which tiles of D the CTAs of a cluster work on, and which of them send to each other.
#include <vector>

#include "catch.h"
#include "gemm/tile/cluster_tile.cuh"

namespace cluster_tile_test {

namespace {

using gemm::TileGrid;
using gemm::TilePosition;

struct Tile {
  static constexpr int kM = 128;
  static constexpr int kN = 64;
};

constexpr gemm::RasterOrder kOrders[] = {gemm::RasterOrder::kAlongN, gemm::RasterOrder::kAlongM,
                                         gemm::RasterOrder::kGrouped, gemm::RasterOrder::kHilbert};

/// Every tile of D by one CTA; CTAs beyond its edges are fewer than a cluster has in that direction.
template <typename Cluster>
void check_cover() {
  for (int rows = 1; rows <= 9; ++rows) {
    for (int columns = 1; columns <= 9; ++columns) {
      for (const int missing : {0, 1, 63}) {  // elements, of the last tiles
        const gemm::Shape shape{rows * Tile::kM - missing, columns * Tile::kN - missing, 64};
        const TileGrid clusters = gemm::cluster_grid<Tile, Cluster>(shape);
        for (const gemm::RasterOrder order : kOrders) {
          std::vector<int> visits(static_cast<std::size_t>(rows * columns));
          bool near = true;
          for (int index = 0; index < clusters.count(); ++index) {
            const TilePosition position = gemm::tile_at(index, clusters, {order, 2});
            for (int rank = 0; rank < Cluster::kCtas; ++rank) {
              const TilePosition tile = gemm::cluster_tile(position, Cluster{.rank = rank});
              near = near && tile.m < rows + Cluster::kM - 1 && tile.n < columns + Cluster::kN - 1;
              if (tile.m < rows && tile.n < columns)
                ++visits[static_cast<std::size_t>(tile.m * columns + tile.n)];
            }
          }
          INFO("cluster " << Cluster::kM << " x " << Cluster::kN << ", " << rows << " x " << columns
                          << " tiles, order " << static_cast<int>(order));
          CHECK(near);
          CHECK(visits == std::vector<int>(visits.size(), 1));
        }
      }
    }
  }
}

/// Peers share a row or a column of the cluster; the masks name exactly them.
template <typename Cluster>
void check_peers() {
  for (int rank = 0; rank < Cluster::kCtas; ++rank) {
    const Cluster cluster{.rank = rank};
    int peers = 0;
    for (int other = 0; other < Cluster::kCtas; ++other) {
      const Cluster that{.rank = other};
      INFO("cluster " << Cluster::kM << " x " << Cluster::kN << ", CTAs " << rank << " and " << other);
      const bool in_row = cluster.row_mask() >> other & 1;
      const bool in_column = cluster.column_mask() >> other & 1;
      CHECK(in_row == (that.m == cluster.m));
      CHECK(in_column == (that.n == cluster.n));
      CHECK(cluster.is_peer(other) == (in_row || in_column));
      CHECK(cluster.is_peer(other) == that.is_peer(rank));
      peers += cluster.is_peer(other);
    }
    CHECK(peers == Cluster::kPeers);
    CHECK(cluster.row_mask() >> Cluster::kCtas == 0);
    CHECK(cluster.column_mask() >> Cluster::kCtas == 0);
  }
}

}  // namespace

TEST_CASE("cluster tiles: every tile of D once, with ragged edges") {
  check_cover<gemm::Cluster<1, 1>>();
  check_cover<gemm::Cluster<2, 1>>();
  check_cover<gemm::Cluster<1, 2>>();
  check_cover<gemm::Cluster<2, 2>>();
}

TEST_CASE("cluster tiles: which CTA sends to which") {
  check_peers<gemm::Cluster<1, 1>>();
  check_peers<gemm::Cluster<2, 1>>();
  check_peers<gemm::Cluster<1, 2>>();
  check_peers<gemm::Cluster<2, 2>>();
  check_peers<gemm::Cluster<4, 2>>();
}

}  // namespace cluster_tile_test
