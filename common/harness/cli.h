// The command line that every step's program and the comparison share.
#pragma once

#include <vector>

#include "gemm/step.h"

namespace harness {

/// Runs the program of one step. Returns the exit status (see backend.h); never throws.
int run_step(int argc, char** argv, const gemm::Step& step);

/// Runs the comparison of several steps in one process, named on the command line ("01 03:64", "all").
/// Returns the exit status; never throws.
int run_comparison(int argc, char** argv, const std::vector<const gemm::Step*>& steps);

}  // namespace harness
