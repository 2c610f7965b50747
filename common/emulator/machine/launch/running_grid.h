// Whether the emulator is running a grid, and what that has cost: for those who watch the host.
#pragma once

#include <cstdint>

namespace emulator {

/// Whether run_grid() has been called and has not returned.
bool is_running_grid();
/// The CPU time of this process inside run_grid(), of all its threads together, so far.
double cpu_seconds_of_grids();
/// How often run_grid() has been called.
std::uint64_t launches_so_far();

}  // namespace emulator
