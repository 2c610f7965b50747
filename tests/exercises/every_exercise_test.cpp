// Every exercise in both directions: as it is handed out it fails, for the stated reason, and the step's own
// kernel solves it.
#include "catch.h"
#include "exercises_test.h"
#include "harness/backend/emulator_control.h"

TEST_CASE("every exercise fails as it is handed out, and the step's kernel solves it") {
  for (const Checked& checked : exercises()) {
    const std::string name = checked.exercise.step + "_" + checked.exercise.name;
    DYNAMIC_SECTION(name) {
      SECTION("as it is handed out it fails, for the stated reason") {
        const exercise::Verdict verdict = exercise::check(*checked.handed_out, checked.exercise);
        const std::string& what = verdict.outcome.what;
        INFO(name << ", " << verdict.run.variant << " " << verdict.run.shape << ", " << what << ":\n"
                  << verdict.outcome.report);
        CHECK(("|" + checked.expect + "|").find("|" + what + "|") != std::string::npos);
        CHECK_FALSE(verdict.outcome.report.empty());
        // Broken on its own run, not only on the sizes that are tried afterwards.
        CHECK((what == exercise::kRule || verdict.run.shape == checked.exercise.run.shape));
      }
      if (checked.expect != exercise::kRule) {
        SECTION("what is wrong with it shows whatever the schedule") {
          for (const exercise::Schedule& schedule : exercise::few_schedules_that_show(checked.expect)) {
            const exercise::Outcome outcome =
                exercise::run_once(*checked.handed_out, checked.exercise.run, schedule);
            INFO(name << ", seed " << schedule.seed << ", " << outcome.what << ":\n" << outcome.report);
            CHECK(("|" + checked.expect + "|").find("|" + outcome.what + "|") != std::string::npos);
          }
        }
      }
      SECTION("the step's kernel solves it") {
        const exercise::Verdict verdict = exercise::check(*checked.solved, checked.exercise);
        INFO(name << ", " << verdict.run.variant << " " << verdict.run.shape << ", seed "
                  << verdict.schedule.seed << ", " << verdict.outcome.what << ":\n"
                  << verdict.outcome.report);
        CHECK(verdict.outcome.what == exercise::kPassed);
      }
      for (const std::string& line : checked.exercise.rules) {
        DYNAMIC_SECTION("what it counts happens in the step's kernel: " << line) {
          INFO(name << ": " << line);
          CHECK(exercise::observe(exercise::parse_rule(line), *checked.solved, checked.exercise.run) > 0);
        }
      }
    }
  }
  harness::control_emulator({});
}
