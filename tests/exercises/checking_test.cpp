// What a check of an exercise answers, shown on two of them; and which exercises the steps have.
#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "exercises_test.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "listed_exercises.h"

TEST_CASE("steps 01 to 22 have exercises, from 08 on three and both kinds") {
  std::map<int, int> count;
  std::map<int, int> build_it;
  for (const Listed& listed : kListedExercises) {
    ++count[listed.step];
    if (listed.is_build_it) ++build_it[listed.step];
  }
  for (const int number : kListedSteps) {
    if (number > 22) continue;
    INFO("step " << number);
    CHECK(count[number] >= (number < 8 ? 1 : 3));
    CHECK(build_it[number] >= (number < 8 ? 0 : 1));
    CHECK(count[number] - build_it[number] >= (number < 8 ? 1 : 2));
  }
}

TEST_CASE("a rule that is not met is answered with its sentence and the count") {
  const Checked& checked = exercises().front();
  exercise::Exercise demanding = checked.exercise;
  demanding.rules = {"ctas <= 0: it must not be launched at all"};
  const exercise::Verdict verdict = exercise::check(*checked.solved, demanding);
  CHECK(verdict.outcome.what == exercise::kRule);
  CHECK(verdict.outcome.report.find("it must not be launched at all") != std::string::npos);
  CHECK(verdict.outcome.report.find("must be <= 0") != std::string::npos);
}

TEST_CASE("the exit status of a check says what kind of mistake it was") {
  const auto status = [](const gemm::Step& step, const exercise::Exercise& exercise) {
    return exercise::run_program(step, exercise);
  };
  const Checked* deadlock = nullptr;
  const Checked* wrong = nullptr;
  for (const Checked& checked : exercises()) {
    if (checked.expect == "deadlock") deadlock = &checked;
    if (checked.expect == exercise::kMismatch) wrong = &checked;
  }
  REQUIRE(deadlock);
  REQUIRE(wrong);
  CHECK(status(*deadlock->handed_out, deadlock->exercise) == harness::kExitEmulator);
  CHECK(status(*wrong->handed_out, wrong->exercise) == harness::kExitMismatch);
  CHECK(status(*wrong->solved, wrong->exercise) == harness::kExitOk);
  exercise::Exercise changed = wrong->exercise;
  changed.rules = {"ctas <= 0: it must not be launched at all"};
  CHECK(status(*wrong->solved, changed) == harness::kExitMismatch);
  changed.rules = {"nonsense"};
  CHECK(status(*wrong->solved, changed) == harness::kExitUsage);
  changed.run.variant = "a variant that the reader removed";
  CHECK(status(*wrong->solved, changed) == harness::kExitUsage);
  harness::control_emulator({});
}

TEST_CASE("a line that is no rule is refused") {
  CHECK_THROWS_AS(exercise::parse_rule("ctas: many"), harness::Error);
  CHECK_THROWS_AS(exercise::parse_rule("ctas > 4: sentence"), harness::Error);
  const exercise::Rule rule = exercise::parse_rule("bytes of wgmma <= 12: few bytes");
  CHECK(rule.observed == "bytes of wgmma");
  CHECK(rule.comparison == "<=");
  CHECK(rule.number == 12);
  CHECK(rule.sentence == "few bytes");
}
