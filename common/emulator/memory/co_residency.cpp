#include "emulator/memory/co_residency.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <time.h>

#include "emulator/machine/sanitizer.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/report.h"

namespace emulator {
namespace {

/// The CPU time of the calling OS thread: how long a gang has polled, however busy the machine is.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::atomic<std::uint64_t> moments{0};

/// The first atomic of each CTA that wrote something, in this launch.
struct FirstWrites {
  std::mutex mutex;
  std::uint64_t launch = ~std::uint64_t{0};
  std::unordered_map<std::uint32_t, std::uint64_t> moment_of;  // by CTA key
};
FirstWrites& first_writes() {
  static auto* const writes = new FirstWrites;
  return *writes;
}

/// What a thread asks for, over and over.
struct Questions {
  const void* address = nullptr;
  std::uint64_t where = 0;
  std::uint32_t time = 0;  // Thread::time: at most the load's own acquire has advanced it since
  std::uint64_t value = 0;
  std::uint32_t asked = 0;
  std::uint64_t since = 0;  // moment of the first
  Stamp from = 0;           // who had written the value, in this launch
  /// The same question with the same answer, whatever the thread does in between.
  std::uint32_t repeats = 0;
  double repeats_since = 0;
};
struct QuestionsOfLaunch {
  std::uint64_t launch = ~std::uint64_t{0};
  std::unordered_map<Stamp, Questions> by_thread;
};
/// A thread stays on its OS thread.
QuestionsOfLaunch& questions(std::uint64_t launch) {
  static thread_local QuestionsOfLaunch all;
  if (all.launch != launch) {
    all.by_thread.clear();
    all.launch = launch;
  }
  return all;
}

bool had_started(std::uint64_t launch, std::uint32_t cta, std::uint64_t moment) {
  FirstWrites& writes = first_writes();
  const std::lock_guard lock(writes.mutex);
  if (writes.launch != launch) return false;
  const auto found = writes.moment_of.find(cta);
  return found != writes.moment_of.end() && found->second < moment;
}

}  // namespace

namespace {

/// Every OS thread has been running a gang that polls for one word, for so long, and there are gangs that
/// have not started.
bool waits_for_what_has_not_started(Questions& last, const Thread& thread, bool repeated) {
  constexpr std::uint32_t kRepeatsPerLook = 256;
#ifdef EMULATOR_ASAN
  constexpr double kSlower = 10;  // a livelock is told by the number of polls, and must still come first
#else
  constexpr double kSlower = 1;
#endif
  constexpr double kLong = 2 * kSlower;     // seconds, from which on a gang counts as one that waits
  constexpr double kTooLong = 3 * kSlower;  // seconds
  Gang& gang = *thread.cta->gang;
  Grid& grid = gang.grid;
  if (!repeated) {
    last.repeats = 0;
    if (std::exchange(gang.waits_long, false)) --grid.waiting;
    return false;
  }
  if (++last.repeats % kRepeatsPerLook != 0) return false;
  const double now = cpu_seconds();
  if (last.repeats == kRepeatsPerLook) last.repeats_since = now;
  const double passed = now - last.repeats_since;
  if (passed >= kLong && !std::exchange(gang.waits_long, true)) ++grid.waiting;
  return passed >= kTooLong && grid.waiting == grid.os_threads && grid.started < grid.gangs;
}

}  // namespace

bool watches_co_residency(const Grid& grid) {
  return grid.rank < 0 && !grid.shape.co_resident && grid.gangs > 1 &&
         course_rule_on(CourseRule::kCoResidency);
}

void note_atomic_write(const Thread& thread) {
  const std::uint64_t launch = thread.cta->gang->grid.launch;
  FirstWrites& writes = first_writes();
  const std::lock_guard lock(writes.mutex);
  if (writes.launch != launch) {
    writes.moment_of.clear();
    writes.launch = launch;
  }
  writes.moment_of.try_emplace(thread.cta->key, ++moments);
}

std::string note_question(const Thread& thread, const void* address, const char* what, Where where,
                          std::uint64_t value, const AtomicWriter& writer) {
  constexpr std::uint32_t kWaits = 2;  // questions with the same answer
  const Grid& grid = thread.cta->gang->grid;
  Questions& last = questions(grid.launch).by_thread[thread.stamp() >> 32];
  const bool same = last.address == address && last.where == where.packed();
  const bool again = same && thread.time - last.time <= 1;
  if (waits_for_what_has_not_started(last, thread, same && last.value == value)) {
    return Report("a CTA waits for CTAs that have not started, but the launch is not cooperative")
        .line("word", "{}: it holds {}", name_address(reinterpret_cast<std::uintptr_t>(address)), value)
        .line("wait", "{} at {} by {}, again and again", what, where.text(), name_thread(thread))
        .missing(
            "{} of the {} CTAs have not started. CUDA promises neither that they fit on the GPU together "
            "with the waiting CTAs, nor that CTAs start in the order of their numbers. A cooperative launch "
            "ensures the former; numbers drawn from a ticket (atomicAdd) instead of blockIdx ensure the "
            "latter",
            grid.shape.grid.count() - static_cast<long long>(grid.started * thread.cta->gang->ctas.size()),
            grid.shape.grid.count())
        .rule(
            "a CTA may wait only for CTAs that are resident at the same time or known to have started: those "
            "in its cluster, and all CTAs in a cooperative launch",
            "CUDA C++ Programming Guide, \"Cooperative Groups: Grid Synchronization\"")
        .course_rule(CourseRule::kCoResidency)
        .str();
  }
  if (again && last.value == value) {
    last.time = thread.time;
    last.from = writer.writer;
    ++last.asked;
    return {};
  }
  const Questions before = last;
  last = {.address = address,
          .where = where.packed(),
          .time = thread.time,
          .value = value,
          .asked = 1,
          .since = again ? before.since : ++moments,
          .from = writer.writer,
          .repeats = last.repeats,
          .repeats_since = last.repeats_since};
  if (!again || before.asked < kWaits || writer.writer == 0) return {};
  const std::uint32_t cta = stamp_cta(writer.writer);
  const auto is_mate = [&](std::uint32_t key) {
    const auto& mates = thread.cta->gang->ctas;
    return std::any_of(mates.begin(), mates.end(), [&](const auto& mate) { return mate->key == key; });
  };
  if (is_mate(cta)) return {};
  // Another CTA has put there what the thread does not want, so that one runs: the holder of a lock.
  if (before.from != 0 && !is_mate(stamp_cta(before.from))) return {};
  if (had_started(grid.launch, cta, before.since)) return {};
  const std::string other = name_cta(grid, cta);
  return Report("a CTA waits for another CTA of the grid, but the launch is not cooperative")
      .line("word", "{}: it held {} until CTA {} changed it to {}",
            name_address(reinterpret_cast<std::uintptr_t>(address)), before.value, other, value)
      .line("wait", "{} at {} by {}, polled {} times", what, where.text(), name_thread(thread),
            before.asked + 1)
      .line("writer", "{} at {}", name_thread(grid, writer.writer), writer.where.text())
      .missing(
          "co_resident in the launch's LaunchShape (cudaLaunchAttributeCooperative): CTA {} of {} may be "
          "waiting for an SM that CTA {} occupies, and nothing shows that it had started",
          other, grid.shape.grid.count(), text(thread.cta->id))
      .rule(
          "a CTA may wait only for CTAs that are resident at the same time or known to have started: those "
          "in its cluster, and all CTAs in a cooperative launch",
          "CUDA C++ Programming Guide, \"Cooperative Groups: Grid Synchronization\"")
      .course_rule(CourseRule::kCoResidency)
      .str();
}

}  // namespace emulator
