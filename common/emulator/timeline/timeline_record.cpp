// harness/backend/trace_control.h on the emulator: a log of what the warps do, and times from the model.
#include <fmt/format.h>

#include <deque>
#include <ostream>
#include <streambuf>

#include "emulator/machine/options.h"
#include "emulator/report/event_log.h"
#include "emulator/timeline/timeline_model.h"
#include "harness/backend/backend.h"
#include "harness/backend/trace_control.h"

namespace {

/// Keeps the last lines of what is written.
class LastLines : public std::streambuf {
 public:
  std::string text() const {
    std::string all;
    for (const std::string& line : lines_) all += line;
    return all;
  }
  int earlier() const { return earlier_; }

 protected:
  int_type overflow(int_type c) override {
    const char one = traits_type::to_char_type(c);
    xsputn(&one, 1);
    return c;
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (lines_.empty() || lines_.back().ends_with('\n')) lines_.emplace_back();
    lines_.back().append(text, static_cast<std::size_t>(count));
    if (lines_.size() > kMost) {
      lines_.pop_front();
      ++earlier_;
    }
    return count;
  }

 private:
  static constexpr std::size_t kMost = 20000;
  std::deque<std::string> lines_;
  int earlier_ = 0;
};

/// Records while it lives.
class Recording {
 public:
  explicit Recording(std::ostream& lines) {
    emulator::EventLog::begin(lines);
    emulator::begin_timeline();
  }
  ~Recording() {
    if (!ended_) emulator::end_timeline();
    emulator::EventLog::end();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  emulator::LaunchLog timeline() {
    ended_ = true;
    return emulator::end_timeline();
  }

 private:
  bool ended_ = false;
};

}  // namespace

namespace harness {

bool can_trace() {
  return true;
}

TraceData record_launch(const std::function<void()>& launch, int ctas, int ctas_per_sm) {
  emulator::Options options = emulator::options();
  // What the log depends on must not depend on a seed: a peek at a barrier finds what is there at once.
  options.seed = 1;
  options.completion = emulator::Completion::kEarliest;
  const emulator::ScopedOptions scope(options);
  emulator::begin_timeline();
  try {
    launch();
  } catch (...) {
    emulator::end_timeline();
    throw;
  }
  emulator::LaunchLog log = emulator::end_timeline();
  if (ctas_per_sm > log.room) {
    throw Error(
        fmt::format("{} CTAs do not fit on an SM at once: its threads and its shared memory suffice for {}",
                    ctas_per_sm, log.room));
  }
  if (ctas_per_sm > 0) log.ctas_per_sm = ctas_per_sm;
  return emulator::replay(log, options.sm_count, ctas);
}

BrokenRun record_broken_run(const std::function<void()>& run, int ctas) {
  emulator::Options options = emulator::options();
  options.os_threads = 1;  // the log has one order
  const emulator::ScopedOptions scope(options);
  LastLines lines;
  std::ostream stream(&lines);
  Recording recording(stream);
  BrokenRun broken;
  try {
    run();
  } catch (const EmulatorReport& report) {
    broken.rule = report.rule();
  }
  emulator::LaunchLog log = recording.timeline();
  log.cut_off = true;
  broken.timeline = emulator::replay(log, options.sm_count, ctas);
  broken.events = lines.text();
  broken.earlier = lines.earlier();
  return broken;
}

void trace_everywhere() {}  // nothing is timed

}  // namespace harness
