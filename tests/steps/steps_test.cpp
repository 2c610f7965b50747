// Every variant of every step, on shapes that hit every edge, verified as strictly as a reader's run.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/workload.h"
#include "step_table.h"

namespace {

using gemm::Shape;

constexpr int kEdges[] = {1, 7, 31, 32, 33, 64, 96, 127, 128, 129, 200, 257};
constexpr int kEdgeCount = static_cast<int>(std::size(kEdges));

int round_up(int value, int multiple) {
  return gemm::ceil_div(value, multiple) * multiple;
}

/// The shape, moved up to the nearest one that the step computes.
Shape inside_contract(const gemm::Step& step, Shape shape) {
  return {round_up(shape.m, step.contract.m_multiple), round_up(shape.n, step.contract.n_multiple),
          round_up(shape.k, step.contract.k_multiple)};
}

/// Each edge size appears twice as M, as N and as K, in combinations spread over the cube; then the extremes.
std::vector<Shape> sampled_shapes() {
  std::vector<Shape> shapes;
  for (int i = 0; i < kEdgeCount; ++i) {
    shapes.push_back({kEdges[i], kEdges[(5 * i + 3) % kEdgeCount], kEdges[(7 * i + 1) % kEdgeCount]});
    shapes.push_back({kEdges[i], kEdges[(7 * i + 5) % kEdgeCount], kEdges[(11 * i + 4) % kEdgeCount]});
  }
  for (const Shape& extreme : {Shape{1, 1, 1}, Shape{257, 257, 1}, Shape{1500, 1, 33}, Shape{1, 1500, 33},
                               Shape{1, 1, 3000}, Shape{257, 129, 257}}) {
    shapes.push_back(extreme);
  }
  return shapes;
}

/// k-tiles in {1, S - 1, S, S + 1, 2 S + 1} of this variant, with a ragged tile in M, N and K.
std::vector<Shape> pipeline_shapes(const gemm::Step& step, const gemm::Variant& variant) {
  std::vector<Shape> shapes;
  const int stages = variant.stages;
  for (const int k_tiles : {1, stages - 1, stages, stages + 1, 2 * stages + 1}) {
    if (k_tiles < 1) continue;
    const int k = k_tiles * variant.tile.k;
    shapes.push_back(inside_contract(step, {variant.tile.m + 3, 40, k}));
    shapes.push_back(inside_contract(step, {5, variant.tile.n + 8, k - variant.tile.k / 2}));
  }
  return shapes;
}

void verify(const gemm::Step& step, const gemm::Variant& variant, const Shape& shape,
            harness::Pattern pattern, std::uint64_t seed) {
  INFO(step.name << " " << variant.name << " " << harness::to_string(shape) << " seed " << seed);
  harness::Workload workload(shape, pattern, seed);
  workload.poison();
  variant.prepare(workload.gemm())(nullptr);
  harness::synchronize();
  const harness::CheckResult result = workload.check(variant.tile);
  INFO(result.report);
  CHECK(result.ok);
}

/// From this step on a CTA works on several tiles.
constexpr const char* kFirstPersistentStep = "14";

/// D of `rows` x `columns` tiles, the last ones not whole.
Shape tiles_shape(const gemm::Step& step, const gemm::Variant& variant, int rows, int columns, int k_tiles) {
  return inside_contract(step,
                         {rows * variant.tile.m - variant.tile.m / 2 + 1,
                          columns * variant.tile.n - variant.tile.n / 2 - 8, k_tiles * variant.tile.k - 8});
}

bool runs_here(const gemm::Step& step) {
  return gemm::runs_on(step.architecture, harness::device_info().compute_capability);
}

}  // namespace

TEST_CASE("default variants are exact on sampled shapes", "[device]") {
  for (const gemm::Step* step : gemm::all_steps()) {
    if (!runs_here(*step)) continue;
    std::uint64_t seed = 1;
    for (const Shape& shape : sampled_shapes()) {
      verify(*step, step->variants.front(), inside_contract(*step, shape), harness::Pattern::kExact, seed++);
    }
  }
}

TEST_CASE("all variants are exact where edges meet", "[device]") {
  for (const gemm::Step* step : gemm::all_steps()) {
    if (!runs_here(*step)) continue;
    for (const gemm::Variant& variant : step->variants) {
      verify(*step, variant,
             inside_contract(*step, {variant.tile.m + 1, variant.tile.n + 7, 2 * variant.tile.k + 5}),
             harness::Pattern::kExact, 1);
      verify(*step, variant, inside_contract(*step, {33, 31, 1}), harness::Pattern::kExact, 2);
      verify(*step, variant, inside_contract(*step, {70, 90, 129}), harness::Pattern::kNormal, 3);
    }
  }
}

TEST_CASE("pipelines start and drain at every number of k-tiles", "[device]") {
  for (const gemm::Step* step : gemm::all_steps()) {
    if (!runs_here(*step)) continue;
    for (const gemm::Variant& variant : step->variants) {
      if (variant.stages == 1 && &variant != &step->variants.front()) continue;
      for (const Shape& shape : pipeline_shapes(*step, variant)) {
        verify(*step, variant, shape, harness::Pattern::kExact, 7);
      }
    }
  }
}

TEST_CASE("random inputs stay inside the error bound", "[device]") {
  for (const gemm::Step* step : gemm::all_steps()) {
    if (!runs_here(*step)) continue;
    for (const harness::Pattern pattern : {harness::Pattern::kNormal, harness::Pattern::kUniform}) {
      verify(*step, step->variants.front(), inside_contract(*step, {129, 72, 200}), pattern, 11);
    }
  }
}

TEST_CASE("identity and arange inputs show every element in its place", "[device]") {
  for (const gemm::Step* step : gemm::all_steps()) {
    if (!runs_here(*step)) continue;
    for (const harness::Pattern pattern : {harness::Pattern::kIdentity, harness::Pattern::kArange}) {
      verify(*step, step->variants.front(), inside_contract(*step, {96, 136, 72}), pattern, 1);
    }
  }
}

TEST_CASE("the result does not depend on the schedule", "[emulator]") {
  if (!harness::device_info().is_emulator) {
    skip_test("schedules are the emulator's");
    return;
  }
  for (const gemm::Step* step : gemm::all_steps()) {
    const gemm::Variant& variant = step->variants.front();
    const Shape shape = inside_contract(*step, {variant.tile.m / 2 + 1, 40, 2 * variant.tile.k + 9});
    for (const harness::Completion completion :
         {harness::Completion::kEarliest, harness::Completion::kLatest, harness::Completion::kRandom}) {
      const int seeds = completion == harness::Completion::kRandom ? 6 : 1;
      for (int seed = 1; seed <= seeds; ++seed) {
        harness::control_emulator(
            {.schedule_seed = static_cast<std::uint64_t>(seed), .completion = completion});
        verify(*step, variant, shape, harness::Pattern::kExact, 5);
      }
    }
  }
  harness::control_emulator({});
}

TEST_CASE("persistent steps: any number of tiles on any number of SMs", "[emulator]") {
  if (!harness::device_info().is_emulator) {
    skip_test("the number of SMs is the emulator's to choose");
    return;
  }
  for (const gemm::Step* step : gemm::all_steps()) {
    if (step->name < kFirstPersistentStep) continue;
    for (int sms = 1; sms <= 5; ++sms) {
      harness::control_emulator({.schedule_seed = static_cast<std::uint64_t>(sms), .sm_count = sms});
      const gemm::Variant& variant = step->variants.front();
      // One tile, fewer than SMs, as many, one more than a wave, an odd number in several waves.
      std::vector<int> counts{1, sms - 1, sms, sms + 1, 2 * sms + 1};
      if (sms == 5) counts.back() = 3;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        const int tiles = counts[i];
        if (tiles < 1) continue;
        const int k_tiles = 1 + static_cast<int>(i) % 3;
        const bool upright = (static_cast<int>(i) + sms) % 2 == 0;
        INFO(sms << " SMs, " << tiles << " tiles");
        verify(*step, variant, tiles_shape(*step, variant, upright ? tiles : 1, upright ? 1 : tiles, k_tiles),
               harness::Pattern::kExact, 3);
      }
    }
    // Odd in both directions: clusters hang over both edges, and every raster has a ragged end.
    for (const gemm::Variant& variant : step->variants) {
      for (const int sms : {2, 3}) {
        harness::control_emulator({.sm_count = sms});
        INFO(sms << " SMs, 3 x 3 tiles");
        verify(*step, variant, tiles_shape(*step, variant, 3, 3, sms), harness::Pattern::kExact, 4);
      }
    }
  }
  harness::control_emulator({});
}

TEST_CASE("persistent steps: a ring that wraps between tiles, under every schedule", "[emulator]") {
  if (!harness::device_info().is_emulator) {
    skip_test("schedules are the emulator's");
    return;
  }
  for (const gemm::Step* step : gemm::all_steps()) {
    if (step->name < kFirstPersistentStep) continue;
    const gemm::Variant& variant = step->variants.front();
    for (const harness::Completion completion :
         {harness::Completion::kEarliest, harness::Completion::kLatest, harness::Completion::kRandom}) {
      // A CTA, or a cluster, works on several tiles whose k-tiles are no multiple of the stages.
      const int k_tiles = variant.stages % 3 == 0 ? 4 : 3;
      harness::control_emulator({.schedule_seed = 9, .completion = completion, .sm_count = 2});
      verify(*step, variant, tiles_shape(*step, variant, 2, 5, k_tiles), harness::Pattern::kExact, 6);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("contracts name real limits", "[host]") {
  for (const gemm::Step* step : gemm::all_steps()) {
    INFO(step->name);
    REQUIRE_FALSE(step->variants.empty());
    CHECK_NOTHROW(harness::check_contract(*step, inside_contract(*step, {33, 31, 7})));
    if (step->contract.k_multiple > 1)
      CHECK_THROWS_AS(harness::check_contract(*step, {8, 8, step->contract.k_multiple + 1}), harness::Error);
    for (const gemm::Variant& variant : step->variants) {
      INFO(variant.name);
      CHECK_FALSE(variant.summary.empty());
      CHECK(variant.kernel != nullptr);
      const auto same_name = [&](const gemm::Variant& other) { return other.name == variant.name; };
      CHECK(std::count_if(step->variants.begin(), step->variants.end(), same_name) == 1);
    }
  }
}
