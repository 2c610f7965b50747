// Runs the events of a script on an mbarrier in shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mbarrier_script.h"

namespace play {

/// What one event left behind.
struct Observation {
  std::uint64_t word = 0;      // the 64 bits in shared memory
  std::uint32_t seen = 0;      // 0: the event was not reached
  std::uint32_t complete = 0;  // bit p: a wait for parity p would pass
  std::uint32_t answer = 0;    // of test and wait
  std::uint32_t reserved = 0;
};

struct ScriptRun {
  std::vector<Observation> observations;  // one for each event
  std::string rule;                       // the emulator's, when it ended the kernel
  std::string report;
  std::string crash;  // the GPU's, when it ended the kernel
};

/// One thread executes all events. On the emulator a copy lands as soon as it is issued, and the word can be
/// read at any time. A GPU shows the word only behind mbarrier.inval, so there every event has a launch of
/// its own that executes the events up to it and then looks; copies are given time, and a wait that lasts too
/// long is given up: its answer is 0 and nothing follows.
ScriptRun run_script(const std::vector<Event>& events, bool emulator);

}  // namespace play
