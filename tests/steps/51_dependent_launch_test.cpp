// Step 51: chains with layers that have no columns, relaunched without a pause, and a report that names them.
#include <string>

#include "harness/backend/emulator_control.h"
#include "harness/verify/check_plan.h"
#include "launches.h"

TEST_CASE("chains whose last layers have few columns or none, for one row of A and for many") {
  if (skip_where_step_cannot_run()) return;
  for (const char* name : {"pdl_prefetch", "trigger_at_once", "stream"}) {
    const gemm::Variant& variant = harness::find_variant(step_under_test(), name);
    for (const gemm::Shape& shape : {gemm::Shape{1, 1, 8}, gemm::Shape{1, 513, 1032},
                                     gemm::Shape{17, 511, 264}, gemm::Shape{3, 1030, 40}})
      verify(step_under_test(), variant, shape, harness::Pattern::kExact, 5);
  }
}

TEST_CASE("the chain launched twice: what the first run has left is no help to the second",
          "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int m : {1, 2}) {
      INFO(variant.name << ", " << m << " rows");
      verify_twice(variant, {m, 72, 264});
    }
  }
}
