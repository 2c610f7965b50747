// Kernels broken on purpose, and what the emulator says about them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.h"
#include "emulator/machine/options.h"
#include "harness/backend/backend.h"
#include "harness/backend/device_array.h"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"

namespace emulator_test {

namespace ptx = gemm::ptx;  // as it is called inside gemm, where kernels are
using harness::DeviceArray;

struct Outcome {
  std::string rule;  // "passed", or the broken rule's name
  std::string report;
};

template <typename... Parameters, typename... Arguments>
Outcome run(void (*kernel)(Parameters...), const ptx::LaunchShape& shape, Arguments&&... arguments) {
  try {
    ptx::launch(kernel, shape, nullptr, std::forward<Arguments>(arguments)...);
  } catch (const harness::EmulatorReport& report) {
    return {report.rule(), report.what()};
  }
  return {"passed", ""};
}

constexpr ptx::LaunchShape one_cta(unsigned threads, int shared_bytes = 0) {
  return {.grid = {}, .block = {threads}, .cluster = {}, .shared_bytes = shared_bytes};
}

inline void require_passes(const Outcome& outcome) {
  INFO(outcome.report);
  REQUIRE(outcome.rule == "passed");
}

/// A report of this rule, and what it says and does not say.
inline void check_report(const Outcome& outcome, const std::string& rule,
                         const std::vector<std::string>& says, const std::vector<std::string>& lacks = {}) {
  CHECK(outcome.rule == rule);
  check_text(outcome.report, says, lacks);
}

/// Calls body() under `seeds` seeds, and under a tenth of them with asynchronous operations as early and as
/// late as allowed.
template <typename Body>
void under_schedules(int seeds, Body body) {
  using emulator::Completion;
  for (int seed = 1; seed <= seeds; ++seed) {
    emulator::Options options;
    options.seed = static_cast<std::uint64_t>(seed);
    const emulator::ScopedOptions scope(options);
    INFO("seed " << seed);
    body();
  }
  for (const Completion completion : {Completion::kEarliest, Completion::kLatest}) {
    for (int seed = 1; seed <= std::max(1, seeds / 10); ++seed) {
      emulator::Options options;
      options.seed = static_cast<std::uint64_t>(seed);
      options.completion = completion;
      const emulator::ScopedOptions scope(options);
      INFO((completion == Completion::kEarliest ? "earliest" : "latest") << ", seed " << seed);
      body();
    }
  }
}

inline constexpr int kSeeds = 50;
template <typename Body>
void under_all_schedules(Body body) {
  under_schedules(kSeeds, body);
}

// Sanitizers look at the emulator's own memory, and make it ten times as slow: a few schedules reach the same
// code. All of them run without the sanitizers.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr int kSeedsOfOneRule = 8;
#else
inline constexpr int kSeedsOfOneRule = kSeeds;
#endif

/// The broken kernel must be reported by this name under every schedule.
#define CHECK_BREAKS(expected_rule, ...)                               \
  emulator_test::under_schedules(emulator_test::kSeedsOfOneRule, [&] { \
    const emulator_test::Outcome outcome = __VA_ARGS__;                \
    INFO(outcome.report);                                              \
    CHECK(outcome.rule == expected_rule);                              \
  })

#define CHECK_PASSES(...) CHECK_BREAKS("passed", __VA_ARGS__)

}  // namespace emulator_test
