#include "harness/trace/trace_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/base/problem.h"

namespace harness {
namespace {

using gemm::ptx::TraceState;
using Json = nlohmann::ordered_json;

// Perfetto takes pid 0 and tid 0 for the idle task, and a tid for one of the whole machine.
constexpr int kFirstProcess = 1;    // pid of CTA 0
constexpr int kSmProcess = 100000;  // pid of SM 0: behind those of the CTAs
int thread_id(int pid, int track) {
  return 100 * pid + track;
}

const char* name_of(TraceState state) {
  switch (state) {
    case TraceState::kWaitFull:
      return "wait full";
    case TraceState::kWaitEmpty:
      return "wait empty";
    case TraceState::kWaitOrder:
      return "wait order";
    case TraceState::kIssue:
      return "issue";
    case TraceState::kMultiply:
    case TraceState::kDrain:
      return "multiply";
    case TraceState::kEpilogue:
      return "epilogue";
    case TraceState::kWaitStore:
      return "wait store";
    case TraceState::kWaitSource:
      return "wait source";
    case TraceState::kStore:
      return "store";
    case TraceState::kPass:
      return "pass partials";
    default:
      return "";
  }
}

/// kFill is part of an issue that ends with a commit (cp.async); without one it is st.shared, which waits for
/// the loads. kCommit ends an issue. kPass at the end of what it names covers the time before it.
std::vector<TimedState> resolved(std::vector<TimedState> states) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    TraceState& state = states[i].state.state;
    if (state == TraceState::kFill) {
      std::size_t next = i;
      while (next < states.size() && (states[next].state.state == TraceState::kFill ||
                                      states[next].state.state == TraceState::kIssue)) {
        ++next;
      }
      const bool commits = next < states.size() && states[next].state.state == TraceState::kCommit;
      state = commits ? TraceState::kIssue : TraceState::kWaitFull;
    }
    const bool ends = i + 1 < states.size() && states[i + 1].state.state == TraceState::kNone;
    const bool unnamed = i > 0 && (states[i - 1].state.state == TraceState::kNone ||
                                   states[i - 1].state.state == TraceState::kStore);
    if (state == TraceState::kPass && ends && unnamed) {
      states[i - 1].state.state = TraceState::kPass;
      state = TraceState::kNone;
    }
  }
  for (TimedState& timed : states) {
    if (timed.state.state == TraceState::kCommit) timed.state.state = TraceState::kNone;
  }
  return states;
}

bool is_output(const std::string& name) {
  return name == "store" || name == "epilogue" || name == "pass partials";
}

/// Gives the spans of a role their numbers.
class Numbering {
 public:
  explicit Numbering(int tile_k) : tile_k_(tile_k) {}

  TraceSpan span(TraceState state, const gemm::ptx::TraceRecord& record, bool continues) {
    TraceSpan span;
    span.name = name_of(state);
    span.stage = record.stage;
    span.k_tile = record.k_tile;
    if (is_output(span.name)) {
      output_ = output_ || !in_flight_;  // step 54 waits for its stores in the main loop, too
    } else if (output_ && (state == TraceState::kMultiply || state == TraceState::kWaitFull ||
                           state == TraceState::kWaitOrder)) {
      output_ = false;
      multiplied_ = 0;
      ++tile_;
    } else if (state == TraceState::kWaitOrder && record.role == 'i' && multiplied_ > 0) {
      multiplied_ = 0;  // the issuer stores nothing: it asks for the next accumulator
      ++tile_;
    }
    switch (state) {
      case TraceState::kWaitFull:
        full_ = record;
        break;
      case TraceState::kWaitEmpty:
        if (record.k_tile < empty_.k_tile) ++loaded_tiles_;
        empty_ = record;
        has_empty_ = true;
        break;
      case TraceState::kIssue:
        if (has_empty_) {
          span.stage = empty_.stage;
          span.k_tile = empty_.k_tile;
        } else {
          if (!continues) ++issued_;
          span.k_tile = issued_ - 1;
        }
        break;
      case TraceState::kMultiply:
        span.stage = full_.stage;
        span.k_tile = full_.k_tile >= 0 ? full_.k_tile : multiplied_ / tile_k_;
        multiplied_ += record.stage > 0 ? record.stage : tile_k_;
        in_flight_ = record.stage <= 0;
        break;
      case TraceState::kDrain:
        in_flight_ = false;
        span.drain = true;
        break;
      default:
        break;
    }
    const bool produces = state == TraceState::kWaitEmpty || (state == TraceState::kIssue && has_empty_);
    span.tile = produces ? loaded_tiles_ : tile_;
    return span;
  }

 private:
  int tile_k_;
  gemm::ptx::TraceRecord full_;
  gemm::ptx::TraceRecord empty_;
  bool has_empty_ = false;
  bool output_ = false;
  bool in_flight_ = false;  // wgmma that nobody has waited for
  int issued_ = 0;
  int multiplied_ = 0;  // of K, of this tile
  int tile_ = 0;
  int loaded_tiles_ = 0;
};

std::string role_name(const TraceRole& role) {
  bool produces = false;
  bool consumes = false;
  bool issues = false;
  bool stores = false;
  for (const TimedState& timed : role.states) {
    produces = produces || timed.state.role == 'p';
    consumes = consumes || timed.state.role == 'c';
    issues = issues || timed.state.role == 'i';
    stores = stores || timed.state.role == 'e';
  }
  if (produces && !consumes) return "producer";
  if (consumes && issues) return "issuer";
  if (stores && !consumes && !issues) return "epilogue";
  if (consumes) return fmt::format("consumer {}{}", role.warpgroup, produces ? ", producer" : "");
  return fmt::format("warps {}-{}", 4 * role.warpgroup, 4 * role.warpgroup + 3);
}

std::vector<TraceSpan> spans_of(const TraceRole& role, int tile_k) {
  const std::vector<TimedState> states = resolved(role.states);
  Numbering numbering(tile_k);
  std::vector<TraceSpan> spans;
  TraceState before = TraceState::kNone;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const TraceState state = states[i].state.state;
    const double end = i + 1 < states.size() ? states[i + 1].clock : std::max(role.end, states[i].clock);
    const TraceState last = before;
    before = state;
    if (state == TraceState::kNone) continue;
    TraceSpan span = numbering.span(state, states[i].state, last == state);
    span.begin = states[i].clock;
    span.end = end;
    if (!spans.empty()) {
      TraceSpan& previous = spans.back();
      // The wait for a group just issued belongs to its multiplication.
      if (state == TraceState::kDrain && last == TraceState::kMultiply) {
        previous.end = end;
        before = TraceState::kMultiply;
        continue;
      }
      const bool same = last == state && previous.stage == span.stage && previous.k_tile == span.k_tile &&
                        previous.tile == span.tile;
      if (same) {
        previous.end = end;
        continue;
      }
    }
    spans.push_back(span);
  }
  return spans;
}

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

Json complete_event(const std::string& name, int pid, int tid, double begin, double end, double clock_mhz,
                    Json arguments) {
  arguments["clock"] = std::llround(begin);
  arguments["clocks"] = std::llround(end - begin);
  return {{"name", name},
          {"ph", "X"},
          {"pid", pid},
          {"tid", tid},
          {"ts", rounded(begin / clock_mhz)},
          {"dur", rounded((end - begin) / clock_mhz)},
          {"args", arguments}};
}

Json metadata(const char* what, int pid, int tid, const Json& arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", arguments}};
}

/// Spans that overlap get lanes: the first that is free.
class Lanes {
 public:
  int take(double begin, double end) {
    std::size_t lane = 0;
    while (lane < free_.size() && free_[lane] > begin) ++lane;
    if (lane == free_.size()) free_.push_back(0);
    free_[lane] = end;
    return static_cast<int>(lane);
  }
  std::size_t count() const { return free_.size(); }

 private:
  std::vector<double> free_;
};

/// The engines of the SMs that the recorded CTAs ran on.
void add_engines(const TraceData& data, const std::set<int>& sms, Json& events) {
  constexpr int kCopyTrack = 10;
  constexpr int kStoreTrack = 50;
  for (const int sm : sms) {
    const int pid = kSmProcess + sm;
    const int tensor_cores = thread_id(pid, 0);
    events.push_back(metadata("process_name", pid, tensor_cores, {{"name", fmt::format("SM {}", sm)}}));
    events.push_back(metadata("thread_name", pid, tensor_cores, {{"name", "tensor cores"}}));
    std::vector<EngineSpan> spans;
    for (const EngineSpan& span : data.engines) {
      if (span.sm == sm) spans.push_back(span);
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const EngineSpan& a, const EngineSpan& b) { return a.begin < b.begin; });
    Lanes copies;
    Lanes stores;
    for (const EngineSpan& span : spans) {
      Json arguments{{"cta", span.cta}};
      if (span.kind == EngineSpan::Kind::kTensorCores) {
        arguments["consumer"] = span.warpgroup;
        events.push_back(
            complete_event("multiply", pid, tensor_cores, span.begin, span.end, data.clock_mhz, arguments));
        continue;
      }
      const bool is_copy = span.kind == EngineSpan::Kind::kCopy;
      arguments["bytes"] = span.bytes;
      const int track = is_copy ? kCopyTrack + copies.take(span.begin, span.end)
                                : kStoreTrack + stores.take(span.begin, span.end);
      events.push_back(complete_event(is_copy ? "copy" : "store", pid, thread_id(pid, track), span.begin,
                                      span.end, data.clock_mhz, arguments));
    }
    for (std::size_t lane = 0; lane < copies.count(); ++lane) {
      events.push_back(metadata("thread_name", pid, thread_id(pid, kCopyTrack + static_cast<int>(lane)),
                                {{"name", fmt::format("copies, {} at once", lane + 1)}}));
    }
    for (std::size_t lane = 0; lane < stores.count(); ++lane) {
      events.push_back(metadata("thread_name", pid, thread_id(pid, kStoreTrack + static_cast<int>(lane)),
                                {{"name", fmt::format("stores, {} at once", lane + 1)}}));
    }
  }
}

}  // namespace

std::vector<TraceTimeline> timelines(const TraceData& data, int tile_k) {
  std::vector<TraceTimeline> all;
  for (const TraceRole& role : data.roles) {
    TraceTimeline timeline{role_name(role), role.cta, role.sm, spans_of(role, tile_k)};
    if (!timeline.spans.empty()) all.push_back(std::move(timeline));
  }
  // The producer first: what it does comes before.
  std::stable_sort(all.begin(), all.end(), [](const TraceTimeline& a, const TraceTimeline& b) {
    return std::pair(a.cta, a.role != "producer") < std::pair(b.cta, b.role != "producer");
  });
  return all;
}

std::map<std::string, double> clocks_by_name(const TraceTimeline& timeline) {
  std::map<std::string, double> clocks;
  for (const TraceSpan& span : timeline.spans) clocks[span.name] += span.end - span.begin;
  return clocks;
}

const char* time_axis(const TraceData& data) {
  return data.is_model
             ? "not measured: the emulator's operations with times from the model in docs/timelines.md"
             : "measured: the clock of each SM, aligned by globaltimer";
}

Json about_trace(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape, int sms,
                 const TraceData& data) {
  Json about{{"schema", 1},
             {"step", step.name},
             {"variant", variant.name},
             {"shape", to_string(shape)},
             {"tile", {variant.tile.m, variant.tile.n, variant.tile.k}},
             {"stages", variant.stages},
             {"ctas", data.ctas},
             {"sms", sms},
             {"backend", data.is_model ? "model" : "gpu"},
             {"time", time_axis(data)},
             {"clock_mhz", data.clock_mhz}};
  if (data.is_model) about["ctas_per_sm"] = data.ctas_per_sm;
  for (const NamedNumber& constant : data.constants) {
    about["model"].push_back({{"name", constant.name},
                              {"value", constant.value},
                              {"unit", constant.unit},
                              {"source", constant.source}});
  }
  return about;
}

std::string trace_json(const TraceData& data, const std::vector<TraceTimeline>& all, const Json& about) {
  Json events = Json::array();
  std::map<int, int> roles;  // of a CTA so far
  std::set<int> sms;
  for (const TraceTimeline& timeline : all) {
    const int pid = kFirstProcess + timeline.cta;
    const int tid = thread_id(pid, roles[timeline.cta]++);
    sms.insert(timeline.sm);
    if (roles[timeline.cta] == 1) {
      const std::string name = fmt::format("CTA {} on SM {}", timeline.cta, timeline.sm);
      events.push_back(metadata("process_name", pid, tid, {{"name", name}}));
    }
    events.push_back(metadata("thread_name", pid, tid, {{"name", timeline.role}}));
    for (const TraceSpan& span : timeline.spans) {
      Json arguments = Json::object();
      if (span.stage >= 0) arguments["stage"] = span.stage;
      if (span.k_tile >= 0) arguments["k_tile"] = span.k_tile;
      arguments["tile"] = span.tile;
      if (span.drain) arguments["drain"] = true;
      events.push_back(complete_event(span.name, pid, tid, span.begin, span.end, data.clock_mhz, arguments));
    }
  }
  if (data.is_model) add_engines(data, sms, events);
  std::string text =
      fmt::format("{{\"displayTimeUnit\": \"ns\",\n\"otherData\": {},\n\"traceEvents\": [\n", about.dump());
  for (std::size_t i = 0; i < events.size(); ++i) {
    text += events[i].dump();
    text += i + 1 < events.size() ? ",\n" : "\n]}\n";
  }
  return text;
}

}  // namespace harness
