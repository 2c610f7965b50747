// Recording one launch; each backend has its own way.
#pragma once

#include <functional>

#include "harness/backend/trace_data.h"

namespace harness {

/// Whether this program was built with what recording needs.
bool can_trace();

/// Runs `launch` once and records the first `ctas` CTAs of its grid. On the GPU it is run a second time, by
/// which the clock is measured. In the model an SM holds `ctas_per_sm` CTAs at once; 0: as many as the launch
/// promises.
TraceData record_launch(const std::function<void()>& launch, int ctas, int ctas_per_sm = 0);

/// From now on every CTA records, as far as that can be: what a timed launch of a traced build does.
void trace_everywhere();

}  // namespace harness
