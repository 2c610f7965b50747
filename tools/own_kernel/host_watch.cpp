#include "host_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "emulator/machine/launch/running_grid.h"

namespace {

// A run of check_kernel takes as long as this many launches of the longest kind, at most.
constexpr double kLaunchesOf = 20;

}  // namespace

HostWatch::HostWatch(double seconds, const std::function<void(const std::string&)>& end)
    : clock_([this, seconds, end] {
        using Clock = std::chrono::steady_clock;
        double on_host = 0;
        const Clock::time_point begin = Clock::now();
        Clock::time_point before = begin;
        while (!end_) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          const Clock::time_point now = Clock::now();
          if (!emulator::is_running_grid()) on_host += std::chrono::duration<double>(now - before).count();
          before = now;
          const double in_all = kLaunchesOf * seconds;
          const bool launches_on = std::chrono::duration<double>(now - begin).count() > in_all;
          if ((on_host <= seconds && !launches_on) || end_) continue;
          end(launches_on
                  ? fmt::format("the host code has launched kernels for more than {:g} s and seems not to "
                                "end; --seconds allows more",
                                in_all)
                  : fmt::format("the host code has run for more than {:g} s outside its launches and seems "
                                "not to end; --seconds allows more",
                                seconds));
          return;
        }
      }) {}

HostWatch::~HostWatch() {
  end_ = true;
  clock_.join();
}
