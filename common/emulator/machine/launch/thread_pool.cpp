#include "emulator/machine/launch/thread_pool.h"

namespace emulator {

ThreadPool& ThreadPool::instance() {
  static ThreadPool pool;
  return pool;
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(int extra, const std::function<void(Worker&)>& job) {
  {
    std::unique_lock lock(mutex_);
    while (static_cast<int>(threads_.size()) < extra) {
      threads_.emplace_back([this, index = static_cast<int>(threads_.size())] { serve(index); });
    }
    job_ = &job;
    wanted_ = extra;
    running_ = extra;
    ++generation_;
  }
  wake_.notify_all();
  thread_local Worker worker;
  job(worker);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
  job_ = nullptr;
}

void ThreadPool::serve(int index) {
  Worker worker;
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || (generation_ != seen && index < wanted_); });
    if (stop_) return;
    seen = generation_;
    const std::function<void(Worker&)>* job = job_;
    lock.unlock();
    (*job)(worker);
    lock.lock();
    if (--running_ == 0) done_.notify_all();
  }
}

}  // namespace emulator
