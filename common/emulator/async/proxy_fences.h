// Proxy fences by other threads than the one that wrote.
//
// The PTX ISA asks for a proxy fence "along the base causality path" from a write through one proxy to a
// read through another, and does not say which thread executes it. CUTLASS and the examples of the manual
// have it executed by each writer, before the barrier; so does this course (CourseRule::kProxyFenceByWriter).
#pragma once

#include <string>

#include "emulator/machine/machine.h"

namespace emulator {

class Report;

/// The running thread executes fence.proxy.async at time Thread::time, for these kinds of memory.
void note_proxy_fence(bool shared, bool global, Where where);
/// Whether a thread has executed one behind the write and before what `reader` does now. Of each thread the
/// latest counts.
bool fenced_on_the_way(const Thread& reader, Stamp write, bool shared);
/// For a write that its own thread has not fenced: says who has, if anybody, and that this is a rule of the
/// course then. Last in the report.
/// The same of a read that a copy overwrites: "fence by ... at ..."; false where there is none.
bool name_fence_on_the_way(Report& report, const Thread& loader, Stamp read);
void explain_fence_on_the_way(Report& report, const Thread& reader, Stamp write, bool shared);

}  // namespace emulator
