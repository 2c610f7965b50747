// What is missing in a kernel that broke a rule: the wait that nobody executes, the arrival that came too
// early, the barrier between two accesses. Looked for when a report is written.
#pragma once

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// Two CTAs of a cluster: what an mbarrier's arrival or wait lacks by which the thread knows that the other
/// access, at `stamp`, is over. False where it does not know so.
bool explain_cluster_scope(Report& report, const Thread& thread, Stamp stamp);
/// A load overwrites bytes that `reader` has read, and that held nothing then: it should have waited for this
/// very load. False where it has waited at the mbarrier.
bool explain_read_before_copy(Report& report, const Cta& target, const Mbarrier& signalled, Stamp reader,
                              Where read_at);
/// A load by `thread`, which signals load.barrier, overwrites bytes that `reader` may still be reading.
/// `before`: the load that brought them, or nullptr. Adds which arrivals ended the phase that the thread
/// waited for, and what is missing.
void explain_overwrite(Report& report, const Thread& thread, const LoadRecord& load, const Cta& target,
                       const LoadRecord* before, Stamp reader, Where read_at);

/// "stage 1: the bytes hold k-tile 2, the write brings k-tile 5", as far as it is known. `held`: the stamp of
/// the write whose bytes are there, 0 if that is not at hand.
std::string content_text(const Thread& thread, std::uintptr_t address, Access now, Stamp held);

/// Whether the thread does at `where` what another lane of its warp has done there.
bool one_warp_one_place(const Thread& thread, Where where, Stamp other, Where other_where);
/// "one lane that arrives: lanes 3 and 5 of warp 4 both arrive at ...".
std::string two_lanes_text(const Thread& thread, Stamp other, const char* verb, Where where);
/// `thread` issues at `where` what another lane of its warp has issued there. False where that is not so.
bool explain_two_issuers(Report& report, const Thread& thread, Where where, const LoadRecord& other);
/// The same where it is a lane of another warp of the CTA, with the same box for the same mbarrier.
bool explain_two_warps(Report& report, const Thread& thread, const LoadRecord& load,
                       const LoadRecord& before);
/// Two copies that signal one phase of one mbarrier have the same destination. False where that is not so.
bool explain_two_copies(Report& report, const Thread& thread, const LoadRecord& load, const Cta& target,
                        const LoadRecord& before);

/// A bulk store, whose stamp is `writes`, and a store by `thread`, of another CTA, have written the same
/// element: which, and of which box. False where both are of one CTA.
bool explain_two_owners(Report& report, const Thread& thread, Stamp writes, std::uintptr_t address);

/// `thread` writes what a thread of another warpgroup stores from, or a thread that does not wait itself.
void explain_other_buffers(Report& report, const Thread& thread, Stamp reader);

/// The threads that arrived in a phase, a line for each group.
std::string arrivals_text(const Grid& grid, const std::vector<Mbarrier::Event>& events);
/// The number of threads of the gang that have arrived at the barrier so far.
std::uint32_t arriving_threads(const Gang& gang, const Mbarrier& barrier);

/// The mbarrier that loads of the stage signal whose readers arrive at `empty`: in this CTA, with the same
/// index. nullptr where that is none or more than one.
const Mbarrier* full_of(const Cta& cta, const Mbarrier& empty);
/// Waits for `barrier` that some thread of the warpgroup has passed: the most of any.
std::uint32_t waits_passed(const Cta& cta, std::size_t warpgroup, const Mbarrier& barrier);
/// Warpgroups that have passed more waits for a stage than they have arrived at the waited-for `empty`, a
/// line each; or nothing.
std::string describe_releases(const Mbarrier& empty);
std::string text(const Grid& grid, const EarlyArrival& early);

/// The thread's latest wait for loads was let through by a phase that brought another k-tile than it was for:
/// says so, and what is missing; or nothing.
void explain_passed_too_early(Report& report, const Thread& thread);
/// `load` brings more than the member holds that it begins in, and `bytes` ("stage[1].a[0][0] (shared +
/// ...)") lie behind its end: says how much would fit. False where that is not so.
bool explain_too_large_box(Report& report, const LoadRecord& load, const std::string& bytes);
/// `thread` touches what a load brings that signals `barrier` in `phase`: which wait it lacks. `remote`: what
/// an st.async brings, for waits that acquire at cluster scope.
void explain_missing_wait(Report& report, const Thread& thread, const Mbarrier& barrier, std::uint64_t phase,
                          bool remote = false);

/// `thread` arrives at `full`, to fill a stage, when all arrivals of the phase are in: whether it has waited
/// for the readers.
void explain_refill(Report& report, const Thread& thread, const Mbarrier& full);

/// A deadlock: mbarriers that wait for bytes and for nothing else, when no copy is under way. False where
/// that is not so, here and below.
bool explain_missing_bytes(Report& report, const Gang& gang);
/// Of a deadlock: bytes came to an mbarrier at which nobody of its CTA has ever arrived, and another CTA of
/// the cluster expects its own. False where that is not so.
bool explain_unexpected_bytes(Report& report, const Gang& gang);
/// A thread waits for a phase that came and went: the others said that all had read it.
bool explain_lapped(Report& report, const Gang& gang);
/// In a deadlock: who arrives at a barrier that is waited for, where all of these have returned or come.
bool explain_missing_arrivals(Report& report, const Gang& gang);
/// `thread` reads what was never written, behind a wait for a phase in which no copy was issued.
void explain_empty_phase(Report& report, const Thread& thread);

/// `thread` reads bytes at `address` that no copy of the phase that it has waited for has brought, and other
/// copies bring their like to another stage: says where.
void explain_not_brought(Report& report, const Thread& thread, std::uintptr_t address);

/// The running thread writes (or a copy is to write) what `reader`, an engine or a thread, may still be
/// reading.
void explain_missing_end(Report& report, const Gang& gang, Stamp reader, Where read_at,
                         const std::string& before);

/// `thread` reads bytes of global memory that `writer` wrote, a thread of a warpgroup of another CTA, over
/// what another warpgroup of that CTA had written there: adds that two results share a slot. False where that
/// is not so.
bool explain_reused_slot(Report& report, const Thread& thread, std::uintptr_t address, Stamp writer,
                         Where written);

/// Words of the buffer that atomics touch, that were zero when an earlier launch began and are not zero
/// since: a line each. `address` lies in the buffer.
std::string left_by_earlier_launches(const void* address, const Thread& thread);
/// Words of global memory that atomics count in, which the launch before the latest one found at 0, and which
/// the latest one found as that had left them, not at 0: a sentence, or "".
std::string counters_left_over();
/// How words of the same buffer beside the one at `address`, which no thread has changed, are written, a
/// line; or "".
std::string written_neighbours(const void* address, const Thread& thread);
/// "arrivals at workspace + 0: CTA (0,0,0) ... has added to it 3 times; CTA (1,0,0) 2 times and returned",
/// where the thread polls a counter of that kind; or "".
std::string uneven_counts(const void* address, const Thread& thread);
/// Which store of the thread's own CTA set a flag back, that another CTA had set, before this thread saw it;
/// or "".
std::string lowered_before_seen(const void* address, const Thread& thread);

/// Two accesses of shared memory that nothing orders.
void explain_race(Report& report, const Thread& thread, std::uintptr_t address, Access now, Where where,
                  Access earlier, Stamp stamp, Where earlier_where, Stamp held);

}  // namespace emulator
