#include "emulator/report/deadlock_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/async/hopper.h"
#include "emulator/report/causes.h"
#include "emulator/report/member_names.h"

namespace emulator {
namespace {

/// Mbarriers of one array: "ring.empty" of CTA (0,0,0). One without a name is alone.
using Array = std::vector<const Mbarrier*>;

std::string array_name(const Mbarrier& barrier) {
  const std::string name = member_name(*barrier.cta, barrier.offset);
  const std::size_t bracket = name.rfind('[');
  return bracket == std::string::npos || name.back() != ']' ? std::string() : name.substr(0, bracket);
}

Array array_of(const Gang& gang, const Mbarrier& barrier) {
  const std::string name = array_name(barrier);
  if (name.empty()) return {&barrier};
  Array all;
  for (const auto& other : gang.hopper->cta(*barrier.cta).barriers) {
    if (other->live && array_name(*other) == name) all.push_back(other.get());
  }
  return all;
}

bool has_completed(const Mbarrier& barrier) {
  return barrier.phase != barrier.first_phase;
}

bool never_touched(const Mbarrier& barrier) {
  return !has_completed(barrier) && barrier.events.empty() && barrier.pending == barrier.count &&
         barrier.tx == 0 && barrier.late == 0;
}

/// The mbarriers that threads wait for, in order of CTA and age.
Array waited_for(const Gang& gang) {
  Array found;
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : gang.hopper->cta(*cta).barriers) {
      if (barrier->live && !barrier->waiting.empty()) found.push_back(barrier.get());
    }
  }
  return found;
}

/// The threads that have arrived at one of the mbarriers, themselves or by tcgen05.commit.
std::vector<const Thread*> arrivers_of(const Gang& gang, const Array& all) {
  std::vector<const Thread*> found;
  const auto is_one = [&](const Mbarrier* barrier) {
    return std::find(all.begin(), all.end(), barrier) != all.end();
  };
  const auto commits = [&](const Thread& thread) {
    return std::any_of(all.begin(), all.end(), [&](const Mbarrier* barrier) {
      return std::any_of(barrier->commit_log.begin(), barrier->commit_log.end(),
                         [&](const CommitRecord& commit) { return commit.committer == &thread; });
    });
  };
  std::set<std::pair<std::uint32_t, std::uint32_t>> expects;  // by key of the CTA, and index
  for (const Mbarrier* barrier : all) {
    for (const auto* events : {&barrier->events, &barrier->previous_events}) {
      for (const Mbarrier::Event& event : *events) {
        if (!event.commit) expects.emplace(stamp_cta(event.stamp), stamp_thread(event.stamp));
      }
    }
  }
  for (const auto& cta : gang.ctas) {
    for (const Thread& thread : cta->threads) {
      const auto& arrivals = gang.hopper->thread(thread).arrivals;
      if (std::any_of(arrivals.begin(), arrivals.end(),
                      [&](const Arrivals& one) { return is_one(one.barrier); }) ||
          expects.contains({cta->key, static_cast<std::uint32_t>(thread.index)}) || commits(thread))
        found.push_back(&thread);
    }
  }
  return found;
}

/// The thread, without what it did before.
std::string plain_name(const Thread& thread) {
  return name_thread(thread.cta->gang->grid, thread.stamp());
}

/// Who ended the phase, in one line.
std::string ended_by(const Gang& gang, const std::vector<Mbarrier::Event>& events) {
  std::string text = arrivals_text(gang.grid, events);
  text.erase(0, text.find_first_not_of(' '));
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    const std::size_t end = std::min(text.find_first_not_of("\n ", at), text.size());
    text.replace(at, end - at, ", ");
  }
  return text;
}

/// "threads 0-127 of CTA (0,0,0), as epilogue at accumulator_full, stage 0"
std::string waiters_text(const Mbarrier& barrier) {
  std::map<const Cta*, std::vector<std::uint32_t>> threads;
  for (const Thread* thread : barrier.waiting) threads[thread->cta].push_back(thread->index);
  std::string list;
  for (auto& [cta, some] : threads) {
    std::sort(some.begin(), some.end());
    list += fmt::format("{}{} of CTA {}", list.empty() ? "" : ", ", ranges("thread", some), text(cta->id));
  }
  const Thread& first = *barrier.waiting.front();
  const std::string activity = text(first.cta->gang->hopper->thread(first).activity);
  return activity.empty() ? list : list + ", as " + activity;
}

/// Whether someone who arrives at the mbarrier waits at one that nobody has ever arrived at, or for such a
/// thread.
bool leads_to_untouched(const Gang& gang, const Mbarrier& barrier, std::set<const Mbarrier*>& visited) {
  const Array all = array_of(gang, barrier);
  if (std::all_of(all.begin(), all.end(), [](const Mbarrier* one) { return never_touched(*one); }))
    return true;
  if (!visited.insert(&barrier).second) return false;
  const std::vector<const Thread*> arrivers = arrivers_of(gang, all);
  return std::any_of(arrivers.begin(), arrivers.end(), [&](const Thread* thread) {
    const Mbarrier* const next = gang.hopper->thread(*thread).waiting_for;
    return thread->state == ThreadState::kWaiting && next != nullptr &&
           leads_to_untouched(gang, *next, visited);
  });
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
      report.line("first", fmt::format("of warp {} of CTA {}, {} at {} for an mbarrier, and {} at {} for "
                                       "the others: they have gone different ways",
                                       first / kWarpSize, text(cta->id),
                                       ranges("lane", waits) + (waits.size() == 1 ? " waits" : " wait"),
                                       Where::from_packed(wait_at).text(),
                                       ranges("lane", meets) + (meets.size() == 1 ? " waits" : " wait"),
                                       Where::from_packed(meet_at).text()));
      report.line("missing",
                  "one value for all lanes in what the loop, or the branch, depends on: what a single lane "
                  "has read or computed (the number of the next tile, say) goes to the others by a shuffle");
      return true;
    }
  }
  return false;
}

bool explain_first_phase_over(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    if (barrier->phase != barrier->first_phase + 1 || barrier->previous_events.empty()) continue;
    if (std::any_of(barrier->previous_events.begin(), barrier->previous_events.end(),
                    [](const Mbarrier::Event& event) {
                      return event.kind != Mbarrier::Event::kArrive || event.commit;
                    }))
      continue;
    for (const Thread* thread : barrier->waiting) {
      const HopperThread& state = gang.hopper->thread(*thread);
      if (state.waiting_parity != 1 ||
          std::any_of(state.waits.begin(), state.waits.end(),
                      [&](const LastWait& wait) { return wait.barrier == barrier; }))
        continue;
      report.line("first", fmt::format("{} waits for the first time at {}, with parity 1, which passes at "
                                       "once on a fresh mbarrier; but phase 0 was over by then, ended by {}",
                                       plain_name(*thread), name_mbarrier(*barrier),
                                       ended_by(gang, barrier->previous_events)));
      report.line("missing",
                  "arrivals that come later: these hand back what nobody had handed out (one too many for "
                  "each, before the first use). Or the first wait is meant for phase 0, and has parity 0");
      return true;
    }
  }
  return false;
}

bool explain_told_too_often(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    for (const Thread* thread : barrier->waiting) {
      std::uint64_t seen = barrier->first_phase;
      for (const LastWait& wait : gang.hopper->thread(*thread).waits) {
        if (wait.barrier == barrier) seen = wait.phase;
      }
      if (barrier->phase < seen + 2 || barrier->previous_events.empty()) continue;
      const std::string name = array_name(*barrier);
      report.line(
          "first",
          fmt::format("{} waits at {} for phase {} of {}, and {} phases of it are over since its last "
                      "wait there: it was told more often than it has waited",
                      plain_name(*thread), thread->wait.where.text(), seen, name_mbarrier(*barrier),
                      barrier->phase - seen));
      report.line("missing",
                  fmt::format("one arrival for each wait: phase {} was ended by {}. That is one too many{}",
                              barrier->phase - 1, ended_by(gang, barrier->previous_events),
                              name.empty() ? std::string()
                                           : fmt::format(", or meant for another of {}[] (that of the stage "
                                                         "that was read)",
                                                         name)));
      return true;
    }
  }
  return false;
}

bool explain_never_enough(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    const Array all = array_of(gang, *barrier);
    const std::uint32_t here = barrier->count - barrier->pending;
    if (barrier->events.empty() || here == 0 || barrier->pending == 0 || barrier->late > 0 ||
        barrier->tx != 0)
      continue;
    const bool alike = std::all_of(all.begin(), all.end(), [&](const Mbarrier* one) {
      return !has_completed(*one) && one->count == barrier->count &&
             (never_touched(*one) || one->pending == barrier->pending);
    });
    const auto touched =
        std::count_if(all.begin(), all.end(), [](const Mbarrier* one) { return !never_touched(*one); });
    // A single one may be in the middle of a phase.
    if (!alike || touched < 2) continue;
    const std::string name = array_name(*barrier);
    report.line("first", fmt::format("no phase of any {}[] has ever ended: {} of them have had {} of {} "
                                     "arrivals each. At {}: {}",
                                     name, touched, here, barrier->count, name_mbarrier(*barrier),
                                     ended_by(gang, barrier->events)));
    report.line("missing",
                fmt::format("{} more arrival{} in each phase of {}[], or a smaller count: it is {}, "
                            "set at {}, and {} would fit",
                            barrier->pending, barrier->pending == 1 ? "" : "s", name, barrier->count,
                            barrier->init_where.text(), here));
    return true;
  }
  return false;
}

bool explain_never_arrived(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  Array untouched;
  for (const Mbarrier* barrier : waited_for(gang)) {
    const Array all = array_of(gang, *barrier);
    if (std::all_of(all.begin(), all.end(), [](const Mbarrier* one) { return never_touched(*one); })) {
      untouched.push_back(barrier);
      continue;
    }
    std::set<const Mbarrier*> visited;
    if (!leads_to_untouched(gang, *barrier, visited)) return false;
  }
  constexpr std::size_t kMost = 3;  // of more, nothing is said
  if (untouched.empty() || untouched.size() > kMost) return false;
  std::string list;
  for (const Mbarrier* barrier : untouched) {
    const std::string name = array_name(*barrier);
    list += fmt::format("{}at {}{} (waited for by {})", list.empty() ? "" : ", or ", name_mbarrier(*barrier),
                        name.empty() || array_of(gang, *barrier).size() == 1
                            ? std::string()
                            : fmt::format(", or another of {}[]", name),
                        waiters_text(*barrier));
  }
  report.line("missing",
              fmt::format("an arrival {}: nobody has ever arrived there, and everything else waits "
                          "for that",
                          list));
  return true;
}

bool explain_arrivers_elsewhere(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    if (barrier->pending == 0 || barrier->late > 0) continue;
    const std::vector<const Thread*> arrivers = arrivers_of(gang, array_of(gang, *barrier));
    if (arrivers.empty()) continue;
    const bool none_waits_for_one = std::none_of(arrivers.begin(), arrivers.end(), [&](const Thread* thread) {
      return thread->state != ThreadState::kWaiting || gang.hopper->thread(*thread).waiting_for != nullptr;
    });
    if (!none_waits_for_one) continue;
    constexpr std::size_t kShown = 3;
    std::string list;
    for (std::size_t i = 0; i < std::min(kShown, arrivers.size()); ++i)
      list += fmt::format("{}{} at {} {}", i == 0 ? "" : ", ", plain_name(*arrivers[i]),
                          arrivers[i]->wait.where.text(), arrivers[i]->wait.what);
    const std::string name = array_name(*barrier);
    report.line("missing",
                fmt::format("{} arrival{} at {} (waited for by {}). Who arrives at {} has gone on, and waits "
                            "elsewhere: {}{}",
                            barrier->pending, barrier->pending == 1 ? "" : "s", name_mbarrier(*barrier),
                            waiters_text(*barrier), name.empty() ? std::string("it") : name + "[]", list,
                            arrivers.size() > kShown ? fmt::format(" and {} more", arrivers.size() - kShown)
                                                     : std::string()));
    return true;
  }
  return false;
}

}  // namespace emulator
