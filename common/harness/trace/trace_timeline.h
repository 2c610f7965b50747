// From states to spans: the timeline of every role, and the file that Perfetto opens.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/trace_data.h"

namespace harness {

/// What a role did from when to when, in clocks. Numbers that do not apply are -1.
struct TraceSpan {
  std::string
      name;  // "wait full", "wait empty", "wait order", "issue", "multiply", "epilogue", "wait store", ...
  double begin = 0;
  double end = 0;
  int stage = -1;
  int k_tile = -1;
  int tile = 0;        // counts the tiles of the role
  bool drain = false;  // multiply: the wait for what is still running at the end of a tile
};

struct TraceTimeline {
  std::string role;  // "producer", "consumer 0", "warps 0-3"
  int cta = 0;
  int sm = 0;
  std::vector<TraceSpan> spans;  // in order, without overlap
};

/// The roles that did something. A k-tile is `tile_k` deep.
std::vector<TraceTimeline> timelines(const TraceData& data, int tile_k);

/// Clocks of each name over all timelines of a role.
std::map<std::string, double> clocks_by_name(const TraceTimeline& timeline);

/// What was recorded and what the time axis is, for the file and for its reader.
nlohmann::ordered_json about_trace(const gemm::Step& step, const gemm::Variant& variant,
                                   const gemm::Shape& shape, int sms, const TraceData& data);
/// One sentence about where the times come from.
const char* time_axis(const TraceData& data);

/// Chrome's trace event format: one event a line. `about` goes into otherData.
std::string trace_json(const TraceData& data, const std::vector<TraceTimeline>& timelines,
                       const nlohmann::ordered_json& about);

}  // namespace harness
