// Why nothing can run, where the causes that causes.h knows do not fit.
#pragma once

#include <string>

#include "emulator/machine/machine.h"
#include "emulator/report/report.h"

namespace emulator {

struct Mbarrier;
struct NamedBarrier;
/// Who came to a named barrier when it opened last, a line without its end: "threads 0-127 (bar_sync at
/// ...)", and how often it has; or "" where it has not yet.
std::string past_of_named_barrier(const NamedBarrier& barrier);
/// Threads wait at a named barrier whose count is more than those that have come and those that still may.
bool explain_unreachable_count(Report& report, const Gang& gang);
/// Several lanes of a warp wait at an mbarrier, and others of it at a place where lanes meet. False where
/// that is not so, here and below.
bool explain_lanes_apart(Report& report, const Gang& gang);
/// A thread waits for the other parity than that of the phase that brought its k-tile, which nobody has seen.
bool explain_parity_off(Report& report, const Gang& gang);
/// A thread that waits was let through before by a phase that brought something else than it waited for.
bool explain_wrong_item(Report& report, const Gang& gang);
/// Two warpgroups have waited for one phase of a ring whose stages one of them hands back.
bool explain_taken_twice(Report& report, const Gang& gang);
/// A thread waits at a stage that holds something else, for which nobody has waited.
bool explain_unclaimed(Report& report, const Gang& gang);
/// A thread waits for an arrival of its own warpgroup, which it would make itself.
bool explain_waits_for_itself(Report& report, const Gang& gang);
/// The tcgen05.commit behind the k-tile of a stage arrives at the mbarrier of another one.
bool explain_commit_elsewhere(Report& report, const Gang& gang);
/// The first phase of an mbarrier was over before a thread waited there with parity 1, to pass at once.
bool explain_first_phase_over(Report& report, const Gang& gang);
/// Two phases are over since a thread's last wait at an mbarrier.
bool explain_told_too_often(Report& report, const Gang& gang);
/// Whether no phase of any mbarrier of the array has ever ended, and several have had as many arrivals.
bool no_phase_has_ended(const Gang& gang, const Mbarrier& barrier);
/// No mbarrier of an array has ever completed a phase, and all have had equally many arrivals, too few.
bool explain_never_enough(Report& report, const Gang& gang);
/// Nobody has ever arrived at an mbarrier, and the others wait for those that wait there.
bool explain_never_arrived(Report& report, const Gang& gang);
/// Remembers who has arrived at the mbarriers of a gang that came to its end, for deadlocks of later
/// launches.
void remember_arrivers(const Gang& gang);
/// In a ring the stage that was filled first has not been handed back, and one that was filled later has.
bool explain_handed_back_out_of_order(Report& report, const Gang& gang);
/// Those who arrive at an mbarrier wait where lanes, or threads, of their role meet.
bool explain_arrivers_elsewhere(Report& report, const Gang& gang);

}  // namespace emulator
