// What a page about a broken rule or a wrong result is made of (tools/lib/report_page.py).
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/backend/trace_control.h"

namespace harness {

/// Runs `again`, which broke the rule of `report` (report_parts), with everything recorded, and writes it to
/// the file. `about`: a list of
/// ["what", "value"] that says which run it was. `timeline_about`: of the timeline's file.
void write_page_data(const std::string& path, const nlohmann::ordered_json& report,
                     const nlohmann::ordered_json& about, const std::function<void()>& again, int tile_k,
                     const std::function<nlohmann::ordered_json(const TraceData&)>& timeline_about);

}  // namespace harness
