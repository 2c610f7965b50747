// The command line that every step's program and the comparison share.
#pragma once

#include <vector>

#include "gemm/problem/step.h"

namespace harness {

/// Runs a program that offers `steps`: with one step its own command line (a shape and flags), with several
/// the comparison (steps by name, "03:64" for a variant, "all"; shapes; flags), interleaved in one process.
/// Returns the exit status (see backend.h); never throws.
int run(int argc, char** argv, const std::vector<const gemm::Step*>& steps);

}  // namespace harness
