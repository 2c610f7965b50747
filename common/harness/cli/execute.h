// From what the command line names to what is done: refuses what is impossible, then acts.
#pragma once

#include <CLI/CLI.hpp>

#include "harness/cli/cli_options.h"
#include "harness/cli/selection.h"

namespace harness {

/// Returns the exit status. Throws Error for what this machine or these steps cannot do, before anything
/// runs.
int execute(const Selection& selection, Options options, const CLI::App& app);

}  // namespace harness
