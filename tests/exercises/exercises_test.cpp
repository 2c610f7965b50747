// Every exercise in both directions: as it is handed out it fails, for the stated reason, and the step's own
// kernel solves it.
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "exercise.h"
#include "gemm/step.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "step_table.h"

namespace {

struct Checked {
  exercise::Exercise exercise;
  const gemm::Step* handed_out;
  const gemm::Step* solved;
  std::string expect;  // as in a mutant; "rule": it is right, but not what is asked for
  bool is_build_it;    // the new idea is left to the reader; otherwise one thing is broken
};

}  // namespace

#include "exercises.inc"

namespace {

std::string label(const Checked& checked) {
  return checked.exercise.step + " " + checked.exercise.name;
}

}  // namespace

TEST_CASE("every exercise fails as it is handed out, for the stated reason") {
  REQUIRE_FALSE(kExercises.empty());
  for (const Checked& checked : kExercises) {
    const exercise::Verdict verdict = exercise::check(*checked.handed_out, checked.exercise);
    const std::string& what = verdict.outcome.what;
    INFO(label(checked) << ", " << verdict.run.variant << " " << verdict.run.shape << ", " << what << ":\n"
                        << verdict.outcome.report);
    CHECK(("|" + checked.expect + "|").find("|" + what + "|") != std::string::npos);
    CHECK_FALSE(verdict.outcome.report.empty());
    // Broken on its own run, not only on the sizes that are tried afterwards.
    CHECK((what == exercise::kRule || verdict.run.shape == checked.exercise.run.shape));
  }
  harness::control_emulator({});
}

TEST_CASE("what is wrong with an exercise shows under every schedule") {
  for (const Checked& checked : kExercises) {
    if (checked.expect == exercise::kRule) continue;
    for (const exercise::Schedule& schedule : exercise::schedules()) {
      const exercise::Outcome outcome =
          exercise::run_once(*checked.handed_out, checked.exercise.run, schedule);
      INFO(label(checked) << ", seed " << schedule.seed << ", " << outcome.what << ":\n" << outcome.report);
      CHECK(("|" + checked.expect + "|").find("|" + outcome.what + "|") != std::string::npos);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("the step's kernel solves every exercise") {
  std::set<std::string> solved;  // several exercises of a step may be the same run
  for (const Checked& checked : kExercises) {
    const exercise::Run& run = checked.exercise.run;
    std::string key =
        fmt::format("{} {} {} {} {}", checked.exercise.step, run.variant, run.shape, run.launches, run.sms);
    for (const std::string& rule : checked.exercise.rules) key += rule;
    if (!solved.insert(key).second) continue;
    const exercise::Verdict verdict = exercise::check(*checked.solved, checked.exercise);
    INFO(label(checked) << ", " << verdict.run.variant << " " << verdict.run.shape << ", seed "
                        << verdict.schedule.seed << ", " << verdict.outcome.what << ":\n"
                        << verdict.outcome.report);
    CHECK(verdict.outcome.what == exercise::kPassed);
  }
  harness::control_emulator({});
}

TEST_CASE("steps 01 to 19 have exercises, from 08 on three and both kinds") {
  std::map<int, int> count;
  std::map<int, int> build_it;
  for (const Checked& checked : kExercises) {
    const int step = std::stoi(checked.exercise.step);
    ++count[step];
    if (checked.is_build_it) ++build_it[step];
  }
  for (const gemm::Step* step : gemm::all_steps()) {
    const int number = std::stoi(step->name);
    if (number > 19) continue;
    INFO(step->name);
    CHECK(count[number] >= (number < 8 ? 1 : 3));
    CHECK(build_it[number] >= (number < 8 ? 0 : 1));
    CHECK(count[number] - build_it[number] >= (number < 8 ? 1 : 2));
  }
}

TEST_CASE("a rule that is not met is answered with its sentence and the count") {
  const Checked& checked = kExercises.front();
  exercise::Exercise demanding = checked.exercise;
  demanding.rules = {"ctas <= 0: it must not be launched at all"};
  const exercise::Verdict verdict = exercise::check(*checked.solved, demanding);
  CHECK(verdict.outcome.what == exercise::kRule);
  CHECK(verdict.outcome.report.find("it must not be launched at all") != std::string::npos);
  CHECK(verdict.outcome.report.find("must be <= 0") != std::string::npos);
}

TEST_CASE("what a rule counts happens in the step's kernel") {
  for (const Checked& checked : kExercises) {
    for (const std::string& line : checked.exercise.rules) {
      INFO(label(checked) << ": " << line);
      CHECK(exercise::observe(exercise::parse_rule(line), *checked.solved, checked.exercise.run) > 0);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("the exit status of a check says what kind of mistake it was") {
  const auto status = [](const gemm::Step& step, const exercise::Exercise& exercise) {
    return exercise::run_program(step, exercise);
  };
  const Checked* deadlock = nullptr;
  const Checked* wrong = nullptr;
  for (const Checked& checked : kExercises) {
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
