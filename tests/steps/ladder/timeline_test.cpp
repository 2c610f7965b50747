// Timelines of several steps compared.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "step_table.h"
#include "steps/timelines.h"

namespace {

using harness::EngineSpan;
using harness::TraceData;
using harness::TraceSpan;
using harness::TraceTimeline;

const gemm::Step& step_of(const std::string& name) {
  return harness::find_step(gemm::all_steps(), name);
}

double overlap(const std::vector<EngineSpan>& some, const std::vector<EngineSpan>& others) {
  double clocks = 0;
  for (const EngineSpan& a : some) {
    for (const EngineSpan& b : others)
      clocks += std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
  }
  return clocks;
}

}  // namespace

TEST_CASE("timeline: a wait for a k-tile ends behind the copy that brings it", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"09", "10", "11", "12", "13", "14", "15", "18"}) {
    INFO(name);
    const gemm::Variant& variant = step_of(name).variants.front();
    const TraceData data = record(variant, tiles_of(variant, 1, 9), 1);
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

TEST_CASE("timeline: a stage is filled again only when its readers have left it", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"11", "12", "13", "14", "15", "18"}) {
    INFO(name);
    const gemm::Variant& variant = step_of(name).variants.front();
    const TraceData data = record(variant, tiles_of(variant, 1, 9), 1);
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

TEST_CASE("timeline: with one stage a copy and a multiplication never overlap, with two they do",
          "[emulator]") {
  if (skip_without_emulator()) return;
  const auto overlap_of = [](const char* name) {
    const gemm::Variant& variant = step_of(name).variants.front();
    const TraceData data = record(variant, {variant.tile.m, variant.tile.n, 8 * variant.tile.k}, 1);
    return overlap(engines(data, EngineSpan::Kind::kCopy), engines(data, EngineSpan::Kind::kTensorCores));
  };
  CHECK(overlap_of("09") == 0);
  CHECK(overlap_of("10") > 1000);
}

TEST_CASE("timeline: ping-pong multiplies while the other consumer stores, cooperative consumers less",
          "[emulator]") {
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

TEST_CASE("timeline: Stream-K shares what whole tiles leave to one SM", "[emulator]") {
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

TEST_CASE("timeline: the seed of the schedule changes nothing", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"07", "11", "17", "18"}) {
    INFO(name);
    const gemm::Variant& variant = step_of(name).variants.front();
    std::set<std::string> texts;
    for (const std::uint64_t seed : {1, 2, 77}) {
      const TraceData data = record(variant, tiles_of(variant, 2, 5), 2, seed);
      texts.insert(harness::trace_json(data, harness::timelines(data, variant.tile.k), {}));
    }
    CHECK(texts.size() == 1);
  }
}

TEST_CASE("timeline: three CTAs on an SM make a three-stage pipeline of one-stage ones", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = step_of("09").variants.front();
  const gemm::Shape shape{6 * variant.tile.m, variant.tile.n, 512};
  const auto end_of = [&](int ctas_per_sm) {
    const TraceData data = record(variant, shape, 1, 1, kAllCtas, ctas_per_sm);
    CHECK(data.ctas_per_sm == ctas_per_sm);
    return engines(data, EngineSpan::Kind::kTensorCores).back().end;
  };
  CHECK(end_of(3) < 0.5 * end_of(1));
}

TEST_CASE("timeline: more CTAs than an SM has room for are refused", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = step_of("09").variants.front();
  CHECK_THROWS_WITH(record(variant, tiles_of(variant, 1, 1), 1, 1, kAllCtas, 7),
                    "7 CTAs do not fit on an SM at once: its threads and its shared memory suffice for 6");
}

TEST_CASE("timeline: a launch without operations has none", "[emulator]") {
  if (skip_without_emulator()) return;
  const TraceData data = harness::record_launch([] {}, 4);
  CHECK(data.roles.empty());
  CHECK(harness::timelines(data, 64).empty());
}
