// Ends the program when the host code of a kernel's file does not end.
#pragma once

#include <atomic>
#include <thread>

/// While it lives, it adds up the time in which no grid runs. When that is more than `seconds`, or when it
/// has lived for twenty times as long, it says so in one sentence and ends the program.
class HostWatch {
 public:
  explicit HostWatch(double seconds);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

 private:
  std::atomic<bool> end_{false};
  std::thread clock_;
};
