// What the families of tests/steps share: shapes inside the contract of a step, verified as strictly as a
// reader's run.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "catch.h"
#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"

/// The step that this program tests: there is one program for each step.
const gemm::Step& step_under_test();

/// True, and the test counts as skipped, where this GPU lacks what the step needs.
inline bool skip_where_step_cannot_run() {
  const harness::DeviceInfo device = harness::device_info();
  if (device.is_emulator || gemm::runs_on(step_under_test().architecture, device.compute_capability))
    return false;
  skip_test("this GPU lacks what the step needs");
  return true;
}

inline bool skip_without_emulator() {
  if (harness::device_info().is_emulator) return false;
  skip_test("the number of SMs and the schedule are the emulator's to choose");
  return true;
}

inline int round_up(int value, int multiple) {
  return gemm::ceil_div(value, multiple) * multiple;
}

/// The shape, moved up to the nearest one that the step computes.
inline gemm::Shape inside_contract(const gemm::Step& step, gemm::Shape shape) {
  return {round_up(shape.m, step.contract.m_multiple), round_up(shape.n, step.contract.n_multiple),
          round_up(shape.k, step.contract.k_multiple)};
}

inline const gemm::Variant& variant_named(const std::string& name) {
  return harness::find_variant(step_under_test(), name);
}

/// Numbers of k-tiles around the number of stages: a pipeline that is not filled, just filled, and that
/// wraps.
inline std::array<int, 5> k_tiles_around_stages(const gemm::Variant& variant) {
  return {1, variant.stages - 1, variant.stages, variant.stages + 1, 2 * variant.stages + 1};
}

/// Launches one plan, each time with other inputs, and verifies every launch.
inline void verify_form(const gemm::Variant& variant, const gemm::Shape& shape,
                        const harness::ProblemForm& form, harness::Pattern pattern, std::uint64_t seed,
                        int launches = 1) {
  INFO(variant.name << " " << harness::to_string(shape) << ", " << harness::to_string(form.epilogue) << ", "
                    << harness::to_string(pattern) << ", seed " << seed);
  harness::Workload workload(shape, pattern, seed, form);
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  const harness::CheckResult result = harness::launch_and_check(workload, launcher, launches, variant.tile);
  INFO(result.report);
  CHECK(result.ok);
}

inline void verify(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                   harness::Pattern pattern, std::uint64_t seed) {
  INFO(step.name);
  verify_form(variant, fitting_shape(variant, shape), harness::form_of(step, variant), pattern, seed);
}

/// One plan sees the inputs of now, launch after launch.
inline void verify_relaunched(const gemm::Variant& variant, const gemm::Shape& shape) {
  verify_form(variant, shape, harness::form_of(step_under_test(), variant), harness::Pattern::kNormal, 3, 3);
}

/// What refuses the problem, or "".
inline std::string refusal(const gemm::Variant& variant, const gemm::Problem& problem) {
  try {
    gemm::prepare(variant, problem);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

/// The variant on shapes that begin a second tile along each extent, that lie inside one tile, and whose
/// edges are odd.
inline void verify_where_edges_meet(const gemm::Step& step, const gemm::Variant& variant) {
  verify(step, variant,
         inside_contract(step, {variant.tile.m + 1, variant.tile.n + 7, 2 * variant.tile.k + 5}),
         harness::Pattern::kExact, 1);
  verify(step, variant, inside_contract(step, {33, 31, 1}), harness::Pattern::kExact, 2);
  verify(step, variant, inside_contract(step, {70, 90, 129}), harness::Pattern::kNormal, 3);
}
