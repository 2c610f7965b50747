// Step 30: every variant with C, without it, with other factors, and with D in its place.
#include <array>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "verify_shape.h"

namespace {

using harness::Completion;
using harness::ProblemForm;

void verify_form(const gemm::Variant& variant, const gemm::Shape& shape, const ProblemForm& form,
                 harness::Pattern pattern, int launches = 1) {
  INFO(variant.name << " " << harness::to_string(shape) << ", " << harness::to_string(form.epilogue)
                    << (form.in_place ? ", in place" : ""));
  harness::Workload workload(shape, pattern, 3, form);
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  const harness::CheckResult result = harness::launch_and_check(workload, launcher, launches, variant.tile);
  INFO(result.report);
  CHECK(result.ok);
}

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
        verify_form(variant, shape, form, harness::Pattern::kExact);
      }
    }
  }
}

TEST_CASE("random C stays inside the bound, and identity shows every element", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Shape shape{140, 264, 200};
  for (const harness::Pattern pattern :
       {harness::Pattern::kNormal, harness::Pattern::kUniform, harness::Pattern::kIdentity}) {
    for (const ProblemForm& form : forms(shape))
      verify_form(step_under_test().variants.front(), shape, form, pattern);
  }
}

TEST_CASE("D with C does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (!variant.epilogues.source) continue;
    for (const Completion completion : {Completion::kRandom, Completion::kEarliest, Completion::kLatest}) {
      for (std::uint64_t seed = 1; seed <= (completion == Completion::kRandom ? 12 : 1); ++seed) {
        INFO("seed " << seed << ", completion " << static_cast<int>(completion));
        harness::control_emulator({.schedule_seed = seed, .completion = completion, .sm_count = 2});
        verify_form(variant, {388, 392, 72},
                    {.epilogue = {1, 1}, .has_source = true, .in_place = seed % 2 == 0},
                    harness::Pattern::kExact);
      }
    }
  }
  harness::control_emulator({});
}

TEST_CASE("a second launch of one plan sees the C of now", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (!variant.epilogues.source) continue;
    verify_form(variant, {388, 200, 136}, {.epilogue = {1, 1}, .has_source = true}, harness::Pattern::kExact,
                3);
  }
}
