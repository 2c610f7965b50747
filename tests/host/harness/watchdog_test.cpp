#include "harness/backend/watchdog.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "catch.h"

namespace harness {
namespace {

using std::chrono::milliseconds;

/// Collects what the watchdog would have ended the program with.
class Caught {
 public:
  explicit Caught(milliseconds limit) : before_(watchdog_limit()) {
    set_watchdog_limit(limit);
    set_watchdog_action([this](const std::string& sentence) {
      const std::lock_guard lock(mutex_);
      sentence_ = sentence;
      ++count_;
    });
  }
  ~Caught() {
    set_watchdog_action({});
    set_watchdog_limit(before_);
  }
  int count() const { return count_; }
  std::string sentence() const {
    const std::lock_guard lock(mutex_);
    return sentence_;
  }
  /// Waits for it, a few seconds at most: the machine may be busy.
  bool happened() const {
    for (int i = 0; i < 500 && count_ == 0; ++i) std::this_thread::sleep_for(milliseconds(10));
    return count_ > 0;
  }

 private:
  std::chrono::duration<double> before_;
  mutable std::mutex mutex_;
  std::string sentence_;
  std::atomic<int> count_{0};
};

TEST_CASE("watchdog: acts once, names what was waited for, the limit and the way out") {
  const Caught caught(milliseconds(50));
  {
    const Watchdog watchdog("a launch of 42_test");
    CHECK(caught.happened());
    std::this_thread::sleep_for(milliseconds(150));
  }
  CHECK(caught.count() == 1);
  CHECK(contains(caught.sentence(), "a launch of 42_test"));
  CHECK(contains(caught.sentence(), "0.05 s"));
  CHECK(contains(caught.sentence(), "GEMM_STEPS_TIMEOUT_S"));
}

TEST_CASE("watchdog: silent when the wait ends in time") {
  const Caught caught(milliseconds(300));
  for (int i = 0; i < 50; ++i) const Watchdog watchdog("short");
  std::this_thread::sleep_for(milliseconds(600));
  CHECK(caught.count() == 0);
}

TEST_CASE("watchdog: reset starts the limit anew") {
  const Caught caught(milliseconds(2000));
  Watchdog watchdog("a loop");
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    watchdog.reset();
  }
  CHECK(caught.count() == 0);
}

TEST_CASE("watchdog: of several, the one that is due") {
  const Caught caught(milliseconds(100));
  const Watchdog outer("outer");
  set_watchdog_limit(std::chrono::hours(1));
  const Watchdog inner("inner");
  CHECK(caught.happened());
  CHECK(contains(caught.sentence(), "outer after 0.1 s"));
}

}  // namespace
}  // namespace harness
