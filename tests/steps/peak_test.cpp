// Step 19's own shapes: a tape and whole tiles behind it, meetings, few rows, posts that are used again.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "19_peak/choice.h"
#include "catch.h"
#include "harness/backend.h"
#include "harness/emulator_control.h"
#include "harness/problem.h"
#include "launches.h"
#include "step_table.h"

namespace {

using gemm::step_19::Configuration;
using gemm::step_19::kConfigurations;
using harness::Completion;

const gemm::Step& peak() {
  return harness::find_step(gemm::all_steps(), "19");
}

const gemm::Variant& variant_of(const Configuration& configuration) {
  return harness::find_variant(peak(), configuration.name);
}

struct Schedule {
  std::uint64_t seed;
  Completion completion;
};
constexpr Schedule kSchedules[] = {
    {1, Completion::kRandom}, {2, Completion::kRandom}, {1, Completion::kEarliest}, {1, Completion::kLatest}};

void under(const Schedule& schedule, int sms) {
  harness::control_emulator(
      {.schedule_seed = schedule.seed, .completion = schedule.completion, .sm_count = sms});
}

/// The shape with the fewest k-tiles for which the configuration has a tape, and whole tiles behind it.
gemm::Shape with_tape_and_tiles(const Configuration& configuration, int sms) {
  gemm::Shape best;
  int fewest = 0;
  for (int tiles = sms + 1; tiles < 3 * sms; ++tiles) {
    for (int k_tiles = 1; k_tiles < 200; ++k_tiles) {
      if (fewest > 0 && tiles * k_tiles >= fewest) break;
      const gemm::Shape shape = shape_of(variant_of(configuration), tiles, k_tiles);
      const gemm::Decomposition all = gemm::step_19::predict(configuration, shape, sms).decomposition;
      if (all.streamed == 0 || all.streamed == tiles) continue;
      best = shape;
      fewest = tiles * k_tiles;
      break;
    }
  }
  return best;
}

}  // namespace

TEST_CASE("19_peak: a tape and whole tiles behind it, twice", "[emulator]") {
  if (skip_without_emulator()) return;
  for (std::size_t i = 0; i < kConfigurations.size(); ++i) {
    const Configuration& configuration = kConfigurations[i];
    const int sms = 3 + static_cast<int>(i) % 3;
    const gemm::Shape shape = with_tape_and_tiles(configuration, sms);
    INFO(configuration.name << " on " << sms << " SMs");
    REQUIRE(shape.m > 0);
    for (const Schedule& schedule : {kSchedules[i % 2], kSchedules[2 + i % 2]}) {
      under(schedule, sms);
      CHECK(variant_of(configuration).workspace_bytes(shape) > 8);  // the plan is that of the model
      verify_twice(variant_of(configuration), shape);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("19_peak: one tile, fewer than SMs, one more than a wave; twice", "[emulator]") {
  if (skip_without_emulator()) return;
  for (int sms = 1; sms <= 6; ++sms) {
    for (std::size_t i = 0; i < kConfigurations.size(); ++i) {
      const gemm::Variant& variant = variant_of(kConfigurations[i]);
      const int which = (sms + static_cast<int>(i)) % 3;
      under({static_cast<std::uint64_t>(sms), Completion::kRandom}, sms);
      INFO(sms << " SMs");
      if (which == 0) verify_twice(variant, shape_of(variant, 1, sms));
      if (which == 1) verify_twice(variant, shape_of(variant, std::max(1, sms - 1), 2));
      if (which == 2) verify_twice(variant, shape_of(variant, sms + 1, 1 + sms % 2));
    }
  }
  harness::control_emulator({});
}

TEST_CASE("19_peak: CTAs with different numbers of meetings, under every schedule; twice", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const Configuration& configuration : kConfigurations) {
    if (configuration.period == 0) continue;
    const gemm::Variant& variant = variant_of(configuration);
    // One CTA does two tiles, the other one: 34 and 17 k-tiles.
    const gemm::Shape shape = shape_of(variant, 3, configuration.period + 1);
    for (const Schedule& schedule : kSchedules) {
      under(schedule, 2);
      REQUIRE(variant.workspace_bytes(shape) == 2 * sizeof(std::uint32_t));
      verify_twice(variant, shape);
    }
    // A CTA that has nothing to do, and one that is alone.
    under(kSchedules[0], 2);
    verify_twice(variant, shape_of(variant, 1, 2 * configuration.period + 1));
    under(kSchedules[0], 1);
    verify_twice(variant, shape_of(variant, 1, configuration.period + 2));
  }
  harness::control_emulator({});
}

TEST_CASE("19_peak: few rows, of which the rest is zero", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"64x128", "64x64x128"}) {
    const gemm::Variant& variant = harness::find_variant(peak(), name);
    for (const int rows : {1, 7, 8, 16, 63, 64}) {
      for (const Schedule& schedule : kSchedules) {
        under(schedule, 2);
        // More k-tiles than stages: the cleared rows stay clear. Five tiles on two SMs.
        verify_twice(variant, {rows, 4 * variant.tile.n + 24, variant.tile.k * 4 + 8});
      }
    }
    under(kSchedules[0], 1);
    verify_twice(variant, {5, 40, variant.tile.k * (variant.stages + 2) - 8});
  }
  harness::control_emulator({});
}

TEST_CASE("19_peak: posts and store buffers are used again, under every schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const Configuration& configuration : kConfigurations) {
    const gemm::Variant& variant = variant_of(configuration);
    for (const Schedule& schedule : kSchedules) {
      // Three times as many tiles as posts, whole in M so that no store is clipped away.
      under(schedule, 1);
      verify_twice(variant, {11 * variant.tile.m + 3, variant.tile.n <= 64 ? 72 : 40, variant.tile.k});
    }
  }
  harness::control_emulator({});
}

TEST_CASE("19_peak: auto runs what the model chooses", "[emulator]") {
  if (skip_without_emulator()) return;
  harness::control_emulator({.sm_count = 3});
  const gemm::Variant& automatic = peak().variants.front();
  REQUIRE(automatic.name == "auto");
  REQUIRE(automatic.choose != nullptr);
  std::vector<std::string> met;
  for (const gemm::Shape& shape : {gemm::Shape{5, 136, 264}, {700, 1000, 72}, {300, 520, 1000}}) {
    const gemm::Choice choice = automatic.choose(shape);
    const auto number = static_cast<std::size_t>(gemm::step_19::choose(shape, 3));
    CHECK(choice.variant == kConfigurations[number].name);
    CHECK(choice.why == gemm::step_19::explain(shape, 3));
    const gemm::Variant& chosen = harness::find_variant(peak(), choice.variant);
    CHECK(automatic.launch_shape(shape).block.x == chosen.launch_shape(shape).block.x);
    CHECK(automatic.launch_shape(shape).shared_bytes == chosen.launch_shape(shape).shared_bytes);
    CHECK(automatic.workspace_bytes(shape) == chosen.workspace_bytes(shape));
    CHECK(automatic.busiest_tiles(shape) == chosen.busiest_tiles(shape));
    verify_twice(automatic, shape);
    met.push_back(choice.variant);
  }
  std::sort(met.begin(), met.end());
  CHECK(std::unique(met.begin(), met.end()) - met.begin() > 1);  // otherwise this shows little
  harness::control_emulator({});
}

TEST_CASE("19_peak: the configurations of the model are the variants, in this order", "[host]") {
  REQUIRE(peak().variants.size() == kConfigurations.size() + 1);
  for (std::size_t i = 0; i < kConfigurations.size(); ++i) {
    const gemm::Variant& variant = peak().variants[i + 1];
    CHECK(variant.name == kConfigurations[i].name);
    CHECK(variant.choose == nullptr);
  }
}
