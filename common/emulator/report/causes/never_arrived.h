// A wait that never ends at an mbarrier at which nobody has ever arrived, or never enough threads: who would
// have arrived, and where these wait themselves.
#pragma once

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// Whether no phase of any mbarrier of the array has ever ended, and several have had as many arrivals.
bool no_phase_has_ended(const Gang& gang, const Mbarrier& barrier);
/// No mbarrier of an array has ever completed a phase, and all have had equally many arrivals, too few.
bool explain_never_enough(Report& report, const Gang& gang);
/// Nobody has ever arrived at an mbarrier, and the others wait for those that wait there.
bool explain_never_arrived(Report& report, const Gang& gang);
/// Those who arrive at an mbarrier have returned, or wait for something else than an mbarrier.
bool explain_arrivers_elsewhere(Report& report, const Gang& gang);

}  // namespace emulator
