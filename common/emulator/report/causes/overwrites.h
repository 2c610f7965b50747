// A copy, or an arrival that begins one, comes to bytes that are still in use: by readers, or by another
// copy.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

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
/// A load overwrites bytes that `reader` has read, and that held nothing then: it should have waited for this
/// very load. False where it has waited at the mbarrier.
bool explain_read_before_copy(Report& report, const Cta& target, const Mbarrier& signalled, Stamp reader,
                              Where read_at);
/// A load by `thread`, which signals load.barrier, overwrites bytes that `reader` may still be reading.
/// `before`: the load that brought them, or nullptr. Adds which arrivals ended the phase that the thread
/// waited for, and what is missing.
void explain_overwrite(Report& report, const Thread& thread, const LoadRecord& load, const Cta& target,
                       const LoadRecord* before, Stamp reader, Where read_at);
/// `thread` arrives at `full`, to fill a stage, when all arrivals of the phase are in: whether it has waited
/// for the readers.
void explain_refill(Report& report, const Thread& thread, const Mbarrier& full);

}  // namespace emulator
