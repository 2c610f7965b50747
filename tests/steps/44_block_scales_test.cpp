// Step 44: each block is scaled as its scales say, at every kind of edge and under many schedules; what is
// not a number stays where it belongs; scales that TMA cannot load are refused.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "gemm/problem/check_problem.h"
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

/// D of a problem whose scales are others than the workload's, decoded.
std::vector<float> run(const gemm::Variant& variant, harness::TypedWorkload& workload,
                       const gemm::Problem& problem) {
  workload.poison();
  gemm::prepare(variant, problem)(nullptr);
  harness::synchronize();
  const harness::TypedImage image = workload.image();
  std::vector<float> d;
  for (std::int64_t i = 0; i < gemm::offset(problem.shape.m, 0, problem.shape.n); ++i)
    d.push_back(harness::decode(variant.types.d, harness::bits_at(variant.types.d, image.d.data(), i)));
  return d;
}

}  // namespace

TEST_CASE("scaled sums are exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // Odd rows, M < N, one tile, one tile and a bit, a single block of K, a block that is only begun.
  for (const gemm::Shape& shape : {gemm::Shape{1, 16, 16}, {127, 256, 80}, {129, 272, 144}, {40, 528, 272}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, shape, Pattern::kExact, 1);
  }
}

TEST_CASE("a tile may begin anywhere in a block of B, and end anywhere in the next", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // 56 columns begin at 16 places of a block, 192 at two; the last tile is whole, or hangs over D.
  for (const gemm::Shape& shape : {gemm::Shape{16, 896, 272}, {72, 912, 144}})
    verify(step_under_test(), variant_named("64x56"), shape, Pattern::kExact, 2);
  for (const gemm::Shape& shape : {gemm::Shape{16, 384, 272}, {130, 592, 144}})
    verify(step_under_test(), variant_named("128x192"), shape, Pattern::kExact, 2);
}

TEST_CASE("lanes are filled again behind 32 blocks of K", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const int k : {4096, 4112, 8336})
    verify(step_under_test(), variant_named("64x64"), {16, 32, k}, Pattern::kExact, 2);
}

TEST_CASE("random scales and numbers stay inside the bound, and identity and arange are exact", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange})
      verify(step_under_test(), variant, {40, 80, 272}, pattern, 2);
  }
}

TEST_CASE("D does not depend on the schedule, wherever B's scales come from", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"128x256", "128x128_b_in_ring", "64x56"}) {
    INFO(name);
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant_named(name), {132, 80, 208}, Pattern::kExact, seed);
    });
  }
}

TEST_CASE("the error of scaled sums does not grow with K", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = variant_named("128x128_fp32");
  const auto error = [&](int k) {
    harness::TypedWorkload workload({64, 64, k}, variant.types, Pattern::kNormal, 1);
    gemm::prepare(variant, workload.problem())(nullptr);
    const harness::CheckResult result = workload.check(variant.tile);
    INFO("K " << k << " " << result.summary << result.report);
    REQUIRE(result.ok);
    REQUIRE(result.error);
    return *result.error;
  };
  const harness::SumError block = error(256);
  const harness::SumError sums = error(4096);
  CHECK(sums.rms < 1.25 * block.rms);
  CHECK(sums.largest < harness::accumulation_error(4096, 1));
}

TEST_CASE("a plan sees the inputs and the scales of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const char* name : {"128x256", "128x128_b_in_ring"}) {
    verify_relaunched(variant_named(name), {140, 288, 144});
  }
}

TEST_CASE("a NaN in a scale reaches its block and nothing else", "[device]") {
  if (skip_where_step_cannot_run()) return;
  constexpr gemm::Shape kShape{70, 272, 272};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"128x256", "128x128_b_in_ring", "64x64"}) {
    const gemm::Variant& variant = variant_named(name);
    harness::TypedWorkload workload(kShape, variant.types, Pattern::kExact, 1);
    const gemm::Problem problem = workload.problem();
    const auto with_nan = [&](const float* scale) {
      float right = 0;
      harness::copy_to_host(&right, scale, sizeof right);
      harness::copy_to_device(const_cast<float*>(scale), &kNan, sizeof kNan);
      const std::vector<float> d = run(variant, workload, problem);
      harness::copy_to_device(const_cast<float*>(scale), &right, sizeof right);
      return d;
    };
    const std::vector<float> of_row = with_nan(problem.scales_a + problem.scales_a_pitch + 9);
    const std::vector<float> of_columns = with_nan(problem.scales_b + problem.scales_b_pitch + 2);
    int wrong = 0;
    for (int row = 0; row < kShape.m; ++row) {
      for (int column = 0; column < kShape.n; ++column) {
        const auto index = static_cast<std::size_t>(gemm::offset(row, column, kShape.n));
        wrong += std::isnan(of_row[index]) != (row == 9);
        wrong += std::isnan(of_columns[index]) != (column / 128 == 1);
      }
    }
    INFO(name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("scales that lie otherwise are refused in a sentence") {
  const gemm::Variant& variant = step_under_test().variants.front();
  const auto* const somewhere = reinterpret_cast<const float*>(std::uintptr_t{1} << 20);
  gemm::Problem good;
  good.shape = {130, 256, 400};
  good.types = variant.types;
  good.scales_a = good.scales_b = somewhere;
  good.scales_a_pitch = 132;
  good.scales_b_pitch = 4;
  const auto refusal = [&](auto change) {
    gemm::Problem problem = good;
    change(problem);
    try {
      gemm::check_types(variant, problem.types);
      gemm::check_scales(problem);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal([](gemm::Problem&) {}) == "accepted");
  CHECK(refusal([](gemm::Problem& problem) { problem.scales_a = nullptr; }) ==
        "the scales of A have the address null");
  CHECK(refusal([](gemm::Problem& problem) { problem.scales_b += 1; }) ==
        "the scales of B begin 4 bytes after a multiple of 16: their address must be a multiple of 16");
  CHECK(refusal([](gemm::Problem& problem) { problem.scales_a_pitch = 128; }) ==
        "a row of the scales of A begins 128 floats after the one before, and has 130: the pitch must be at "
        "least that");
  CHECK(refusal([](gemm::Problem& problem) { problem.scales_b_pitch = 5; }) ==
        "a row of the scales of B begins 5 floats after the one before: that must be a multiple of 4");
  CHECK(
      refusal([](gemm::Problem& problem) { problem.types.scaling = gemm::Scaling::kTensor; }) ==
      "the variant 128x256 takes scales of blocks, and the problem has one for each matrix: steps 42 and 43 "
      "take those");
}

TEST_CASE("with scales the warpgroups still alternate, and the tensor cores do not wait for a promotion",
          "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = variant_named("128x256");
  const auto spans =
      engines(record(variant, {128, 256, 128 * 12}, 1), harness::EngineSpan::Kind::kTensorCores, 0);
  REQUIRE(spans.size() == 2 * 2 * 12);  // warpgroups, parts, k-tiles
  double idle = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    CHECK(spans[i].warpgroup == static_cast<int>(i % 2));
    if (i >= spans.size() / 2) idle += std::max(0.0, spans[i].begin - spans[i - 1].end);
  }
  INFO("idle " << idle);
  CHECK(idle < 64 * 12 / 4);
}
