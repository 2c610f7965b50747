// Keeping the GPU busy with nothing. GPU build only.
#pragma once

#include "ptx/launch_shape.h"

namespace harness {

/// One thread spins for this long. What the host enqueues meanwhile then runs without gaps, and an event
/// recorded after it is passed at the moment the next kernel can start, not when the host got round to
/// launching it.
void launch_delay(gemm::ptx::Stream stream, double microseconds);

}  // namespace harness
