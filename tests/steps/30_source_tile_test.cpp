// Step 30: every variant with C, without it, with other factors, and with D in its place.
#include <array>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using harness::ProblemForm;

/// C with beta = 1, 0 and others, in place, and with rows that lie farther apart than N elements.
std::vector<ProblemForm> forms(const gemm::Shape& shape) {
  return {{.epilogue = {1, 1}, .has_source = true},
          {.epilogue = {1, 0}, .has_source = true},
          {.epilogue = {-0.5F, 2}, .has_source = true},
          {.epilogue = {1, 0.3F}, .has_source = true},
          {.epilogue = {1, 1}, .has_source = true, .in_place = true},
          {.epilogue = {2, 1}, .has_source = true, .c_pitch = shape.n + 24, .c_offset = 8}};
}

}  // namespace

TEST_CASE("with every kind of C the result is exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // Odd rows, M < N, one tile, one tile and a bit, a single k-tile, fewer tiles than SMs.
  for (const gemm::Shape& shape : {gemm::Shape{1, 8, 8}, {127, 192, 72}, {129, 200, 328}, {132, 392, 72}}) {
    for (const gemm::Variant& variant : step_under_test().variants) {
      for (const ProblemForm& form : forms(shape)) {
        if (!harness::computes(variant, form.epilogue)) continue;
        verify_form(variant, shape, form, harness::Pattern::kExact, 3);
      }
    }
  }
}

TEST_CASE("random C stays inside the bound, and identity shows every element", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Shape shape{140, 264, 200};
  for (const harness::Pattern pattern :
       {harness::Pattern::kNormal, harness::Pattern::kUniform, harness::Pattern::kIdentity}) {
    for (const ProblemForm& form : forms(shape)) {
      INFO((form.in_place ? "in place" : "with C elsewhere"));
      verify_form(step_under_test().variants.front(), shape, form, pattern, 3);
    }
  }
}

TEST_CASE("D with C does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (!variant.epilogues.source) continue;
    under_schedules(12, 2, [&](std::uint64_t seed) {
      verify_form(variant, {388, 392, 72},
                  {.epilogue = {1, 1}, .has_source = true, .in_place = seed % 2 == 0},
                  harness::Pattern::kExact, 3);
    });
  }
}

TEST_CASE("a second launch of one plan sees the C of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (!variant.epilogues.source) continue;
    verify_form(variant, {388, 200, 136}, {.epilogue = {1, 1}, .has_source = true}, harness::Pattern::kExact,
                3, 3);
  }
}
