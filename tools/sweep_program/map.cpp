#include "map.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sweep {
namespace {

/// The fastest timed variant of the cell; nullptr when none was timed.
const harness::ContestantRecord* best(const Cell& cell, const harness::ShapeRecord& shape, int& stages) {
  const harness::ContestantRecord* fastest = nullptr;
  for (const gemm::Variant& variant : cell.variants) {
    const auto found = std::find_if(shape.contestants.begin(), shape.contestants.end(), [&](const auto& c) {
      return c.name == kContestant && c.variant == variant.name;
    });
    if (found == shape.contestants.end()) continue;
    if (fastest != nullptr && fastest->median_us <= found->median_us) continue;
    fastest = &*found;
    stages = variant.stages;
  }
  return fastest;
}

std::string entry(const Cell& cell, const harness::ShapeRecord& shape) {
  if (!cell.limits.empty()) return cell.limits.front().what;
  int stages = 0;
  const harness::ContestantRecord* record = best(cell, shape, stages);
  if (record == nullptr) return "-";
  if (record->to_cublaslt.median > 0) return fmt::format("{:.3f}, {}", record->to_cublaslt.median, stages);
  return fmt::format("{:.0f}, {}", record->tflops, stages);
}

}  // namespace

std::string map_text(const std::vector<Cell>& cells, const harness::ShapeRecord& shape) {
  const bool ratios = std::any_of(shape.contestants.begin(), shape.contestants.end(),
                                  [](const auto& c) { return c.to_cublaslt.median > 0; });
  std::string text = fmt::format("{} and the number of stages; tiles of M x {}, M down, k-tile across\n{:>6}",
                                 ratios ? "speed relative to cuBLASLt" : "TFLOP/s", kTileN, "");
  for (const int k : kTileK) text += fmt::format("{:>15}", k);
  for (const int m : kTileM) {
    text += fmt::format("\n{:>6}", m);
    for (const Cell& cell : cells) {
      if (cell.m == m) text += fmt::format("{:>15}", entry(cell, shape));
    }
  }
  return text + "\n" + reasons_text(cells);
}

std::string reasons_text(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells) {
    for (const Limit& limit : cell.limits)
      text += fmt::format("{} does not fit, {}: {}\n", tile_name(cell.m, cell.k), limit.what, limit.why);
  }
  return text;
}

nlohmann::json cells_json(const std::vector<Cell>& cells) {
  nlohmann::json json = nlohmann::json::array();
  for (const Cell& cell : cells) {
    nlohmann::json limits = nlohmann::json::array();
    for (const Limit& limit : cell.limits) limits.push_back({{"what", limit.what}, {"why", limit.why}});
    json.push_back({{"m", cell.m},
                    {"n", kTileN},
                    {"k", cell.k},
                    {"instructions", cell.k / kInstructionK},
                    {"warpgroups", cell.warpgroups},
                    {"most_stages", cell.most_stages},
                    {"limits", limits}});
  }
  return json;
}

}  // namespace sweep
