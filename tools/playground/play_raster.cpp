// The orders of a persistent kernel's tiles: what is multiplied at the same time, and how many bytes that
// takes.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "command_line.h"
#include "gemm/schedule/raster.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"

namespace play {
namespace {

constexpr const char* kRasterFooter =
    R"(A persistent kernel has one CTA per SM. CTA i takes tiles i, i + SMs, i + 2 SMs, ... of an order, so the first
wave is the first tile of every CTA. The tiles are those of gemm::tile_at, which the kernels call.

Without --order, the command prints a table. "rows" and "columns" count the rows and columns of tiles that the first
wave touches; A and B are the bytes of these rows of A and of these rows of B (they are columns of D) over all of K.
"all waves" adds up what each wave touches. "share" is the touched bytes' share of the bytes that the SMs request:
each tile requests its own A and B. All other requests can hit in the L2; the first touch of a byte cannot.

With --order, it prints that order's row of the table and a map of D. The map has one character per tile, the last
digit of the wave that multiplies the tile, counted from 0.

  tools/play raster
  tools/play raster --shape 4096x24576x1536 --tile 256x128
  tools/play raster --shape 2048x4096x8192 --order hilbert
  tools/play raster --json docs/figures/rasters.json        # the data of tools/figures/draw_rasters.py)";

constexpr double kMiB = 1 << 20;
constexpr std::uint64_t kMostSms = 1024;
constexpr std::uint64_t kMostTile = 65536;
constexpr int kMostColumns = 200;  // a map wider than that is no map

struct NamedRaster {
  std::string name;
  gemm::Raster raster;
};

/// What the table and the figure compare.
std::vector<NamedRaster> compared_rasters() {
  using enum gemm::RasterOrder;
  return {{"along_n", {kAlongN, 1}}, {"along_m", {kAlongM, 1}}, {"group2", {kGrouped, 2}},
          {"group4", {kGrouped, 4}}, {"group8", {kGrouped, 8}}, {"group16", {kGrouped, 16}},
          {"hilbert", {kHilbert, 1}}};
}

gemm::Raster parse_order(const std::string& text) {
  for (const NamedRaster& named : compared_rasters()) {
    if (named.name == text) return named.raster;
  }
  const std::string group = "group";
  if (text.rfind(group, 0) == 0) {
    const std::uint64_t rows =
        parse_number("the raster group of --order", text.substr(group.size()), kMostTile);
    if (rows > 0) return {gemm::RasterOrder::kGrouped, static_cast<int>(rows)};
  }
  throw harness::Error(
      fmt::format("--order is '{}'; it must be along_n, along_m, hilbert or group with its number of rows, "
                  "for example group16",
                  text));
}

/// "128x256": rows and columns of a tile of D.
gemm::TileShape parse_tile(const std::string& text) {
  const std::vector<std::string> parts = split(text, 'x');
  if (parts.size() != 2)
    throw harness::Error(fmt::format("--tile is '{}'; it must be rows x columns, for example 128x256", text));
  const std::uint64_t m = parse_number("the rows of --tile", parts[0], kMostTile);
  const std::uint64_t n = parse_number("the columns of --tile", parts[1], kMostTile);
  if (m == 0 || n == 0)
    throw harness::Error(
        fmt::format("--tile is '{}'; a tile must have at least one row and one column", text));
  return {static_cast<int>(m), static_cast<int>(n), 0};
}

struct Schedule {
  gemm::Shape shape;
  gemm::TileShape tile;
  int sms = 0;
  gemm::TileGrid grid() const { return {gemm::ceil_div(shape.m, tile.m), gemm::ceil_div(shape.n, tile.n)}; }
  int waves() const { return gemm::ceil_div(grid().count(), sms); }
  double row_bytes() const { return 2.0 * tile.m * shape.k; }     // of A, for one row of tiles
  double column_bytes() const { return 2.0 * tile.n * shape.k; }  // of B, for one column
};

struct Touched {
  int tiles = 0;
  int rows = 0;
  int columns = 0;
};

Touched touched(const Schedule& schedule, gemm::Raster raster, int wave) {
  const gemm::TileGrid grid = schedule.grid();
  const int begin = wave * schedule.sms;
  const int end = std::min(begin + schedule.sms, grid.count());
  std::set<int> rows;
  std::set<int> columns;
  for (int index = begin; index < end; ++index) {
    const gemm::TilePosition tile = gemm::tile_at(index, grid, raster);
    rows.insert(tile.m);
    columns.insert(tile.n);
  }
  return {end - begin, static_cast<int>(rows.size()), static_cast<int>(columns.size())};
}

void print_table(const Schedule& schedule, const std::vector<NamedRaster>& rasters, Output& output) {
  const gemm::TileGrid grid = schedule.grid();
  const int waves = schedule.waves();
  output.text += fmt::format(
      "{}, tiles of {} x {}: {} x {} = {} tiles on {} SMs = {:.2f} waves, {} with the last; {:.1f} % of the "
      "SMs' time is used\n",
      harness::to_string(schedule.shape), schedule.tile.m, schedule.tile.n, grid.m, grid.n, grid.count(),
      schedule.sms, static_cast<double>(grid.count()) / schedule.sms, waves,
      100.0 * grid.count() / (static_cast<double>(waves) * schedule.sms));
  output.text += fmt::format("a row of tiles needs {:.2f} MiB of A, a column {:.2f} MiB of B\n\n",
                             schedule.row_bytes() / kMiB, schedule.column_bytes() / kMiB);
  output.text += fmt::format("{:<8} {:>5} {:>8} {:>8} {:>8} {:>8} {:>10} {:>9}\n", "order", "rows", "columns",
                             "A (MiB)", "B (MiB)", "sum", "all waves", "share");
  for (const auto& [name, raster] : rasters) {
    double bytes = 0;
    double asked = 0;
    for (int wave = 0; wave < waves; ++wave) {
      const auto [tiles, rows, columns] = touched(schedule, raster, wave);
      bytes += rows * schedule.row_bytes() + columns * schedule.column_bytes();
      asked += tiles * (schedule.row_bytes() + schedule.column_bytes());
    }
    const auto [tiles, rows, columns] = touched(schedule, raster, 0);
    const double a = rows * schedule.row_bytes() / kMiB;
    const double b = columns * schedule.column_bytes() / kMiB;
    output.text += fmt::format("{:<8} {:>5} {:>8} {:>8.1f} {:>8.1f} {:>8.1f} {:>10.0f} {:>7.1f} %\n", name,
                               rows, columns, a, b, a + b, bytes / kMiB, 100 * bytes / asked);
  }
}

void print_map(const Schedule& schedule, const NamedRaster& named, Output& output) {
  const gemm::TileGrid grid = schedule.grid();
  if (grid.n > kMostColumns) {
    throw harness::Error(fmt::format("D has {} columns of tiles; a map shows at most {}: take a smaller N",
                                     grid.n, kMostColumns));
  }
  std::vector<std::string> lines(static_cast<std::size_t>(grid.m),
                                 std::string(static_cast<std::size_t>(grid.n), ' '));
  for (int index = 0; index < grid.count(); ++index) {
    const gemm::TilePosition tile = gemm::tile_at(index, grid, named.raster);
    lines[static_cast<std::size_t>(tile.m)][static_cast<std::size_t>(tile.n)] =
        static_cast<char>('0' + index / schedule.sms % 10);
  }
  print_table(schedule, {named}, output);
  output.text += "\nD, with one character for each tile: the last digit of its wave (the first wave is 0)\n";
  for (const std::string& line : lines) output.text += line + "\n";
}

/// The first waves of each order, tiles as row * columns + column, and the tiles, rows and columns of each
/// wave; a line for each order.
std::string file_text(const Schedule& schedule, int waves) {
  using Json = nlohmann::ordered_json;
  const gemm::TileGrid grid = schedule.grid();
  const auto [m, n, k] = schedule.shape;
  std::string text = fmt::format(
      "{{\"shape\": [{}, {}, {}], \"tile\": [{}, {}], \"grid\": [{}, {}], \"sms\": {}, \"row_bytes\": {}, "
      "\"column_bytes\": {},\n \"orders\": [\n",
      m, n, k, schedule.tile.m, schedule.tile.n, grid.m, grid.n, schedule.sms, schedule.row_bytes(),
      schedule.column_bytes());
  const std::vector<NamedRaster> rasters = compared_rasters();
  for (const auto& [name, raster] : rasters) {
    std::vector<int> tiles;
    for (int index = 0; index < std::min(waves * schedule.sms, grid.count()); ++index) {
      const gemm::TilePosition tile = gemm::tile_at(index, grid, raster);
      tiles.push_back(tile.m * grid.n + tile.n);
    }
    Json counts = Json::array();
    for (int wave = 0; wave < waves; ++wave) {
      const auto [in_wave, rows, columns] = touched(schedule, raster, wave);
      counts.push_back({in_wave, rows, columns});
    }
    text += fmt::format(
        "  {{\"order\": \"{}\", \"rows\": {}, \"columns\": {}, \"waves\": {}, \"tiles\": {}}}{}\n", name,
        counts[0][1].get<int>(), counts[0][2].get<int>(), counts.dump(), Json(tiles).dump(),
        name == rasters.back().name ? "" : ",");
  }
  return text + " ]}\n";
}

}  // namespace

int raster(const std::vector<std::string>& arguments, Output& output) {
  CLI::App app{
      "Compares the orders of a persistent kernel's tiles: which tiles are in flight together, and their "
      "bytes.",
      "tools/play raster"};
  std::string shape = "8192x8192x8192";
  std::string tile = "128x256";
  std::string sms = "132";
  std::string order;
  std::string json;
  std::string waves = "3";
  app.add_option("--shape", shape, "M x N x K")->capture_default_str();
  app.add_option("--tile", tile, "Tile of D, rows x columns")->capture_default_str();
  app.add_option("--sms", sms, "Number of SMs that take tiles at the same time")->capture_default_str();
  app.add_option("--order", order,
                 "Print the map of this order: along_n, along_m, hilbert, group2, group16, ...");
  app.add_option("--json", json, "Write the first waves of every order to this file instead");
  app.add_option("--waves", waves, "Number of waves in that file")->capture_default_str();
  app.footer(kRasterFooter);
  return run(app, arguments, output, [&] {
    Schedule schedule{harness::parse_shape(shape), parse_tile(tile),
                      static_cast<int>(parse_number("--sms", sms, kMostSms))};
    if (schedule.sms == 0) throw harness::Error("--sms is 0; at least 1 SM must take the tiles");
    if (!json.empty()) {
      const auto asked = static_cast<int>(parse_number("--waves", waves, kMostTile));
      if (asked == 0) throw harness::Error("--waves is 0; the file must have at least 1 wave");
      const int written = std::min(asked, schedule.waves());
      write_file(json, file_text(schedule, written));
      output.text += fmt::format("the first {} waves of {} orders are in {}\n", written,
                                 compared_rasters().size(), json);
    } else if (order.empty()) {
      print_table(schedule, compared_rasters(), output);
    } else {
      print_map(schedule, {order, parse_order(order)}, output);
    }
    return harness::kExitOk;
  });
}

}  // namespace play
