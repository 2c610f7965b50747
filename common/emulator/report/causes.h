// What is missing in a kernel that broke a rule: the wait that nobody executes, the arrival that came too
// early, the barrier between two accesses. Looked for when a report is written.
#pragma once

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// A load by `thread`, which signals load.barrier, overwrites bytes that `reader` may still be reading.
/// `before`: the load that brought them, or nullptr. Adds which arrivals ended the phase that the thread
/// waited for, and what is missing.
void explain_overwrite(Report& report, const Thread& thread, const LoadRecord& load, const Cta& target,
                       const LoadRecord* before, Stamp reader, Where read_at);

/// `thread` touches what a load brings that signals `barrier` in `phase`: which wait it lacks.
void explain_missing_wait(Report& report, const Thread& thread, const Mbarrier& barrier, std::uint64_t phase);

/// `thread` arrives at `full`, to fill a stage, when all arrivals of the phase are in: whether it has waited
/// for the readers.
void explain_refill(Report& report, const Thread& thread, const Mbarrier& full);

/// The running thread writes (or a copy is to write) what `reader`, an engine or a thread, may still be
/// reading.
void explain_missing_end(Report& report, const Gang& gang, Stamp reader, Where read_at,
                         const std::string& before);

/// Two accesses of shared memory that nothing orders.
void explain_race(Report& report, const Thread& thread, std::uintptr_t address, Access now, Where where,
                  Access earlier, Stamp stamp, Where earlier_where, Stamp held);

}  // namespace emulator
