// Steps with one thing broken: the emulator must name the broken rule, or the verifier reject the result,
// whatever the schedule. The unbroken steps pass the same runs (tests/steps).
#include <string>
#include <vector>

#include "catch.h"
#include "gemm/step.h"
#include "harness/backend.h"
#include "harness/emulator_control.h"
#include "harness/problem.h"
#include "harness/workload.h"

namespace {

struct Twin {
  std::string name;
  const gemm::Step* step;
  std::string variant;
  std::string shape;
  std::string expect;  // an emulator rule, or "mismatch"; "a|b": whichever the schedule meets first
  int launches;
  int sms;
};

}  // namespace

#include "twins.inc"

namespace {

/// "mismatch", the emulator's rule, or "passed".
std::string outcome(const Twin& twin, std::string& report) {
  const gemm::Variant& variant = harness::find_variant(*twin.step, twin.variant);
  harness::Workload workload(harness::parse_shape(twin.shape), harness::Pattern::kExact, 1);
  workload.poison();
  try {
    const gemm::Launcher start = variant.prepare(workload.gemm());
    for (int launch = 0; launch < twin.launches; ++launch) {
      start(nullptr);
      harness::synchronize();
    }
  } catch (const harness::EmulatorReport& error) {
    report = error.what();
    return error.rule();
  }
  const harness::CheckResult result = workload.check(variant.tile);
  report = result.report;
  return result.ok ? "passed" : "mismatch";
}

}  // namespace

TEST_CASE("every twin is caught, under every schedule") {
  REQUIRE_FALSE(kTwins.empty());
  for (const Twin& twin : kTwins) {
    for (const harness::Completion completion :
         {harness::Completion::kRandom, harness::Completion::kEarliest, harness::Completion::kLatest}) {
      const int seeds = completion == harness::Completion::kRandom ? 8 : 1;
      for (int seed = 1; seed <= seeds; ++seed) {
        harness::control_emulator({.schedule_seed = static_cast<std::uint64_t>(seed),
                                   .completion = completion,
                                   .sm_count = twin.sms});
        std::string report;
        const std::string actual = outcome(twin, report);
        INFO(twin.name << ", seed " << seed << ", " << actual << ":\n" << report);
        CHECK(("|" + twin.expect + "|").find("|" + actual + "|") != std::string::npos);
        CHECK_FALSE(report.empty());
        // A report names its places in the source; a thread that simply returns has none.
        const bool has_place = actual != "mismatch" && actual != "passed" && actual != "exit-in-flight";
        if (has_place) CHECK(report.find(".cuh:") != std::string::npos);
      }
    }
  }
  harness::control_emulator({});
}
