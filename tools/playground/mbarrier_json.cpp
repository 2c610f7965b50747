#include "mbarrier_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ptx/mbarrier_word.h"

namespace play {

std::string answer_text(const Event& event, const Observation& observation) {
  if (event.verb == Verb::kTest) return observation.answer != 0 ? "yes: complete" : "no: not complete";
  if (event.verb == Verb::kWait) return observation.answer != 0 ? "passed" : "gave up";
  return "";
}

Ending ending(const std::vector<Event>& events, const ScriptRun& run) {
  Ending end;
  end.reached = static_cast<std::size_t>(std::count_if(run.observations.begin(), run.observations.end(),
                                                       [](const Observation& o) { return o.seen != 0; }));
  if (!run.rule.empty()) {
    end.sentence = end.reached < events.size()
                       ? fmt::format("event {}, '{}': the emulator reports {}", end.reached + 1,
                                     events[end.reached].text, run.rule)
                       : fmt::format("after the last event: the emulator reports {}", run.rule);
    end.status = harness::kExitEmulator;
  } else if (!run.crash.empty()) {
    end.sentence = fmt::format("event {}, '{}': {}", end.reached + 1, events[end.reached].text, run.crash);
    end.status = harness::kExitMismatch;
  } else if (events[end.reached - 1].verb == Verb::kWait && run.observations[end.reached - 1].answer == 0) {
    end.sentence =
        fmt::format("event {}, '{}': no earlier event completes this phase, so a kernel would hang",
                    end.reached, events[end.reached - 1].text);
    end.status = harness::kExitMismatch;
  }
  return end;
}

std::string script_json(const std::string& script, const std::vector<Event>& events, const ScriptRun& run) {
  using Json = nlohmann::ordered_json;
  Json file{{"script", script}, {"events", Json::array()}};
  std::uint64_t phase = 0;
  for (std::size_t i = 0; i < events.size() && run.observations[i].seen != 0; ++i) {
    const Observation& seen = run.observations[i];
    Json event{{"event", events[i].text}};
    if (events[i].verb != Verb::kInval) {
      const gemm::ptx::MbarrierWord word = gemm::ptx::decode_mbarrier(seen.word);
      if (events[i].verb == Verb::kInit) phase = 0;
      phase += (phase & 1) != word.parity ? 1 : 0;  // no single event completes two
      event.update({{"word", fmt::format("{:#018x}", seen.word)},
                    {"phase", phase},
                    {"count", word.count},
                    {"pending", word.pending},
                    {"tx", word.tx},
                    {"passes", {(seen.complete & 1) != 0, (seen.complete >> 1 & 1) != 0}}});
      const std::string answer = answer_text(events[i], seen);
      if (!answer.empty()) event["answer"] = answer;
    }
    file["events"].push_back(std::move(event));
  }
  const Ending end = ending(events, run);
  file["ending"] = end.sentence;
  // The event that the report is about was not reached.
  if (end.reached < events.size() && end.status == harness::kExitEmulator)
    file["stopped_at"] = events[end.reached].text;
  file["report"] = run.report;
  return file.dump() + '\n';
}

}  // namespace play
