// Step 46: every tile is exact at every kind of edge and under many schedules, with K whole or cut in a
// cluster; what is not a number stays where it belongs; `auto` takes the tile with the lowest limit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "../../steps/46_fitted_fp8/choice.h"
#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"
#include "schedules.h"
#include "timelines.h"
#include "verify_shape.h"

namespace {

using harness::Pattern;

/// The share of the launch's second half in which the tensor cores of CTA 0 have nothing to multiply.
double idle_share(const gemm::Variant& variant, const gemm::Shape& shape) {
  const auto spans = engines(record(variant, shape, 1), harness::EngineSpan::Kind::kTensorCores, 0);
  REQUIRE(spans.size() > 8);
  double idle = 0;
  const std::size_t half = spans.size() / 2;
  for (std::size_t i = half; i < spans.size(); ++i) idle += std::max(0.0, spans[i].begin - spans[i - 1].end);
  return idle / (spans.back().end - spans[half].begin);
}

}  // namespace

TEST_CASE("every tile is exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // Odd rows, M < N, one tile, one tile and a bit, a single block of K, a block that is only begun.
  for (const gemm::Shape& shape : {gemm::Shape{1, 16, 16}, {127, 256, 80}, {257, 272, 144}, {40, 528, 272}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, shape, Pattern::kExact, 1);
  }
}

TEST_CASE("K may be cut into parts of which some are empty, or longer than the others", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const char* name : {"128x112_k2", "64x112_k2", "64x32_k2"}) {
    for (const int k : {16, 144, 400, 128 * 5, 128 * 14})
      verify(step_under_test(), variant_named(name), {70, 232, k}, Pattern::kExact, 3);
  }
}

TEST_CASE("a tile may begin anywhere in a block of B, and end anywhere in the next", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // 112 columns begin at 8 places of a block, 192 at two; the last tile is whole, or hangs over D.
  for (const gemm::Shape& shape : {gemm::Shape{16, 896, 272}, {72, 912, 144}})
    verify(step_under_test(), variant_named("64x112_k2"), shape, Pattern::kExact, 2);
  for (const gemm::Shape& shape : {gemm::Shape{16, 384, 272}, {130, 592, 144}})
    verify(step_under_test(), variant_named("128x192"), shape, Pattern::kExact, 2);
}

TEST_CASE("lanes are filled again behind 32 blocks of K", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const int k : {4096, 4112, 8336}) {
    verify(step_under_test(), variant_named("128x256_whole"), {16, 32, k}, Pattern::kExact, 2);
    verify(step_under_test(), variant_named("64x112_k2"), {16, 32, 2 * k}, Pattern::kExact, 2);
  }
}

TEST_CASE("random scales and numbers stay inside the bound, and identity and arange are exact", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Pattern pattern :
         {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange, Pattern::kSpecial})
      verify(step_under_test(), variant, {40, 80, 528}, pattern, 2);
  }
}

TEST_CASE("D does not depend on the schedule, whichever way it leaves", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"128x256_whole", "128x192", "128x112_k2", "64x32_k2"}) {
    INFO(name);
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant_named(name), {300, 272, 592}, Pattern::kExact, seed);
    });
  }
}

TEST_CASE("a plan sees the inputs and the scales of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const char* name : {"128x256", "128x192", "64x32_k2"})
    verify_relaunched(variant_named(name), {140, 288, 144});
}

TEST_CASE("a NaN in a scale reaches its block and nothing else", "[device]") {
  if (skip_where_step_cannot_run()) return;
  constexpr gemm::Shape kShape{70, 272, 272};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"128x256", "128x256_whole", "128x192", "64x112_k2"}) {
    const gemm::Variant& variant = variant_named(name);
    harness::TypedWorkload workload(kShape, variant.types, Pattern::kExact, 1);
    const gemm::Problem problem = workload.problem();
    const auto with_nan = [&](const float* scale) {
      float right = 0;
      harness::copy_to_host(&right, scale, sizeof right);
      harness::copy_to_device(const_cast<float*>(scale), &kNan, sizeof kNan);
      workload.poison();
      gemm::prepare(variant, problem)(nullptr);
      harness::synchronize();
      harness::copy_to_device(const_cast<float*>(scale), &right, sizeof right);
      return workload.image().d;
    };
    const std::vector<std::uint8_t> of_row = with_nan(problem.scales_a + problem.scales_a_pitch + 69);
    const std::vector<std::uint8_t> of_columns = with_nan(problem.scales_b + problem.scales_b_pitch + 2);
    int wrong = 0;
    for (int row = 0; row < kShape.m; ++row) {
      for (int column = 0; column < kShape.n; ++column) {
        const auto is_nan = [&](const std::vector<std::uint8_t>& d) {
          const std::int64_t index = gemm::offset(row, column, kShape.n);
          return std::isnan(
              harness::decode(variant.types.d, harness::bits_at(variant.types.d, d.data(), index)));
        };
        wrong += is_nan(of_row) != (row == 69);
        wrong += is_nan(of_columns) != (column / 128 == 1);
      }
    }
    INFO(name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("auto runs the tile whose limit is the lowest", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& automatic = step_under_test().variants.front();
  REQUIRE(automatic.name == "auto");
  std::set<std::string> met;
  for (const int sms : {1, 4, 8}) {
    harness::control_emulator({.sm_count = sms});
    for (const gemm::Shape& shape :
         {gemm::Shape{5, 336, 528}, {64, 240, 1040}, {300, 528, 144}, {520, 128, 144}, {120, 440, 272}}) {
      const std::string name = automatic.choose(shape).variant;
      const gemm::Variant& chosen = variant_named(name);
      CHECK(automatic.launch_shape(shape).grid.count() == chosen.launch_shape(shape).grid.count());
      CHECK(automatic.launch_shape(shape).block.x == chosen.launch_shape(shape).block.x);
      verify(step_under_test(), automatic, shape, Pattern::kExact, 1);
      met.insert(name);
    }
  }
  CHECK(met.size() > 2);  // otherwise this shows little
  harness::control_emulator({.sm_count = 2});
  CHECK(automatic.choose({512, 512, 1024}).variant == "128x256");
  CHECK(automatic.choose({512, 512, 1040}).variant == "128x256_whole");
  harness::control_emulator({});
}

TEST_CASE("limits count waves and parts of K", "[host]") {
  constexpr int kSms = 132;
  const auto clocks = [](const char* name, int parts, const gemm::Shape& shape) {
    return gemm::step_46::limit_clocks(variant_named(name).tile, parts, shape, kSms);
  };
  // 288 tiles of 256 columns and 352 tiles of 192 make three waves each.
  const gemm::Shape narrow{4096, 2112, 7168};
  CHECK(clocks("128x256", 1, narrow) == 3 * 56 * 1024);
  CHECK(clocks("128x192", 1, narrow) < clocks("128x256", 1, narrow));
  CHECK(clocks("128x192", 1, {4096, 7168, 16384}) > clocks("128x256", 1, {4096, 7168, 16384}));
  // 64 tiles for few rows, of two CTAs each, are one wave, which multiplies half of K.
  CHECK(clocks("64x112_k2", 2, {64, 7168, 16384}) < 0.6 * clocks("64x112", 1, {64, 7168, 16384}));
}

TEST_CASE("between two parts the tensor cores do not wait for a promotion", "[emulator]") {
  if (skip_without_emulator()) return;
  CHECK(idle_share(variant_named("128x256"), {128, 256, 128 * 12}) < 0.01);
  for (const char* name : {"128x256_whole", "128x192"}) {
    const gemm::Variant& variant = variant_named(name);
    INFO(name);
    CHECK(idle_share(variant, {variant.tile.m, variant.tile.n, 128 * 12}) < 0.08);
  }
}
