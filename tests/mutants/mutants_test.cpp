// Steps with one thing broken: the emulator must name the broken rule, or the verifier reject the result,
// whatever the schedule. The unbroken steps pass the same runs (tests/steps).
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "exercise.h"
#include "gemm/problem/step.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/check_plan.h"
#include "harness/verify/verify.h"
#include "table.h"

namespace {

struct Mutant {
  std::string name;
  const gemm::Step* step;
  exercise::Run run;
  std::string expect;
  bool passes_bare;
  std::string alpha;
  std::string beta;
  std::string says;
};

std::vector<Mutant> mutants() {
  std::vector<Mutant> all;
  for (unsigned i = 0; i < kMutantCount; ++i) {
    const MutantInTable& in = kMutants[i];
    all.push_back({in.name,
                   &in.step(),
                   {in.variant,
                    in.shape,
                    in.launches,
                    in.sms,
                    in.groups,
                    {},
                    in.pattern,
                    in.expect == std::string("stream-race")},
                   in.expect,
                   in.passes_bare,
                   in.alpha,
                   in.beta,
                   in.says});
  }
  return all;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (part = trimmed(part); !part.empty()) parts.push_back(part);
  }
  return parts;
}

/// The first of the texts of `says` that the report lacks, or "".
std::string missing_in(const std::string& report, const std::string& says) {
  for (const std::string& text : split(says, ';')) {
    bool found = false;
    for (const std::string& alternative : split(text, '|')) {
      found |= report.find(alternative) != std::string::npos;
    }
    if (!found) return text;
  }
  return "";
}

/// Whether a right result has other bits than under the schedule `first`.
bool has_other_bits(const gemm::Step& step, const exercise::Run& run, const harness::Schedule& first,
                    const std::vector<harness::Schedule>& others) {
  const auto run_as = [&](const harness::Schedule& as) {
    return exercise::run_once(step, run, {as.seed, as.completion, as.cta_order});
  };
  const exercise::Outcome one = run_as(first);
  return std::any_of(others.begin(), others.end(), [&](const harness::Schedule& as) {
    const exercise::Outcome other = run_as(as);
    return one.what == exercise::kPassed && other.what == exercise::kPassed && one.bits != other.bits;
  });
}

/// Whether a run of a bare --check of the mutant's variant ends with anything but the right result.
bool caught_by_bare_check(const Mutant& mutant) {
  const gemm::Variant& variant = harness::find_variant(*mutant.step, mutant.run.variant);
  if (mutant.step->takes_ranks()) return true;  // what the mutant runs is a case of the bare check
  for (const harness::CheckCase& one : harness::plan_check(*mutant.step, variant, 1, false)) {
    for (const harness::CheckInputs& inputs : one.inputs) {
      const harness::ProblemForm form = harness::form_of(one, variant, {});
      const exercise::Run run{mutant.run.variant,
                              harness::to_string(one.shape),
                              one.launches,
                              one.sms,
                              "",
                              form,
                              harness::to_string(inputs.pattern)};
      for (std::size_t i = 0; i < std::min(inputs.schedules, one.schedules.size()); ++i) {
        const harness::Schedule& schedule = one.schedules[i];
        if (exercise::run_once(*mutant.step, run, {schedule.seed, schedule.completion}).what !=
            exercise::kPassed)
          return true;
      }
      const harness::Schedule& first = one.schedules.front();
      if (inputs.in_streams) {
        exercise::Run in_streams = run;
        in_streams.in_streams = true;
        if (exercise::run_once(*mutant.step, in_streams, {first.seed}).what != exercise::kPassed) return true;
      }
      if (inputs.same_bits &&
          has_other_bits(*mutant.step, run, first, harness::schedules_of_bits(one, first)))
        return true;
    }
  }
  return false;
}

using SchedulesThatShow = std::vector<exercise::Schedule>(const std::string& what);

void check_all(SchedulesThatShow& schedules_that_show) {
  for (const Mutant& mutant : mutants()) {
    DYNAMIC_SECTION(mutant.name) {
      exercise::Run run = mutant.run;
      if (!mutant.alpha.empty() || !mutant.beta.empty())
        run.form = harness::form_of(*mutant.step, harness::find_variant(*mutant.step, run.variant));
      if (!mutant.alpha.empty()) run.form->epilogue.alpha = std::stof(mutant.alpha);
      if (!mutant.beta.empty()) run.form->epilogue.beta = std::stof(mutant.beta);
      if (mutant.expect == harness::kOtherBits) {  // of two runs, each of which is right
        const harness::CheckCase shared{.shape = {}, .parts = 2};
        CHECK(has_other_bits(*mutant.step, run, {}, harness::schedules_of_bits(shared, {})));
        continue;
      }
      for (const exercise::Schedule& schedule : schedules_that_show(mutant.expect)) {
        const auto [actual, report, bits] = exercise::run_once(*mutant.step, run, schedule);
        INFO(mutant.name << ", seed " << schedule.seed << ", " << actual << ":\n" << report);
        CHECK(("|" + mutant.expect + "|").find("|" + actual + "|") != std::string::npos);
        CHECK_FALSE(report.empty());
        CHECK(missing_in(report, mutant.says).empty());
        // A report names its places in the source; a thread that simply returns has none.
        const bool has_place = actual != exercise::kMismatch && actual != "exit-in-flight";
        if (has_place) CHECK(report.find(".cuh:") != std::string::npos);
      }
    }
  }
  harness::control_emulator({});
}

}  // namespace

TEST_CASE("what a mutant's report must say is taken literally") {
  CHECK(missing_in("nobody waits for empty[1]", "").empty());
  CHECK(missing_in("nobody waits for empty[1]", "empty[1]; nobody waits").empty());
  CHECK(missing_in("nobody waits for empty[1]", "empty[1]; k-tile 4") == "k-tile 4");
  CHECK(missing_in("nobody waits for empty[1]", "full[1] | empty[1]").empty());
  CHECK(missing_in("nobody waits for empty[1]", "full[1]|empty[0]") == "full[1]|empty[0]");
}

// Catch2 runs nothing of a section that is not there, and calls that passed: as when this program is older
// than the list of its tests.
TEST_CASE("a mutant that is asked for by its name is there") {
  const std::vector<Mutant> all = mutants();
  for (const std::string& section : Catch::getCurrentContext().getConfig()->getSectionsToRun()) {
    INFO(section << " is not built");
    CHECK(std::any_of(all.begin(), all.end(), [&](const Mutant& mutant) { return mutant.name == section; }));
  }
}

TEST_CASE("every mutant is caught") {
  check_all(exercise::few_schedules_that_show);
}

TEST_CASE("every mutant is caught under every schedule", "[.]") {  // the long tier
  check_all(exercise::schedules_that_show);
}

TEST_CASE("every mutant is caught by a bare --check") {
  for (const Mutant& mutant : mutants()) {
    DYNAMIC_SECTION(mutant.name) {
      CHECK(caught_by_bare_check(mutant) != mutant.passes_bare);
    }
  }
  harness::control_emulator({});
}
