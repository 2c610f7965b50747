// Schedules under which the emulator runs the tests of single steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "catch.h"
#include "harness/backend/emulator_control.h"

using harness::Completion;

/// Whether the long tier runs: tools/test --long says so. Before a change lands, tests try fewer schedules.
inline bool in_long_tier() {
  return std::getenv("GEMM_STEPS_LONG") != nullptr;
}

/// Of `all` seeds, those that are tried now.
inline std::uint64_t seeds_of_tier(std::uint64_t all) {
  return in_long_tier() ? all : std::min<std::uint64_t>(all, 4);
}

/// Calls check(seed) under `seeds` random schedules (four, unless the long tier runs), and with everything as
/// early and as late as it may be.
template <typename Check>
void under_schedules(std::uint64_t seeds, int sms, const Check& check) {
  seeds = seeds_of_tier(seeds);
  for (const Completion completion : {Completion::kRandom, Completion::kEarliest, Completion::kLatest}) {
    for (std::uint64_t seed = 1; seed <= (completion == Completion::kRandom ? seeds : 1); ++seed) {
      INFO("seed " << seed << ", completion " << static_cast<int>(completion));
      harness::control_emulator({.schedule_seed = seed, .completion = completion, .sm_count = sms});
      check(seed);
    }
  }
  harness::control_emulator({});
}

/// Calls check(seed) for ten seeds (four, unless the long tier runs) with every completion, on one SM to
/// `most_sms`.
template <typename Check>
void under_ten_seeds(int most_sms, const Check& check) {
  for (std::uint64_t seed = 1; seed <= seeds_of_tier(10); ++seed) {
    for (const Completion completion : {Completion::kRandom, Completion::kEarliest, Completion::kLatest}) {
      const int sms = 1 + static_cast<int>(seed) % most_sms;
      harness::control_emulator({.schedule_seed = seed, .completion = completion, .sm_count = sms});
      INFO("seed " << seed << ", " << sms << " SMs");
      check(seed);
    }
  }
  harness::control_emulator({});
}

struct Schedule {
  std::uint64_t seed;
  Completion completion;
};
constexpr Schedule kSchedules[] = {
    {1, Completion::kRandom}, {2, Completion::kRandom}, {1, Completion::kEarliest}, {1, Completion::kLatest}};

inline void under(const Schedule& schedule, int sms) {
  harness::control_emulator(
      {.schedule_seed = schedule.seed, .completion = schedule.completion, .sm_count = sms});
}
