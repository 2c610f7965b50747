// Words of global memory that atomics touch: who has counted in them, and what earlier launches have left
// there (memory/atomics.cpp, which keeps the record, finds it out).
#pragma once

#include <cstdint>
#include <string>

#include "emulator/machine/machine.h"

namespace emulator {

/// Words of the buffer that atomics touch, that were zero when an earlier launch began and are not zero
/// since: a line each. `address` lies in the buffer.
std::string left_by_earlier_launches(const void* address, const Thread& thread);
/// Words of global memory that atomics count in, which the launch before the latest one found at 0, and which
/// the latest one found as that had left them, not at 0: a sentence, or "".
std::string counters_left_over();
/// The report reset-order about this launch, or "".
std::string store_without_order(std::uint64_t launch);
/// A report about words of workspaces that atomics of the latest launch have changed, and that are not 0
/// behind it; or "".
std::string words_not_set_back();
/// How words of the same buffer beside the one at `address`, which no thread has changed, are written, a
/// line; or "".
std::string written_neighbours(const void* address, const Thread& thread);
/// "arrivals at workspace + 0: CTA (0,0,0) ... has added to it 3 times; CTA (1,0,0) 2 times and returned",
/// where the thread polls a counter of that kind; or "".
std::string uneven_counts(const void* address, const Thread& thread);
/// Which store of the thread's own CTA set a flag back, that another CTA had set, before this thread saw it;
/// or "".
std::string lowered_before_seen(const void* address, const Thread& thread);

}  // namespace emulator
