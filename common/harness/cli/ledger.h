// --ledger: one launch, and who arrives at and waits for each of its barriers.
#pragma once

#include "gemm/problem/step.h"
#include "harness/cli/cli_options.h"

namespace harness {

/// Prints the ledger; with --json, it is written to that file as well. Returns the exit status.
int run_ledger(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
               const Options& options);

}  // namespace harness
