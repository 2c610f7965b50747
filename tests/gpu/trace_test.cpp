// Timelines recorded on a GPU; the preset gpu-trace builds what they need.
#include <map>

#include "device.h"
#include "harness/backend/backend.h"
#include "harness/backend/trace_control.h"
#include "harness/base/problem.h"
#include "harness/trace/trace_timeline.h"
#include "harness/verify/workload/workload.h"
#include "step_table.h"

namespace harness {
namespace {

constexpr int kCtas = 3;

bool skip_without_traced_build() {
  if (gpu_test::skip_without_gpu()) return true;
  if (can_trace()) return false;
  skip_test("this build does not record timelines; the preset gpu-trace does");
  return true;
}

TEST_CASE("trace: every k-tile of a recorded CTA is multiplied once, by clocks that go forward") {
  if (skip_without_traced_build()) return;
  for (const gemm::Step* step : gemm::all_steps()) {
    if (step->name < "05" || step->takes_ranks() ||
        !runs_on(step->architecture, device_info().compute_capability))
      continue;
    INFO(step->name);
    const gemm::Variant& variant = step->variants.front();
    const int k_tiles = 9;
    const gemm::Shape shape{8 * variant.tile.m, 8 * variant.tile.n, k_tiles * variant.tile.k};
    Workload workload(shape, Pattern::kExact, 1);
    workload.poison();
    const gemm::Launcher launcher = variant.prepare(workload.gemm());
    const TraceData data = record_launch([&] { launcher(nullptr); }, kCtas);
    CHECK(workload.check(variant.tile).ok);
    CHECK(!data.is_model);
    if (step->name < "14") CHECK(data.ctas == 64);  // one for each tile
    // Any clock that an H200 can have, by two launches' clocks and globaltimers.
    CHECK(data.clock_mhz > 200);
    CHECK(data.clock_mhz < 2500);
    int multiplied_tiles = 0;
    for (const TraceTimeline& timeline : timelines(data, variant.tile.k)) {
      INFO("CTA " << timeline.cta << ", " << timeline.role);
      CHECK(timeline.cta < kCtas);
      double end = 0;
      std::map<int, std::map<int, int>> times;  // tile -> k-tile -> count
      for (const TraceSpan& span : timeline.spans) {
        CHECK(span.begin >= end);
        CHECK(span.end >= span.begin);
        end = span.end;
        if (span.name == "multiply" && !span.drain) ++times[span.tile][span.k_tile];
      }
      // A launch of a few microseconds.
      CHECK(end < 10e-3 * data.clock_mhz * 1e6);
      for (const auto& [tile, counts] : times) {
        INFO("tile " << tile);
        // Step 18 may give a CTA a part of a tile.
        if (step->name.rfind("18", 0) != 0) CHECK(counts.size() == static_cast<std::size_t>(k_tiles));
        if (step->unit == gemm::MathUnit::kWgmma) {
          for (const auto& [k_tile, count] : counts) CHECK(count == 1);
        }
        ++multiplied_tiles;
      }
    }
    CHECK(multiplied_tiles >= 1);
  }
}

TEST_CASE("trace: the times of a role are those of the kernel") {
  if (skip_without_traced_build()) return;
  // A k-tile of step 11 cannot be multiplied faster than the tensor cores can.
  const gemm::Step& step = find_step(gemm::all_steps(), "11");
  const gemm::Variant& variant = step.variants.front();
  Workload workload({2048, 2048, 4096}, Pattern::kExact, 1);
  const gemm::Launcher launcher = variant.prepare(workload.gemm());
  const TraceData data = record_launch([&] { launcher(nullptr); }, 1);
  const int k_tiles = 4096 / variant.tile.k;
  const double least = 2.0 * variant.tile.m * variant.tile.n * variant.tile.k / 4096;  // clocks
  const std::vector<TraceTimeline> all = timelines(data, variant.tile.k);
  REQUIRE(!all.empty());
  for (const TraceTimeline& timeline : all) {
    const double clocks = timeline.spans.back().end - timeline.spans.front().begin;
    CHECK(clocks > 0.95 * k_tiles * least);
    CHECK(clocks < 4 * k_tiles * least);
  }
}

}  // namespace
}  // namespace harness
