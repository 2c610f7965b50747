// A wait that never ends where threads meet: at a named barrier, or within a warp.
#pragma once

#include <string>

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

struct NamedBarrier;

/// Threads wait at a named barrier whose count is more than those that have come and those that still may.
bool explain_unreachable_count(Report& report, const Gang& gang);
/// Several lanes of a warp wait at an mbarrier, and others of it at a place where lanes meet. False where
/// that is not so.
bool explain_lanes_apart(Report& report, const Gang& gang);
/// Who came to a named barrier when it opened last, a line without its end: "threads 0-127 (bar_sync at
/// ...)", and how often it has; or "" where it has not yet.
std::string past_of_named_barrier(const NamedBarrier& barrier);

}  // namespace emulator
