#include "emulator/report/causes/tile_owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "emulator/machine/machine.h"
#include "emulator/machine/options.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/report.h"

namespace emulator {
namespace {

gemm::ptx::LaunchShape& latest_shape() {
  static gemm::ptx::LaunchShape shape;
  return shape;
}

using Tile = std::pair<std::int64_t, std::int64_t>;         // row and column among tiles
using Owners = std::map<std::uint64_t, std::vector<Tile>>;  // by CTA

/// Who wrote the first element of each tile last; `rows`, `columns`: of tiles.
Owners owners_in(Buffer& d, std::int64_t rows, std::int64_t columns, const Options& options) {
  Owners owners;
  if (!d.has_lines.load(std::memory_order_acquire)) return owners;
  const LineTable& lines = history(d);
  const std::uintptr_t first_line = d.allocation_begin / 16 * 16;
  std::uint64_t latest = 0;  // launch
  std::vector<std::pair<Tile, const Line*>> of_tiles;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t element = row * options.tile_m * options.n + column * options.tile_n;
      const std::uintptr_t address = d.begin + 2 * static_cast<std::uintptr_t>(element);
      const Line& line = lines[(address - first_line) / 16];
      latest = std::max(latest, line.tag());
      of_tiles.push_back({{row, column}, &line});
    }
  }
  for (const auto& [tile, line] : of_tiles) {
    if (line->tag() != latest || line->cells() == nullptr) continue;
    const std::int64_t element = tile.first * options.tile_m * options.n + tile.second * options.tile_n;
    const std::uintptr_t address = d.begin + 2 * static_cast<std::uintptr_t>(element);
    const Stamp write = line->cells()[address % 16 >> line->granule_log2()].write;
    const std::uint32_t cta = stamp_cta(write) & ~kAgentKey;
    if (write != 0 && cta > 0) owners[cta - 1].push_back(tile);
  }
  return owners;
}

/// Whether clusters take so many tiles (of clusters) each, of `tiles`, if they go on by `step`.
bool fits(const std::vector<std::int64_t>& taken, std::int64_t tiles, std::int64_t step) {
  for (std::size_t first = 0; first < taken.size(); ++first) {
    const std::int64_t left = tiles - static_cast<std::int64_t>(first);
    if (taken[first] != (left <= 0 ? 0 : (left + step - 1) / step)) return false;
  }
  return true;
}

}  // namespace

void note_launch_shape(const gemm::ptx::LaunchShape& shape) {
  latest_shape() = shape;
}

std::string tile_owners() {
  const Options& now = options();
  if (now.n <= 0 || now.tile_m <= 0 || now.tile_n <= 0) return {};
  Buffer* d = nullptr;
  for_buffers([&](Buffer& buffer) {
    if (buffer.name == "D") d = &buffer;
  });
  if (d == nullptr || d->bytes % (2 * static_cast<std::size_t>(now.n)) != 0) return {};
  const std::int64_t m = static_cast<std::int64_t>(d->bytes) / 2 / now.n;
  const std::int64_t rows = (m + now.tile_m - 1) / now.tile_m;
  const std::int64_t columns = (now.n + now.tile_n - 1) / now.tile_n;
  const Owners owners = owners_in(*d, rows, columns, now);
  const gemm::ptx::LaunchShape& shape = latest_shape();
  const std::int64_t cluster = shape.cluster.count();
  const std::int64_t ctas = shape.grid.count();
  if (owners.empty() || shape.grid.y != 1 || shape.grid.z != 1 || ctas >= rows * columns) return {};
  constexpr std::size_t kCtas = 6;
  constexpr std::size_t kTiles = 4;
  std::string list;
  std::int64_t stored = 0;
  std::size_t shown = 0;
  std::vector<std::int64_t> taken(static_cast<std::size_t>(ctas / cluster));  // by each cluster
  for (const auto& [cta, tiles] : owners) {
    const auto count = static_cast<std::int64_t>(tiles.size());
    stored += count;
    const auto of_cluster = static_cast<std::size_t>(static_cast<std::int64_t>(cta) / cluster);
    if (of_cluster < taken.size()) taken[of_cluster] = std::max(taken[of_cluster], count);
    if (shown++ >= kCtas) continue;
    list += fmt::format("{}CTA ({},0,0) stored", list.empty() ? "" : "; ", cta);
    for (std::size_t i = 0; i < std::min(kTiles, tiles.size()); ++i)
      list += fmt::format("{} ({}, {})", i == 0 ? "" : ",", tiles[i].first, tiles[i].second);
    if (tiles.size() > kTiles) list += fmt::format(" and {} more", tiles.size() - kTiles);
  }
  if (shown > kCtas) list += fmt::format("; and {} more CTAs", shown - kCtas);
  std::string step;
  for (std::int64_t high = 1; high <= cluster && step.empty(); ++high) {
    if (cluster == 1 || cluster % high != 0) continue;
    const std::int64_t tiles =
        ((rows + high - 1) / high) * ((columns + cluster / high - 1) / (cluster / high));
    if (fits(taken, tiles, ctas) && !fits(taken, tiles, ctas / cluster))
      step = fmt::format(
          ". These are the tiles that clusters get if they advance by {}, the number of CTAs, although their "
          "tiles are numbered by cluster: there are {} clusters (gridDim.x / {}), and a cluster must advance "
          "by that number",
          ctas, ctas / cluster, cluster);
  }
  if (step.empty())
    step = fmt::format(
        ". When {} CTAs take tiles in turn, each must advance by {}{} until it reaches the number of tiles",
        ctas, ctas / cluster, cluster > 1 ? fmt::format(" (clusters of {})", cluster) : std::string());
  return fmt::format("{} of {} tiles of D were stored: {}{}.", stored, rows * columns, list, step);
}

}  // namespace emulator
