// --check: every kernel on every shape and input pattern, verified.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gemm/step.h"
#include "harness/backend/backend.h"
#include "harness/cli/cli_options.h"
#include "harness/cli/selection.h"

namespace harness {

/// Prints a line for each check and appends what it found to `checks`, with --counters what was counted;
/// false when a result was wrong.
bool check_shapes(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                  const Options& options, const DeviceInfo& device, nlohmann::json& checks);

}  // namespace harness
