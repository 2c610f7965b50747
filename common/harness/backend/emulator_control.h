// The emulator's knobs as the command line sees them. In a GPU build every function throws Error.
#pragma once

#include <cstdint>
#include <string>

namespace harness {

/// When asynchronous operations complete: as the seed decides, as early as allowed, or as late as allowed.
enum class Completion { kRandom, kEarliest, kLatest };

struct EmulatorControl {
  std::uint64_t schedule_seed = 1;
  Completion completion = Completion::kRandom;
  int sm_count = 4;
  bool counters = false;
};

/// Takes effect at the next launch.
void control_emulator(const EmulatorControl& control);

/// The counters since the last call, as a table, and resets them.
std::string take_emulator_counters();

}  // namespace harness
