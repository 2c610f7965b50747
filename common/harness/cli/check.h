// --check: every kernel on every shape and input pattern, verified.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/cli/cli_options.h"
#include "harness/cli/selection.h"

namespace harness {

/// Prints a line for each check and appends what it found to `checks`, with --counters what was counted;
/// false when a result was wrong.
bool check_shapes(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                  const Options& options, const DeviceInfo& device, nlohmann::json& checks);

/// What a bare --check does on the emulator: each entry at the shapes and under the schedules that exercise
/// it (plan_check), with exact inputs, and at the first of them with random inputs too; where no variant was
/// named, the step's other variants at one shape each (plan_brief_check). `sms` above 0: on an
/// emulated GPU of so many SMs. Stops at the first wrong result of an entry.
bool check_planned(const std::vector<Entry>& entries, const Options& options, int sms,
                   nlohmann::json& checks);

}  // namespace harness
