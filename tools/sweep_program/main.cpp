// sweep: races step 15's kernel with every size of tile that fits.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cell.h"
#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/program.h"
#include "harness/record/json.h"
#include "harness/timing/timing.h"
#include "harness/verify/workload/workload.h"
#include "map.h"

namespace {

using sweep::Cell;

struct Options {
  std::string shape;
  std::vector<std::string> tiles;
  bool check = false;
  bool list = false;
  double seconds = 45;
  int rounds = 0;
  std::uint64_t seed = 1;
  std::string json;
};

/// The variants named ("256x128x64", "256x128x64_stages4"), or all of them.
std::vector<gemm::Variant> selected(const std::vector<Cell>& cells, const std::vector<std::string>& names) {
  std::vector<gemm::Variant> all;
  std::vector<std::string> known;
  for (const Cell& cell : cells) {
    all.insert(all.end(), cell.variants.begin(), cell.variants.end());
    if (cell.limits.empty()) known.push_back(sweep::tile_name(cell.m, cell.k));
  }
  for (const gemm::Variant& variant : all) known.push_back(variant.name);
  if (names.empty()) return all;

  std::vector<gemm::Variant> chosen;
  for (const std::string& name : names) {
    const auto limited = std::find_if(cells.begin(), cells.end(), [&name](const Cell& cell) {
      return !cell.limits.empty() && name.rfind(sweep::tile_name(cell.m, cell.k), 0) == 0;
    });
    if (limited != cells.end())
      throw harness::Error(fmt::format("{} does not fit, {}: {}", name, limited->limits.front().what,
                                       limited->limits.front().why));
    const std::size_t before = chosen.size();
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), [&name](const gemm::Variant& variant) {
      return variant.name == name || variant.name.rfind(name + "_", 0) == 0;
    });
    if (chosen.size() > before) continue;
    const std::string nearest = harness::nearest_match(name, known);
    throw harness::Error(fmt::format("there is no tile '{}'{}; --list shows all", name,
                                     nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }
  return chosen;
}

/// Every variant on a shape with ragged edges, with more tiles than CTAs and more k-tiles than stages. False
/// when one is wrong.
bool verify(const std::vector<gemm::Variant>& variants, const gemm::Shape& shape, const Options& options) {
  for (const harness::Pattern pattern : {harness::Pattern::kExact, harness::Pattern::kNormal}) {
    harness::Workload workload(shape, pattern, options.seed);
    for (const gemm::Variant& variant : variants) {
      harness::show_progress(fmt::format("verifying {} on {}", variant.name, harness::to_string(shape)));
      workload.poison();
      variant.prepare(workload.gemm())(nullptr);
      harness::synchronize();
      const harness::CheckResult result = workload.check(variant.tile);
      if (result.ok && !options.check) continue;
      harness::clear_progress();
      fmt::print("  {:<24} {:<5} {}\n", variant.name, result.ok ? "ok" : "WRONG", result.summary);
      std::fflush(stdout);
      if (result.ok) continue;
      fmt::print("{}\n", result.report);
      return false;
    }
  }
  harness::clear_progress();
  fmt::print("{} verified on {}\n", harness::counted(variants.size(), "variant"), harness::to_string(shape));
  std::fflush(stdout);
  return true;
}

harness::Record race(const std::vector<gemm::Variant>& variants, const gemm::Shape& shape,
                     const Options& options, const harness::DeviceInfo& device) {
  harness::TimingOptions timing;
  timing.rounds = options.rounds;
  timing.budget_s = options.seconds;
  timing.seed = options.seed;
  timing.progress = harness::show_progress;
  std::vector<harness::Contestant> contestants;
  for (const gemm::Variant& variant : variants) {
    contestants.push_back(
        {sweep::kContestant, variant.name, harness::ContestantKind::kStep, variant.prepare});
  }
  harness::Record record = harness::new_record(device, timing);
  record.shapes.push_back(harness::time_shape(shape, contestants, timing));
  record.rounds = static_cast<int>(record.shapes.front().contestants.front().samples_us.size());
  harness::clear_progress();
  return record;
}

int execute(const Options& options) {
  const std::vector<Cell> cells = sweep::all_cells();
  if (options.list) {
    for (const Cell& cell : cells) {
      for (const gemm::Variant& variant : cell.variants) fmt::print("{}\n", variant.name);
    }
    fmt::print("{}", sweep::reasons_text(cells));
    return harness::kExitOk;
  }
  const std::vector<gemm::Variant> variants = selected(cells, options.tiles);
  const gemm::Step step{.name = "sweep",
                        .title = "every size of tile",
                        .unit = gemm::MathUnit::kWgmma,
                        .architecture = gemm::Architecture::kSm90a,
                        .contract = {.n_multiple = 8, .k_multiple = 8},
                        .variants = variants};
  const harness::DeviceInfo device = harness::device_info();
  if (device.is_emulator && !options.check)
    throw harness::Error("the emulator says nothing about speed; --check verifies the tiles on it");
  if (!gemm::runs_on(step.architecture, device.compute_capability))
    throw harness::Error(fmt::format("the kernels need compute capability 9.0, but {} has {}.{}", device.name,
                                     device.compute_capability / 10, device.compute_capability % 10));
  const gemm::Shape ragged = device.is_emulator ? gemm::Shape{325, 264, 600} : gemm::Shape{4100, 1528, 1048};
  gemm::Shape shape = options.check ? ragged : gemm::Shape{8192, 8192, 8192};
  if (!options.shape.empty()) shape = harness::parse_shape(options.shape);
  harness::check_contract(step, shape);
  if (!options.json.empty()) harness::check_writable(options.json);

  if (!verify(variants, options.check ? shape : ragged, options)) {
    fmt::print("FAILED: no time is shown for a wrong result\n");
    return harness::kExitMismatch;
  }
  if (options.check) return harness::kExitOk;

  const harness::Record record = race(variants, shape, options, device);
  fmt::print("\n{}", harness::human_table(record));
  if (options.tiles.empty()) fmt::print("\n{}", sweep::map_text(cells, record.shapes.front()));
  if (!options.json.empty()) {
    nlohmann::json json = record;
    json["cells"] = sweep::cells_json(cells);
    harness::write_record(options.json, json);
  }
  return harness::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      fmt::format("Races step 15's kernel with tiles of 64 to 320 x {} and k-tiles of 32 to 256, with as "
                  "many stages as fit, against cuBLASLt.",
                  sweep::kTileN),
      "sweep"};
  app.add_option("shape", options.shape,
                 "MxNxK, or one number of three digits or more for a cube (default: 8192)");
  app.add_option(
         "--tile", options.tiles,
         "Only this tile: 256x128x64, or with its stages 256x128x64_stages4; may be given more than once")
      ->allow_extra_args(false);
  app.add_flag("--check", options.check, "Only verify");
  app.add_flag("--list", options.list, "List what would be timed and what does not fit; run nothing");
  app.add_option("--seconds", options.seconds, "Time budget of the race itself")
      ->capture_default_str()
      ->check(harness::seconds_problem);
  app.add_option("--rounds", options.rounds, "Number of rounds; with 0, until the medians are stable")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  app.add_option("--seed", options.seed, "Seed of the inputs")
      ->capture_default_str()
      ->check(harness::seed_problem);
  app.add_option("--json", options.json, "Write the record of the run to this file")
      ->check(harness::file_problem);
  return harness::run_program(app, argc, argv, [&] { return execute(options); });
}
