// The timeline of a step, recorded on the emulator: complete, in order, and by the model's rules.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "steps/timelines.h"

using harness::TraceData;
using harness::TraceSpan;
using harness::TraceTimeline;

TEST_CASE("the spans of a role follow each other", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  const gemm::Variant& variant = traced_variant(step);
  const TraceData data = record(variant, tiles_of(variant, 2, 5), 2);
  const std::vector<TraceTimeline> all = harness::timelines(data, variant.tile.k);
  REQUIRE(!all.empty());
  for (const TraceTimeline& timeline : all) {
    INFO("CTA " << timeline.cta << ", " << timeline.role);
    double end = 0;
    for (const TraceSpan& span : timeline.spans) {
      CHECK(!span.name.empty());
      CHECK(span.begin >= end);
      CHECK(span.end >= span.begin);
      end = span.end;
    }
  }
}

TEST_CASE("every k-tile is multiplied exactly once by every role that multiplies", "[emulator]") {
  if (skip_without_emulator()) return;
  constexpr int kTiles = 5;
  const gemm::Step& step = step_under_test();
  // A timeline counts tiles by stores, and all variants of step 55 begin a tile before the last is stored.
  if (step.name.starts_with("55_")) return;
  const gemm::Variant& variant = traced_variant(step);
  const TraceData data = record(variant, tiles_of(variant, 2, kTiles), 2);
  int tiles = 0;
  const std::vector<TraceTimeline> all = harness::timelines(data, variant.tile.k);
  for (const TraceTimeline& timeline : all) {
    if (!multiplies(timeline)) continue;
    INFO("CTA " << timeline.cta << ", " << timeline.role);
    std::map<int, std::map<int, int>> times;  // tile -> k-tile -> count
    std::map<int, int> stores;
    for (const TraceSpan& span : timeline.spans) {
      if (span.name == "multiply" && !span.drain) ++times[span.tile][span.k_tile];
    }
    const std::string stores_by = timeline.role == "issuer" ? "epilogue" : timeline.role;
    for (const TraceTimeline& other : all) {
      if (other.cta != timeline.cta || other.role != stores_by) continue;
      for (const TraceSpan& span : other.spans) stores[span.tile] += span.name == "store";
    }
    std::erase_if(stores, [](const auto& tile) { return tile.second == 0; });
    for (const auto& [tile, k_tiles] : times) {
      INFO("tile " << tile);
      CHECK(k_tiles.size() == kTiles);
      CHECK(k_tiles.begin()->first == 0);
      CHECK(k_tiles.rbegin()->first == kTiles - 1);
      // A wait may come between two multiplications of one k-tile with mma.sync (step 07).
      if (step.unit >= gemm::MathUnit::kWgmma) {
        // Step 41 waits for each slab; steps 43 to 46 multiply a k-tile in two parts.
        const std::string number = step.name.substr(0, 2);
        const int groups = number == "41" ? 4 : number >= "43" && number <= "46" ? 2 : 1;
        for (const auto& [k_tile, count] : k_tiles) CHECK(count == groups);
      }
      CHECK(stores[tile] >= 1);
    }
    CHECK(times.size() == stores.size());
    tiles += static_cast<int>(times.size());
  }
  CHECK(tiles * ctas_of_issuer(step, variant) >= 4);
}

TEST_CASE("the file is a complete Chrome trace that says where its times come from", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  const gemm::Variant& variant = traced_variant(step);
  const gemm::Shape shape = tiles_of(variant, 2, 3);
  const TraceData data = record(variant, shape, 2, 1, 2);
  const auto all = harness::timelines(data, variant.tile.k);
  const auto trace = nlohmann::json::parse(
      harness::trace_json(data, all, harness::about_trace(step, variant, shape, 2, data)));
  CHECK(trace["otherData"]["backend"] == "model");
  CHECK(trace["otherData"]["time"].get<std::string>().find("not measured") == 0);
  CHECK(trace["otherData"]["model"].size() > 10);
  std::set<std::pair<int, int>> named;
  std::map<std::pair<int, int>, double> ends;
  std::size_t spans = 0;
  for (const auto& event : trace["traceEvents"]) {
    const std::pair track{event["pid"].get<int>(), event["tid"].get<int>()};
    // Perfetto takes 0 for the idle task.
    CHECK(track.first > 0);
    CHECK(track.second > 0);
    if (event["ph"] == "M") {
      if (event["name"] == "thread_name") named.insert(track);
      continue;
    }
    REQUIRE(event["ph"] == "X");
    ++spans;
    // Perfetto wants the events of a track to nest; these do not even touch.
    CHECK(event["ts"].get<double>() >= ends[track] - 2e-4);
    CHECK(event["dur"].get<double>() >= 0);
    ends[track] = event["ts"].get<double>() + event["dur"].get<double>();
  }
  for (const auto& [track, end] : ends) CHECK(named.count(track) == 1);
  std::size_t expected = 0;
  for (const TraceTimeline& timeline : all) {
    CHECK(timeline.cta < 2);
    expected += timeline.spans.size();
  }
  CHECK(spans > expected);  // and the engines
}
