#include "emulator/report/causes/missing_arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/never_arrived.h"
#include "emulator/report/causes/tensor_causes.h"
#include "emulator/report/member_names.h"

namespace emulator {
namespace {

/// ", last as consumer of k-tile 7, stage 3": the warpgroup's latest wait there.
std::string latest_wait_text(const HopperCta& cta, std::size_t warpgroup, const Mbarrier& full) {
  const LastWait* latest = nullptr;
  for (std::size_t i = warpgroup * kWarpgroupSize;
       i < std::min(cta.threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
    for (const LastWait& wait : cta.threads[i].waits) {
      if (wait.barrier == &full && (!latest || wait.count > latest->count)) latest = &wait;
    }
  }
  return latest && latest->activity.role ? ", last as " + text(latest->activity) : "";
}

/// Where else the warpgroup has said that it has read a stage.
std::string other_releases_text(const HopperCta& cta, std::size_t warpgroup, const Mbarrier& empty) {
  constexpr std::size_t kShown = 4;
  std::vector<Arrivals> others;  // the most of any thread, by barrier
  for (std::size_t i = warpgroup * kWarpgroupSize;
       i < std::min(cta.threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
    for (const Arrivals& arrivals : cta.threads[i].arrivals) {
      if (arrivals.barrier == &empty || !arrivals.full) continue;
      const auto known = std::find_if(others.begin(), others.end(), [&](const Arrivals& other) {
        return other.barrier == arrivals.barrier;
      });
      if (known == others.end()) {
        others.push_back(arrivals);
      } else {
        known->count = std::max(known->count, arrivals.count);
      }
    }
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, others.size()); ++i) {
    list += fmt::format("{}{} {} times for {}", i == 0 ? "; it has arrived at " : ", at ",
                        name_mbarrier(*others[i].barrier), others[i].count,
                        waits_passed(*cta.cta, warpgroup, *others[i].full));
  }
  return list.empty() ? list : list + " waits passed";
}

}  // namespace

std::string describe_releases(const Mbarrier& empty) {
  if (empty.commits > 0) return describe_commits(empty);
  std::string lines;
  for (const auto& cta : empty.cta->gang->ctas) {
    const HopperCta& state = empty.cta->gang->hopper->cta(*cta);
    for (std::size_t warpgroup = 0; warpgroup < state.warpgroups.size(); ++warpgroup) {
      Arrivals most{.barrier = &empty};
      for (std::size_t i = warpgroup * kWarpgroupSize; i < (warpgroup + 1) * kWarpgroupSize; ++i) {
        for (const Arrivals& arrivals : state.threads[i].arrivals) {
          if (arrivals.barrier == &empty && arrivals.count > most.count) most = arrivals;
        }
      }
      if (most.count == 0) most.full = full_of(*cta, empty);
      if (most.full == nullptr || most.ahead) continue;
      const std::uint32_t passed = waits_passed(*cta, warpgroup, *most.full);
      if (passed <= most.count) continue;
      lines += fmt::format(
          "{}warpgroup {} of CTA {} has passed its wait at {} {} times{}, and has arrived here {} times",
          lines.empty() ? "" : "\n  ", warpgroup, text(cta->id), name_mbarrier(*most.full), passed,
          latest_wait_text(state, warpgroup, *most.full), most.count);
      lines += other_releases_text(state, warpgroup, empty);
    }
  }
  return lines;
}

namespace {

/// Threads that have arrived at a barrier or at others of its array.
struct Arrivers {
  std::vector<std::uint32_t> threads;
  std::uint32_t most = 0;  // arrivals of one thread
  std::uint32_t returned = 0;
};

/// By CTA of the gang.
std::map<const Cta*, Arrivers> arrivers_at(const Mbarrier& barrier) {
  const Gang& gang = *barrier.cta->gang;
  const std::string family = family_of(barrier);
  std::map<const Cta*, Arrivers> found;
  for (const auto& cta : gang.ctas) {
    const auto& threads = gang.hopper->cta(*cta).threads;
    for (std::uint32_t i = 0; i < threads.size(); ++i) {
      std::uint32_t count = 0;
      for (const Arrivals& arrivals : threads[i].arrivals) {
        if (arrivals.barrier == &barrier || (arrivals.barrier->cta == barrier.cta && !family.empty() &&
                                             family_of(*arrivals.barrier) == family))
          count += arrivals.count;
      }
      if (count == 0) continue;
      Arrivers& arrivers = found[cta.get()];
      arrivers.threads.push_back(i);
      arrivers.most = std::max(arrivers.most, count);
      arrivers.returned += cta->threads[i].state == ThreadState::kExited ? 1 : 0;
    }
  }
  return found;
}

std::string arrivers_text(const std::map<const Cta*, Arrivers>& all) {
  constexpr std::size_t kShown = 3;
  std::string list;
  std::size_t shown = 0;
  for (const auto& [cta, arrivers] : all) {
    if (shown++ == kShown) return list + fmt::format(" and threads of {} more CTAs", all.size() - kShown);
    const bool all_left = arrivers.returned == arrivers.threads.size();
    list += fmt::format("{}{} of CTA {} ({} times{}{}{})", list.empty() ? "" : ", ",
                        ranges("thread", arrivers.threads), text(cta->id), arrivers.most,
                        arrivers.threads.size() > 1 ? " at most" : "",
                        all_left && arrivers.threads.size() == 1 ? ", and it has returned" : "",
                        all_left && arrivers.threads.size() > 1 ? ", and all have returned" : "");
  }
  return list;
}

/// Readers of a stage that have waited for it once more often than they have said that they read it, and that
/// wait for another one now: "warpgroup 0 of CTA (0,0,0)", or "" where they may still say so.
std::string readers_that_forgot(const Mbarrier& empty) {
  std::string names;
  for (const auto& cta : empty.cta->gang->ctas) {
    const HopperCta& state = empty.cta->gang->hopper->cta(*cta);
    for (std::size_t warpgroup = 0; warpgroup < state.warpgroups.size(); ++warpgroup) {
      Arrivals most{.barrier = &empty};
      int stages = 0;  // at which it lags
      bool busy = false;
      for (std::size_t i = warpgroup * kWarpgroupSize;
           i < std::min(state.threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
        const HopperThread& thread = state.threads[i];
        const bool exited = cta->threads[i].state == ThreadState::kExited;
        busy = busy || (!exited && (!thread.waiting_for || thread.waiting_for->loaded_phases == 0));
        int lagging = 0;
        for (const Arrivals& arrivals : thread.arrivals) {
          if (!arrivals.full || arrivals.ahead) continue;
          lagging += waits_passed(*cta, warpgroup, *arrivals.full) > arrivals.count ? 1 : 0;
          if (arrivals.barrier == &empty && arrivals.count > most.count) most = arrivals;
        }
        stages = std::max(stages, lagging);
      }
      // The stage that was read last is released behind the next wait.
      if (busy || most.count == 0 || stages < 2 || waits_passed(*cta, warpgroup, *most.full) <= most.count)
        continue;
      names += fmt::format("{}warpgroup {} of CTA {}", names.empty() ? "" : ", ", warpgroup, text(cta->id));
    }
  }
  return names;
}

/// The phase that comes behind the latest wait there of any lane of the thread's warp.
std::uint64_t seen_by_warp(const Thread& thread, const Mbarrier& barrier) {
  std::uint64_t seen = barrier.first_phase;
  const auto first = static_cast<std::size_t>(thread.warp()) * kWarpSize;
  for (std::size_t i = first; i < std::min(first + kWarpSize, thread.cta->threads.size()); ++i) {
    if (const LastWait* const wait = last_wait(thread.cta->threads[i], barrier))
      seen = std::max(seen, wait->phase);
  }
  return seen;
}

/// The warps that arrive at `empty`, or that wait for what stands at the place of `full` in their CTA.
std::size_t warps_of(const Mbarrier& empty, const Mbarrier& full) {
  const Gang& gang = *empty.cta->gang;
  std::set<std::pair<std::uint32_t, std::uint32_t>> warps;
  for (const auto& cta : gang.ctas) {
    for (const Thread& thread : cta->threads) {
      const HopperThread& state = gang.hopper->thread(thread);
      const bool arrives = std::any_of(state.arrivals.begin(), state.arrivals.end(),
                                       [&](const Arrivals& arrivals) { return arrivals.barrier == &empty; });
      if (arrives || (state.waiting_for && state.waiting_for->offset == full.offset))
        warps.emplace(cta->key, thread.index / kWarpSize);
    }
  }
  return warps.size();
}

}  // namespace

bool explain_lapped(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  HopperEngine& engine = *gang.hopper;
  for (const auto& cta : gang.ctas) {
    for (const Thread& thread : cta->threads) {
      const Mbarrier* const full = engine.thread(thread).waiting_for;
      if (!full) continue;
      const std::uint64_t seen = seen_by_warp(thread, *full);
      if (full->phase - seen < 2) continue;
      for (const Cta* other : engine.cta(*full->cta).cluster) {
        const auto& barriers = engine.cta(*other).barrier_at;
        const auto same = barriers.find(full->offset);
        const Mbarrier* const empty =
            same == barriers.end() || !same->second->live ? nullptr : empty_of(*other, *same->second);
        if (!empty) continue;
        const std::size_t warps = warps_of(*empty, *full);
        // Two groups that take turns arrive in different phases, as many of the one as of the other.
        if (warps <= empty->count || warps % empty->count == 0) continue;
        report.line("first",
                    "{} waits at {} for phase {} of {}, but {} phases have completed since its warp last "
                    "waited there: the k-tile that it waits for has been overwritten",
                    name_thread(thread), thread.wait.where.text(), seen, name_mbarrier(*full),
                    full->phase - seen);
        report.missing(
            "the arrival of warp {} of CTA {} at {} in a phase that ended without it: the count there is {}, "
            "set at {}, and {} warps read the bytes that are overwritten after that phase. If one lane of "
            "each warp arrives, the count must be the number of warps",
            thread.warp(), text(cta->id), name_mbarrier(*empty), empty->count, empty->init_where.text(),
            warps);
        return true;
      }
    }
  }
  return false;
}

namespace {

/// Readers that have gone on behind a stage, release the others, and have never released this one: whoever
/// waits for that lacks their arrivals. False where that is not so.
bool explain_stage_left_out(Report& report, const Gang& gang, const Mbarrier& empty) {
  constexpr int kFurther = 2;  // stages: the one that was read last may be released behind the next wait
  if (empty.phase != empty.first_phase || !empty.events.empty()) return false;
  const Mbarrier* const full = full_of(*empty.cta, empty);
  const std::string family = family_of(empty);
  if (full == nullptr || family.empty()) return false;
  std::string names;
  std::string place;
  for (const auto& cta : gang.ctas) {
    const HopperCta& state = gang.hopper->cta(*cta);
    const auto own = state.barrier_at.find(full->offset);
    if (own == state.barrier_at.end() || !own->second->live) continue;
    for (std::size_t warpgroup = 0; warpgroup < state.warpgroups.size(); ++warpgroup) {
      const std::uint32_t passed = waits_passed(*cta, warpgroup, *own->second);
      if (passed == 0) continue;
      int further = 0;
      for (const auto& other : state.barriers)
        further += other->live && family_of(*other) == family_of(*own->second) &&
                           waits_passed(*cta, warpgroup, *other) > passed
                       ? 1
                       : 0;
      bool here = false;
      bool beside = false;
      for (std::size_t i = warpgroup * kWarpgroupSize;
           i < std::min(state.threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
        for (const Arrivals& arrivals : state.threads[i].arrivals) {
          here = here || (arrivals.barrier == &empty && arrivals.count > 0);
          beside = beside || (arrivals.barrier != &empty && arrivals.count > 0 &&
                              arrivals.barrier->cta == empty.cta && family_of(*arrivals.barrier) == family);
          if (arrivals.barrier->cta != empty.cta || family_of(*arrivals.barrier) != family ||
              arrivals.barrier->previous_events.empty() || !place.empty())
            continue;
          place = arrivals.barrier->previous_events.back().where.text();
        }
      }
      if (here || !beside || further < kFurther) continue;
      names += fmt::format("{}warpgroup {} of CTA {}", names.empty() ? "" : ", ", warpgroup, text(cta->id));
    }
  }
  if (names.empty()) return false;
  report.line("first",
              "no thread has ever arrived at {}. Among its readers, {} {} waited for {} and for later "
              "stages, and arrived for the later stages",
              name_mbarrier(empty), names, names.find(',') == std::string::npos ? "has" : "have",
              name_mbarrier(*full));
  report.missing(
      "the arrival{} there for this stage: the condition before the arrival is off by one and skips this "
      "stage. Each stage that is filled again must be released, including the last such stage (k-tile i of n "
      "is released after the wait for k-tile i + 1, and its stage is filled again while i + stages is below "
      "n)",
      place.empty() ? std::string() : " of " + place);
  return true;
}

}  // namespace

bool explain_missing_arrivals(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : gang.hopper->cta(*cta).barriers) {
      if (!barrier->live || barrier->waiting.empty() || barrier->pending == 0) continue;
      const std::string readers = readers_that_forgot(*barrier);
      if (readers.empty()) continue;
      report.missing(
          "an arrival at {} for a k-tile that was read: {} has waited for more stages than it has released "
          "(the numbers are below). Each wait must be followed by one release, including the wait for the "
          "last k-tile of a tile",
          name_mbarrier(*barrier), readers);
      return true;
    }
  }
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : gang.hopper->cta(*cta).barriers) {
      if (barrier->live && !barrier->waiting.empty() && explain_stage_left_out(report, gang, *barrier))
        return true;
    }
  }
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : gang.hopper->cta(*cta).barriers) {
      if (!barrier->live || barrier->waiting.empty() || barrier->pending == 0 || barrier->late > 0 ||
          barrier->commits > 0 || no_phase_has_ended(gang, *barrier))
        continue;
      const std::map<const Cta*, Arrivers> arrivers = arrivers_at(*barrier);
      std::uint32_t threads = 0;
      std::uint32_t returned = 0;
      std::uint32_t here = 0;  // in this phase, whatever else they may do
      for (const auto& [of, some] : arrivers) {
        threads += static_cast<std::uint32_t>(some.threads.size());
        returned += some.returned;
      }
      for (const Mbarrier::Event& event : barrier->events)
        here += event.kind == Mbarrier::Event::kExpect ? 0 : 1;
      const std::string family = family_of(*barrier);
      const std::string who =
          family.empty() ? arrivers_text(arrivers)
                         : fmt::format("at {}{} arrive {}", family,
                                       index_in(member_name(*cta, barrier->offset)).empty() ? "" : "[]",
                                       arrivers_text(arrivers));
      if (threads == 0) continue;  // nothing is known of who would arrive
      // One that runs or waits may still come.
      if (returned + here < threads) continue;
      if (here == threads) {
        // Others that have not been there yet may be meant to arrive.
        std::size_t live = 0;
        for (const auto& other : gang.ctas)
          live += static_cast<std::size_t>(other->thread_count - other->exited);
        if (live != barrier->waiting.size()) continue;
        report.missing(
            "{} more arrival{} in a phase of {}, whose count is {} (set at {}): {}. A count of {} would "
            "match",
            barrier->pending, barrier->pending == 1 ? "" : "s", name_mbarrier(*barrier), barrier->count,
            barrier->init_where.text(), who, here);
      } else {
        report.missing("{} arrival{} at {}: {}. There must be one arrival for every wait there",
                       barrier->pending, barrier->pending == 1 ? "" : "s", name_mbarrier(*barrier), who);
      }
      return true;
    }
  }
  return false;
}

std::string text(const Grid& grid, const EarlyArrival& early) {
  const std::string activity = text(early.activity);
  return fmt::format(
      "{}{} arrived at {} at {} (arrival number {}) when its warpgroup had passed its wait at {} only {} "
      "time{}: it released a stage that it had not read",
      name_thread(grid, early.stamp), activity.empty() ? "" : " (after its wait as " + activity + ")",
      name_mbarrier(*early.arrivals.barrier), early.where.text(), early.arrivals.count,
      name_mbarrier(*early.arrivals.full), early.passed, early.passed == 1 ? "" : "s");
}

}  // namespace emulator
