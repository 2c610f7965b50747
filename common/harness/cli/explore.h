// --explore, --shrink and --replay.
#pragma once

#include <vector>

#include "gemm/problem/step.h"
#include "harness/cli/cli_options.h"
#include "harness/cli/selection.h"

namespace harness {

/// Whether one of the three flags is there.
bool explores(const Options& options);
/// One tile of D and five k-tiles, which is enough for a ring to go round.
gemm::Shape explored_shape(const gemm::Variant& variant);
/// Returns the exit status.
int run_exploration(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                    const Options& options, bool has_seconds);

}  // namespace harness
