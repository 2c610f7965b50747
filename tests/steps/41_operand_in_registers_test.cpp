// Step 41: A in registers, at every kind of edge and under many schedules.
#include "catch.h"
#include "harness/base/problem.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using harness::Pattern;

}  // namespace

TEST_CASE("fragments are exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Shape& shape : {gemm::Shape{8, 8, 8}, {56, 264, 72}, {136, 184, 24}, {264, 520, 136}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, shape, Pattern::kExact, 1);
  }
}

TEST_CASE("every element of A reaches its lane", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Pattern pattern : {Pattern::kIdentity, Pattern::kArange})
      verify(step_under_test(), variant, {136, 136, 136}, pattern, 2);
  }
}

TEST_CASE("with A in registers D does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant, {264, 136, 328}, Pattern::kExact, seed);
    });
  }
}
