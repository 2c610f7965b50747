// The orders of tiles: every tile once, whatever the grid; and which tiles are near each other in time.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "gemm/schedule/raster.h"
#include "gemm/schedule/strip_raster.h"

namespace {

using gemm::Raster;
using gemm::RasterOrder;
using gemm::TileGrid;
using gemm::TilePosition;

constexpr int kMostTiles = 40;  // a side
constexpr int kMostGroup = 16;

std::vector<Raster> all_rasters() {
  std::vector<Raster> rasters{{RasterOrder::kAlongN}, {RasterOrder::kAlongM}, {RasterOrder::kHilbert}};
  for (int group = 1; group <= kMostGroup; ++group) rasters.push_back({RasterOrder::kGrouped, group});
  return rasters;
}

std::string to_string(TileGrid grid, Raster raster) {
  return std::to_string(grid.m) + " x " + std::to_string(grid.n) + " tiles, order " +
         std::to_string(static_cast<int>(raster.order)) + ", group " + std::to_string(raster.group);
}

/// How often each tile is visited, row by row; one more element counts positions outside the grid.
class Visits {
 public:
  explicit Visits(TileGrid grid) : grid_(grid), counts_(static_cast<std::size_t>(grid.count()) + 1) {}
  void add(TilePosition tile) {
    const bool inside = tile.m >= 0 && tile.m < grid_.m && tile.n >= 0 && tile.n < grid_.n;
    ++counts_[static_cast<std::size_t>(inside ? tile.m * grid_.n + tile.n : grid_.count())];
  }
  bool each_once() const {
    return counts_.back() == 0 &&
           std::all_of(counts_.begin(), counts_.end() - 1, [](int count) { return count == 1; });
  }

 private:
  TileGrid grid_;
  std::vector<int> counts_;
};

/// Calls body(grid) for every grid of 1 to `most` tiles a side.
template <typename Body>
void for_each_grid(int most, const Body& body) {
  for (int m = 1; m <= most; ++m) {
    for (int n = 1; n <= most; ++n) body(TileGrid{m, n});
  }
}

std::vector<TilePosition> order_of(TileGrid grid, Raster raster) {
  std::vector<TilePosition> tiles;
  for (int i = 0; i < grid.count(); ++i) tiles.push_back(gemm::tile_at(i, grid, raster));
  return tiles;
}

using Tiles = std::vector<TilePosition>;

struct Tile128x256 {
  static constexpr int kM = 128;
  static constexpr int kN = 256;
};

}  // namespace

TEST_CASE("tile_at: every tile of every grid exactly once") {
  for_each_grid(kMostTiles, [](TileGrid grid) {
    for (const Raster raster : all_rasters()) {
      Visits visits(grid);
      for (int i = 0; i < grid.count(); ++i) visits.add(gemm::tile_at(i, grid, raster));
      if (!visits.each_once()) FAIL_CHECK(to_string(grid, raster));
    }
  });
}

TEST_CASE("a static persistent loop: any number of CTAs shares out every tile once, and evenly") {
  for_each_grid(12, [](TileGrid grid) {
    for (const Raster raster : all_rasters()) {
      for (const int ctas : {1, 2, 3, 5, 7, 64, 132, 200}) {
        const int launched = std::min(ctas, grid.count());
        Visits visits(grid);
        int fewest = grid.count();
        int most = 0;
        for (int cta = 0; cta < launched; ++cta) {
          int mine = 0;
          for (int index = cta; index < grid.count(); index += launched, ++mine)
            visits.add(gemm::tile_at(index, grid, raster));
          fewest = std::min(fewest, mine);
          most = std::max(most, mine);
        }
        if (!visits.each_once() || fewest < 1 || most > fewest + 1)
          FAIL_CHECK(ctas << " CTAs, " << to_string(grid, raster));
      }
    }
  });
}

TEST_CASE("tile_at: what the orders look like") {
  CHECK(order_of({2, 3}, {RasterOrder::kAlongN}) == Tiles{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}});
  CHECK(order_of({2, 3}, {RasterOrder::kAlongM}) == Tiles{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}});
  // Two groups, the second one row high.
  CHECK(order_of({3, 2}, {RasterOrder::kGrouped, 2}) ==
        Tiles{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {2, 1}});
  CHECK(order_of({2, 2}, {RasterOrder::kHilbert}) == Tiles{{0, 0}, {1, 0}, {1, 1}, {0, 1}});
}

TEST_CASE("groups: one row is along N, the whole height or more is along M") {
  for_each_grid(kMostGroup, [](TileGrid grid) {
    CHECK(order_of(grid, {RasterOrder::kGrouped, 1}) == order_of(grid, {RasterOrder::kAlongN}));
    for (int group = grid.m; group <= kMostGroup; ++group)
      CHECK(order_of(grid, {RasterOrder::kGrouped, group}) == order_of(grid, {RasterOrder::kAlongM}));
  });
}

TEST_CASE("groups: a group is finished before the next begins") {
  for_each_grid(20, [](TileGrid grid) {
    for (int group = 1; group <= kMostGroup; ++group) {
      const Tiles tiles = order_of(grid, {RasterOrder::kGrouped, group});
      const bool in_order =
          std::is_sorted(tiles.begin(), tiles.end(), [group](TilePosition a, TilePosition b) {
            return a.m / group != b.m / group ? a.m / group < b.m / group : a.n < b.n;
          });
      if (!in_order) FAIL_CHECK(to_string(grid, {RasterOrder::kGrouped, group}));
    }
  });
}

TEST_CASE("GroupedRaster: what tile_at says of groups, for every grid") {
  for_each_grid(kMostTiles, [](TileGrid grid) {
    for (int group = 1; group <= kMostTiles + 1; group += group < kMostGroup ? 1 : 5) {
      const gemm::GroupedRaster groups(grid, group);
      const Raster raster{RasterOrder::kGrouped, group};
      for (int i = 0; i < grid.count(); ++i) {
        if (groups.at(i) == gemm::tile_at(i, grid, raster)) continue;
        FAIL_CHECK(to_string(grid, raster) << ", tile number " << i);
        break;
      }
    }
  });
}

TEST_CASE("GroupedRaster: what tile_at says of groups, for grids of more tiles than a D has") {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random); };
  for (int i = 0; i < 2000; ++i) {
    const TileGrid grid{1 + below(40000), 1 + below(40000)};
    const Raster raster{RasterOrder::kGrouped, i % 3 == 0 ? 12 : i % 3 == 1 ? 16 : 1 + below(50)};
    const gemm::GroupedRaster groups(grid, raster.group);
    const int last_group = grid.m / raster.group * raster.group * grid.n;  // where it begins, if there is one
    std::vector<int> indices{0, grid.count() - 1, std::max(0, last_group - 1),
                             std::min(last_group, grid.count() - 1)};
    for (int j = 0; j < 50; ++j) indices.push_back(below(grid.count()));
    for (const int index : indices) {
      if (groups.at(index) == gemm::tile_at(index, grid, raster)) continue;
      FAIL(to_string(grid, raster) << ", tile number " << index);
    }
  }
}

TEST_CASE("StripRaster: every tile once, group by group, block by block, strip by strip") {
  for_each_grid(kMostTiles, [](TileGrid grid) {
    for (int group = 1; group <= kMostTiles + 1; group += group < kMostGroup ? 1 : 5) {
      const gemm::StripRaster strips(grid, group, true);
      const auto place = [&](int index) {  // what is counted through first comes first
        const TilePosition at = strips.at(index);
        return std::array{at.m / group, at.n / 8, at.m % group / 4, at.n % 8, at.m};
      };
      bool right = true;
      for (int i = 0; i < grid.count(); ++i) {
        const TilePosition at = strips.at(i);
        right = right && at.m >= 0 && at.m < grid.m && at.n >= 0 && at.n < grid.n;
        right = right && (i == 0 || place(i - 1) < place(i));
      }
      if (!right) FAIL_CHECK(to_string(grid, {RasterOrder::kGrouped, group}));
    }
  });
}

TEST_CASE("StripRaster: sixteen CTAs of a GPC share four rows and four columns of tiles") {
  const gemm::StripRaster strips({48, 40}, 16, true);
  for (int first = 0; first + 16 <= 48 * 40; first += 16) {
    std::set<int> rows;
    std::set<int> columns;
    for (int i = first; i < first + 16; ++i) {
      rows.insert(strips.at(i).m);
      columns.insert(strips.at(i).n);
    }
    REQUIRE(rows.size() == 4);
    REQUIRE(columns.size() == 4);
  }
}

TEST_CASE("StripRaster: without strips it is a GroupedRaster") {
  for_each_grid(kMostTiles, [](TileGrid grid) {
    const gemm::StripRaster plain(grid, 5, false);
    const gemm::GroupedRaster groups(grid, 5);
    for (int i = 0; i < grid.count(); ++i) REQUIRE(plain.at(i) == groups.at(i));
  });
}

static_assert(gemm::StripRaster({5, 9}, 5, true).at(40) == TilePosition{0, 8}, "the compiler can do it, too");
static_assert(gemm::GroupedRaster({3, 2}, 2).at(4) == TilePosition{2, 0}, "the compiler can do it, too");

// Colour the tiles like a chessboard. A path of neighbours alternates, so with an even number of tiles it
// ends on the other colour; but the two ends of an odd side have the same. A grid whose longer side is odd
// and whose shorter side is even therefore needs one diagonal step. (Unless it is two tiles wide: there the
// curve ends one tile before the corner.)
TEST_CASE("the Hilbert curve: neighbour to neighbour, with one diagonal step where parity forces it") {
  for_each_grid(kMostTiles, [](TileGrid grid) {
    const Tiles tiles = order_of(grid, {RasterOrder::kHilbert});
    int diagonals = 0;
    int further = 0;
    for (std::size_t i = 1; i < tiles.size(); ++i) {
      const int rows = std::abs(tiles[i].m - tiles[i - 1].m);
      const int columns = std::abs(tiles[i].n - tiles[i - 1].n);
      diagonals += rows == 1 && columns == 1;
      further += rows > 1 || columns > 1;
    }
    const int longer = std::max(grid.m, grid.n);
    const int shorter = std::min(grid.m, grid.n);
    const bool turns = shorter == 2 && longer % 2 == 1;
    INFO(to_string(grid, {RasterOrder::kHilbert}));
    CHECK(diagonals == (longer % 2 == 1 && shorter % 2 == 0 && !turns ? 1 : 0));
    CHECK(further == 0);
    // From corner to corner along the longer side.
    const int end = longer - (turns ? 2 : 1);
    const TilePosition last = grid.n >= grid.m ? TilePosition{0, end} : TilePosition{end, 0};
    CHECK(tiles.front() == TilePosition{});
    CHECK(tiles.back() == last);
  });
}

TEST_CASE("the Hilbert curve: aligned runs of 4, 16 and 64 tiles of a square are squares") {
  constexpr int kSide = 32;
  const Tiles tiles = order_of({kSide, kSide}, {RasterOrder::kHilbert});
  for (int side = 2; side <= 8; side *= 2) {
    for (std::size_t begin = 0; begin + static_cast<std::size_t>(side * side) <= tiles.size();
         begin += static_cast<std::size_t>(side * side)) {
      const auto first = tiles.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = first + side * side;
      const auto by_m = [](TilePosition a, TilePosition b) { return a.m < b.m; };
      const auto by_n = [](TilePosition a, TilePosition b) { return a.n < b.n; };
      const auto [low_m, high_m] = std::minmax_element(first, last, by_m);
      const auto [low_n, high_n] = std::minmax_element(first, last, by_n);
      // An aligned run of a square whose side is a power of two is a square.
      CHECK(high_m->m - low_m->m + 1 == side);
      CHECK(high_n->n - low_n->n + 1 == side);
    }
  }
}

TEST_CASE("tile_grid: the tiles of D, ragged ones included") {
  const auto grid = [](int m, int n) {
    const TileGrid tiles = gemm::tile_grid<Tile128x256>({m, n, 64});
    return std::vector<int>{tiles.m, tiles.n, tiles.count()};
  };
  CHECK(grid(1, 1) == std::vector<int>{1, 1, 1});
  CHECK(grid(128, 256) == std::vector<int>{1, 1, 1});
  CHECK(grid(129, 257) == std::vector<int>{2, 2, 4});
  CHECK(grid(8192, 8192) == std::vector<int>{64, 32, 2048});
}
