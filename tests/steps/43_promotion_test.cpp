// Step 43: sums in two levels are exact where an accumulator of 14 bits is not, and their error does not grow
// with K; the warpgroups keep their order.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/types/fp8_sum.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"
#include "schedules.h"
#include "timelines.h"
#include "verify_shape.h"

namespace {

using harness::Pattern;

/// D of a variant, held to what a kernel with another promotion promises.
harness::CheckResult held_to(const gemm::Variant& variant, int promotion, const gemm::Shape& shape,
                             Pattern pattern) {
  gemm::Types types = variant.types;
  types.promotion = promotion;
  harness::TypedWorkload workload(shape, types, pattern, 1);
  gemm::prepare(variant, workload.problem())(nullptr);
  return workload.check(variant.tile);
}

}  // namespace

TEST_CASE("both levels are exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // Odd rows, M < N, one tile, one tile and a bit, a single k-tile, a slab that is only begun.
  for (const gemm::Shape& shape : {gemm::Shape{1, 16, 16}, {127, 256, 80}, {129, 272, 144}, {40, 528, 272}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, shape, Pattern::kExact, 1);
  }
}

TEST_CASE("random numbers stay inside the bound, and identity and arange are exact", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange})
      verify(step_under_test(), variant, {72, 144, 592}, pattern, 2);
  }
}

TEST_CASE("D does not depend on the schedule in any phase", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"128x256", "128x256_in_phase", "128x256_unordered", "128x128_every256"}) {
    INFO(name);
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant_named(name), {132, 272, 336}, Pattern::kExact, seed);
    });
  }
}

TEST_CASE("an accumulator that is not promoted fails what a promoted one passes bit for bit", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Shape shape{64, 64, 2048};
  CHECK(held_to(variant_named("128x128_every128"), 128, shape, Pattern::kExact).ok);
  const harness::CheckResult wrong = held_to(variant_named("128x128_never"), 128, shape, Pattern::kExact);
  CHECK(wrong.failed == std::vector<std::string>{harness::kValue});
  INFO(wrong.report);
  CHECK(wrong.report.find("14-bit accumulator that is never promoted") != std::string::npos);
  // And passes what it promises itself.
  CHECK(held_to(variant_named("128x128_never"), 0, shape, Pattern::kExact).ok);
  // One that is promoted half as often does not pass either.
  CHECK(held_to(variant_named("128x128_every256"), 128, shape, Pattern::kExact).failed == wrong.failed);
  CHECK(held_to(variant_named("128x128_every256"), 256, shape, Pattern::kExact).ok);
}

TEST_CASE("a dot product of ones ends at 16384 in an accumulator of 14 bits") {
  const std::vector<std::uint8_t> ones(32768, gemm::to_e4m3(1).bits);
  const gemm::Types types{gemm::Type::kE4m3, gemm::Type::kE4m3, gemm::Type::kFp32};
  for (const auto& [k, sum] :
       {std::pair{32, 32}, {16352, 16352}, {16384, 16384}, {16416, 16384}, {32768, 16384}})
    CHECK(harness::fp8_chain(types, ones.data(), ones.data(), k) == static_cast<float>(sum));
  // e5m2: the same model, other exponents; small products beside a large one are cut off.
  const gemm::Types e5m2{gemm::Type::kE5m2, gemm::Type::kE5m2, gemm::Type::kFp32};
  const auto bits = [](float value) { return gemm::to_e5m2(value).bits; };
  const std::vector<std::uint8_t> mixed{bits(128), bits(-0.25f), bits(0x1p-16f)};
  CHECK(harness::fp8_chain(e5m2, mixed.data(), mixed.data(), 3) == 16384);
  CHECK(harness::fp8_chain(e5m2, mixed.data() + 1, mixed.data() + 1, 2) == 0.0625f);
  CHECK(harness::fp8_chain(e5m2, mixed.data() + 2, mixed.data() + 2, 1) == 0x1p-32f);
}

TEST_CASE("without promotion the tensor cores add as their model says, bit for bit", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = variant_named("128x128_never");
  constexpr gemm::Shape kShape{64, 48, 1040};
  harness::TypedWorkload workload(kShape, variant.types, Pattern::kNormal, 7);
  gemm::prepare(variant, workload.problem())(nullptr);
  harness::synchronize();
  const harness::TypedImage image = workload.image();
  int different = 0;
  for (int row = 0; row < kShape.m; ++row) {
    for (int column = 0; column < kShape.n; ++column) {
      const float sum = harness::fp8_chain(variant.types, &image.a[static_cast<std::size_t>(row * kShape.k)],
                                           &image.b[static_cast<std::size_t>(column * kShape.k)], kShape.k);
      const std::int64_t index = gemm::offset(row, column, kShape.n);
      const float got =
          harness::decode(gemm::Type::kFp32, harness::bits_at(gemm::Type::kFp32, image.d.data(), index));
      different += got != sum * workload.rules().scale();
    }
  }
  INFO(different << " of " << kShape.m * kShape.n << " differ");
  CHECK(different == 0);
}

TEST_CASE("with promotion the error does not grow with K, without it leaves the bound of binary32 sums",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  const auto error = [](const char* name, int k) {
    const gemm::Variant& variant = variant_named(name);
    const harness::CheckResult result =
        held_to(variant, variant.types.promotion, {64, 64, k}, Pattern::kNormal);
    INFO(name << " K " << k << " " << result.summary << result.report);
    REQUIRE(result.ok);
    REQUIRE(result.error);
    CHECK(result.error->largest < result.error->bound);
    return *result.error;
  };
  const harness::SumError block = error("128x128_every128", 256);
  const harness::SumError promoted = error("128x128_every128", 4096);
  CHECK(promoted.rms < 1.25 * block.rms);
  CHECK(promoted.largest < harness::accumulation_error(4096, 1));
  CHECK(error("128x128_every128", 16384).largest < harness::accumulation_error(16384, 1));
  const harness::SumError never = error("128x128_never", 4096);
  CHECK(never.largest > harness::accumulation_error(4096, 1));
  CHECK(never.rms > 5 * promoted.rms);
  const harness::SumError half = error("128x128_every512", 4096);
  CHECK(half.rms > 1.5 * promoted.rms);
  CHECK(half.rms < 0.6 * never.rms);
}

TEST_CASE("a plan sees the inputs of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  verify_relaunched(step_under_test().variants.front(), {140, 288, 144});
}

TEST_CASE("out of phase the warpgroups alternate, and the tensor cores do not wait for a promotion",
          "[emulator]") {
  if (skip_without_emulator()) return;
  const auto multiplications = [](const char* name) {
    const gemm::Variant& variant = variant_named(name);
    return engines(record(variant, {128, 256, 128 * 12}, 1), harness::EngineSpan::Kind::kTensorCores, 0);
  };
  /// Clocks between the first multiplication behind the filled ring and the last in which none ran.
  const auto idle = [](const std::vector<harness::EngineSpan>& spans) {
    double clocks = 0;
    for (std::size_t i = spans.size() / 2; i < spans.size(); ++i)
      clocks += std::max(0.0, spans[i].begin - spans[i - 1].end);
    return clocks;
  };
  const auto out = multiplications("128x256");
  REQUIRE(out.size() == 2 * 2 * 12);  // warpgroups, parts, k-tiles
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i].warpgroup == static_cast<int>(i % 2));
  const auto in = multiplications("128x256_in_phase");
  INFO("idle " << idle(out) << " out of phase, " << idle(in) << " in phase");
  CHECK(idle(in) > 64 * 12);  // each part of half of the k-tiles waits for 64 additions of both
  CHECK(idle(out) < idle(in) / 4);
}

TEST_CASE("a kernel's promotion is its own affair: the problem's is not looked at") {
  gemm::Problem problem;
  problem.types = {gemm::Type::kE4m3, gemm::Type::kE4m3, gemm::Type::kFp32};
  CHECK_THROWS_WITH(gemm::prepare(variant_named("128x256"), problem),
                    "the variant 128x256 multiplies e4m3 by e4m3 to bf16, but the problem is e4m3 by e4m3 to "
                    "fp32: step 42 has a variant for each type");
  problem.types.d = gemm::Type::kBf16;
  CHECK(problem.types.same_elements(variant_named("128x256").types));
  CHECK(problem.types != variant_named("128x256").types);
}
