// A step on the emulator, as its mbarriers saw it: what happened to each barrier, and in which phase.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command_line.h"
#include "emulator/machine/options.h"
#include "emulator/report/event_log.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "step_table.h"

namespace play {
namespace {

constexpr const char* kEventsFooter =
    R"(Runs one launch of a step on the emulator and prints every event at its mbarriers, in the emulator's order:
initialisation, expected bytes, arrivals, copies that are issued and bytes that arrive, waits that pass, phases
that complete, and wgmma instructions. Waits of many threads for one phase are one line, at the place where the first
of them passes. The columns show the barrier after the event: its current phase, and the arrivals and bytes that are missing.
"phase" is not an instruction: a phase has completed, and the next one begins.

  tools/play events 11                                       # a ring of two stages, five k-tiles
  tools/play events 11 --variant 128x128_stages3 --shape 128x128x512 --schedule-seed 7
  tools/play events 11 --shape 128x128x256 --completion latest
  tools/play events 11 --slow-warps 0-3                     # these warps go on only where nothing else can
  tools/play events 11 --json events.jsonl                  # one JSON object per line)";

constexpr const char* kUsualStep = "11";  // tools/play builds this one where none is named
// More than a thousand lines are too many to read.
constexpr double kMostProducts = 512.0 * 512 * 512;
constexpr const char* kUsualVariant = "128x128_stages2";

emulator::Completion parse_completion(const std::string& text) {
  if (text == "random") return emulator::Completion::kRandom;
  if (text == "earliest") return emulator::Completion::kEarliest;
  if (text == "latest") return emulator::Completion::kLatest;
  throw harness::Error(fmt::format("--completion is '{}'; it must be random, earliest or latest", text));
}

/// "0-3,8": a bit for each warp.
std::uint64_t parse_warps(const std::string& text) {
  constexpr std::uint64_t kMostWarps = 32;  // of a CTA
  std::uint64_t warps = 0;
  if (text.empty()) return warps;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> ends = split(part, '-');
    if (ends.size() > 2)
      throw harness::Error(fmt::format("--slow-warps is '{}'; it must be warps such as 0-3 or 4,5", text));
    const std::uint64_t first = parse_number("--slow-warps", ends.front(), kMostWarps - 1);
    const std::uint64_t last = parse_number("--slow-warps", ends.back(), kMostWarps - 1);
    if (first > last)
      throw harness::Error(
          fmt::format("--slow-warps is '{}'; the first warp of a range must not be after the last", text));
    for (std::uint64_t warp = first; warp <= last; ++warp) warps |= std::uint64_t{1} << warp;
  }
  return warps;
}

/// The launch's events. What the emulator reports is thrown on when the log is complete.
std::string record(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                   const emulator::Options& options) {
  harness::Workload workload(shape, harness::Pattern::kExact, 1, harness::form_of(step, variant));
  workload.poison();
  const emulator::ScopedOptions scope(options);
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  std::ostringstream lines;
  emulator::EventLog::begin(lines);
  try {
    launcher(nullptr);
  } catch (...) {
    emulator::EventLog::end();
    throw;
  }
  emulator::EventLog::end();
  const harness::CheckResult result = workload.check(variant.tile);
  if (!result.ok)
    throw harness::Error(fmt::format("{} computed a wrong result: {}", step.name, result.report));
  return lines.str();
}

/// "mbarrier full[1] (shared + 0x18048)" -> "full[1]".
std::string short_name(const std::string& barrier) {
  std::string name = barrier.substr(0, barrier.find(" ("));
  if (name.rfind("mbarrier ", 0) == 0) name.erase(0, 9);
  return name;
}

/// Without the folder.
std::string short_place(const std::string& place) {
  return place.substr(place.rfind('/') + 1);
}

using LoggedEvent = nlohmann::ordered_json;

constexpr int kWarpsPerGroup = 4;

/// The events with what many threads do alike as one: waits of a warpgroup for the same phase at the same
/// place (the first of them, with "threads" and the time "last_t" of the last), and the wgmma instructions of
/// a warpgroup that follow each other ("instructions").
std::vector<LoggedEvent> condense(const std::string& lines) {
  std::vector<LoggedEvent> events;
  std::map<std::string, std::size_t> waits;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    LoggedEvent event = LoggedEvent::parse(line);
    const std::string name = event["event"];
    if (name.find("wait") != std::string::npos && event.contains("phase")) {
      const std::string key =
          fmt::format("{} {} {} {} {} {}", event["cta"].get<std::string>(),
                      event["warp"].get<int>() / kWarpsPerGroup, name, event["barrier"].get<std::string>(),
                      event["phase"].get<std::uint64_t>(), event["where"].get<std::string>());
      const auto [found, is_new] = waits.try_emplace(key, events.size());
      if (!is_new) {
        LoggedEvent& first = events[found->second];
        first["threads"] = first["threads"].get<int>() + 1;
        first["last_t"] = event["t"];
        continue;
      }
      event["threads"] = 1;
      event["last_t"] = event["t"];
    }
    if (name == "wgmma") {
      if (!events.empty() && events.back()["event"] == "wgmma" && events.back()["warp"] == event["warp"]) {
        events.back()["instructions"] = events.back()["instructions"].get<int>() + 1;
        continue;
      }
      event["instructions"] = 1;
    }
    events.push_back(std::move(event));
  }
  return events;
}

/// The columns of an event.
struct Row {
  std::string cta;
  std::string barrier;
  std::string what;
  std::string state;
  std::string by;
  std::string where;
};

Row row_of(const LoggedEvent& event) {
  Row row{.cta = event["cta"],
          .barrier = {},
          .what = event["event"],
          .state = fmt::format("{:>21}", ""),
          .by = "engine",
          .where = short_place(event["where"])};
  if (event.contains("bytes")) row.what += fmt::format(", {} bytes", event["bytes"].get<std::int64_t>());
  if (event.contains("instructions"))
    row.what += fmt::format(", {} instructions", event["instructions"].get<int>());
  if (event.contains("barrier")) {
    row.barrier = short_name(event["barrier"]);
    row.state = fmt::format("{:>5} {:>8} {:>6}", event["phase"].get<std::uint64_t>(),
                            event["pending"].get<std::int64_t>(), event["tx"].get<std::int64_t>());
  }
  if (event.contains("thread")) row.by = fmt::format("thread {}", event["thread"].get<int>());
  if (event["event"] == "phase") row.by = "";
  if (event.contains("threads") && event["threads"] != 1)
    row.by = fmt::format("{} threads", event["threads"].get<int>());
  if (event.contains("instructions")) row.by = fmt::format("warp {}", event["warp"].get<int>());
  return row;
}

void print_table(const std::vector<LoggedEvent>& events, Output& output) {
  std::vector<Row> rows;
  std::size_t barrier = 10;
  std::size_t what = 39;
  for (const LoggedEvent& event : events) {
    rows.push_back(row_of(event));
    barrier = std::max(barrier, rows.back().barrier.size());
    what = std::max(what, rows.back().what.size());
  }
  output.text += fmt::format("{:<9} {:<{}} {:<{}} {:>5} {:>8} {:>6}  {:<12} {}\n", "CTA", "barrier", barrier,
                             "event", what, "phase", "arrivals", "bytes", "by", "where");
  for (const Row& row : rows) {
    output.text += fmt::format("{:<9} {:<{}} {:<{}} {}  {:<12} {}\n", row.cta, row.barrier, barrier, row.what,
                               what, row.state, row.by, row.where);
  }
}

}  // namespace

int events(const std::vector<std::string>& arguments, Output& output) {
  CLI::App app{"Prints what one launch of a step does at its mbarriers, on the emulator.",
               "tools/play events"};
  std::string step_name = kUsualStep;
  std::string variant_name;
  std::string shape_text = "128x128x320";
  std::string seed = "1";
  std::string completion = "random";
  std::string slow_warps;
  std::string json;
  app.add_option("step", step_name, "A step with mbarriers: 09 and later")->capture_default_str();
  app.add_option("--variant", variant_name,
                 "Variant of the step (default: the step's own; for step 11, 128x128_stages2)");
  app.add_option("--shape", shape_text, "M x N x K; small shapes give short logs")->capture_default_str();
  app.add_option("--schedule-seed", seed, "Seed of the emulator's scheduler")->capture_default_str();
  app.add_option("--completion", completion, "When copies and wgmma complete: random, earliest or latest")
      ->capture_default_str();
  app.add_option("--slow-warps", slow_warps, "Warps that go on only where nothing else can, such as 4-7");
  app.add_option("--json", json, "Write the events to this file instead, one JSON object per line");
  app.footer(kEventsFooter);
  return run(app, arguments, output, [&] {
    const std::vector<const gemm::Step*> steps = gemm::all_steps();
    const gemm::Step& step = harness::find_step(steps, step_name);
    if (variant_name.empty() && std::string(step.name).rfind(kUsualStep, 0) == 0)
      variant_name = kUsualVariant;
    const gemm::Variant& variant = harness::find_variant(step, variant_name);
    const gemm::Shape shape = harness::parse_shape(shape_text);
    harness::check_contract(step, shape);
    if (static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) >
        kMostProducts) {
      throw harness::Error(fmt::format(
          "{} is too large to be logged on the emulator; take at most as many products as 512x512x512 has",
          harness::to_string(shape)));
    }
    emulator::Options options;
    options.seed = parse_number("--schedule-seed", seed, ~std::uint64_t{0});
    options.completion = parse_completion(completion);
    options.slow_warps = parse_warps(slow_warps);
    options.os_threads = 1;  // the lines of CTAs that run side by side would interleave
    const std::string lines = record(step, variant, shape, options);
    if (lines.find("\"barrier\"") == std::string::npos)
      throw harness::Error(fmt::format("{} uses no mbarriers; the first step that does is 09", step.name));
    const std::vector<LoggedEvent> events = condense(lines);
    if (json.empty()) {
      output.text += fmt::format("{} {}, {}, seed {}, completion {}\n", step.name, variant.name,
                                 harness::to_string(shape), seed, completion);
      print_table(events, output);
    } else {
      std::string text;
      for (const LoggedEvent& event : events) text += event.dump() + '\n';
      write_file(json, text);
      output.text += fmt::format("{} events are in {}\n", events.size(), json);
    }
    return harness::kExitOk;
  });
}

}  // namespace play
