// Step 31: every node on every kind of edge, with other factors, under many schedules.
#include <string>
#include <vector>

#include "catch.h"
#include "harness/base/problem.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/workload/workload.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using gemm::Activation;
using gemm::Bias;

void verify_epilogue(const gemm::Variant& variant, const gemm::Shape& shape, float alpha,
                     harness::Pattern pattern, int launches = 1) {
  harness::ProblemForm form = harness::form_of(step_under_test(), variant);
  if (variant.epilogues.alpha) form.epilogue.alpha = alpha;
  verify_form(variant, shape, form, pattern, 3, launches);
}

}  // namespace

TEST_CASE("every visitor is right at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // Odd rows, M < N, one tile, one tile and a bit, a single k-tile, fewer tiles than SMs.
  for (const gemm::Shape& shape : {gemm::Shape{1, 8, 8}, {127, 192, 72}, {129, 200, 328}, {132, 392, 72}}) {
    for (const gemm::Variant& variant : step_under_test().variants) {
      for (const harness::Pattern pattern : {harness::Pattern::kExact, harness::Pattern::kNormal})
        verify_epilogue(variant, shape, 0.5F, pattern);
    }
  }
}

TEST_CASE("approximate activations stay inside their bounds, where they bend and where they are flat",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (is_exact(harness::Pattern::kExact,
                 {.activation = gemm::with_fixed(variant.epilogues, {}).activation}))
      continue;
    for (const float alpha : {1.0F, -1.0F, 0.0625F, 8.0F, 0.3F})
      verify_epilogue(variant, {140, 264, 200}, alpha, harness::Pattern::kNormal);
  }
}

TEST_CASE("what a visitor computes does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    under_schedules(12, 2, [&](std::uint64_t) {
      verify_epilogue(variant, {388, 392, 72}, 1, harness::Pattern::kNormal);
    });
  }
}

TEST_CASE("a second launch of one plan sees the bias of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants)
    verify_epilogue(variant, {388, 200, 136}, 1, harness::Pattern::kExact, 3);
}

TEST_CASE(
    "a bias that begins at an odd element is refused for columns, and read for rows, and a bulk copy wants "
    "more",
    "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  for (const char* name : {"column_bias", "row_bias", "bias_by_bulk_copy"}) {
    const gemm::Variant& variant = harness::find_variant(step, name);
    harness::Workload workload({40, 40, 40}, harness::Pattern::kExact, 1, harness::form_of(step, variant));
    gemm::Problem problem = workload.problem();
    ++problem.bias;
    if (std::string(name) == "bias_by_bulk_copy") {
      ++problem.bias;  // a multiple of 4, which the other variants read
      CHECK_THROWS_WITH(
          gemm::prepare(variant, problem),
          "the bias begins 4 bytes after a multiple of 16: for a bulk copy, its address must be one");
    } else if (problem.epilogue.bias == Bias::kRow) {
      CHECK_NOTHROW(gemm::prepare(variant, problem));
    } else {
      CHECK_THROWS_WITH(gemm::prepare(variant, problem),
                        "the bias begins 2 bytes after a multiple of 4: its address must be a multiple of 4");
    }
  }
}

TEST_CASE("with the plain epilogue only the variants without a node compute", "[host]") {
  for (const gemm::Variant& variant : step_under_test().variants) {
    const bool nothing = variant.name == "identity" || variant.name == "plain";
    CHECK(harness::computes(variant, {}) == nothing);
    CHECK(harness::computes(variant, {.bias = Bias::kColumn, .activation = Activation::kGelu}) ==
          (variant.name == "bias_gelu" || variant.name == "bias_gelu_cooperative"));
  }
}
