// Step 57: chains whose last layers have few columns or none, launches one after the other, and CTAs that are
// not resident together.
#include <string>

#include "harness/backend/emulator_control.h"
#include "harness/verify/check_plan.h"
#include "launches.h"

TEST_CASE("chains whose last layers have few columns or none, for one row of A and for many") {
  if (skip_where_step_cannot_run()) return;
  for (const char* name : {"queue", "fixed", "two_ctas"}) {
    const gemm::Variant& variant = harness::find_variant(step_under_test(), name);
    for (const gemm::Shape& shape : {gemm::Shape{1, 1, 8}, gemm::Shape{1, 513, 1032},
                                     gemm::Shape{17, 511, 264}, gemm::Shape{3, 1030, 40}})
      verify(step_under_test(), variant, shape, harness::Pattern::kExact, 5);
  }
}

TEST_CASE("the chain launched three times: each launch finds its counters at zero", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int m : {1, 2}) {
      INFO(variant.name << ", " << m << " rows");
      verify_launches(variant, {m, 72, 264}, 3);
    }
  }
}

TEST_CASE("a launch with tickets asks for no co-residency, and one with fixed tasks does") {
  for (const gemm::Variant& variant : step_under_test().variants) {
    INFO(variant.name);
    CHECK(variant.launch_shape({16, 4096, 256}).co_resident ==
          (variant.name == "fixed" || variant.name == "queue_resident"));
  }
}

TEST_CASE("with fewer tasks than CTAs fit, there is a CTA for each task", "[emulator]") {
  if (skip_without_emulator()) return;
  harness::control_emulator({.sm_count = 132});
  for (const gemm::Variant& variant : step_under_test().variants) {
    INFO(variant.name);
    CHECK(variant.launch_shape({16, 512, 64}).grid.count() == 16);
    CHECK(variant.launch_shape({16, 65536, 64}).grid.count() == (variant.name == "two_ctas" ? 264 : 132));
    verify(step_under_test(), variant, {2, 40, 136}, harness::Pattern::kExact, 3);
  }
  harness::control_emulator({});
}
