// Which phase of an mbarrier let a thread through, and which one it should have waited for.
#pragma once

#include <cstdint>

#include "emulator/async/hopper.h"
#include "emulator/report/causes/barriers.h"
#include "emulator/report/report.h"

namespace emulator {

/// The thread has skipped waits for the ring that another one of its warpgroup makes, and runs ahead of that.
/// False where that is not so.
bool explain_skipped_waits(Report& report, const Gang& gang, const Thread& thread, const Mbarrier& full);
/// Threads that were let through by a phase that brought another k-tile than they waited for.
bool explain_early_pass(Report& report, const Gang& gang, const Mbarrier& full, const ReaderName& reader);
/// `thread` reads what was never written, behind a wait for a phase in which no copy was issued.
void explain_empty_phase(Report& report, const Thread& thread);
/// `thread` touches what a load brings that signals `barrier` in `phase`: which wait it lacks. `remote`: what
/// an st.async brings, for waits that acquire at cluster scope.
void explain_missing_wait(Report& report, const Thread& thread, const Mbarrier& barrier, std::uint64_t phase,
                          bool remote = false);
/// The thread's latest wait for loads was let through by a phase that brought another k-tile than it was for:
/// says so, and what is missing; or nothing.
void explain_passed_too_early(Report& report, const Thread& thread);

}  // namespace emulator
