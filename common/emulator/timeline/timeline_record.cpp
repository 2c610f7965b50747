// harness/backend/trace_control.h on the emulator: a log of what the warps do, and times from the model.
#include <fmt/format.h>

#include "emulator/machine/options.h"
#include "emulator/timeline/timeline_model.h"
#include "harness/backend/backend.h"
#include "harness/backend/trace_control.h"

namespace harness {

bool can_trace() {
  return true;
}

TraceData record_launch(const std::function<void()>& launch, int ctas, int ctas_per_sm) {
  emulator::Options options = emulator::options();
  // What the log depends on must not depend on a seed: a peek at a barrier finds what is there at once.
  options.seed = 1;
  options.completion = emulator::Completion::kEarliest;
  const emulator::ScopedOptions scope(options);
  emulator::begin_timeline();
  try {
    launch();
  } catch (...) {
    emulator::end_timeline();
    throw;
  }
  emulator::LaunchLog log = emulator::end_timeline();
  if (ctas_per_sm > log.room) {
    throw Error(
        fmt::format("{} CTAs do not fit on an SM at once: its threads and its shared memory suffice for {}",
                    ctas_per_sm, log.room));
  }
  if (ctas_per_sm > 0) log.ctas_per_sm = ctas_per_sm;
  return emulator::replay(log, options.sm_count, ctas);
}

void trace_everywhere() {}  // nothing is timed

}  // namespace harness
