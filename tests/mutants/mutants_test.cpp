// Steps with one thing broken: the emulator must name the broken rule, or the verifier reject the result,
// whatever the schedule. The unbroken steps pass the same runs (tests/steps).
#include "mutants_test.h"

#include "catch.h"
#include "harness/backend/emulator_control.h"

TEST_CASE("every mutant is caught, under every schedule") {
  for (const Mutant& mutant : mutants()) {
    DYNAMIC_SECTION(mutant.name) {
      for (const exercise::Schedule& schedule : exercise::schedules()) {
        const auto [actual, report] = exercise::run_once(*mutant.step, mutant.run, schedule);
        INFO(mutant.name << ", seed " << schedule.seed << ", " << actual << ":\n" << report);
        CHECK(("|" + mutant.expect + "|").find("|" + actual + "|") != std::string::npos);
        CHECK_FALSE(report.empty());
        // A report names its places in the source; a thread that simply returns has none.
        const bool has_place = actual != exercise::kMismatch && actual != "exit-in-flight";
        if (has_place) CHECK(report.find(".cuh:") != std::string::npos);
      }
    }
  }
  harness::control_emulator({});
}
