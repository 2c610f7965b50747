// The groups of a problem's rows, for the emulator's reports.
#pragma once

#include "gemm/problem/problem.h"

namespace harness {

/// The groups of the next launches, if it has some: with those reports name whose rows are stored twice. To
/// the next call. Does nothing in a GPU build.
void name_groups(const gemm::Problem& problem);

}  // namespace harness
