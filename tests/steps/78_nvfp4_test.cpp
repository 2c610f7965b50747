// Step 78: elements of 4 bits with two levels of scales, at every kind of edge and under many schedules; a
// NaN in a scale stays where it belongs; what cannot be loaded is refused.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.h"
#include "gemm/problem/check_problem.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/types/quantised.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"
#include "nan_scale.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using harness::Pattern;

}  // namespace

TEST_CASE("sums of 4-bit elements are exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // One row, half a piece of scales along K, one to four pieces in the last k-tile, N beyond 128 rows of B.
  for (const gemm::Shape& shape : {gemm::Shape{1, 8, 32}, {127, 200, 96}, {129, 392, 352}, {40, 264, 992}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, gemm::fitting_shape(variant, shape), Pattern::kExact, 1);
  }
}

TEST_CASE("every number of e2m1 and scales with a fraction stay inside the bound", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const Pattern pattern :
       {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange, Pattern::kSpecial})
    verify(step_under_test(), variant_named("128x256"), {40, 80, 544}, pattern, 2);
}

TEST_CASE("a quantised D has the right scales and elements in every pattern", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const Pattern pattern :
       {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange, Pattern::kSpecial})
    verify(step_under_test(), variant_named("128x128_quantised"), {140, 160, 544}, pattern, 2);
}

TEST_CASE("a quantised D is A of the next product", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // 10 blocks in a row of D: of the last piece along the next K, half scales nothing.
  const gemm::Variant& first = variant_named("128x128_quantised");
  const gemm::Variant& second = variant_named("128x128");
  harness::TypedWorkload made({140, 160, 352}, first.types, Pattern::kNormal, 1);
  gemm::prepare(first, made.problem())(nullptr);
  REQUIRE(made.check(first.tile).ok);
  const std::vector<std::uint8_t> d = made.image().d;

  harness::TypedWorkload next({140, 72, 160}, second.types, Pattern::kNormal, 2);
  gemm::Problem problem = next.problem();
  problem.a = made.problem().d;
  problem.mx_scales_a = made.problem().mx_scales_d;
  gemm::prepare(second, problem)(nullptr);
  harness::synchronize();
  const std::vector<std::uint8_t> result = next.image().d;
  const harness::TypedRules& rules = next.rules();
  int wrong = 0;
  for (int row = 0; row < 140; ++row) {
    for (int column = 0; column < 72; ++column) {
      double sum = 0;
      double squares = 0;
      for (int k = 0; k < 160; ++k) {
        const std::uint8_t scale = d[harness::quantised_scale_byte({140, 160, 352}, row, k / 16)];
        const float a =
            harness::decode(gemm::Type::kE2m1, harness::bits_at(gemm::Type::kE2m1, d.data(), row * 160 + k)) *
            gemm::to_float(gemm::ue4m3{scale});
        const float b =
            harness::decode(gemm::Type::kE2m1, harness::typed_bits(rules.b, gemm::Type::kE2m1, column, k)) *
            rules.block_scale(harness::Operand::kB, column, k);
        sum += static_cast<double>(a) * static_cast<double>(b);
        squares += static_cast<double>(a * b) * static_cast<double>(a * b);
      }
      const auto scale = static_cast<double>(rules.scale());
      const auto got = static_cast<double>(harness::decode(
          second.types.d, harness::bits_at(second.types.d, result.data(), row * 72 + column)));
      const double allowed = scale * harness::typed_error(second.types, 160, std::sqrt(squares)) +
                             0x1p-8 * std::abs(scale * sum);
      wrong += !(std::abs(got - scale * sum) <= allowed);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("D does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const char* name : {"128x128", "128x256", "128x128_quantised"}) {
    INFO(name);
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant_named(name), {132, 416, 416}, Pattern::kExact, seed);
    });
  }
}

TEST_CASE("a plan sees the inputs and the scales of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  verify_relaunched(variant_named("128x128_quantised"), {140, 288, 352});
  verify_relaunched(variant_named("128x128"), {140, 288, 352});
}

TEST_CASE("a NaN in a scale reaches its row or column and nothing else", "[device]") {
  if (skip_where_step_cannot_run()) return;
  CHECK(misplaced_nans(variant_named("128x256"), {70, 200, 352}, 64, 0x7f, {9, 21}, {195, 6}) == 0);
}

TEST_CASE("scales that are missing or of another kind are refused in a sentence") {
  const gemm::Variant& variant = step_under_test().variants.front();
  const auto* const somewhere = reinterpret_cast<const std::uint8_t*>(std::uintptr_t{1} << 20);
  const auto refusal_of = [&](const std::uint8_t* scales_b, const std::uint8_t* scales,
                              gemm::Scaling scaling) {
    gemm::Problem problem;
    problem.shape = {130, 256, 416};
    problem.types = variant.types;
    problem.types.scaling = scaling;
    problem.mx_scales_a = somewhere;
    problem.mx_scales_b = scales_b;
    problem.scales = reinterpret_cast<const float*>(scales);
    try {
      gemm::check_types(variant, problem.types);
      gemm::check_scales(problem);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal_of(somewhere, somewhere, gemm::Scaling::kNv) == "accepted");
  CHECK(refusal_of(somewhere + 8, somewhere, gemm::Scaling::kNv) ==
        "the scales of B begin 8 bytes after a multiple of 16: their address must be a multiple of 16");
  CHECK(refusal_of(somewhere, nullptr, gemm::Scaling::kNv) ==
        "A, B and D have a scale each, but the address of the three scales is null");
  CHECK(
      refusal_of(somewhere, somewhere, gemm::Scaling::kTensor) ==
      "the variant 128x128 takes a ue4m3 scale for every 16 elements of K, but the problem has none: step 42 "
      "takes one scale for each matrix");
}
