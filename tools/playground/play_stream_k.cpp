// The same tiles as whole tiles and as stream-K ranges: who multiplies what, and who waits.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "gemm/schedule/decomposition.h"
#include "harness/backend/backend.h"

namespace play {
namespace {

constexpr const char* kStreamKFooter =
    R"(The work tiles are those of gemm::TileScheduler, which the kernels of step 18 call. Time is counted in k-tiles of multiplication.
To store partials and to pass them on, and to add those of one slot, takes as many as gemm::predicted_k_tiles assumes. Whoever
does a fix-up waits until its peers have stored their partials. "hybrid" is what step 18 picks.

  tools/play stream_k
  tools/play stream_k --tiles 9 --workers 4 --k-tiles 32
  tools/play stream_k --json stream_k.json)";

constexpr std::uint64_t kMostWorkTiles = 10000;
constexpr int kMostListed = 16;  // workers

struct Activity {
  const char* what;  // "multiply", "store", "wait" or "fix up"
  double begin, end;
  gemm::WorkTile work;
};
using Workers = std::vector<std::vector<Activity>>;

struct Division {
  std::string name;
  gemm::Decomposition all;
};

/// What each worker does when. A worker stores its partials first, and waits only for workers with lower
/// numbers, so one pass finds all times.
Workers activities(const gemm::Decomposition& all) {
  Workers workers;
  std::vector<double> stored(static_cast<std::size_t>(all.slots()));  // when the partials of a slot are there
  for (int worker = 0; worker < all.workers; ++worker) {
    std::vector<Activity>& done = workers.emplace_back();
    double now = 0;
    gemm::TileScheduler scheduler(all, worker);
    gemm::WorkTile work;
    const auto spend = [&](const char* what, double k_tiles) {
      if (k_tiles <= 0) return;
      done.push_back({what, now, now + k_tiles, work});
      now += k_tiles;
    };
    while (scheduler.next(work)) {
      spend("multiply", work.count());
      if (work.slot >= 0) {
        spend("store", gemm::kStorePartialsKTiles);
        stored[static_cast<std::size_t>(work.slot)] = now;
      } else if (work.k_begin > 0) {
        const gemm::SlotRange peers = gemm::peers_of(all, work, worker);
        double ready = now;
        for (int slot = peers.first; slot < peers.end; ++slot)
          ready = std::max(ready, stored[static_cast<std::size_t>(slot)]);
        spend("wait", ready - now);
        spend("fix up", gemm::kFixupKTiles * peers.count());
      }
    }
  }
  return workers;
}

double last_end(const Workers& workers) {
  double end = 0;
  for (const auto& done : workers) end = std::max(end, done.empty() ? 0 : done.back().end);
  return end;
}

std::string part_text(const gemm::WorkTile& work, int k_tiles) {
  return work.count() == k_tiles ? fmt::format("tile {}", work.tile)
                                 : fmt::format("tile {}: {}-{}", work.tile, work.k_begin, work.k_end - 1);
}

void print_division(const Division& division, Output& output) {
  const Workers workers = activities(division.all);
  output.text += fmt::format("\n{}: ends after {:g} k-tiles; predicted: {:g}\n", division.name,
                             last_end(workers), gemm::predicted_k_tiles(division.all));
  if (division.all.workers > kMostListed) return;
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    output.text += fmt::format("  worker {}", worker);
    const char* mark = ": ";
    for (const Activity& one : workers[worker]) {
      const std::string what(one.what);
      output.text += mark;
      output.text += what == "multiply" ? part_text(one.work, division.all.k_tiles)
                     : what == "store"  ? "store partials"
                     : what == "wait"   ? fmt::format("wait for {:g}", one.end - one.begin)
                                        : what;
      mark = ", ";
    }
    output.text += workers[worker].empty() ? ": nothing\n" : "\n";
  }
}

std::string divisions_text(const std::vector<Division>& divisions) {
  using Json = nlohmann::ordered_json;
  const gemm::Decomposition& any = divisions.front().all;
  Json file = {{"tiles", any.tiles},
               {"k_tiles", static_cast<int>(any.k_tiles)},
               {"workers", any.workers},
               {"store", gemm::kStorePartialsKTiles},
               {"fixup", gemm::kFixupKTiles}};
  for (const auto& [name, all] : divisions) {
    const Workers workers = activities(all);
    Json one = {{"name", name}, {"stream_k_tiles", all.stream_k_tiles}, {"ends", last_end(workers)}};
    for (const auto& done : workers) {
      Json row = Json::array();
      for (const auto& [what, begin, end, work] : done)
        row.push_back({{"what", what},
                       {"begin", begin},
                       {"end", end},
                       {"tile", work.tile},
                       {"k", {work.k_begin, work.k_end}}});
      one["workers"].push_back(row);
    }
    file["divisions"].push_back(one);
  }
  return file.dump() + "\n";
}

int number_from_1(const char* option, const std::string& text) {
  const auto value = static_cast<int>(parse_number(option, text, kMostWorkTiles));
  if (value == 0) throw harness::Error(fmt::format("{} is 0; it must be at least 1", option));
  return value;
}

}  // namespace

int stream_k(const std::vector<std::string>& arguments, Output& output) {
  CLI::App app{"Divides the same tiles among workers as whole tiles and by stream-K.", "tools/play stream_k"};
  std::string tiles = "5";
  std::string k_tiles = "64";
  std::string workers = "4";
  std::string json;
  app.add_option("--tiles", tiles, "Number of tiles of D")->capture_default_str();
  app.add_option("--k-tiles", k_tiles, "Number of k-tiles in each of them")->capture_default_str();
  app.add_option("--workers", workers, "Number of CTAs that take work at the same time")
      ->capture_default_str();
  app.add_option("--json", json, "Write who does what when to this file instead");
  app.footer(kStreamKFooter);
  return run(app, arguments, output, [&] {
    using enum gemm::Split;
    const int count = number_from_1("--tiles", tiles);
    const int depth = number_from_1("--k-tiles", k_tiles);
    const int ctas = number_from_1("--workers", workers);
    std::vector<Division> divisions;
    for (const auto& [name, split] :
         {std::pair{"data-parallel", kDataParallel}, {"stream-K", kStreamK}, {"hybrid", kHybrid}})
      divisions.push_back({name, gemm::decompose(split, count, depth, ctas)});
    if (!json.empty()) {
      write_file(json, divisions_text(divisions));
      output.text += fmt::format("{} divisions of {} tiles are in {}\n", divisions.size(), count, json);
      return harness::kExitOk;
    }
    output.text += fmt::format("{} tiles of {} k-tiles on {} workers\n", count, depth, ctas);
    for (const Division& division : divisions) print_division(division, output);
    return harness::kExitOk;
  });
}

}  // namespace play
