// What a recorded launch looks like before it becomes a timeline: the same for a GPU and for the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptx/trace_state.h"

namespace harness {

/// Times are clocks of the SM since the start of the launch.
struct TimedState {
  double clock = 0;
  gemm::ptx::TraceRecord state;
};

/// A warpgroup of a CTA, by what its first warp does.
struct TraceRole {
  int cta = 0;
  int sm = 0;
  int warpgroup = 0;
  std::vector<TimedState> states;
  double end = 0;
};

/// What an engine does; only the model knows.
struct EngineSpan {
  enum class Kind { kTensorCores, kCopy, kStore } kind = Kind::kTensorCores;
  int cta = 0;
  int sm = 0;
  int warpgroup = 0;  // kTensorCores: whose
  double begin = 0;
  double end = 0;
  std::int64_t bytes = 0;
};

struct NamedNumber {
  std::string name;
  double value = 0;
  std::string unit;
  std::string source;
};

struct TraceData {
  bool is_model = false;
  double clock_mhz = 0;
  int ctas = 0;                        // of the launch
  int ctas_per_sm = 0;                 // that an SM holds at once; only the model knows
  std::vector<TraceRole> roles;        // of the CTAs that were recorded
  std::vector<EngineSpan> engines;     // of all CTAs
  std::vector<NamedNumber> constants;  // of the model
};

}  // namespace harness
