// How a script of play_mbarrier ended, and what --json writes of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/backend/backend.h"
#include "mbarrier_device.h"
#include "mbarrier_script.h"

namespace play {

/// Of test and wait: what they found.
std::string answer_text(const Event& event, const Observation& observation);

/// What became of a script: how many events were reached, and the sentence about the one that ended it early.
struct Ending {
  std::size_t reached = 0;
  std::string sentence;
  int status = harness::kExitOk;
};

Ending ending(const std::vector<Event>& events, const ScriptRun& run);

/// The barrier after each event that was reached, and how the script ended.
std::string script_json(const std::string& script, const std::vector<Event>& events, const ScriptRun& run);

}  // namespace play
