// A tile through TMA with every swizzle: which 16 bytes ended up where, beside the model.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "gemm/tile/swizzle.h"
#include "harness/backend/backend.h"
#include "tile_device.h"

namespace play {
namespace {

namespace ptx = gemm::ptx;

constexpr const char* kTmaSwizzleFooter =
    R"(A tile of 16-bit numbers 0, 1, 2, ... is loaded with a tensor map of each swizzle. Then threads read shared
memory in the order of its addresses and print what they find. A cell is 16 bytes (8 elements, four banks), and a
line is 128 bytes (all banks). 3.5 is unit 5 of row 3. A row is as long as the swizzle's span: 128, 64 or 32
bytes, and 128 without a swizzle, so that several short rows share a line.

The model on the right is gemm::swizzle(): address bits 4-6 ^= bits 7-9 for 128 bytes, 4-5 ^= 7-8 for 64, bit 4
^= bit 7 for 32. On a GPU, the left side comes from the hardware. On the emulator, it comes from the emulator's
copy engine, whose permutation is written a second time in ptx/swizzle_mode.h.

  tools/play tma_swizzle
  tools/play tma_swizzle --swizzle 128 --rows 16     # after 1024 bytes the pattern begins anew
  tools/play tma_swizzle --swizzle 128 --at 256      # it is a function of the address, not of the row
  tools/play tma_swizzle --swizzle 128 --row-bytes 64   # a short row takes a whole span as well
  tools/play tma_swizzle --json swizzles.json           # the same as JSON: the cells of each line, "." where nothing is

Source: PTX ISA, "Tensors: Swizzling Modes".)";

constexpr std::uint32_t kSwizzleUnit = 16;
constexpr std::uint32_t kLine = 128;
constexpr std::uint32_t kUnswizzledRow = 128;

/// Where the model puts the byte that would be at `address` without a swizzle.
std::uint32_t model_place(std::uint32_t address, ptx::Swizzle swizzle) {
  const auto offset = static_cast<int>(address);
  switch (swizzle) {
    case ptx::Swizzle::k32B:
      return static_cast<std::uint32_t>(gemm::swizzle<32>(offset));
    case ptx::Swizzle::k64B:
      return static_cast<std::uint32_t>(gemm::swizzle<64>(offset));
    case ptx::Swizzle::k128B:
      return static_cast<std::uint32_t>(gemm::swizzle<128>(offset));
    default:
      return address;
  }
}

/// "3.5", or what is wrong with the eight elements.
std::string unit_name(const std::uint16_t* elements, std::uint32_t row_bytes, std::uint32_t tile_bytes) {
  const std::uint32_t first = elements[0];
  for (std::uint32_t i = 0; i < kSwizzleUnit / 2; ++i) {
    if (elements[i] != first + i || first % (kSwizzleUnit / 2) != 0 || first * 2 >= tile_bytes) return "?";
  }
  return fmt::format("{}.{}", first * 2 / row_bytes, first * 2 % row_bytes / kSwizzleUnit);
}

struct Tile {
  std::uint32_t rows;
  std::uint32_t at;
  std::uint32_t row_bytes;  // 0: as long as the swizzle allows
};

/// One mode: the lines of 128 bytes that a tile touches, each with its cells.
struct Loaded {
  std::uint32_t row_bytes;
  std::uint32_t begin;  // the address of the first line
  std::vector<std::vector<std::string>> found;
  std::vector<std::vector<std::string>> expected;
  int wrong = 0;  // units that are not where the model says
};

Loaded load(ptx::Swizzle swizzle, const Tile& tile) {
  const bool swizzled = swizzle != ptx::Swizzle::kNone;
  const std::uint32_t longest =
      swizzled ? static_cast<std::uint32_t>(ptx::span_bytes(swizzle)) : kUnswizzledRow;
  const auto [rows, at, wanted_row_bytes] = tile;
  const std::uint32_t row_bytes = wanted_row_bytes == 0 ? longest : wanted_row_bytes;
  if (row_bytes > longest) {
    throw harness::Error(fmt::format("--row-bytes is {}; with swizzle {} a row has at most {}", row_bytes,
                                     swizzle_name(swizzle), longest));
  }
  const std::uint32_t pitch = swizzled ? longest : row_bytes;  // a swizzled row takes its whole span
  const std::uint32_t bytes = (rows - 1) * pitch + row_bytes;

  // The permutation stays inside lines of 128 bytes, so the tile's lines hold all of it.
  const std::uint32_t begin = at / kLine * kLine;
  const std::uint32_t end = (at + bytes + kLine - 1) / kLine * kLine;
  const std::vector<std::uint16_t> memory = load_tile(rows, row_bytes, at, begin, end - begin, swizzle);

  std::vector<std::string> expected((end - begin) / kSwizzleUnit, ".");
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t unit = 0; unit < row_bytes / kSwizzleUnit; ++unit) {
      const std::uint32_t place = model_place(at + row * pitch + unit * kSwizzleUnit, swizzle);
      expected[(place - begin) / kSwizzleUnit] = fmt::format("{}.{}", row, unit);
    }
  }

  Loaded loaded{.row_bytes = row_bytes, .begin = begin, .found = {}, .expected = {}};
  for (std::uint32_t line = begin; line < end; line += kLine) {
    std::vector<std::string>& found = loaded.found.emplace_back();
    std::vector<std::string>& model = loaded.expected.emplace_back();
    for (std::uint32_t place = line; place < line + kLine; place += kSwizzleUnit) {
      const std::uint32_t index = (place - begin) / kSwizzleUnit;
      const std::uint16_t* elements = memory.data() + std::size_t{index} * (kSwizzleUnit / 2);
      const bool untouched =
          std::all_of(elements, elements + kSwizzleUnit / 2, [](std::uint16_t e) { return e == kUntouched; });
      const std::string name = untouched ? "." : unit_name(elements, row_bytes, rows * row_bytes);
      loaded.wrong += name != expected[index] ? 1 : 0;
      found.push_back(name);
      model.push_back(expected[index]);
    }
  }
  return loaded;
}

/// Prints one mode.
void show(ptx::Swizzle swizzle, const Tile& tile, const Loaded& loaded, bool emulator, Output& output) {
  if (output.text.empty())
    output.text =
        "a cell is 16 bytes, row.unit; a line is 128 bytes, all 32 banks, with its address at the left\n";
  output.text += '\n';
  output.text += fmt::format("swizzle {}: {} rows of {} bytes, the tile at shared + {}\n",
                             swizzle_name(swizzle), tile.rows, loaded.row_bytes, tile.at);
  output.text += fmt::format("{:>9}  {:<48}  {}\n", "",
                             emulator ? "through the emulator's TMA" : "through TMA", "the model");
  for (std::size_t line = 0; line < loaded.found.size(); ++line) {
    std::string found;
    std::string model;
    for (const std::string& name : loaded.found[line]) found += fmt::format("{:<6}", name);
    for (const std::string& name : loaded.expected[line]) model += fmt::format("{:<6}", name);
    model.erase(model.find_last_not_of(' ') + 1);
    output.text += fmt::format("{:>9}  {}  {}\n", loaded.begin + line * kLine, found, model);
  }
  output.text += loaded.wrong == 0
                     ? fmt::format("they agree: all {} units are where the model says\n",
                                   tile.rows * loaded.row_bytes / kSwizzleUnit)
                     : fmt::format("they DISAGREE: {} places hold something else\n", loaded.wrong);
}

}  // namespace

int tma_swizzle(const std::vector<std::string>& arguments, Output& output) {
  CLI::App app{"Loads a tile through TMA with every swizzle and prints where each group of 16 bytes is.",
               "tools/play tma_swizzle"};
  std::string swizzle = "all";
  std::string rows_text = "8";
  std::string at_text = "0";
  std::string row_text = "0";
  std::string json;

  app.add_option("--swizzle", swizzle, "none, 32, 64, 128 or all")->capture_default_str();
  app.add_option("--rows", rows_text, "Rows of the tile, 1 to 256")->capture_default_str();
  app.add_option("--at", at_text, "Where the tile starts in shared memory: a multiple of 128")
      ->capture_default_str();
  app.add_option("--row-bytes", row_text,
                 "Bytes of a row of the tile: a multiple of 16; 0 means the swizzle's span")
      ->capture_default_str();
  app.add_option("--json", json, "Write where everything is to this file instead");
  app.footer(kTmaSwizzleFooter);
  return run(app, arguments, output, [&] {
    const auto rows = static_cast<std::uint32_t>(parse_number("--rows", rows_text, kMaxTileRows));
    const auto at = static_cast<std::uint32_t>(parse_number("--at", at_text, kMaxTilePlace));
    const auto row_bytes = static_cast<std::uint32_t>(parse_number("--row-bytes", row_text, kUnswizzledRow));
    if (row_bytes % kSwizzleUnit != 0)
      throw harness::Error(fmt::format("--row-bytes is {}; TMA moves multiples of 16 bytes", row_bytes));
    if (rows == 0) throw harness::Error("--rows is 0; a box has 1 to 256 rows");
    std::vector<ptx::Swizzle> modes{ptx::Swizzle::kNone, ptx::Swizzle::k32B, ptx::Swizzle::k64B,
                                    ptx::Swizzle::k128B};
    if (swizzle != "all") modes = {parse_swizzle(swizzle)};
    const bool emulator = require_hopper();
    // On a GPU a misaligned destination is undefined; the emulator says it better.
    if (!emulator && at % kTileAlignment != 0)
      throw harness::Error(fmt::format("--at is {}; TMA writes to multiples of {}", at, kTileAlignment));
    const Tile tile{rows, at, row_bytes};
    nlohmann::ordered_json file = nlohmann::ordered_json::array();
    int wrong = 0;
    for (const ptx::Swizzle mode : modes) {
      const Loaded loaded = load(mode, tile);
      wrong += loaded.wrong;
      file.push_back({{"swizzle", swizzle_name(mode)},
                      {"rows", rows},
                      {"row_bytes", loaded.row_bytes},
                      {"at", at},
                      {"begin", loaded.begin},
                      {"lines", loaded.found},
                      {"wrong", loaded.wrong}});
      if (json.empty()) show(mode, tile, loaded, emulator, output);
    }
    if (!json.empty()) {
      write_file(json, file.dump() + '\n');
      output.text += fmt::format("the places of {} swizzles are in {}\n", modes.size(), json);
    }
    return wrong == 0 ? harness::kExitOk : harness::kExitMismatch;
  });
}

}  // namespace play
