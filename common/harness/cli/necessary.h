// --necessary and --without.
#pragma once

#include <string>
#include <vector>

#include "harness/backend/ordering_control.h"
#include "harness/cli/cli_options.h"
#include "harness/cli/selection.h"

namespace harness {

/// Returns the exit status.
int run_necessary(const std::vector<Entry>& entries, const Options& options, bool has_seconds);

/// Leaves the statement out for the rest of the process. Throws Error where the text names none, or several.
void leave_out_named(const std::vector<OrderingStatement>& all, const std::string& text);

}  // namespace harness
