// Which lanes of a warp are behind.
//
// Instructions with .sync make a thread wait until all threads of its warp execute them (PTX ISA: "causes the
// executing thread to wait until all threads in the warp execute the same instruction before resuming
// execution"). Where lanes exchange something they meet at once (warp_collective). The others are only
// counted: a thread may run ahead as long as nobody can tell, and before it tells others anything, its warp
// catches up. That orders execution, not memory: only __syncwarp and barriers do both, unless the rule
// release-for-warp is switched off.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/machine/machine.h"
#include "emulator/machine/where.h"

namespace emulator {

/// The running thread has come to an instruction that waits for all lanes of its warp.
void note_warp_instruction(const char* what, Where where);
/// The running thread is about to do something that other threads learn from: first the lanes of its warp
/// come as far as it has.
void let_lanes_catch_up(const char* what, Where where);
/// "wgmma.wait_group at ...": the latest such instruction that the thread has executed since `time`, or "".
std::string warp_instruction_since(const Cta& cta, std::uint32_t thread, std::uint64_t time);

}  // namespace emulator
