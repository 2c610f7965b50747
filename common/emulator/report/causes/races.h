// Two accesses of threads that nothing orders.
#pragma once

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// Two CTAs of a cluster: what an mbarrier's arrival or wait lacks by which the thread knows that the other
/// access, at `stamp`, is over. False where it does not know so.
bool explain_cluster_scope(Report& report, const Thread& thread, Stamp stamp);
/// Two accesses of shared memory that nothing orders.
void explain_race(Report& report, const Thread& thread, std::uintptr_t address, Access now, Where where,
                  Access earlier, Stamp stamp, Where earlier_where, Stamp held);

}  // namespace emulator
