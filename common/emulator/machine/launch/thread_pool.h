// OS threads that stay between launches, so that their stacks and arenas do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/machine/machine.h"

namespace emulator {

/// The threads that run gangs. Each has a Worker of its own, and so has the thread that calls run().
class ThreadPool {
 public:
  static ThreadPool& instance();

  /// Runs `job` on the calling thread and on `extra` others; returns when all are done.
  void run(int extra, const std::function<void(Worker&)>& job);

 private:
  ThreadPool() = default;
  ~ThreadPool();
  void serve(int index);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  const std::function<void(Worker&)>* job_ = nullptr;
  int wanted_ = 0;
  int running_ = 0;
  std::uint64_t generation_ = 0;
  bool stop_ = false;
};

}  // namespace emulator
