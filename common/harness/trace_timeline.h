// From states to spans: the timeline of every role, and the file that Perfetto opens.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gemm/step.h"
#include "harness/trace_data.h"

namespace harness {

/// What a role did from when to when, in clocks. Numbers that do not apply are -1.
struct TraceSpan {
  std::string name;  // "wait full", "wait empty", "wait turn", "issue", "multiply", "epilogue", "wait store", ...
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

/// The roles that did something. `k_per_multiply`: how deep one multiplication of the step's tile functions
/// is: a k-tile, or 16 with mma.sync.
std::vector<TraceTimeline> timelines(const TraceData& data, int tile_k, int k_per_multiply);

/// Clocks of each name over all timelines of a role.
std::map<std::string, double> clocks_by_name(const TraceTimeline& timeline);

/// Chrome's trace event format: one event a line. `about` goes into otherData.
std::string trace_json(const TraceData& data, const std::vector<TraceTimeline>& timelines,
                       const nlohmann::ordered_json& about);

}  // namespace harness
