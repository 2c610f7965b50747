#include "emulator/report/causes/meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "emulator/report/causes/barriers.h"

namespace emulator {

bool explain_unreachable_count(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const auto& cta : gang.ctas) {
    const std::vector<NamedBarrier>& all = gang.hopper->cta(*cta).named_barriers;
    for (const NamedBarrier& barrier : all) {
      const auto waits = std::find_if(barrier.arrivals.begin(), barrier.arrivals.end(),
                                      [](const NamedBarrier::Arrival& arrival) { return arrival.waits; });
      if (waits == barrier.arrivals.end()) continue;
      std::vector<std::uint32_t> gone;
      for (const Thread& thread : cta->threads) {
        if (thread.state == ThreadState::kExited) gone.push_back(thread.index);
      }
      const std::size_t came = barrier.arrivals.size();
      // A thread may arrive without waiting, and go.
      const auto live = cta->threads.size() - gone.size();
      const bool all_are_here = std::all_of(
          barrier.arrivals.begin(), barrier.arrivals.end(),
          [](const NamedBarrier::Arrival& one) { return one.thread->state == ThreadState::kWaiting; });
      if (gone.empty() || !all_are_here || live >= barrier.threads) continue;
      std::set<std::uint32_t> threads;
      for (const NamedBarrier::Arrival& arrival : barrier.arrivals) threads.insert(arrival.thread->index);
      const auto number = &barrier - all.data();
      const std::string who = ranges("thread", std::vector<std::uint32_t>(threads.begin(), threads.end()));
      const std::string left = ranges("thread", gone);
      report.line("first",
                  "named barrier {} of CTA {} at {} expects {} threads, and {} have reached it: {}. {} have "
                  "returned, so it never completes",
                  number, text(cta->id), waits->where.text(), barrier.threads, came, who, left);
      // What has opened before has the right count.
      if (const std::string past = past_of_named_barrier(barrier); !past.empty()) {
        report.line("before", past);
        std::string over;
        for (const NamedBarrier& other : all) {
          if (&other == &barrier || other.arrivals.empty() ||
              std::any_of(other.arrivals.begin(), other.arrivals.end(),
                          [](const NamedBarrier::Arrival& one) { return one.waits; }))
            continue;
          std::vector<std::uint32_t> those;
          for (const NamedBarrier::Arrival& one : other.arrivals) those.push_back(one.thread->index);
          std::sort(those.begin(), those.end());
          over += fmt::format(
              "{}named barrier {} holds arrivals of {} (bar_arrive at {}), for which no thread waits",
              over.empty() ? "" : "; ", &other - all.data(), ranges("thread", those),
              other.arrivals.front().where.text());
        }
        if (!over.empty()) report.line("left", over);
        report.missing(
            "an arrival there by threads that arrived earlier and have returned, or one wait fewer by {}: {} "
            "have waited once more than the others have arrived{}",
            who, who,
            over.empty()
                ? std::string()
                : ", and elsewhere one of their arrivals is left over. When two groups hand turns to each "
                  "other, the group that has the first turn and the group that waits at the end must match");
        return true;
      }
      constexpr std::size_t kMost = 2;
      const MbarrierArray held = waited_for(gang);
      for (std::size_t i = 0; i < std::min(held.size(), kMost); ++i) {
        report.line("behind", "{}: its wait at {} is for a later event", waiters_text(*held[i]),
                    name_mbarrier(*held[i]));
      }
      report.missing(
          "a count that matches the threads that execute bar.sync {}, {}: {} do. (Alternatively, the arrival "
          "of {} there, before they return.)",
          number, barrier.threads, came, left);
      return true;
    }
  }
  return false;
}

namespace {

/// Whether `other` has passed the wait at which `waits` waits, one phase more of the same mbarrier: then both
/// have gone one way, and a phase ended before `waits` came to it, or too soon.
bool is_ahead_on_one_way(const Gang& gang, const Thread& waits, const Thread& other) {
  const Mbarrier* const barrier = gang.hopper ? gang.hopper->thread(waits).waiting_for : nullptr;
  if (barrier == nullptr) return false;
  const auto passed = [&](const Thread& thread) -> const LastWait* {
    for (const LastWait& wait : gang.hopper->thread(thread).waits) {
      if (wait.barrier == barrier && wait.where.packed() == waits.wait.where.packed()) return &wait;
    }
    return nullptr;
  };
  const LastWait* const theirs = passed(other);
  const LastWait* const own = passed(waits);
  return theirs != nullptr && theirs->count > (own != nullptr ? own->count : 0);
}

}  // namespace

bool explain_lanes_apart(Report& report, const Gang& gang) {
  for (const auto& cta : gang.ctas) {
    for (std::size_t first = 0; first < cta->threads.size(); first += kWarpSize) {
      const std::size_t end = std::min<std::size_t>(first + kWarpSize, cta->threads.size());
      std::map<std::uint64_t, std::vector<std::uint32_t>> at_mbarrier;
      std::map<std::uint64_t, std::vector<std::uint32_t>> at_meeting;
      std::size_t waiting = 0;
      for (std::size_t i = first; i < end; ++i) {
        const Thread& thread = cta->threads[i];
        if (thread.state != ThreadState::kWaiting) continue;
        ++waiting;
        const auto lane = static_cast<std::uint32_t>(i - first);
        if (gang.hopper != nullptr && gang.hopper->thread(thread).waiting_for != nullptr)
          at_mbarrier[thread.wait.where.packed()].push_back(lane);
        else if (thread.wait.kind == WaitKind::kWarp)
          at_meeting[thread.wait.where.packed()].push_back(lane);
      }
      // One lane at an mbarrier and the others at a __syncwarp: a role that one lane plays.
      if (at_mbarrier.size() != 1 || at_meeting.size() != 1 || at_mbarrier.begin()->second.size() < 2 ||
          at_mbarrier.begin()->second.size() + at_meeting.begin()->second.size() != waiting)
        continue;
      const auto& [wait_at, waits] = *at_mbarrier.begin();
      const auto& [meet_at, meets] = *at_meeting.begin();
      if (is_ahead_on_one_way(gang, cta->threads[first + waits.front()], cta->threads[first + meets.front()]))
        continue;
      report.line("first",
                  "in warp {} of CTA {}, {} at {} for an mbarrier, and {} at {} for the other lanes: they "
                  "have taken different branches",
                  first / kWarpSize, text(cta->id),
                  ranges("lane", waits) + (waits.size() == 1 ? " waits" : " wait"),
                  Where::from_packed(wait_at).text(),
                  ranges("lane", meets) + (meets.size() == 1 ? " waits" : " wait"),
                  Where::from_packed(meet_at).text());
      report.missing(
          "the same value in all lanes for the condition of the loop or branch: a value that a single lane "
          "has read or computed (the number of the next tile, for example) must be passed to the other lanes "
          "by a shuffle");
      return true;
    }
  }
  return false;
}

}  // namespace emulator
