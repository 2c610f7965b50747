#include "harness/cli/side_by_side.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "harness/base/output.h"

namespace harness {
namespace {

bool is_beside = false;

enum State : int { kOpen, kTaken, kDone, kFailed };

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

std::string contents(std::FILE* file) {
  std::fflush(file);
  std::rewind(file);
  std::string text;
  char part[4096];
  while (const std::size_t bytes = std::fread(part, 1, sizeof part, file)) text.append(part, bytes);
  return text;
}

/// The states of all jobs, in memory that the processes share.
class States {
 public:
  explicit States(std::size_t count) : count_(count) {
    void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    states_ = static_cast<std::atomic<int>*>(memory);
    for (std::size_t i = 0; i < count_; ++i) new (states_ + i) std::atomic<int>(kOpen);
  }
  ~States() {
    if (states_ != nullptr) munmap(states_, bytes());
  }
  States(const States&) = delete;
  States& operator=(const States&) = delete;

  bool are_there() const { return states_ != nullptr; }
  std::atomic<int>& operator[](std::size_t i) const { return states_[i]; }
  bool take(std::size_t i) const {
    int open = kOpen;
    return states_[i].compare_exchange_strong(open, kTaken);
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(std::atomic<int>); }

  std::size_t count_;
  std::atomic<int>* states_ = nullptr;
};
static_assert(std::atomic<int>::is_always_lock_free);

using Job = std::function<bool(std::size_t, nlohmann::json&)>;

/// What another process does: jobs from the last to the first. Their output and record go to their files.
[[noreturn]] void work(const States& states, const std::vector<File>& files, const Job& job) {
  is_beside = true;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDERR_FILENO);  // who fails is called again in the first process
  for (std::size_t i = files.size(); i-- > 0;) {
    if (!states.take(i)) continue;
    bool ok = false;
    try {
      const File printed(std::tmpfile());
      if (printed != nullptr && dup2(fileno(printed.get()), STDOUT_FILENO) >= 0) {
        nlohmann::json record = nlohmann::json::array();
        ok = job(i, record);
        std::fflush(stdout);
        const std::string text =
            nlohmann::json{{"printed", contents(printed.get())}, {"record", record}}.dump();
        ok = ok && std::fwrite(text.data(), 1, text.size(), files[i].get()) == text.size() &&
             std::fflush(files[i].get()) == 0;
      }
    } catch (...) {
      ok = false;
    }
    states[i] = ok ? kDone : kFailed;
    if (!ok) break;
  }
  _exit(0);
}

class Workers {
 public:
  ~Workers() {
    for (const pid_t process : processes_) kill(process, SIGKILL);
    for (const pid_t process : processes_) waitpid(process, nullptr, 0);
  }
  void add(pid_t process) { processes_.push_back(process); }
  /// Forgets those that have ended; whether any is left.
  bool any() {
    std::erase_if(processes_, [](pid_t process) { return waitpid(process, nullptr, WNOHANG) != 0; });
    return !processes_.empty();
  }

 private:
  std::vector<pid_t> processes_;
};

}  // namespace

bool run_side_by_side(std::size_t count, std::size_t processes, const Job& job,
                      const std::function<std::size_t(std::size_t)>& after_failure, nlohmann::json& record) {
  const States states(count);
  std::vector<File> files;
  while (processes > 1 && files.size() < count) {
    files.emplace_back(std::tmpfile());
    if (files.back() == nullptr) break;  // no disk: then without
  }
  Workers workers;
  std::fflush(stdout);
  const bool possible =
      states.are_there() && files.size() == count && (count == 0 || files.back() != nullptr);
  for (std::size_t i = 1; possible && i < std::min(processes, count); ++i) {
    const pid_t process = fork();
    if (process == 0) work(states, files, job);
    if (process < 0) break;  // no further process: then with those that there are
    workers.add(process);
  }
  bool ok = true;
  for (std::size_t i = 0, next = 1; i < count; i = next) {
    next = i + 1;
    const bool mine = !possible || states.take(i);
    while (!mine && states[i] == kTaken && workers.any())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (mine || states[i] != kDone) {
      if (job(i, record)) continue;
      ok = false;
      next = after_failure(i);
      continue;
    }
    const nlohmann::json done = nlohmann::json::parse(contents(files[i].get()));
    fmt::print("{}", fitted(done["printed"].get<std::string>()));
    std::fflush(stdout);
    for (const nlohmann::json& one : done["record"]) record.push_back(one);
  }
  return ok;
}

bool runs_beside() {
  return is_beside;
}

std::size_t side_by_side_processes() {
  return std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
}

}  // namespace harness
