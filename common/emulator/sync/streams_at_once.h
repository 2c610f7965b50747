// Launches in streams that may run at the same time.
//
// The emulator runs one grid behind the other, and then compares what they have touched outside of the
// problem's own matrices: bytes that launches of two streams have touched, and that one of them has written,
// are reported. So the report does not depend on how the launches would have met.
#pragma once

#include "ptx/launch_shape.h"

namespace emulator {

struct Grid;

/// From here to end_streams_at_once(), launches may be in any stream, and streams do not wait for each other.
/// What has been allocated before belongs to the problem, which the launches have in common.
void begin_streams_at_once();
void end_streams_at_once();
bool streams_at_once();

/// The grid has run without a report.
void compare_streams(const Grid& grid, gemm::ptx::Stream stream, const void* kernel);

}  // namespace emulator
