// Which CTA stored which tile of D, for results of which tiles were never written.
#pragma once

#include <string>

#include "ptx/core.cuh"
#include "ptx/launch.cuh"

namespace emulator {

/// A launch of this shape begins: tile_owners() speaks of the latest.
void note_launch_shape(const gemm::ptx::LaunchShape& shape);

/// "5 of 9 tiles of D were stored: CTA (0,0,0) stored (0, 0), (2, 1); ...", from the history of a D of bf16,
/// with what the numbers of tiles say about the step from one to the next; or "".
std::string tile_owners();

}  // namespace emulator
