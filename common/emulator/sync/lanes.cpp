#include "emulator/sync/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "emulator/machine/gang_notes.h"
#include "emulator/report/course_rules.h"
#include "emulator/report/report.h"

namespace emulator {
namespace {

/// How many such instructions each thread has come to.
class LaneProgress {
 public:
  explicit LaneProgress(Gang& gang) : gang_(gang) {
    for (const auto& cta : gang.ctas) {
      counts_.emplace_back(static_cast<std::size_t>(cta->thread_count), 0u);
      own_latest_.emplace_back(static_cast<std::size_t>(cta->thread_count));
      if (orders_memory_) released_.emplace_back(static_cast<std::size_t>(cta->thread_count));
    }
    latest_.resize(counts_.size());
    for (std::size_t i = 0; i < counts_.size(); ++i)
      latest_[i].resize((counts_[i].size() + kWarpSize - 1) / kWarpSize);
  }

  void note(Thread& thread, const char* what, Where where) {
    const std::uint32_t count = ++counts_[thread.cta->index_in_gang][thread.index];
    own_latest_[thread.cta->index_in_gang][thread.index] = {thread.time, what, where};
    if (orders_memory_) [[unlikely]]
      thread.release_into(released_[thread.cta->index_in_gang][thread.index]);
    Latest& latest = latest_[thread.cta->index_in_gang][static_cast<std::size_t>(thread.warp())];
    if (count > latest.count) latest = {count, what, where};
    if (!waiting_.empty()) [[unlikely]]
      wake(nullptr);
  }

  void catch_up(Thread& thread, const char* what, Where where) {
    if (counts_[thread.cta->index_in_gang][thread.index] == 0) return;
    if (any_behind(thread, nullptr)) {
      waiting_.push_back(&thread);
      gang_.block({.kind = WaitKind::kObject, .what = what, .where = where, .detail = detail});
    }
    if (!orders_memory_) return;
    const std::vector<SyncObject>& released = released_[thread.cta->index_in_gang];
    const std::size_t begin = static_cast<std::size_t>(thread.warp()) * kWarpSize;
    for (std::size_t i = begin; i < std::min(begin + kWarpSize, released.size()); ++i)
      thread.acquire_from(released[i]);
  }

  std::string instruction_since(const Cta& cta, std::uint32_t thread, std::uint64_t time) const {
    const Own& latest = own_latest_[cta.index_in_gang][thread];
    if (latest.what == nullptr || latest.time < time) return {};
    return fmt::format("{} at {}", latest.what, latest.where.text());
  }

  void thread_exits(const Thread& thread) {
    if (!waiting_.empty()) wake(&thread);
  }

 private:
  /// The instruction that the first lanes of a warp have come to.
  struct Latest {
    std::uint32_t count = 0;
    const char* what = "";
    Where where;
  };

  /// The latest one of a thread, and Thread::time there.
  struct Own {
    std::uint32_t time = 0;
    const char* what = nullptr;
    Where where;
  };

  static bool is_behind(const Thread& lane, std::uint32_t count, std::uint32_t needed,
                        const Thread* exiting) {
    return count < needed && &lane != exiting && lane.state != ThreadState::kExited;
  }

  bool any_behind(const Thread& thread, const Thread* exiting) const {
    const std::vector<std::uint32_t>& counts = counts_[thread.cta->index_in_gang];
    const std::uint32_t needed = counts[thread.index];
    const std::size_t begin = static_cast<std::size_t>(thread.warp()) * kWarpSize;
    const std::size_t end = std::min(begin + kWarpSize, counts.size());
    for (std::size_t i = begin; i < end; ++i) {
      if (is_behind(thread.cta->threads[i], counts[i], needed, exiting)) return true;
    }
    return false;
  }

  std::vector<std::uint32_t> behind(const Thread& thread) const {
    const std::vector<std::uint32_t>& counts = counts_[thread.cta->index_in_gang];
    const std::uint32_t needed = counts[thread.index];
    const std::size_t begin = static_cast<std::size_t>(thread.warp()) * kWarpSize;
    const std::size_t end = std::min(begin + kWarpSize, counts.size());
    std::vector<std::uint32_t> found;
    for (std::size_t i = begin; i < end; ++i) {
      if (is_behind(thread.cta->threads[i], counts[i], needed, nullptr))
        found.push_back(static_cast<std::uint32_t>(i));
    }
    return found;
  }

  void wake(const Thread* exiting) {
    for (std::size_t i = 0; i < waiting_.size();) {
      Thread& thread = *waiting_[i];
      if (any_behind(thread, exiting)) {
        ++i;
        continue;
      }
      waiting_[i] = waiting_.back();
      waiting_.pop_back();
      gang_.make_runnable(thread);
    }
  }

  static std::string detail(const Thread& thread) {
    const LaneProgress* const lanes = NotesOf<LaneProgress>::find(*thread.cta->gang);
    if (lanes == nullptr) return {};
    const Latest& latest = lanes->latest_[thread.cta->index_in_gang][static_cast<std::size_t>(thread.warp())];
    return fmt::format(
        "after {} at {}, which no lane of a warp leaves before all of them have reached it; still missing: "
        "{}",
        latest.what, latest.where.text(), ranges("thread", lanes->behind(thread)));
  }

  Gang& gang_;
  std::vector<std::vector<std::uint32_t>> counts_;  // by CTA and thread
  std::vector<std::vector<Own>> own_latest_;        // by CTA and thread
  std::vector<std::vector<Latest>> latest_;         // by CTA and warp
  const bool orders_memory_ = !course_rule_on(CourseRule::kReleaseForWarp);
  std::vector<std::vector<SyncObject>> released_;  // by CTA and thread: what each did before its latest one
  std::vector<Thread*> waiting_;
};

}  // namespace

void note_warp_instruction(const char* what, Where where) {
  Thread& thread = running_thread();
  NotesOf<LaneProgress>::make(*thread.cta->gang).note(thread, what, where);
}

void let_lanes_catch_up(const char* what, Where where) {
  Thread& thread = running_thread();
  if (LaneProgress* const lanes = NotesOf<LaneProgress>::find(*thread.cta->gang))
    lanes->catch_up(thread, what, where);
}

std::string warp_instruction_since(const Cta& cta, std::uint32_t thread, std::uint64_t time) {
  const LaneProgress* const lanes = NotesOf<LaneProgress>::find(*cta.gang);
  return lanes ? lanes->instruction_since(cta, thread, time) : std::string();
}

}  // namespace emulator
