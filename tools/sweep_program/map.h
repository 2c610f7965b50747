// What came out of a sweep, as text for the terminal and as JSON for the figure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cell.h"
#include "harness/record/record.h"

namespace sweep {

/// The name of the contestants in the record.
inline constexpr const char* kContestant = "sweep";

/// A table, M down and K across: the best ratio to cuBLASLt (without that baseline: TFLOP/s) and its number
/// of stages, or what does not fit; below it every reason. Cells that were not timed show a dash.
std::string map_text(const std::vector<Cell>& cells, const harness::ShapeRecord& shape);

/// The reasons, one line for each cell that does not fit.
std::string reasons_text(const std::vector<Cell>& cells);

/// [{"m", "n", "k", "instructions", "warpgroups", "most_stages", "limits": [{"what", "why"}]}]: every cell,
/// those that fit with empty limits.
nlohmann::json cells_json(const std::vector<Cell>& cells);

}  // namespace sweep
