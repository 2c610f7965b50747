// Every schedule of a launch, as the command line sees it. In a GPU build every function throws Error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace harness {

struct ScheduleResult {
  bool ok = true;
  std::string rule;    // that is broken, or "wrong-result"
  std::string report;  // for the terminal
};
/// Launches once, from the same beginning each time, and looks at the result.
using ScheduledRun = std::function<ScheduleResult()>;

/// How an answer leaves the program: functions of harness/base/output.h, of which a backend knows nothing.
struct AnswerOutput {
  void (*check_writable)(const std::string& path);
  void (*write_text)(const std::string& path, const std::string& text);
  std::string (*fitted)(std::string_view text);
  void (*show_progress)(const std::string& line);
  void (*clear_progress)();
};

struct ScheduleRequest {
  AnswerOutput output;
  std::string subject;         // what is launched: a schedule of something else is refused
  std::string replay_command;  // that walks through the schedule in the file
  double seconds = 300;
  std::string file;    // for the schedule that fails, or of the one to replay
  std::string events;  // replay: for what happens to each mbarrier; "": nothing is written
};

/// What a search has found, for who prints it.
struct Explored {
  enum class End { kAll, kLimit, kNotExplored } end = End::kAll;
  std::uint64_t schedules = 0;
  bool fails = false;
  ScheduleResult failure;  // of the shortest that fails
};
/// As explore_schedules(), in silence.
Explored explore_quietly(const ScheduledRun& run, double seconds);

// Each prints its answer and returns the exit status.

/// Runs every schedule that differs from the others in an order that matters.
int explore_schedules(const ScheduleRequest& request, const ScheduledRun& run);
/// The schedule that the emulator's options say, cut to what its failure depends on.
int shrink_schedule(const ScheduleRequest& request, const ScheduledRun& run);
/// Walks through the schedule in the file. Where nothing is broken after it, the status is not 0.
int replay_schedule(const ScheduleRequest& request, const ScheduledRun& run);

}  // namespace harness
