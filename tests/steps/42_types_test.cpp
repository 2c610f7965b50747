// Step 42: every type at every kind of edge, with exact and random inputs, and under many schedules.
#include <string>
#include <vector>

#include "catch.h"
#include "harness/base/problem.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using harness::Pattern;

}  // namespace

TEST_CASE("each type is exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // Odd rows, M < N, one tile, one tile and a bit, a single k-tile, a slab that is only begun.
  for (const gemm::Shape& shape : {gemm::Shape{1, 16, 16}, {127, 256, 80}, {129, 272, 144}, {40, 528, 272}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, shape, Pattern::kExact, 1);
  }
}

TEST_CASE("random numbers of each type stay inside its bound, and identity and arange are exact",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange})
      verify(step_under_test(), variant, {140, 272, 208}, pattern, 2);
  }
}

TEST_CASE("D of no type depends on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant, {260, 272, 336}, Pattern::kExact, seed);
    });
  }
}

TEST_CASE("a plan sees the inputs and the scales of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    verify_relaunched(variant, {140, 288, 144});
  }
}

TEST_CASE("a long K in fp8: integers stay exact, and random numbers are far from a binary32's accuracy",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    if (gemm::is_fp8(variant.types.a)) verify(step, variant, {64, 64, 4096}, Pattern::kExact, 1);
  }
}

TEST_CASE("NaN and infinity reach D, and do not spread", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (variant.types.a != gemm::Type::kE4m3 || variant.types.d == gemm::Type::kBf16) continue;
    harness::TypedWorkload workload({64, 64, 64}, variant.types, Pattern::kExact, 1);
    harness::TypedImage image = workload.image();
    image.a[5 * 64 + 7] = 0x7f;  // the NaN of e4m3, in row 5
    workload.restore(image);
    gemm::prepare(variant, workload.problem())(nullptr);
    harness::synchronize();
    const harness::TypedImage after = workload.image();
    int wrong = 0;
    for (std::int64_t i = 0; i < 64 * 64; ++i) {
      const float value =
          harness::decode(variant.types.d, harness::bits_at(variant.types.d, after.d.data(), i));
      wrong += (value != value) != (i / 64 == 5);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a problem of another type is refused in a sentence") {
  const gemm::Variant& e4m3 = harness::find_variant(step_under_test(), "e4m3");
  gemm::Problem problem;
  problem.types = harness::find_variant(step_under_test(), "int8").types;
  CHECK_THROWS_WITH(gemm::prepare(e4m3, problem),
                    "the variant e4m3 multiplies e4m3 by e4m3 to bf16, and the problem is int8 by int8 to "
                    "int8: step 42 has a variant for each type");
}
