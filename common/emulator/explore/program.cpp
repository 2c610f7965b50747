// What --explore, --shrink and --replay print.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "emulator/explore/search.h"
#include "emulator/report/event_log.h"
#include "emulator/report/report.h"
#include "harness/backend/backend.h"
#include "harness/backend/explore_control.h"

namespace emulator::explore {
namespace {

constexpr const char* kFirstLine = "schedule of ";
constexpr const char* kRuleLine = "fails with ";
constexpr const char* kWrongResult = "wrong-result";

std::string counted(std::uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

RunOnce run_of(const harness::ScheduledRun& run) {
  return [&run] {
    const harness::ScheduleResult result = run();
    return Outcome{result.ok, result.rule, result.report};
  };
}

int status_of(const Outcome& outcome) {
  if (outcome.ok) return harness::kExitOk;
  return outcome.rule == kWrongResult ? harness::kExitMismatch : harness::kExitEmulator;
}

/// Threads of one warp that do the same at one place, one after the other, are one line.
struct Line {
  ActorKey actor;  // the first
  std::vector<std::uint32_t> threads;
  const Step* step;
};

bool continues(const Line& line, const Step& step) {
  return step.actor.kind == ActorKind::kThread && line.actor.kind == ActorKind::kThread &&
         line.actor.gang == step.actor.gang && line.actor.cta == step.actor.cta &&
         line.actor.thread / kWarpSize == step.actor.thread / kWarpSize && line.step->what == step.what &&
         line.step->where == step.where;
}

std::vector<Line> lines_of(const Schedule& schedule) {
  std::vector<Line> lines;
  for (const Step& step : schedule.steps) {
    if (lines.empty() || !continues(lines.back(), step)) lines.push_back({step.actor, {}, &step});
    lines.back().threads.push_back(step.actor.thread);
  }
  return lines;
}

bool has_several_ctas(const Schedule& schedule) {
  return std::any_of(schedule.steps.begin(), schedule.steps.end(),
                     [&](const Step& step) { return step.actor.cta != schedule.steps.front().actor.cta; });
}

std::string who(const Line& line, bool several) {
  std::string text;
  if (line.actor.kind == ActorKind::kThread) {
    std::vector<std::uint32_t> threads = line.threads;
    std::sort(threads.begin(), threads.end());
    text = ranges("thread", threads);
  } else {
    text = fmt::format("{} {} of thread {}",
                       line.actor.kind == ActorKind::kLoad     ? "copy"
                       : line.actor.kind == ActorKind::kCopies ? "cp.async arrival"
                                                               : "commit",
                       line.actor.number + 1, line.actor.thread);
  }
  return several ? fmt::format("CTA {}, {}", line.actor.cta, text) : text;
}

/// A table of the steps.
std::string table_of(const Schedule& schedule) {
  const std::vector<Line> lines = lines_of(schedule);
  const bool several = has_several_ctas(schedule);
  std::size_t width = 0;
  std::size_t widest = 0;
  for (const Line& line : lines) {
    width = std::max(width, who(line, several).size());
    widest = std::max(widest, line.step->what.size());
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Step& step = *lines[i].step;
    text += fmt::format("  {:>3}  {:<{}}  {:<{}}  {}", i + 1, who(lines[i], several), width, step.what,
                        step.where.empty() ? 0 : widest, step.where);
    while (text.back() == ' ') text.pop_back();
    text += '\n';
  }
  return text;
}

std::string file_of(const harness::ScheduleRequest& request, const Schedule& schedule) {
  std::string text =
      fmt::format("{}{}\n{}{}\n", kFirstLine, request.subject, kRuleLine, schedule.outcome.rule);
  std::size_t width = 0;
  for (const Step& step : schedule.steps) width = std::max(width, explore::text(step.actor).size());
  for (const Step& step : schedule.steps) {
    text += fmt::format("{:<{}}  # {}{}{}\n", explore::text(step.actor), width, step.what,
                        step.where.empty() ? "" : " at ", step.where);
  }
  return text;
}

std::vector<ActorKey> read_schedule(const harness::ScheduleRequest& request, std::string& rule) {
  std::ifstream file(request.file);
  if (!file)
    throw harness::Error(
        fmt::format("{} cannot be read: name a file that --explore has written", request.file));
  const auto refuse = [&](const std::string& what) {
    throw harness::Error(fmt::format("{} is no schedule: {}", request.file, what));
  };
  std::string line;
  if (!std::getline(file, line) || !line.starts_with(kFirstLine))
    refuse(fmt::format("its first line must begin with '{}'", kFirstLine));
  if (const std::string subject = line.substr(std::string(kFirstLine).size()); subject != request.subject)
    throw harness::Error(
        fmt::format("{} is a schedule of {}, but this is {}: name the same kernel, variant and shape",
                    request.file, subject, request.subject));
  if (!std::getline(file, line) || !line.starts_with(kRuleLine))
    refuse(fmt::format("its second line must begin with '{}'", kRuleLine));
  rule = line.substr(std::string(kRuleLine).size());
  std::vector<ActorKey> actors;
  for (int number = 3; std::getline(file, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (line.empty()) continue;
    const std::optional<ActorKey> actor = parse_actor(line);
    if (!actor)
      refuse(
          fmt::format("'{}' in line {} is neither a thread (thread 0.0.32) nor an operation", line, number));
    actors.push_back(*actor);
  }
  return actors;
}

/// Throws Error where the failing schedule cannot be written, or would replace what is no schedule.
void check_file(const harness::ScheduleRequest& request) {
  std::ifstream before(request.file);
  std::string first;
  if (before && std::getline(before, first) && !first.starts_with(kFirstLine))
    throw harness::Error(fmt::format(
        "'{}' is there already and is no schedule; name another file with --schedule", request.file));
  request.output.check_writable(request.file);
}

/// Writes the failing schedule and prints it.
int tell_failing(const harness::ScheduleRequest& request, const Schedule& schedule) {
  request.output.write_text(request.file, file_of(request, schedule));
  fmt::print("{}", table_of(schedule));
  fmt::print("{}\n", request.output.fitted(fmt::format("the schedule is in {}; to walk through it: {}",
                                                       request.file, request.replay_command)));
  fmt::print("{}\n", schedule.outcome.report);
  return status_of(schedule.outcome);
}

std::string steps_text(std::uint64_t steps) {
  return counted(steps, "step");
}

}  // namespace
}  // namespace emulator::explore

namespace harness {

using emulator::explore::End;
using emulator::explore::Found;
using emulator::explore::Schedule;

Explored explore_quietly(const ScheduledRun& run, double seconds) {
  emulator::explore::Limits limits;
  limits.seconds = seconds;
  limits.seconds_after_failure = 0;  // one failure says enough
  limits.shortens = false;
  const Found found = search(emulator::explore::run_of(run), limits);
  Explored explored{.schedules = found.schedules, .fails = found.failing > 0};
  explored.end = found.end == End::kAll           ? Explored::End::kAll
                 : found.end == End::kNotExplored ? Explored::End::kNotExplored
                                                  : Explored::End::kLimit;
  if (found.shortest) {
    const emulator::explore::Outcome& outcome = found.shortest->outcome;
    explored.failure = {outcome.ok, outcome.rule, outcome.report};
  }
  return explored;
}

int explore_schedules(const ScheduleRequest& request, const ScheduledRun& run) {
  emulator::explore::check_file(request);
  emulator::explore::Limits limits;
  limits.seconds = request.seconds;
  const auto progress = [&](std::uint64_t schedules) {
    if (schedules % 16 == 0)
      request.output.show_progress(fmt::format("exploring {}: {} schedules", request.subject, schedules));
    return true;
  };
  const Found found = search(emulator::explore::run_of(run), limits, progress);
  request.output.clear_progress();
  const std::string cost =
      fmt::format("{:.1f} s, {} cut short", found.seconds, emulator::explore::counted(found.cut, "run"));
  if (found.shortest) {
    fmt::print(
        "{}\n",
        request.output.fitted(fmt::format(
            "{}: failing schedules: {} of {}, which break {}; the shortest of them has {}, of which the "
            "failure needs "
            "{}{} "
            "({})",
            request.subject, found.failing, found.schedules, fmt::join(found.rules, ", "),
            emulator::explore::steps_text(found.steps_before_cut), found.shortest->steps.size(),
            found.end == End::kAll ? "" : "; the search was not exhausted, so there may be a shorter one",
            cost)));
    return emulator::explore::tell_failing(request, *found.shortest);
  }
  switch (found.end) {
    case End::kAll:
      fmt::print("{}\n",
                 request.output.fitted(fmt::format(
                     "{}: every schedule is right. There {} in an order that matters, of up to {} ({})",
                     request.subject,
                     found.schedules == 1 ? "is 1, and no other differs from it"
                                          : fmt::format("are {} that differ", found.schedules),
                     emulator::explore::steps_text(found.most_steps), cost)));
      return kExitOk;
    case End::kNotExplored:
      fmt::print("{}\n", request.output.fitted(
                             fmt::format("{}: not explored, because {}", request.subject, found.reason)));
      return kExitUsage;
    default:
      fmt::print("{}\n", request.output.fitted(fmt::format(
                             "{}: not exhausted. {} that differ in an order that matters: all right, and "
                             "there are more ({}; the {} ended it)",
                             request.subject, emulator::explore::counted(found.schedules, "schedule"), cost,
                             found.end == End::kMemory ? "limit of memory" : "budget of time")));
      return kExitOk;
  }
}

int shrink_schedule(const ScheduleRequest& request, const ScheduledRun& run) {
  emulator::explore::check_file(request);
  Schedule recorded = record(emulator::explore::run_of(run));
  if (recorded.outcome.ok) {
    fmt::print("{}\n",
               request.output.fitted(
                   request.subject +
                   (recorded.steps.empty()
                        ? ": this schedule is right, so there is nothing to shrink"
                        : ": this schedule fails, but not when its operations are repeated one by one")));
    return recorded.steps.empty() ? kExitOk : kExitUsage;
  }
  const std::size_t before = recorded.steps.size();
  const Schedule shortest = shorten(emulator::explore::run_of(run), std::move(recorded), request.seconds);
  fmt::print("{}\n",
             request.output.fitted(fmt::format(
                 "{}: this schedule breaks {}; it has {}, of which the failure needs {}", request.subject,
                 shortest.outcome.rule, emulator::explore::steps_text(before), shortest.steps.size())));
  return emulator::explore::tell_failing(request, shortest);
}

int replay_schedule(const ScheduleRequest& request, const ScheduledRun& run) {
  std::string rule;
  const std::vector<emulator::explore::ActorKey> actors = emulator::explore::read_schedule(request, rule);
  std::ostringstream events;
  if (!request.events.empty()) {
    request.output.check_writable(request.events);
    emulator::EventLog::begin(events);
  }
  Schedule schedule;
  try {
    schedule = replay(emulator::explore::run_of(run), actors);
  } catch (...) {
    emulator::EventLog::end();
    throw;
  }
  emulator::EventLog::end();
  if (!request.events.empty()) request.output.write_text(request.events, events.str());
  fmt::print("{}: {} of {}\n{}", request.subject, emulator::explore::steps_text(schedule.steps.size()),
             request.file, emulator::explore::table_of(schedule));
  if (schedule.outcome.ok) {
    fmt::print("{}\n", request.output.fitted(fmt::format(
                           "after these steps nothing is broken, although the file says {}: the kernel, or a "
                           "flag, is not that of the search that wrote the file",
                           rule)));
  } else {
    fmt::print("{}\n", schedule.outcome.report);
  }
  if (!request.events.empty()) fmt::print("the events at each mbarrier are in {}\n", request.events);
  return schedule.outcome.ok ? kExitUsage : emulator::explore::status_of(schedule.outcome);
}

}  // namespace harness
