// Timelines of the steps, recorded on the emulator: complete, in order, and by the model's rules.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/trace_control.h"
#include "harness/base/problem.h"
#include "harness/trace/trace_timeline.h"
#include "harness/verify/workload.h"
#include "step_table.h"

namespace {

using harness::EngineSpan;
using harness::TraceData;
using harness::TraceSpan;
using harness::TraceTimeline;

constexpr int kAllCtas = 64;

bool skip_without_emulator() {
  if (harness::device_info().is_emulator) return false;
  skip_test("the model belongs to the emulator; tests/gpu records on a GPU");
  return true;
}

const gemm::Step& step_of(const std::string& name) {
  return harness::find_step(gemm::all_steps(), name);
}

/// The steps that have timelines.
std::vector<const gemm::Step*> traced_steps() {
  std::vector<const gemm::Step*> steps;
  for (const gemm::Step* step : gemm::all_steps()) {
    if (step->name >= "05") steps.push_back(step);
  }
  return steps;
}

TraceData record(const gemm::Variant& variant, const gemm::Shape& shape, int sms,
                 std::uint64_t schedule_seed = 1, int ctas = kAllCtas) {
  harness::control_emulator({.schedule_seed = schedule_seed, .sm_count = sms});
  harness::Workload workload(shape, harness::Pattern::kExact, 1);
  workload.poison();
  const gemm::Launcher launcher = variant.prepare(workload.gemm());
  TraceData data = harness::record_launch([&] { launcher(nullptr); }, ctas);
  CHECK(workload.check(variant.tile).ok);
  return data;
}

/// Two tiles for each SM, `k_tiles` k-tiles deep.
gemm::Shape shape_of(const gemm::Variant& variant, int sms, int k_tiles) {
  return {2 * sms * variant.tile.m, variant.tile.n, k_tiles * variant.tile.k};
}

std::vector<EngineSpan> engines(const TraceData& data, EngineSpan::Kind kind, int cta = -1) {
  std::vector<EngineSpan> spans;
  for (const EngineSpan& span : data.engines) {
    if (span.kind == kind && (cta < 0 || span.cta == cta)) spans.push_back(span);
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const EngineSpan& a, const EngineSpan& b) { return a.begin < b.begin; });
  return spans;
}

bool multiplies(const TraceTimeline& timeline) {
  return timeline.role != "producer";
}

double overlap(const std::vector<EngineSpan>& some, const std::vector<EngineSpan>& others) {
  double clocks = 0;
  for (const EngineSpan& a : some) {
    for (const EngineSpan& b : others)
      clocks += std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
  }
  return clocks;
}

TEST_CASE("timeline: the spans of a role follow each other, in every step") {
  if (skip_without_emulator()) return;
  for (const gemm::Step* step : traced_steps()) {
    INFO(step->name);
    const gemm::Variant& variant = step->variants.front();
    const TraceData data = record(variant, shape_of(variant, 2, 5), 2);
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
}

TEST_CASE("timeline: every k-tile is multiplied exactly once by every role that multiplies, in every step") {
  if (skip_without_emulator()) return;
  constexpr int kTiles = 5;
  for (const gemm::Step* step : traced_steps()) {
    INFO(step->name);
    const gemm::Variant& variant = step->variants.front();
    const TraceData data = record(variant, shape_of(variant, 2, kTiles), 2);
    int tiles = 0;
    for (const TraceTimeline& timeline : harness::timelines(data, variant.tile.k)) {
      if (!multiplies(timeline)) continue;
      INFO("CTA " << timeline.cta << ", " << timeline.role);
      std::map<int, std::map<int, int>> times;  // tile -> k-tile -> count
      std::map<int, int> stores;
      for (const TraceSpan& span : timeline.spans) {
        if (span.name == "multiply" && !span.drain) ++times[span.tile][span.k_tile];
        if (span.name == "store") ++stores[span.tile];
      }
      for (const auto& [tile, k_tiles] : times) {
        INFO("tile " << tile);
        CHECK(k_tiles.size() == kTiles);
        CHECK(k_tiles.begin()->first == 0);
        CHECK(k_tiles.rbegin()->first == kTiles - 1);
        // A wait may come between two multiplications of one k-tile with mma.sync (step 07).
        if (step->unit == gemm::MathUnit::kWgmma) {
          for (const auto& [k_tile, count] : k_tiles) CHECK(count == 1);
        }
        CHECK(stores[tile] >= 1);
      }
      CHECK(times.size() == stores.size());
      tiles += static_cast<int>(times.size());
    }
    CHECK(tiles >= 4);
  }
}

TEST_CASE(
    "timeline: the tensor cores of an SM do one thing at a time, and all of the work at the full rate") {
  if (skip_without_emulator()) return;
  for (const gemm::Step* step : traced_steps()) {
    if (step->unit != gemm::MathUnit::kWgmma) continue;
    INFO(step->name);
    const gemm::Variant& variant = step->variants.front();
    const gemm::Shape shape = shape_of(variant, 2, 5);
    const TraceData data = record(variant, shape, 2);
    std::map<int, double> busy_until;
    double clocks = 0;
    for (const EngineSpan& span : engines(data, EngineSpan::Kind::kTensorCores)) {
      CHECK(span.begin >= busy_until[span.sm]);
      busy_until[span.sm] = span.end;
      clocks += span.end - span.begin;
    }
    CHECK(std::abs(clocks - 2.0 * shape.m * shape.n * shape.k / 4096) < 1);
  }
}

TEST_CASE("timeline: a wait for a k-tile ends behind the copy that brings it") {
  if (skip_without_emulator()) return;
  for (const char* name : {"09", "10", "11", "12", "13", "14", "15", "18"}) {
    INFO(name);
    const gemm::Variant& variant = step_of(name).variants.front();
    const TraceData data = record(variant, shape_of(variant, 1, 9), 1);
    for (const TraceTimeline& timeline : harness::timelines(data, variant.tile.k)) {
      if (!multiplies(timeline)) continue;
      const std::vector<EngineSpan> copies = engines(data, EngineSpan::Kind::kCopy, timeline.cta);
      std::size_t waits = 0;
      for (const TraceSpan& span : timeline.spans) {
        if (span.name != "wait full") continue;
        REQUIRE(waits < copies.size());
        CHECK(span.end >= copies[waits].end);
        ++waits;
      }
      CHECK(waits == copies.size());
    }
  }
}

TEST_CASE("timeline: a stage is filled again only when its readers have left it") {
  if (skip_without_emulator()) return;
  for (const char* name : {"11", "12", "13", "14", "15", "18"}) {
    INFO(name);
    const gemm::Variant& variant = step_of(name).variants.front();
    const TraceData data = record(variant, shape_of(variant, 1, 9), 1);
    for (int cta = 0; cta < data.ctas; ++cta) {
      const std::vector<EngineSpan> copies = engines(data, EngineSpan::Kind::kCopy, cta);
      // The k-tile that was in the stage before is multiplied by then, by all consumers.
      std::map<int, std::vector<double>> ends;
      for (const EngineSpan& span : engines(data, EngineSpan::Kind::kTensorCores, cta))
        ends[span.warpgroup].push_back(span.end);
      for (std::size_t i = static_cast<std::size_t>(variant.stages); i < copies.size(); ++i) {
        for (const auto& [warpgroup, multiplied] : ends)
          CHECK(copies[i].begin >= multiplied[i - static_cast<std::size_t>(variant.stages)]);
      }
    }
  }
}

TEST_CASE("timeline: with one stage a copy and a multiplication never overlap, with two they do") {
  if (skip_without_emulator()) return;
  const auto overlap_of = [](const char* name) {
    const gemm::Variant& variant = step_of(name).variants.front();
    const TraceData data = record(variant, {variant.tile.m, variant.tile.n, 8 * variant.tile.k}, 1);
    return overlap(engines(data, EngineSpan::Kind::kCopy), engines(data, EngineSpan::Kind::kTensorCores));
  };
  CHECK(overlap_of("09") == 0);
  CHECK(overlap_of("10") > 1000);
}

TEST_CASE("timeline: ping-pong multiplies while the other consumer stores, cooperative consumers less") {
  if (skip_without_emulator()) return;
  const auto idle_of = [](const char* name, int tiles) {
    const gemm::Variant& variant = step_of(name).variants.front();
    const TraceData data = record(variant, {2 * tiles * variant.tile.m, variant.tile.n, 512}, 2);
    const std::vector<EngineSpan> spans = engines(data, EngineSpan::Kind::kTensorCores, 0);
    double busy = 0;
    for (const EngineSpan& span : spans) busy += span.end - span.begin;
    return spans.back().end - spans.front().begin - busy;
  };
  CHECK(idle_of("17", 4) < 50);
  CHECK(idle_of("14", 2) > 1000);
}

TEST_CASE("timeline: Stream-K shares what whole tiles leave to one SM") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_of("18");
  const auto end_of = [&](const char* name) {
    const gemm::Variant& variant = harness::find_variant(step, name);
    const TraceData data = record(variant, {5 * variant.tile.m, variant.tile.n, 1024}, 4);
    double end = 0;
    bool passes = false;
    for (const TraceTimeline& timeline : harness::timelines(data, variant.tile.k)) {
      end = std::max(end, timeline.spans.back().end);
      for (const TraceSpan& span : timeline.spans) passes = passes || span.name == "pass partials";
    }
    CHECK(passes == (std::string(name) == "stream_k"));
    return end;
  };
  CHECK(end_of("stream_k") < 0.8 * end_of("data_parallel"));
}

TEST_CASE("timeline: the seed of the schedule changes nothing") {
  if (skip_without_emulator()) return;
  for (const char* name : {"07", "11", "17", "18"}) {
    INFO(name);
    const gemm::Variant& variant = step_of(name).variants.front();
    std::set<std::string> texts;
    for (const std::uint64_t seed : {1, 2, 77}) {
      const TraceData data = record(variant, shape_of(variant, 2, 5), 2, seed);
      texts.insert(harness::trace_json(data, harness::timelines(data, variant.tile.k), {}));
    }
    CHECK(texts.size() == 1);
  }
}

TEST_CASE("timeline: the file is a complete Chrome trace that says where its times come from") {
  if (skip_without_emulator()) return;
  for (const gemm::Step* step : traced_steps()) {
    INFO(step->name);
    const gemm::Variant& variant = step->variants.front();
    const gemm::Shape shape = shape_of(variant, 2, 3);
    const TraceData data = record(variant, shape, 2, 1, 2);
    const auto all = harness::timelines(data, variant.tile.k);
    const auto trace = nlohmann::json::parse(
        harness::trace_json(data, all, harness::about_trace(*step, variant, shape, 2, data)));
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
}

TEST_CASE("timeline: the committed traces of the model are what the model gives") {
  if (skip_without_emulator()) return;
  constexpr int kCommittedCtas = 4;  // CTAS of tools/figures/draw_trace.py
  const auto folder = std::filesystem::path(GEMM_SOURCE_DIR) / "docs/figures/traces";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path().filename().string() << ": run tools/figures/draw_trace.py --record");
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const auto about = nlohmann::json::parse(text.str())["otherData"];
    if (about["backend"] != "model") continue;
    const gemm::Step& step = step_of(about["step"]);
    const gemm::Variant& variant = harness::find_variant(step, about["variant"].get<std::string>());
    const gemm::Shape shape = harness::parse_shape(about["shape"]);
    const int sms = about["sms"];
    const TraceData data = record(variant, shape, sms, 1, kCommittedCtas);
    const std::string now = harness::trace_json(data, harness::timelines(data, variant.tile.k),
                                                harness::about_trace(step, variant, shape, sms, data));
    CHECK((now == text.str()));
  }
}

TEST_CASE("timeline: a launch without operations has none") {
  if (skip_without_emulator()) return;
  const TraceData data = harness::record_launch([] {}, 4);
  CHECK(data.roles.empty());
  CHECK(harness::timelines(data, 64).empty());
}

}  // namespace
