#include "emulator/report/event_log.h"

#include <mutex>
#include <nlohmann/json.hpp>
#include <ostream>

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {
namespace {

std::mutex log_mutex;
std::ostream* log_lines = nullptr;
std::uint64_t log_time = 0;

}  // namespace

std::atomic<bool> EventLog::active{false};

void EventLog::begin(std::ostream& lines) {
  const std::lock_guard lock(log_mutex);
  log_lines = &lines;
  log_time = 0;
  active = true;
}

void EventLog::end() {
  const std::lock_guard lock(log_mutex);
  active = false;
  log_lines = nullptr;
}

void EventLog::write(const LoggedEvent& event) {
  const std::lock_guard lock(log_mutex);
  if (!log_lines) return;
  nlohmann::ordered_json line;
  line["t"] = log_time++;
  line["cta"] = text(event.cta->id);
  line["event"] = event.event;
  if (event.thread) {
    line["thread"] = event.thread->index;
    line["warp"] = event.thread->warp();
  }
  if (event.barrier) {
    const Mbarrier& barrier = *event.barrier;
    line["barrier"] = name_mbarrier(barrier);
    line["offset"] = barrier.offset;
    line["phase"] = barrier.phase;
    line["pending"] = barrier.pending;
    line["tx"] = barrier.tx;
  }
  if (event.bytes > 0) line["bytes"] = event.bytes;
  if (event.number >= 0) line["number"] = event.number;
  line["where"] = event.where.text();
  *log_lines << line.dump() << '\n';
}

}  // namespace emulator
