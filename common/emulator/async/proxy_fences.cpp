#include "emulator/async/proxy_fences.h"

#include <fmt/format.h>

#include <vector>

#include "emulator/async/async_memory.h"
#include "emulator/machine/gang_notes.h"
#include "emulator/report/report.h"

namespace emulator {
namespace {

struct ProxyFence {
  Stamp stamp = 0;
  Where where;
  std::uint32_t base = 0;  // what the thread knew then: Thread::base and Thread::clock
  VectorClock clock;

  bool behind(Stamp write) const {
    const bool own_cta = stamp_cta(write) == stamp_cta(stamp);
    if (own_cta && stamp_time(write) < base) return true;
    // In one stretch of its own a thread executes it behind the write or before a copy has landed: who knows
    // that it is behind asks HopperEngine::fence_after.
    if (stamp_thread(write) == stamp_thread(stamp) && own_cta) return stamp_time(stamp) > stamp_time(write);
    return clock.covers(write);
  }
};

struct LatestFences {
  explicit LatestFences(const Gang& gang) {
    for (const auto& cta : gang.ctas) {
      for (auto* kind : {&shared, &global}) kind->emplace_back(static_cast<std::size_t>(cta->thread_count));
    }
  }
  void thread_exits(const Thread&) {}

  std::vector<std::vector<ProxyFence>> shared, global;  // by CTA and thread
};

const ProxyFence* fence_on_the_way(const Thread& reader, Stamp write, bool shared) {
  const LatestFences* const fences = NotesOf<LatestFences>::find(*reader.cta->gang);
  if (fences == nullptr) return nullptr;
  for (const auto& cta : shared ? fences->shared : fences->global) {
    for (const ProxyFence& fence : cta) {
      if (fence.stamp != 0 && fence.behind(write) && knows(reader, fence.stamp)) return &fence;
    }
  }
  return nullptr;
}

}  // namespace

void note_proxy_fence(bool shared, bool global, Where where) {
  const Thread& thread = running_thread();
  auto& fences = NotesOf<LatestFences>::make(*thread.cta->gang);
  const auto note = [&](std::vector<std::vector<ProxyFence>>& kind) {
    kind[thread.cta->index_in_gang][thread.index] = {thread.stamp(), where, thread.base, thread.clock};
  };
  if (shared) note(fences.shared);
  if (global) note(fences.global);
}

bool fenced_on_the_way(const Thread& reader, Stamp write, bool shared) {
  return fence_on_the_way(reader, write, shared) != nullptr;
}

bool name_fence_on_the_way(Report& report, const Thread& loader, Stamp read) {
  const ProxyFence* const fence = fence_on_the_way(loader, read, true);
  if (fence == nullptr) return false;
  report.line("fence",
              "fence.proxy.async at {} by {}, after the read and before this copy: the PTX ISA does not say "
              "whether that is enough",
              fence->where.text(), name_thread(loader.cta->gang->grid, fence->stamp));
  return true;
}

void explain_fence_on_the_way(Report& report, const Thread& reader, Stamp write, bool shared) {
  const ProxyFence* const fence = fence_on_the_way(reader, write, shared);
  if (fence == nullptr) return;
  report.line("but",
              "{} has executed fence.proxy.async at {}, after the write and before this instruction, but the "
              "PTX ISA does not say whether that is enough",
              name_thread(reader.cta->gang->grid, fence->stamp), fence->where.text());
  report.course_rule(CourseRule::kProxyFenceByWriter);
}

}  // namespace emulator
