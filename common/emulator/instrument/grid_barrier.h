// Barriers that only cooperative groups have.
#pragma once

#include "emulator/machine/where.h"

namespace emulator {

/// grid.sync(): all threads of a cooperative launch; what they wrote before is visible after.
void grid_barrier(const char* what, Where where);
/// Whether the running launch is cooperative.
bool is_cooperative();

}  // namespace emulator
