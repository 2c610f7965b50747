// Step 33: every reduction on every kind of edge, under many schedules; a fixed order gives the same bits,
// and atomics give others; refusals.
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "catch.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/workload/auxiliary_workload.h"
#include "harness/verify/workload/workload.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using gemm::Reduction;
using harness::Pattern;

void verify_reduction(const gemm::Variant& variant, const gemm::Shape& asked, float alpha, Pattern pattern,
                      int launches = 1, int top_k = 0) {
  const gemm::Shape shape = fitting_shape(variant, asked);
  harness::ProblemForm form = harness::form_of(step_under_test(), variant);
  if (variant.epilogues.alpha) form.epilogue.alpha = alpha;
  if (top_k > 0) form.epilogue.top_k = top_k;
  verify_form(variant, shape, form, pattern, 3, launches);
}

/// What a variant writes, under several schedules: how many different results.
std::size_t different_results(const char* name) {
  const gemm::Variant& variant = harness::find_variant(step_under_test(), name);
  const gemm::Shape shape{900, 208, 72};  // eight tiles in each column
  harness::Workload workload(shape, Pattern::kNormal, 3, harness::form_of(step_under_test(), variant));
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  std::set<std::vector<float>> results;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    harness::control_emulator({.schedule_seed = seed, .completion = Completion::kRandom, .sm_count = 4});
    workload.poison();
    launcher(nullptr);
    harness::synchronize();
    results.insert(workload.auxiliary().image().reduced);
  }
  harness::control_emulator({});
  return results.size();
}

}  // namespace

TEST_CASE("every reduction is right at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // Odd rows, M < N, one tile, one tile and a bit, a single k-tile, fewer tiles than SMs.
  for (const gemm::Shape& shape : {gemm::Shape{1, 8, 8}, {127, 192, 72}, {129, 200, 328}, {132, 400, 72}}) {
    for (const gemm::Variant& variant : step_under_test().variants) {
      for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal})
        verify_reduction(variant, shape, 0.5F, pattern);
    }
  }
}

TEST_CASE("a NaN of C is the largest magnitude, and NaN and infinities of C are where they were",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (!variant.epilogues.source) continue;
    harness::Workload workload(fitting_shape(variant, {129, 200, 328}), Pattern::kArange, 3,
                               harness::form_of(step_under_test(), variant));
    CHECK(std::isnan(harness::correct_image(workload.auxiliary().rules()).reduced.front()));
    verify_reduction(variant, {129, 200, 328}, 0.5F, Pattern::kArange);
  }
}

TEST_CASE("what a reduction computes does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    under_schedules(10, 2, [&](std::uint64_t) {
      verify_reduction(variant, {388, 400, 72}, 0.0625F, Pattern::kExact);
    });
  }
}

TEST_CASE("a second launch of one plan adds to nothing that the first one left", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants)
    verify_reduction(variant, {388, 208, 136}, 1, Pattern::kExact, 3);
}

TEST_CASE("in a fixed order twenty schedules give the same bits, and atomics give others", "[emulator]") {
  if (skip_without_emulator()) return;
  // Not dgelu_bgrad: every seed has its own errors of tanh.approx.
  for (const char* name : {"drelu_bgrad", "column_sums", "row_sums", "amax", "amax_e4m3"}) {
    INFO(name);
    CHECK(different_results(name) == 1);
  }
  CHECK(different_results("drelu_bgrad_atomic") > 1);
  CHECK(different_results("column_sums_atomic") > 1);
}

TEST_CASE("the softmax of any k of a row, ties included", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Variant& variant = harness::find_variant(step_under_test(), "top_k");
  for (const int top_k : {1, 2, 5, 8, 24}) {
    for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kArange})
      verify_reduction(variant, {70, 24, 40}, 0.25F, pattern, 1, top_k);
  }
}

TEST_CASE("what no tile holds and results of another length are refused in one sentence", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  const auto prepare = [&](const char* name, const gemm::Shape& shape, const auto& change) {
    const gemm::Variant& variant = harness::find_variant(step, name);
    harness::Workload workload(shape, Pattern::kExact, 1, harness::form_of(step, variant));
    gemm::Problem problem = workload.problem();
    change(problem);
    gemm::prepare(variant, problem);
  };
  const auto as_it_is = [](gemm::Problem&) {};
  CHECK_THROWS_WITH(prepare("top_k", {40, 200, 40}, as_it_is),
                    "the largest elements of a row are found only if one tile holds the row: N is 200 but "
                    "must be at most the tile's 192 columns");
  for (const int top_k : {-1, 49}) {
    CHECK_THROWS_WITH(
        prepare("top_k", {40, 48, 40}, [&](gemm::Problem& problem) { problem.epilogue.top_k = top_k; }),
        has_text("k must be from 1 to N"));
  }
  CHECK_THROWS_WITH(
      prepare("column_sums", {40, 48, 40}, [](gemm::Problem& problem) { problem.reduced_length = 40; }),
      "the result of the reduction has 40 elements: it must have 48, one for each column of D");
  CHECK_THROWS_WITH(
      prepare("row_sums", {40, 48, 40}, [](gemm::Problem& problem) { problem.reduced_length = 48; }),
      "the result of the reduction has 48 elements: it must have 40, one for each row of D");
  CHECK_THROWS_WITH(prepare("amax", {40, 48, 40}, [](gemm::Problem& problem) { problem.reduced = nullptr; }),
                    "the epilogue has a reduction, but the address of its result is null");
  CHECK_THROWS_WITH(prepare("amax", {40, 48, 40},
                            [](gemm::Problem& problem) {
                              problem.reduced = reinterpret_cast<float*>(
                                  reinterpret_cast<std::uintptr_t>(problem.reduced) + 2);
                            }),
                    has_text("its address must be a multiple of 4"));
  CHECK_THROWS_WITH(
      prepare("amax_e4m3", {40, 48, 40}, [](gemm::Problem& problem) { problem.scales = nullptr; }),
      "D is e4m3 and has a scale, but the address of the scales is null");
  CHECK_THROWS_WITH(prepare("amax_e4m3", {40, 40, 40}, as_it_is),
                    has_text("the stride of dimension 1 is 40 bytes; it must be a multiple of 16"));
  CHECK_THROWS_WITH(prepare("amax_e4m3", {40, 48, 40}, [](gemm::Problem& problem) { problem.types = {}; }),
                    has_text("multiplies bf16 by bf16 to e4m3, but the problem is bf16 by bf16 to bf16"));
}
