#include "harness/cli/page_data.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "harness/base/output.h"
#include "harness/trace/trace_timeline.h"

namespace harness {

void write_page_data(const std::string& path, const nlohmann::ordered_json& report,
                     const nlohmann::ordered_json& about, const std::function<void()>& again, int tile_k,
                     const std::function<nlohmann::ordered_json(const TraceData&)>& timeline_about) {
  constexpr int kCtas = 4;
  const BrokenRun broken = record_broken_run(again, kCtas);
  nlohmann::ordered_json data = {{"schema", 1},
                                 {"report", report},
                                 {"about", about},
                                 {"recorded", broken.rule},
                                 {"events", broken.events},
                                 {"earlier", broken.earlier}};
  if (const std::vector<TraceTimeline> all = timelines(broken.timeline, tile_k); !all.empty())
    data["timeline"] = trace_json(broken.timeline, all, timeline_about(broken.timeline));
  write_text(path, data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace harness
