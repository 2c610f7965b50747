// Whether the emulator is running a grid, and what that has cost: for those who watch the host.
#pragma once

namespace emulator {

/// Whether run_grid() has been called and has not returned.
bool is_running_grid();
/// The CPU time of this process inside run_grid(), of all its threads together, so far.
double cpu_seconds_of_grids();

}  // namespace emulator
