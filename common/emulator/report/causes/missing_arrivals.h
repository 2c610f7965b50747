// A wait that never ends because readers have released less than they have read: of a stage, or of a phase of
// many that went well.
#pragma once

#include <string>

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// Warpgroups that have passed more waits for a stage than they have arrived at the waited-for `empty`, a
/// line each; or nothing.
std::string describe_releases(const Mbarrier& empty);
/// In a deadlock: readers that leave a stage out, or a count that is larger than the threads that are left.
bool explain_missing_arrivals(Report& report, const Gang& gang);
std::string text(const Grid& grid, const EarlyArrival& early);

}  // namespace emulator
