#include "harness/backend/watchdog.h"

#include <unistd.h>

#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "harness/backend/backend.h"

namespace harness {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kDefaultLimitSeconds = 60;

void print_and_exit(const std::string& sentence) {
  // What was printed so far must not get lost, but nothing here may wait for another thread's lock.
  if (::ftrylockfile(stdout) == 0) std::fflush(stdout);
  const std::string line = "error: " + sentence + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(kExitHung);
}

struct Guard {
  const Watchdog* owner;
  std::string what;
  std::chrono::duration<double> limit;
  Clock::time_point deadline;
};

/// One thread watches all guards. Leaked on purpose: a guard may outlive the statics of this file.
struct Monitor {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Guard> guards;
  std::function<void(const std::string&)> action;
  std::optional<double> limit_s;
  bool running = false;

  static Monitor& get() {
    static Monitor& monitor = *new Monitor;
    return monitor;
  }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      if (guards.empty()) {
        changed.wait(lock);
        continue;
      }
      std::size_t next = 0;
      for (std::size_t i = 1; i < guards.size(); ++i) {
        if (guards[i].deadline < guards[next].deadline) next = i;
      }
      if (Clock::now() < guards[next].deadline) {
        changed.wait_until(lock, Clock::time_point(guards[next].deadline));
        continue;
      }
      const std::string what = std::move(guards[next].what);
      const auto limit = guards[next].limit;
      guards.erase(guards.begin() + static_cast<std::ptrdiff_t>(next));
      const auto act = action;
      char number[32];
      std::snprintf(number, sizeof number, "%g", limit.count());
      const std::string sentence =
          "the GPU has not finished " + what + " after " + number +
          " s: the kernel hangs (it waits for a barrier or a copy that never completes), or the work takes "
          "longer than that and GEMM_STEPS_TIMEOUT_S must be raised";
      lock.unlock();
      if (act) {
        act(sentence);
      } else {
        print_and_exit(sentence);
      }
      lock.lock();
    }
  }
};

double limit_from_environment() {
  const char* text = std::getenv("GEMM_STEPS_TIMEOUT_S");
  if (text == nullptr || *text == '\0') return kDefaultLimitSeconds;
  double seconds = 0;
  const char* end = text + std::strlen(text);
  const auto [parsed, status] = std::from_chars(text, end, seconds);
  constexpr double kOneYear = 366 * 86400.0;
  if (status != std::errc() || parsed != end || !(seconds > 0) || seconds > kOneYear)
    throw Error("GEMM_STEPS_TIMEOUT_S is '" + std::string(text) +
                "'; it must be a positive number of seconds");
  return seconds;
}

Clock::time_point deadline_after(std::chrono::duration<double> limit) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
}

}  // namespace

std::chrono::duration<double> watchdog_limit() {
  Monitor& monitor = Monitor::get();
  const std::lock_guard lock(monitor.mutex);
  if (!monitor.limit_s) monitor.limit_s = limit_from_environment();
  return std::chrono::duration<double>(*monitor.limit_s);
}

void set_watchdog_limit(std::chrono::duration<double> limit) {
  Monitor& monitor = Monitor::get();
  const std::lock_guard lock(monitor.mutex);
  monitor.limit_s = limit.count();
}

void set_watchdog_action(std::function<void(const std::string&)> action) {
  Monitor& monitor = Monitor::get();
  const std::lock_guard lock(monitor.mutex);
  monitor.action = std::move(action);
}

Watchdog::Watchdog(std::string what) {
  const auto limit = watchdog_limit();
  Monitor& monitor = Monitor::get();
  const std::lock_guard lock(monitor.mutex);
  monitor.guards.push_back({this, std::move(what), limit, deadline_after(limit)});
  if (!monitor.running) {
    std::thread([&monitor] { monitor.run(); }).detach();
    monitor.running = true;
  }
  monitor.changed.notify_one();
}

Watchdog::~Watchdog() {
  Monitor& monitor = Monitor::get();
  const std::lock_guard lock(monitor.mutex);
  std::erase_if(monitor.guards, [this](const Guard& guard) { return guard.owner == this; });
  // No notification: waking up early for a guard that is gone costs the monitor one look at the clock.
}

void Watchdog::reset() {
  const auto limit = watchdog_limit();
  Monitor& monitor = Monitor::get();
  const std::lock_guard lock(monitor.mutex);
  for (Guard& guard : monitor.guards) {
    if (guard.owner != this) continue;
    guard.limit = limit;
    guard.deadline = deadline_after(limit);
  }
}

}  // namespace harness
