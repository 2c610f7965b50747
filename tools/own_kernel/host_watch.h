// Ends the program when the host code of a kernel's file does not end.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

/// While it lives, it adds up the time in which no grid runs. When that is more than `seconds`, or when it
/// has lived for twenty times as long, it calls `end` with a sentence about it, on a thread of its own.
class HostWatch {
 public:
  HostWatch(double seconds, const std::function<void(const std::string&)>& end);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

 private:
  std::atomic<bool> end_{false};
  std::thread clock_;
};
