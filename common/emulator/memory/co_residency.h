// CTAs that wait for each other although nothing promises that they are resident at the same time.
//
// Only a cooperative launch has all its CTAs on SMs at once. In any other, a CTA may wait for another one
// (outside its cluster) only if that one is known to have started: the holder of a lock, or of an earlier
// ticket, has shown that by an atomic of its own before the wait began. What counts as waiting is a thread
// that asks for the same word at the same place again and again and does nothing else in between.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/machine/machine.h"
#include "emulator/memory/atomics.h"

namespace emulator {

/// Whether the rule is on and the grid is one that it is about.
bool watches_co_residency(const Grid& grid);
/// The thread changes a word of global memory by an atomic.
void note_atomic_write(const Thread& thread);
/// It asks for a word of global memory and finds `value` there, by `writer`. The report, if that ends a wait
/// for a CTA that may not have started; or "".
std::string note_question(const Thread& thread, const void* address, const char* what, Where where,
                          std::uint64_t value, const AtomicWriter& writer);

}  // namespace emulator
