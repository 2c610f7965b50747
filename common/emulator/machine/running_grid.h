// Whether the emulator is running a grid, for those who watch the host.
#pragma once

namespace emulator {

/// Whether run_grid() has been called and has not returned.
bool is_running_grid();

}  // namespace emulator
