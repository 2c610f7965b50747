// Reads by wgmma or bulk stores that nobody has waited for.
#pragma once

#include <string>

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// The running thread writes (or a copy is to write) what `reader`, an engine or a thread, may still be
/// reading.
void explain_missing_end(Report& report, const Gang& gang, Stamp reader, Where read_at,
                         const std::string& before);
/// `thread` writes what a thread of another warpgroup stores from, or a thread that does not wait itself.
void explain_other_buffers(Report& report, const Thread& thread, Stamp reader);

}  // namespace emulator
