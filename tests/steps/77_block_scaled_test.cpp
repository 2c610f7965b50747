// Step 77: every row of A and B is scaled as its scales say, at every kind of edge and under many schedules;
// a NaN stays where it belongs; scales that cannot be loaded are refused.
#include <cstdint>
#include <string>

#include "catch.h"
#include "gemm/problem/check_problem.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/workload.h"
#include "nan_scale.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using harness::Pattern;

}  // namespace

TEST_CASE("scaled sums are exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // One row, a block of K that is only begun, tiles that begin in the middle of a piece of scales, and end
  // there.
  for (const gemm::Shape& shape : {gemm::Shape{1, 8, 16}, {127, 200, 80}, {129, 392, 144}, {40, 584, 272}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, shape, Pattern::kExact, 1);
  }
}

TEST_CASE("scales from 2^-8 to 2^8 stay inside the bound", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange})
    verify(step_under_test(), variant_named("128x192"), {40, 80, 272}, pattern, 2);
}

TEST_CASE("D does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"128x128", "128x192"}) {
    INFO(name);
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant_named(name), {132, 400, 208}, Pattern::kExact, seed);
    });
  }
}

TEST_CASE("a plan sees the inputs and the scales of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  verify_relaunched(variant_named("128x128"), {140, 288, 144});
}

TEST_CASE("a NaN in a scale reaches its row or column and nothing else", "[device]") {
  if (skip_where_step_cannot_run()) return;
  CHECK(misplaced_nans(variant_named("128x192"), {70, 200, 272}, 128, 0xff, {9, 6}, {195, 0}) == 0);
}

TEST_CASE("scales that lie otherwise are refused in a sentence") {
  const gemm::Variant& variant = step_under_test().variants.front();
  const auto* const somewhere = reinterpret_cast<const std::uint8_t*>(std::uintptr_t{1} << 20);
  const auto refusal_of = [&](const std::uint8_t* scales_b, gemm::Scaling scaling) {
    gemm::Problem problem;
    problem.shape = {130, 256, 400};
    problem.types = variant.types;
    problem.types.scaling = scaling;
    problem.mx_scales_a = somewhere;
    problem.mx_scales_b = scales_b;
    try {
      gemm::check_types(variant, problem.types);
      gemm::check_scales(problem);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal_of(somewhere, gemm::Scaling::kMx) == "accepted");
  CHECK(refusal_of(nullptr, gemm::Scaling::kMx) == "the scales of B have the address null");
  CHECK(refusal_of(somewhere + 8, gemm::Scaling::kMx) ==
        "the scales of B begin 8 bytes after a multiple of 16: their address must be a multiple of 16");
  CHECK(
      refusal_of(somewhere, gemm::Scaling::kTensor) ==
      "the variant 128x128 takes a ue8m0 scale for every 32 elements of K, but the problem has none: step 42 "
      "takes one scale for each matrix");
}
