// Recording one launch; each backend has its own way.
#pragma once

#include <functional>
#include <string>

#include "harness/backend/trace_data.h"

namespace harness {

/// Whether this program was built with what recording needs.
bool can_trace();

/// Runs `launch` once and records the first `ctas` CTAs of its grid. On the GPU it is run a second time, by
/// which the clock is measured. In the model an SM holds `ctas_per_sm` CTAs at once; 0: as many as the launch
/// promises.
TraceData record_launch(const std::function<void()>& launch, int ctas, int ctas_per_sm = 0);

/// A run that broke a rule, or whose result was wrong, once more with everything recorded.
struct BrokenRun {
  std::string rule;    // "" where no rule was broken this time
  std::string events;  // the emulator's event log, a JSON object a line: the last ones
  int earlier = 0;     // how many came before these
  TraceData timeline;  // of the last launch, up to where it was ended; without roles where there was none
};

/// Runs `run` under the schedule that is set, with its CTAs one after the other. Emulator only.
BrokenRun record_broken_run(const std::function<void()>& run, int ctas);

/// From now on every CTA records, as far as that can be: what a timed launch of a traced build does.
void trace_everywhere();

}  // namespace harness
