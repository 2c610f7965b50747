// What a run of several devices (ranks.h) needs of launches.
#pragma once

#include <cstdint>

namespace emulator {

class Worker;
struct Grid;

/// The number of the next launch, or of the next epoch of several.
std::uint64_t next_launch();
/// Checks a grid of one of several devices and runs it on the calling OS thread: as many CTAs at once as the
/// SMs hold. Throws the report of a broken rule.
void run_rank_grid(Worker& worker, Grid& grid, const void* kernel);

}  // namespace emulator
