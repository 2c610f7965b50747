// No false alarm: every variant of the step, on the shapes of a bare --check, under many more schedules than
// that runs.
#include <string>

#include "catch.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/check_plan.h"
#include "steps/verify_shape.h"

TEST_CASE("every variant is exact under 60 schedules of every shape of its check", "[emulator][long]") {
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    for (const harness::CheckCase& one : harness::plan_check(step, variant, 7, false)) {
      for (std::uint64_t seed = 1001; seed <= 1020; ++seed) {
        for (const harness::Completion completion :
             {harness::Completion::kRandom, harness::Completion::kEarliest, harness::Completion::kLatest}) {
          harness::control_emulator({.schedule_seed = seed, .completion = completion, .sm_count = one.sms});
          INFO("on " << one.sms << " SMs, completion " << static_cast<int>(completion));
          verify(step, variant, one.shape, harness::Pattern::kExact, seed);
        }
      }
    }
  }
  harness::control_emulator({});
}
