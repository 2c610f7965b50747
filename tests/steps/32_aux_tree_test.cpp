// Step 32: every tree on every kind of edge, with other factors and pitches, under many schedules.
#include <cstdint>
#include <vector>

#include "catch.h"
#include "harness/base/problem.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/workload/auxiliary_workload.h"
#include "harness/verify/workload/workload.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using gemm::Auxiliary;
using harness::Pattern;

void verify_tree(const gemm::Variant& variant, const gemm::Shape& shape, float alpha, Pattern pattern,
                 int launches = 1, int more_pitch = 0) {
  harness::ProblemForm form = harness::form_of(step_under_test(), variant);
  if (variant.epilogues.alpha) form.epilogue.alpha = alpha;
  if (more_pitch > 0)
    form.aux_pitch =
        gemm::is_mask(form.epilogue.auxiliary) ? (shape.n + 127) / 128 * 128 + 128 : shape.n + more_pitch;
  INFO("pitch " << form.aux_pitch);
  verify_form(variant, shape, form, pattern, 3, launches);
}

}  // namespace

TEST_CASE("every tree is right at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // Odd rows, M < N, one tile, one tile and a bit, a single k-tile, fewer tiles than SMs, N that ends inside
  // a word of a mask and with one.
  for (const gemm::Shape& shape : {gemm::Shape{1, 16, 8}, {127, 192, 72}, {129, 208, 328}, {132, 400, 72}}) {
    for (const gemm::Variant& variant : step_under_test().variants) {
      for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal})
        verify_tree(variant, shape, 0.5F, pattern, 1, 8);
    }
  }
}

TEST_CASE("a tree's tensor may have longer rows than it needs, and what lies between stays as it is",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int more : {0, 8, 56}) verify_tree(variant, {140, 272, 200}, -0.5F, Pattern::kExact, 1, more);
  }
}

TEST_CASE("approximate trees stay inside their bounds, where they bend and where they are flat", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (is_exact(Pattern::kExact, gemm::with_fixed(variant.epilogues, {}))) continue;
    for (const float alpha : {1.0F, -1.0F, 0.0625F, 8.0F, 0.3F}) {
      for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform})
        verify_tree(variant, {140, 272, 200}, alpha, pattern);
    }
  }
}

TEST_CASE("C is added with any factor, is not read where that is 0, and D may take its place", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Shape shape{140, 272, 200};
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (!variant.epilogues.source) continue;
    for (const float beta : {0.0F, 1.0F, -0.5F, 0.3F}) {
      for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
        harness::ProblemForm form = harness::form_of(step_under_test(), variant);
        form.epilogue.alpha = beta == 1 ? 0.0F : 2.0F;
        form.epilogue.beta = beta;
        form.c_pitch = 280;
        verify_form(variant, shape, form, pattern, 3, 1);
        if (beta == 0) continue;
        form.c_pitch = 0;
        form.in_place = true;
        verify_form(variant, shape, form, pattern, 3, 1);
      }
    }
  }
}

TEST_CASE("what a tree computes does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    const bool exact = is_exact(Pattern::kExact, gemm::with_fixed(variant.epilogues, {}));
    under_schedules(10, 2, [&](std::uint64_t) {
      verify_tree(variant, {388, 400, 72}, 1, exact ? Pattern::kExact : Pattern::kNormal);
    });
  }
}

TEST_CASE("a second launch of one plan sees the tensor of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants)
    verify_tree(variant, {388, 208, 136}, 1, Pattern::kExact, 3);
}

TEST_CASE("what a mask says in the forward pass is what the backward pass reads", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  const gemm::Variant& forward = harness::find_variant(step, "relu_mask");
  const gemm::Variant& backward = harness::find_variant(step, "drelu");
  const gemm::Shape shape{129, 208, 72};
  harness::Workload made(shape, Pattern::kExact, 3, harness::form_of(step, forward));
  gemm::prepare(forward, made.problem())(nullptr);
  harness::synchronize();
  harness::Workload used(shape, Pattern::kExact, 3, harness::form_of(step, backward));
  gemm::Problem problem = used.problem();
  problem.auxiliary = made.problem().auxiliary;
  gemm::prepare(backward, problem)(nullptr);
  harness::synchronize();
  const harness::AuxImage of_forward = made.auxiliary().image();
  const harness::AuxImage of_backward = used.auxiliary().image();
  // D is positive or zero forwards, and backwards it is the sum without the bias where it was positive.
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < of_forward.d.size(); ++i) {
    const bool positive = gemm::to_float(of_forward.d[i]) > 0;
    const bool nonzero = gemm::to_float(of_backward.d[i]) != 0;
    REQUIRE((positive || !nonzero));
    kept += nonzero;
  }
  CHECK(kept > static_cast<std::int64_t>(of_forward.d.size()) / 3);
}

TEST_CASE("an auxiliary tensor that TMA refuses is refused in one sentence", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  for (const char* name : {"residual", "gelu_aux", "dgelu"}) {
    const gemm::Variant& variant = harness::find_variant(step, name);
    harness::ProblemForm form = harness::form_of(step, variant);
    form.aux_pitch = 52;
    CHECK_THROWS_WITH(
        gemm::prepare(variant, harness::Workload({40, 48, 40}, Pattern::kExact, 1, form).problem()),
        has_text("multiple of 16"));
    form.aux_pitch = 0;
    form.aux_offset = 4;
    CHECK_THROWS_WITH(
        gemm::prepare(variant, harness::Workload({40, 48, 40}, Pattern::kExact, 1, form).problem()),
        has_text("multiple of 16"));
  }
  gemm::Gemm plain;
  plain.shape = {40, 48, 40};
  CHECK_THROWS_WITH(
      gemm::prepare(harness::find_variant(step, "drelu"), plain),
      "the variant drelu has its bias and its activation compiled in, but the problem has others");
}
