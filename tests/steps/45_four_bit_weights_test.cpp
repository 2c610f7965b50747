// Step 45: weights of 4 and 8 bits, at every kind of edge and under many schedules; every bit pattern is
// widened exactly; what cannot be packed or scaled is refused.
#include <string>

#include "catch.h"
#include "gemm/problem/weights.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/types/weights.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using gemm::Type;
using harness::Pattern;

}  // namespace

TEST_CASE("weights are exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // One row, a tile that is half outside, odd rows, more rows than a tile; one group, and several.
  for (const gemm::Shape& shape : {gemm::Shape{1, 64, 128}, {17, 192, 256}, {70, 128, 384}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, shape, Pattern::kExact, 1);
  }
}

TEST_CASE("random weights stay inside the bound, and every weight reaches its lane", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange})
      verify(step_under_test(), variant, {18, 128, 256}, pattern, 1);
  }
}

TEST_CASE("every bit pattern of a weight is widened exactly", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const char* name : {"int4_16_cluster", "int4_128", "int4_zeros_16_cluster", "int4_zeros_fp16_cluster",
                           "int4_zeros_128", "int8_16_cluster", "int8_256", "e4m3_16_cluster", "e4m3_256"}) {
    const gemm::Variant& variant = variant_named(name);
    const Type type = variant.types.b;
    constexpr gemm::Shape kShape{128, 64, 128};  // A is the identity: D shows B
    harness::TypedWorkload workload(kShape, variant.types, Pattern::kIdentity, 1);
    harness::TypedImage image = workload.image();
    for (std::size_t i = 0; i < image.b.size(); ++i)
      image.b[i] = static_cast<std::uint8_t>(i % 256 == 0x7f || i % 256 == 0xff ? 0 : i);
    workload.restore(image);
    gemm::prepare(variant, workload.problem())(nullptr);
    harness::synchronize();
    const std::vector<float> expected = harness::scaled_weights(image, workload.rules());
    const harness::TypedImage after = workload.image();
    int wrong = 0;
    for (int k = 0; k < kShape.k; ++k) {
      for (int n = 0; n < kShape.n; ++n) {
        const float got = harness::decode(
            variant.types.d, harness::bits_at(variant.types.d, after.d.data(), gemm::offset(k, n, kShape.n)));
        wrong += got != expected[static_cast<std::size_t>(gemm::offset(n, k, kShape.k))];
      }
    }
    INFO(name << ", " << gemm::name_of(type) << ": " << wrong << " are wrong");
    CHECK(wrong == 0);
  }
}

TEST_CASE("with weights D does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name :
       {"int4_16_cluster", "int4_64_cluster", "int4_128", "int4_zeros_128", "int8_16_cluster"}) {
    INFO(name);
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant_named(name), {18, 192, 640}, Pattern::kExact, seed);
    });
  }
}

TEST_CASE("a plan of cut tiles sees the weights of now, launch after launch", "[device]") {
  if (skip_where_step_cannot_run()) return;
  verify_relaunched(variant_named("int4_16_cluster"), {20, 192, 1024});
}

TEST_CASE("what has no rounding passes a bound that rounded weights fail", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const auto held_to_sums = [](const char* name) {
    const gemm::Variant& variant = variant_named(name);
    gemm::Types types = variant.types;
    types.rounds_weights = false;
    harness::TypedWorkload workload({16, 64, 1024}, types, Pattern::kNormal, 1);
    gemm::prepare(variant, workload.problem())(nullptr);
    harness::synchronize();
    return workload.check(variant.tile);
  };
  CHECK(held_to_sums("int4_16_cluster").ok);
  CHECK(held_to_sums("int4_128").failed == std::vector<std::string>{harness::kValue});
}

TEST_CASE("weights that cannot be packed or scaled are refused in one sentence") {
  const gemm::Variant& variant = variant_named("int4_16_cluster");
  gemm::Problem problem;
  problem.types = variant.types;
  const gemm::bf16 scale{};
  problem.group_scales = &scale;
  problem.shape = {16, 128, 200};
  CHECK_THROWS_WITH(gemm::prepare(variant, problem),
                    "the weights have a scale for every 128 elements of K, but K is 200: K must be a "
                    "multiple of 128, so that the last group is whole");
  problem.shape = {16, 72, 256};
  CHECK_THROWS_WITH(gemm::prepare(variant, problem),
                    "weights are packed in blocks of 64 rows, but N is 72: N must be a multiple of 64");
  problem.shape = {16, 128, 256};
  problem.group_scales = nullptr;
  CHECK_THROWS_WITH(gemm::prepare(variant, problem),
                    "weights have a scale for each row and group, but the address of the scales is null");
  problem.types.group = 64;
  CHECK_THROWS_WITH(gemm::prepare(variant, problem),
                    "the variant int4_16_cluster takes a scale for every 128 elements of K, but the problem "
                    "has one for every 64: quantise the weights in groups of 128");
  problem.types.group = 128;
  problem.types.b = Type::kInt8;
  CHECK_THROWS_WITH(gemm::prepare(variant, problem),
                    "the variant int4_16_cluster multiplies bf16 by int4 to bf16, but the problem is bf16 by "
                    "int8 to bf16: step 45 has a variant for each type");
  CHECK_THROWS_WITH(gemm::prepare(variant, gemm::Problem{}),
                    "the variant int4_16_cluster takes weights with a scale for every 128 elements of K, but "
                    "the problem has none");
}

TEST_CASE("weights with zero points are not taken for weights without, nor the other way round") {
  gemm::Problem problem;
  problem.shape = {16, 128, 256};
  const gemm::bf16 scale{};
  problem.group_scales = &scale;
  problem.types = variant_named("int4_16_cluster").types;
  CHECK_THROWS_WITH(
      gemm::prepare(variant_named("int4_zeros_16_cluster"), problem),
      "the variant int4_zeros_16_cluster takes weights with a zero point for each scale, but the "
      "problem has none: step 45 has variants for both");
  problem.types = variant_named("int4_zeros_16_cluster").types;
  CHECK_THROWS_WITH(gemm::prepare(variant_named("int4_16_cluster"), problem),
                    "the variant int4_16_cluster takes weights without zero points, but the problem has one "
                    "for each scale: step 45 has variants for both");
  CHECK_THROWS_WITH(gemm::prepare(variant_named("int4_zeros_fp16_cluster"), problem),
                    "the variant int4_zeros_fp16_cluster multiplies fp16 by int4 to fp16, but the problem is "
                    "bf16 by int4 to bf16: step 45 has a variant for each type");
}

TEST_CASE("a zero point that is NaN makes NaN of its row and group, in every variant that has zero points",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const char* name : {"int4_zeros_16_cluster", "int4_zeros_fp16_cluster", "int4_zeros_128"})
    verify(step_under_test(), variant_named(name), {18, 128, 256}, Pattern::kSpecial, 1);
}
