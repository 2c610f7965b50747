// Is a kernel right on the emulator, under many schedules, and does it do what its exercise asks for?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/emulator_control.h"
#include "harness/verify/workload/workload.h"

namespace exercise {

/// What a kernel is run on.
struct Run {
  std::string variant;
  std::string shape;
  int launches = 1;  // of one plan, behind each other
  int sms = 4;
  std::string groups{};  // of rows, as --groups says them
  std::optional<harness::ProblemForm>
      form{};  // of the problem; otherwise what the step computes unless asked
  std::string
      pattern{};  // of the inputs, as --pattern says it; otherwise exact, or normal where results are rounded
  bool in_streams = false;  // harness::launch_in_streams instead of `launches`
};

struct Schedule {
  std::uint64_t seed = 1;
  harness::Completion completion = harness::Completion::kRandom;
  harness::CtaOrder cta_order = harness::CtaOrder::kSeed;
};

/// Eight seeds, then everything as early as allowed, then as late.
std::vector<Schedule> schedules();
/// Those that suffice to see this: all, or for kMismatch, which is no race, a seed, the earliest and the
/// latest.
std::vector<Schedule> schedules_that_show(const std::string& what);
/// A seed, the earliest and the latest of those, at most: for tests that run often.
std::vector<Schedule> few_schedules_that_show(const std::string& what);

inline constexpr const char* kPassed = "passed";
inline constexpr const char* kMismatch = "mismatch";  // the verifier rejects the result
inline constexpr const char* kRule = "rule";          // right, but not what the exercise asks for
inline constexpr const char* kRefused = "refused";    // the harness, before the launch: one sentence

struct Outcome {
  std::string what;        // one of the above, or the emulator's name of the broken rule
  std::string report;      // empty when passed
  std::uint64_t bits = 0;  // a hash of the results
};

/// One run with exact inputs, verified bit for bit; with normal ones where the epilogue rounds.
Outcome run_once(const gemm::Step& step, const Run& run, const Schedule& schedule);

/// What a kernel must do beyond being right, in numbers that the emulator counts: "OBSERVED >= NUMBER: the
/// sentence that is printed otherwise", also with <= and ==. OBSERVED is one of
///   ctas                  CTAs that are launched
///   INSTRUCTION           its requests: a warp's or an issuing thread's executions (docs: --counters)
///   bytes of INSTRUCTION  what they move
///   wavefronts of INSTRUCTION   passes over the banks of shared memory: more with conflicts
///   EVENT before EVENT    events of the first kind in CTA (0,0,0) before its first of the second kind, as
///                         tools/play events names them
///   warp of EVENT         the warp of CTA (0,0,0) that does it first; -1 if none does
struct Rule {
  std::string observed;
  std::string comparison;
  std::int64_t number = 0;
  std::string sentence;
};

/// Throws harness::Error for a line that is none.
Rule parse_rule(const std::string& line);

/// The rule's number, in one run under the usual schedule.
std::int64_t observe(const Rule& rule, const gemm::Step& step, const Run& run);

struct Exercise {
  std::string step;
  std::string name;
  Run run;
  std::vector<std::string> rules;
};

/// Where it failed first.
struct Verdict {
  Outcome outcome;
  Run run;
  Schedule schedule;
  int runs = 0;
};

/// The exercise's run under all schedules; then its variant and the step's default one with one k-tile and
/// with many, on ragged tiles; then the rules.
Verdict check(const gemm::Step& step, const Exercise& exercise);

/// Checks, prints what came out, returns the exit status (harness/backend/backend.h). Throws only what is
/// neither the kernel's nor the exercise's fault, like a lack of memory.
int run_program(const gemm::Step& step, const Exercise& exercise);

}  // namespace exercise
