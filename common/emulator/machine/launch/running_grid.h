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

struct Grid;
/// Called when a grid has run without a report, while its accesses to global memory are still there.
inline void (*after_grid)(const Grid& grid) = nullptr;
/// Whether these are to include the reads of memory that no kernel has written.
inline bool keeps_all_reads = false;

}  // namespace emulator
