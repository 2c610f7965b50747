#include "emulator/report/causes/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "emulator/async/cp_async.h"
#include "emulator/report/causes/deadlock_causes.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/causes/tensor_causes.h"
#include "emulator/report/member_names.h"
#include "emulator/sync/lanes.h"

namespace emulator {
namespace {

bool is_ring(const Activity& activity) {
  const std::string_view barrier = activity.barrier;
  return barrier == "full" || barrier == "empty";
}

const LastWait* last_wait(const Thread& thread, const Mbarrier& barrier) {
  for (const LastWait& wait : thread.cta->gang->hopper->thread(thread).waits) {
    if (wait.barrier == &barrier) return &wait;
  }
  return nullptr;
}

/// "full[1]" -> "[1]"
std::string index_in(const std::string& name) {
  const std::size_t bracket = name.rfind('[');
  return bracket == std::string::npos || name.back() != ']' ? "" : name.substr(bracket);
}

/// The mbarrier on which the readers of a stage say that it may be filled again: the one that has the same
/// index as `full` and that no load signals. nullptr where that is none or more than one.
const Mbarrier* empty_of(const Cta& cta, const Mbarrier& full) {
  const HopperCta& state = cta.gang->hopper->cta(cta);
  const std::string full_name = member_name(*full.cta, full.offset);
  const std::string index = index_in(full_name);
  // Where a struct has two barriers of this index, they belong together: requests.answered[0],
  // requests.taken[0].
  const std::string parent = full_name.substr(0, full_name.rfind('.') + 1);
  const Mbarrier* beside = nullptr;
  int besides = 0;
  for (const auto& barrier : state.barriers) {
    if (parent.empty() || !barrier->live || barrier->offset == full.offset || barrier->loaded_phases > 0)
      continue;
    const std::string name = member_name(cta, barrier->offset);
    if (index_in(name) != index || name.substr(0, name.rfind('.') + 1) != parent) continue;
    ++besides;
    beside = barrier.get();
  }
  if (besides == 1) return beside;
  const Mbarrier* found = nullptr;
  std::ptrdiff_t longest = -1;
  const Mbarrier* other = nullptr;
  int others = 0;
  for (const auto& barrier : state.barriers) {
    if (!barrier->live || barrier->offset == full.offset || barrier->loaded_phases > 0) continue;
    const std::string name = member_name(cta, barrier->offset);
    if (name.empty() || index_in(name) != index) continue;
    if (name.find("empty") == std::string::npos) {
      ++others;
      other = barrier.get();
      continue;
    }
    // Of two rings the one whose full barrier it is: source.empty[0] goes with source.full[0].
    const auto differs = std::mismatch(name.begin(), name.end(), full_name.begin(), full_name.end()).first;
    const auto common = differs - name.begin();
    if (common <= longest) continue;
    longest = common;
    found = barrier.get();
  }
  return found || others != 1 ? found : other;
}

}  // namespace

const Mbarrier* full_of(const Cta& cta, const Mbarrier& empty) {
  const HopperCta& state = cta.gang->hopper->cta(cta);
  const std::string index = index_in(member_name(*empty.cta, empty.offset));
  if (index.empty()) return nullptr;
  const Mbarrier* found = nullptr;
  for (const auto& barrier : state.barriers) {
    if (!barrier->live || barrier->loaded_phases == 0) continue;
    if (index_in(member_name(cta, barrier->offset)) != index) continue;
    if (found) return nullptr;
    found = barrier.get();
  }
  // An order of roles, say, may have the same index.
  const Mbarrier* const back = found ? empty_of(cta, *found) : nullptr;
  return back && back->offset == empty.offset ? found : nullptr;
}

std::uint32_t waits_passed(const Cta& cta, std::size_t warpgroup, const Mbarrier& barrier) {
  const auto& threads = cta.gang->hopper->cta(cta).threads;
  std::uint32_t most = 0;
  for (std::size_t i = warpgroup * kWarpgroupSize;
       i < std::min(threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
    for (const LastWait& wait : threads[i].waits) {
      if (wait.barrier == &barrier) most = std::max(most, wait.count);
    }
  }
  return most;
}

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

/// "queue.enqueued" of "queue.enqueued[2] (shared + 0x30490)": what barriers of one array have in common.
std::string family_of(const Mbarrier& barrier) {
  const std::string name = member_name(*barrier.cta, barrier.offset);
  return name.substr(0, name.rfind('['));
}

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

}  // namespace

namespace {

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

}  // namespace

bool explain_unexpected_bytes(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  HopperEngine& engine = *gang.hopper;
  const auto untouched = [](const Mbarrier& barrier) {
    return barrier.phase == barrier.first_phase && barrier.events.empty();
  };
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : engine.cta(*cta).barriers) {
      if (!barrier->live || barrier->waiting.empty() || barrier->tx >= 0 || !untouched(*barrier)) continue;
      for (const Cta* other : engine.cta(*cta).cluster) {
        const auto& barriers = engine.cta(*other).barrier_at;
        const auto same = barriers.find(barrier->offset);
        if (other == cta.get() || same == barriers.end() || untouched(*same->second)) continue;
        const auto& events =
            same->second->events.empty() ? same->second->previous_events : same->second->events;
        const std::int64_t bytes = -barrier->tx;
        report.line("first",
                    "{} bytes were delivered to {}, at which {} thread{} wait{}, but no thread has arrived "
                    "or expected bytes there",
                    bytes, name_mbarrier(*barrier), barrier->waiting.size(),
                    barrier->waiting.size() == 1 ? "" : "s", barrier->waiting.size() == 1 ? "s" : "");
        report.missing(
            "mbarrier.arrive.expect_tx of {} bytes at {}, in CTA {}{}: a multicast copy signals the mbarrier "
            "at the same offset in each CTA, and each CTA must expect its bytes",
            bytes, name_mbarrier(*barrier), text(cta->id),
            events.empty() ? std::string()
                           : fmt::format(", as at {} for {}", events.front().where.text(),
                                         name_mbarrier(*same->second)));
        return true;
      }
    }
  }
  return false;
}

namespace {

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

std::string arrivals_text(const Grid& grid, const std::vector<Mbarrier::Event>& events) {
  std::map<std::string, std::vector<std::uint32_t>> groups;
  std::vector<std::string> order;
  for (const Mbarrier::Event& event : events) {
    if (event.kind == Mbarrier::Event::kExpect) continue;
    const std::string activity = text(event.activity);
    std::string place =
        fmt::format(" of CTA {} at {}{}", name_cta(grid, stamp_cta(event.stamp)), event.where.text(),
                    activity.empty() ? "" : ", after its wait as " + activity);
    if (groups[place].empty()) order.push_back(place);
    groups[place].push_back(stamp_thread(event.stamp));
  }
  std::string lines;
  for (const std::string& place : order) {
    std::vector<std::uint32_t>& threads = groups[place];
    std::sort(threads.begin(), threads.end());
    lines += fmt::format("{}  {}{}", lines.empty() ? "" : "\n", ranges("thread", threads), place);
  }
  return lines;
}

namespace {

struct ReaderName {
  std::string name;         // "warpgroup 1 of CTA (0,0,0)"
  std::uint32_t first = 0;  // its threads
  std::uint32_t count = 0;
  std::uint32_t cta = 0;  // key
  AgentKind kind = AgentKind::kLoads;
  bool agent = false;
};

ReaderName reader_name(const Gang& gang, Stamp reader) {
  ReaderName result;
  result.agent = is_agent(reader);
  if (!result.agent) {
    result.cta = stamp_cta(reader);
    result.first = stamp_thread(reader);
    result.count = 1;
    result.name = name_thread(gang.grid, reader);
    return result;
  }
  result.cta = stamp_cta(reader) & (kAgentKey - 1);
  for (const auto& cta : gang.ctas) {
    if (cta->key != result.cta) continue;
    const Agent agent = gang.hopper->cta(*cta).agents[stamp_thread(reader)];
    result.kind = agent.kind;
    if (agent.kind == AgentKind::kWgmma) {
      result.first = agent.object * kWarpgroupSize;
      result.count = kWarpgroupSize;
      result.name = fmt::format("warpgroup {} of CTA {}", agent.object, text(cta->id));
    } else if (agent.kind == AgentKind::kStoreReads) {
      result.first = agent.object;
      result.count = 1;
      result.name = name_thread(gang.grid, make_stamp(cta->key, agent.object, 1));
    } else {
      result.name = name_agent(gang, reader);
      if (agent.kind == AgentKind::kMultiplications) {
        result.first = agent.object;
        result.count = 1;
      }
    }
  }
  if (result.name.empty()) result.name = name_agent(gang, reader);
  return result;
}

/// The CTAs of a list of keys, each once: "CTA (0,0,0), CTA (1,0,0)".
std::string names_of_ctas(const Grid& grid, const std::vector<std::uint32_t>& keys) {
  std::string names;
  for (const std::uint32_t key : keys)
    names += fmt::format("{}CTA {}", names.empty() ? "" : ", ", name_cta(grid, key));
  return names;
}

/// The bytes that a load of another k-tile brought are overwritten, and no reader has said that it read them.
/// `to`: the CTA that they lie in; `issuer` loads into it.
std::string whose_release_is_missing(const Gang& gang, const std::vector<Mbarrier::Event>& events,
                                     const Mbarrier& empty, const Cta& to, const LoadRecord& load) {
  std::vector<std::uint32_t> targets;
  for (const Cta* cta : gang.hopper->copies.targets_of(load.issuer)) targets.push_back(cta->key);
  if (std::find(targets.begin(), targets.end(), to.key) == targets.end()) targets.push_back(to.key);
  std::vector<std::uint32_t> strangers;
  bool arrived = false;
  for (const Mbarrier::Event& event : events) {
    if (event.kind == Mbarrier::Event::kExpect) continue;
    const std::uint32_t key = stamp_cta(event.stamp);
    arrived = arrived || key == to.key;
    if (std::find(targets.begin(), targets.end(), key) == targets.end() &&
        std::find(strangers.begin(), strangers.end(), key) == strangers.end())
      strangers.push_back(key);
  }
  if (arrived) {
    return fmt::format(
        "a thread of CTA {} arrived before it had waited for the bytes that are there: the arrival is for "
        "another stage, or precedes the wait for this one",
        text(to.id));
  }
  std::string missing = fmt::format(
      "the arrival of the consumers of CTA {}: this producer's copies go to that CTA, and the phase ended "
      "without its consumers (the count of {} is {})",
      text(to.id), name_mbarrier(empty), empty.count);
  if (load.ctas != 0) {
    missing += fmt::format(
        ". Alternatively, the multicast mask at {} has a bit too many: it is {:#x}, which includes rank {} "
        "of the cluster, CTA {}",
        load.where.text(), load.ctas, to.rank_in_cluster, text(to.id));
  }
  if (strangers.empty() && targets.size() > 2) {
    missing += fmt::format(". They go to {}", names_of_ctas(gang.grid, targets));
  } else if (!strangers.empty()) {
    missing += fmt::format(
        ". {} arrived instead, but none of this producer's copies go there ({}): either the arrivals or the "
        "copies go to the wrong peers",
        names_of_ctas(gang.grid, strangers), "they go to " + names_of_ctas(gang.grid, targets));
  }
  return missing;
}

/// One thread arrives for several warps that have waited for the stage, and had not met them behind their
/// reads: what is missing then, or "".
std::string who_spoke_for(const Gang& gang, const std::vector<Mbarrier::Event>& events, const Mbarrier& empty,
                          const Mbarrier& full, const ReaderName& reader, Where read_at) {
  if (empty.count != 1) return {};
  const auto event = std::find_if(events.begin(), events.end(), [&](const Mbarrier::Event& arrival) {
    return arrival.kind != Mbarrier::Event::kExpect && stamp_cta(arrival.stamp) == reader.cta;
  });
  const auto cta = std::find_if(gang.ctas.begin(), gang.ctas.end(),
                                [&](const auto& other) { return other->key == reader.cta; });
  if (event == events.end() || event->commit || cta == gang.ctas.end()) return {};
  const HopperCta& state = gang.hopper->cta(**cta);
  const std::uint32_t warpgroup = reader.first / kWarpgroupSize;
  if (stamp_thread(event->stamp) / kWarpgroupSize != warpgroup) return {};
  std::vector<std::uint32_t> warps;  // of the warpgroup, that have waited for the stage
  for (std::uint32_t i = warpgroup * kWarpgroupSize;
       i < std::min<std::size_t>(state.threads.size(), (std::size_t{warpgroup} + 1) * kWarpgroupSize); ++i) {
    const std::uint32_t warp = i / kWarpSize;
    if (last_wait((*cta)->threads[i], full) && (warps.empty() || warps.back() != warp)) warps.push_back(warp);
  }
  if (warps.size() < 2) return {};
  return fmt::format(
      "a barrier of {} between the read at {} and the arrival at {}: thread {} arrived for all of them (the "
      "count of {} is 1) before thread {} had read",
      ranges("warp", warps), read_at.text(), event->where.text(), stamp_thread(event->stamp),
      name_mbarrier(empty), reader.first);
}

/// The latest arrival there by one of the reader's threads, or nullptr.
const Mbarrier::Event* latest_arrival(const Mbarrier& barrier, const ReaderName& reader) {
  for (const auto* events : {&barrier.events, &barrier.previous_events}) {
    for (auto event = events->rbegin(); event != events->rend(); ++event) {
      if (event->kind != Mbarrier::Event::kExpect && !event->commit &&
          stamp_cta(event->stamp) == reader.cta && stamp_thread(event->stamp) - reader.first < reader.count)
        return &*event;
    }
  }
  return nullptr;
}

/// A reader that hands back each stage behind its wait for the next one handed back the last of a tile by
/// itself, and goes on with one arrival too many: what is missing then, or "".
std::string released_twice(const Mbarrier& empty, const ReaderName& reader, const Mbarrier::Event& arrival) {
  const std::string family = family_of(empty);
  std::map<int, const Mbarrier*> stages;
  for (const auto& other : empty.cta->gang->hopper->cta(*empty.cta).barriers) {
    const std::string index = index_in(member_name(*other->cta, other->offset));
    if (other->live && !index.empty() && family_of(*other) == family)
      stages[std::stoi(index.substr(1))] = other.get();
  }
  const auto is_own = [](const Mbarrier::Event& event, int stage) {
    return event.activity.role != nullptr && std::string_view(event.activity.barrier) == "full" &&
           event.activity.stage == stage;
  };
  const int count = static_cast<int>(stages.size());
  const int stage = arrival.activity.stage;
  if (count < 3 || !is_own(arrival, stage) || !stages.contains(stage) || stages[stage] != &empty ||
      stages.rbegin()->first != count - 1)
    return {};
  const int last = (stage + count - 1) % count;
  const int before = (last + count - 1) % count;
  const Mbarrier::Event* const of_last = latest_arrival(*stages[last], reader);
  const Mbarrier::Event* const of_before = latest_arrival(*stages[before], reader);
  // The last k-tile of the tile before was handed back by itself, the one before it behind the next wait.
  if (of_last == nullptr || of_before == nullptr || !is_own(*of_last, last) || !is_own(*of_before, last) ||
      of_last->activity.k_tile <= arrival.activity.k_tile)
    return {};
  return fmt::format(
      "one arrival fewer: {} releases k-tile {} twice. With the arrival at {} ({}, at {}), it had released "
      "every stage that it had waited for. The next arrival, after its wait as {}, can therefore only be for "
      "k-tile {}, whose wgmma has just been issued. Until then, each k-tile was released after the wait for "
      "the following one. The last k-tile must be released only once, either after the loop or in the first "
      "iteration of the next tile",
      reader.name, of_last->activity.k_tile, name_mbarrier(*stages[last]), text(of_last->activity),
      of_last->where.text(), text(arrival.activity), arrival.activity.k_tile);
}

/// A relaxed arrival by a thread that knew of the read, and has executed no fence since: what is missing
/// then, or
/// "".
std::string relaxed_without_fence(const Gang& gang, const std::vector<Mbarrier::Event>& events,
                                  const Mbarrier& empty, Stamp reader, Where read_at) {
  const Mbarrier::Published& over = empty.completed;
  for (const Mbarrier::Event& event : events) {
    // What releases publishes itself, too.
    if (event.kind != Mbarrier::Event::kArrive || event.commit || over.local.covers(event.stamp) ||
        over.cluster.covers(event.stamp) || over.execution.covers(event.stamp))
      continue;
    const auto cta = std::find_if(gang.ctas.begin(), gang.ctas.end(),
                                  [&](const auto& other) { return other->key == stamp_cta(event.stamp); });
    if (cta == gang.ctas.end()) continue;
    const Thread& thread = (*cta)->threads[stamp_thread(event.stamp)];
    const bool own = reader >> 32 == event.stamp >> 32;
    if (own ? stamp_time(reader) > stamp_time(event.stamp) : !knows(thread, reader)) continue;
    if (thread.fenced_device.covers(reader)) continue;
    return fmt::format(
        "a release in the arrival at {}, or a fence.acq_rel.cluster between the read at {} and that arrival: "
        "a relaxed arrival passes on only what an earlier fence of its thread covers",
        event.where.text(), read_at.text());
  }
  return {};
}

/// Whether the thread that arrived for its warp has read what the load is to overwrite at this line, behind
/// its arrival.
bool reads_behind(const Cta& target, const LoadRecord& load, Stamp arrival, Where at) {
  const std::uintptr_t end = std::min<std::uintptr_t>(load.offset + load.bytes, target.dynamic_window.bytes);
  for (std::uintptr_t offset = std::uintptr_t{load.offset} / 16 * 16; offset < end; offset += 16) {
    const Line& line = target.dynamic_window.lines[offset / 16];
    if (line.tag() != target.tag || line.cells() == nullptr) continue;
    for (unsigned i = 0; i < 16u >> line.granule_log2(); ++i) {
      const Cell& cell = line.cells()[i];
      for (std::size_t j = 0; j < cell.readers; ++j) {
        const Reader& reader = j == 0 ? cell.first : cell.more[j - 1];
        if (reader.stamp >> 32 != arrival >> 32 || (reader.where & ~kAtomicBit) != at.packed()) continue;
        if (stamp_time(reader.stamp) > stamp_time(arrival)) return true;
      }
    }
  }
  return false;
}

/// Of the arrivals at `empty` more than its phases need for what has come to the stage: who arrives for one
/// k-tile, as several warps of the reader's warpgroup do; or "".
std::string too_many_arrivals(const Gang& gang, const Mbarrier& empty, const Mbarrier& full,
                              const ReaderName& reader) {
  const std::uint64_t filled = full.phase - full.first_phase;
  std::uint64_t total = 0;
  std::vector<std::uint32_t> threads;  // of the reader's warpgroup
  std::set<std::uint32_t> warps;
  for (const auto& cta : gang.ctas) {
    const auto& states = gang.hopper->cta(*cta).threads;
    for (std::uint32_t i = 0; i < states.size(); ++i) {
      for (const Arrivals& arrivals : states[i].arrivals) {
        if (arrivals.barrier != &empty || arrivals.count == 0) continue;
        if (arrivals.ahead) return {};
        total += arrivals.count;
        if (cta->key != reader.cta || i / kWarpgroupSize != reader.first / kWarpgroupSize) continue;
        threads.push_back(i);
        warps.insert(i / kWarpSize);
      }
    }
  }
  if (warps.size() < 2 || total <= empty.count * filled || empty.commits > 0) return {};
  return fmt::format(
      "fewer arrivals per k-tile, or a larger count: {} was filled {} time{}, but {} threads have arrived {} "
      "times at {}, whose count is {} (set at {}). {} of warpgroup {}, in {} warps, arrive there, and every "
      "{} of these arrivals end{} a phase. The count must equal the number of threads that arrive for one "
      "k-tile",
      name_mbarrier(full), filled, filled == 1 ? "" : "s", arriving_threads(gang, empty), total,
      name_mbarrier(empty), empty.count, empty.init_where.text(), ranges("thread", threads),
      reader.first / kWarpgroupSize, warps.size(), empty.count, empty.count == 1 ? "s" : "");
}

/// Why an arrival by the reader, or none, did not keep the stage from being filled.
std::string what_the_reader_missed(Report& report, const Gang& gang,
                                   const std::vector<Mbarrier::Event>& events, const Mbarrier& empty,
                                   Stamp reader, Where read_at, const Cta& target, const LoadRecord& load) {
  const ReaderName name = reader_name(gang, reader);
  if (std::string relaxed = relaxed_without_fence(gang, events, empty, reader, read_at); !relaxed.empty())
    return relaxed;
  if (std::string many = too_many_arrivals(gang, empty, *load.barrier, name); !many.empty()) return many;
  if (name.agent && (name.kind == AgentKind::kLoads || name.kind == AgentKind::kCopies))
    return whose_release_is_missing(gang, events, empty, target, load);
  const auto own = [&](const Mbarrier::Event& event) {
    return event.kind != Mbarrier::Event::kExpect && stamp_cta(event.stamp) == name.cta &&
           stamp_thread(event.stamp) - name.first < name.count;
  };
  const bool arrived = std::any_of(events.begin(), events.end(), own);
  if (name.agent && name.kind == AgentKind::kWgmma) {
    if (!arrived) {
      return fmt::format("the arrival of {}: the phase ended without it (the count of {} is {})", name.name,
                         name_mbarrier(empty), empty.count);
    }
    std::uint64_t executed = 0;
    const Mbarrier::Event* last = nullptr;
    for (const Mbarrier::Event& event : events) {
      if (!own(event) || (last && event.wgmma < executed)) continue;
      executed = event.wgmma;
      last = &event;
    }
    if (executed < stamp_time(reader)) {
      return fmt::format(
          "{} arrived before it issued its wgmma {} at {}, which reads the stage: it had issued {} of them "
          "before the arrival at {}. There must be one release per k-tile, after its last wgmma and the wait "
          "for that wgmma: this release is too early, or there is one too many",
          name.name, stamp_time(reader), read_at.text(), executed, last->where.text());
    }
    if (std::string twice = last ? released_twice(empty, name, *last) : std::string(); !twice.empty())
      return twice;
    return fmt::format(
        "{} arrived before its wgmma had completed: a wgmma.wait_group that covers it (wait_group<0>, or "
        "with fewer groups left in flight) is missing before the arrival, or the arrival is for another "
        "stage",
        name.name);
  }
  const auto arrival = std::find_if(events.begin(), events.end(), own);
  if (name.agent && name.kind == AgentKind::kMultiplications && arrived && !arrival->commit) {
    return fmt::format(
        "tcgen05.commit at {} instead of the arrival at {}: an arrival by the issuing thread does not say "
        "that the tensor cores have finished reading, and the tcgen05.mma at {} may still be running",
        name_mbarrier(empty), arrival->where.text(), read_at.text());
  }
  if (name.agent && name.kind == AgentKind::kMultiplications && arrived) {
    return fmt::format(
        "tcgen05.commit at {} after the tcgen05.mma at {}: the commit precedes it, and a commit tracks only "
        "what its thread has already issued",
        arrival->where.text(), read_at.text());
  }
  if (name.agent && name.kind == AgentKind::kStoreReads) {
    for (const auto& cta : gang.ctas) {
      if (cta->key != name.cta) continue;
      const std::string wait =
          gang.hopper->copies.explain_unread(report, cta->threads[name.first], stamp_time(reader));
      return fmt::format("{}, before {}, which releases the buffer", wait,
                         arrived ? fmt::format("the arrival at {}", arrival->where.text())
                                 : std::string("the arrival that ended the phase"));
    }
  }
  const auto mate = std::find_if(events.begin(), events.end(), [&](const Mbarrier::Event& event) {
    return event.kind != Mbarrier::Event::kExpect && stamp_cta(event.stamp) == name.cta &&
           stamp_thread(event.stamp) / kWarpSize == name.first / kWarpSize;
  });
  if (!arrived && name.count == 1) {
    std::string spokesman = who_spoke_for(gang, events, empty, *load.barrier, name, read_at);
    if (!spokesman.empty()) return spokesman;
  }
  if (!arrived && name.count == 1 && mate != events.end()) {
    const std::string late =
        fmt::format("lane {} arrived for warp {} before lane {} had read",
                    stamp_thread(mate->stamp) % kWarpSize, name.first / kWarpSize, name.first % kWarpSize);
    const bool below = mate->where.file() == read_at.file() && mate->where.line() < read_at.line();
    if (reads_behind(target, load, mate->stamp, read_at))
      return fmt::format(
          "the arrival at {} after the read at {}: {}, and that lane itself reads there after it has "
          "arrived. A __syncwarp before the arrival does not delay reads that follow it",
          mate->where.text(), read_at.text(), late);
    if (below)
      return fmt::format(
          "the arrival at {} after the read at {}, which comes later in the source: {}, and a __syncwarp "
          "before the arrival does not delay reads that follow it. (If the arrival belongs to a later "
          "iteration, a __syncwarp between the two is missing instead)",
          mate->where.text(), read_at.text(), late);
    return fmt::format(
        "__syncwarp between the read at {} and the arrival at {}: lane {} arrived for warp {} before lane {} "
        "had read, and being in the same warp does not order lanes",
        read_at.text(), mate->where.text(), stamp_thread(mate->stamp) % kWarpSize, name.first / kWarpSize,
        name.first % kWarpSize);
  }
  if (!arrived && arriving_threads(gang, empty) > empty.count) {
    return fmt::format(
        "the arrival of {}: the phase ended without it. The count of {} is {}, set at {}, but {} threads "
        "arrive there. If each of them arrives in every phase, the count is too small",
        name.name, name_mbarrier(empty), empty.count, empty.init_where.text(), arriving_threads(gang, empty));
  }
  return arrived ? fmt::format("{} arrived before it read: the arrival must follow the last read", name.name)
                 : fmt::format(
                       "{} has not arrived in that phase: either it must arrive itself, or it must meet the "
                       "arriving thread at a barrier before that thread arrives",
                       name.name);
}

std::string stage_text(const Cta& cta, std::uintptr_t address) {
  const std::uintptr_t offset = address - cta.dynamic_window.begin;
  if (offset >= cta.dynamic_window.bytes) return {};
  const std::string name = member_name(cta, static_cast<std::uint32_t>(offset));
  const std::size_t bracket = name.find('[');
  const std::size_t end = name.find(']');
  // stage[2].a, not a[2][5]
  if (bracket == std::string::npos || end == std::string::npos || end + 1 >= name.size() ||
      name[end + 1] != '.')
    return {};
  return fmt::format("stage {}", name.substr(bracket + 1, end - bracket - 1));
}

}  // namespace

std::string content_text(const Thread& thread, std::uintptr_t address, Access now, Stamp held) {
  const Cta& cta = *thread.cta;
  std::string content;
  if (const std::optional<int> before = k_tile_held(cta, address, held))
    content = fmt::format("the bytes hold k-tile {}", *before);
  if (now != Access::kRead) {
    std::optional<int> next = k_tile_of_store(cta, context.now);
    if (cta.gang->cp_async && cta.gang->cp_async->issuing())
      next = k_tile_of(cta.gang->grid, cta.gang->cp_async->issuing());
    if (next) content += fmt::format("{}the write is of k-tile {}", content.empty() ? "" : ", ", *next);
  }
  if (const std::string stage = stage_text(cta, address); !stage.empty())
    content = content.empty() ? stage : stage + ": " + content;
  return content;
}

bool one_warp_one_place(const Thread& thread, Where where, Stamp other, Where other_where) {
  return stamp_cta(other) == thread.cta->key && stamp_thread(other) / kWarpSize == thread.index / kWarpSize &&
         stamp_thread(other) != thread.index && other_where.packed() == where.packed();
}

std::string two_lanes_text(const Thread& thread, Stamp other, const char* verb, Where where) {
  return fmt::format(
      "one lane that {}s: lanes {} and {} of warp {} both {} at {}. Inside elect_sync() (or a test of "
      "threadIdx.x for one value) only one lane would",
      verb, stamp_thread(other) % kWarpSize, thread.lane(), thread.warp(), verb, where.text());
}

bool explain_two_issuers(Report& report, const Thread& thread, Where where, const LoadRecord& other) {
  if (!one_warp_one_place(thread, where, other.issuer, other.where)) return false;
  report.missing(two_lanes_text(thread, other.issuer, "issue", where));
  return true;
}

bool explain_two_warps(Report& report, const Thread& thread, const LoadRecord& load,
                       const LoadRecord& before) {
  const Gang& gang = *thread.cta->gang;
  if (stamp_cta(before.issuer) != thread.cta->key || before.where.packed() != load.where.packed() ||
      before.barrier != load.barrier || before.coordinates != load.coordinates ||
      before.spec.base != load.spec.base || load.remote || before.remote || load.phase > before.phase + 1)
    return false;
  const std::uint32_t earlier = stamp_thread(before.issuer) / kWarpSize;
  if (earlier == static_cast<std::uint32_t>(thread.warp())) return false;
  const std::optional<int> k_tile = k_tile_of(gang.grid, load);
  report.line("before", "the same copy by {} at {}", name_thread(gang.grid, before.issuer),
              before.where.text());
  report.missing(
      "one loading warp instead of two: warps {} and {} of CTA {} both load {} for {} at {}, each with its "
      "own lane. A branch on the warp's number must let only one of them through, and {} counts the arrivals "
      "of one",
      std::min<std::uint32_t>(earlier, static_cast<std::uint32_t>(thread.warp())),
      std::max<std::uint32_t>(earlier, static_cast<std::uint32_t>(thread.warp())), text(thread.cta->id),
      k_tile ? fmt::format("k-tile {}", *k_tile) : std::string("the same box"), name_mbarrier(*load.barrier),
      load.where.text(), name_mbarrier(*load.barrier));
  return true;
}

namespace {

/// What a phase of the mbarrier brings, by its load: the number that the producer said, or the k-tile.
std::optional<int> brought_by(const Gang& gang, const Mbarrier& full, std::uint64_t phase) {
  const LoadRecord* const load = gang.hopper->copies.load_of_phase(full, phase);
  if (!load) return std::nullopt;
  if (load->activity.role && std::string_view(load->activity.barrier) == "empty")
    return load->activity.k_tile;
  return k_tile_of(gang.grid, *load);
}

/// The latest wait of the thread that is for threads' arrivals and not for loads, if its phase is the latest.
const LastWait* let_in_by(const Thread& thread) {
  const auto& waits = thread.cta->gang->hopper->thread(thread).waits;
  const auto order = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& other) {
    return other.barrier->loaded_phases == 0 && other.phase != other.barrier->first_phase;
  });
  return order == waits.rend() || order->barrier->phase != order->phase ? nullptr : &*order;
}

void add_let_in(Report& report, const Gang& gang, const LastWait& order) {
  report.line("let in", "by its wait at {} for {}; these arrivals ended phase {} there:", order.where.text(),
              name_mbarrier(*order.barrier), order.phase - 1);
  report.block(arrivals_text(gang.grid, order.barrier->previous_events));
}

/// An arrival that let the thread in to its wait, by another warpgroup that has gone on to wait at the same
/// ring since, and not yet for this phase. nullptr where there is none.
const Mbarrier::Event* let_in_early(const Gang& gang, const Thread& thread, const LastWait& order,
                                    const LastWait& wait, std::uint64_t phase) {
  const Mbarrier& full = *wait.barrier;
  if (!wait.activity.role) return nullptr;
  const std::string_view what = wait.activity.barrier;
  for (const Mbarrier::Event& event : order.barrier->previous_events) {
    if (event.kind == Mbarrier::Event::kExpect || stamp_cta(event.stamp) != full.cta->key ||
        thread.cta != full.cta)
      continue;
    const std::uint32_t warpgroup = stamp_thread(event.stamp) / kWarpgroupSize;
    if (warpgroup == thread.index / kWarpgroupSize) continue;
    const bool at_ring = event.activity.role && event.activity.barrier == what;
    bool takes = false;  // from the ring, since the arrival
    bool has_seen = false;
    for (std::uint32_t i = warpgroup * kWarpgroupSize;
         i < std::min<std::size_t>((std::size_t{warpgroup} + 1) * kWarpgroupSize, full.cta->threads.size());
         ++i) {
      const Activity& now = gang.hopper->thread(full.cta->threads[i]).activity;
      takes = takes || (now.role && now.barrier == what && (!at_ring || now.k_tile > event.activity.k_tile));
      const LastWait* const theirs = last_wait(full.cta->threads[i], full);
      has_seen = has_seen || (theirs && theirs->phase > phase);
    }
    if (takes && !has_seen) return &event;
  }
  return nullptr;
}

/// A load of the k-tile that `wait` was for, behind the one that let it through, into another stage, and with
/// which nobody that waited there has waited for this k-tile: the stage is wrong, not the phase.
const LoadRecord* in_another_stage(const Gang& gang, const Mbarrier& full, const LastWait& wait) {
  const LoadRecord* const brought = gang.hopper->copies.load_of_phase(full, wait.phase - 1);
  const std::string family = family_of(full);
  const LoadRecord* next = nullptr;
  gang.hopper->copies.visit_loads([&](const LoadRecord& load) {
    if (load.barrier->cta != full.cta || load.serial <= brought->serial ||
        (next && next->serial < load.serial) || family_of(*load.barrier) != family)
      return;
    if (brought_by(gang, *load.barrier, load.phase) == wait.activity.k_tile) next = &load;
  });
  if (!next || next->barrier == &full) return nullptr;
  for (const Thread& thread : full.cta->threads) {
    const LastWait* const other = last_wait(thread, *next->barrier);
    if (other && (other->phase > next->phase + 1 ||
                  (other->phase == next->phase + 1 && other->activity.k_tile == wait.activity.k_tile)))
      return nullptr;
  }
  return next;
}

/// The thread has skipped waits for the ring that another one of its warpgroup makes, and runs ahead of that.
/// False where that is not so.
bool explain_skipped_waits(Report& report, const Gang& gang, const Thread& thread, const Mbarrier& full,
                           const LastWait& wait) {
  const std::string family = family_of(full);
  const auto of_ring = [&](const Mbarrier& other) {
    return other.cta == full.cta && family_of(other) == family;
  };
  const auto waits_there = [&](const Thread& one) {  // on all mbarriers of the ring
    std::uint32_t count = 0;
    for (const LastWait& other : gang.hopper->thread(one).waits)
      count += of_ring(*other.barrier) ? other.count : 0;
    return count;
  };
  const auto waited_at = [&](Where place) {
    const auto& made = gang.hopper->thread(thread).waits;
    return place.is_line_of(wait.where) || std::any_of(made.begin(), made.end(), [&](const LastWait& other) {
             return other.where.is_line_of(place);
           });
  };
  const std::uint32_t own = waits_there(thread);
  const std::uint32_t first = thread.index / kWarpgroupSize * kWarpgroupSize;
  const auto end = std::min<std::size_t>(first + kWarpgroupSize, thread.cta->threads.size());
  const std::string barrier =
      fmt::format("a barrier of warpgroup {} after waits that not all of its threads execute",
                  thread.index / kWarpgroupSize);
  constexpr const char* kRule =
      "A thread that skips waits must not run ahead of the thread that executes them";
  for (std::uint32_t i = first; i < end; ++i) {
    const std::uint32_t theirs = waits_there(thread.cta->threads[i]);
    if (theirs <= own + 1) continue;
    report.missing("{}: thread {} has waited for {} phases of this ring, and thread {} for {}. {}", barrier,
                   i, theirs, thread.index, own, kRule);
    return true;
  }
  // The one that makes them may be far behind.
  for (std::uint32_t i = first; i < end; ++i) {
    const Thread& mate = thread.cta->threads[i];
    const HopperThread& state = gang.hopper->thread(mate);
    std::string place;
    if (state.waiting_for != nullptr && of_ring(*state.waiting_for) && !waited_at(mate.wait.where))
      place = mate.wait.where.text();
    for (const LastWait& other : state.waits) {
      if (of_ring(*other.barrier) && !waited_at(other.where)) place = other.where.text();
    }
    if (place.empty()) continue;
    report.missing(
        "{}: thread {} waits at {} for phases of this ring (it is at {}), and thread {} does not. {}",
        barrier, i, place, text(state.activity), thread.index, kRule);
    return true;
  }
  return false;
}

/// What a thread lacks that a phase of another k-tile has let through at `full`.
void add_missing_phase(Report& report, const Gang& gang, const Thread& thread, const Mbarrier& full,
                       const LastWait& wait) {
  if (explain_skipped_waits(report, gang, thread, full, wait)) return;
  const int k_tile = wait.activity.k_tile;
  if (const LoadRecord* const other = in_another_stage(gang, full, wait)) {
    report.missing(
        "a wait for phase {} (parity {}) of {}, which delivers k-tile {}: the stage is wrong, not the "
        "parity. This thread's read state does not continue where its previous k-tiles ended (the state "
        "starts again from the beginning, or advances by a wrong number)",
        other->phase, other->phase & 1, name_mbarrier(*other->barrier), k_tile);
    return;
  }
  const std::optional<int> next = brought_by(gang, full, wait.phase);
  if (next == k_tile) {
    report.missing(
        "a wait for phase {} (parity {}) there, which delivers k-tile {}: the parity of this wait is "
        "inverted",
        wait.phase, wait.phase & 1, k_tile);
    return;
  }
  const LastWait* const order = let_in_by(thread);
  if (order) add_let_in(report, gang, *order);
  const Mbarrier::Event* const arrival =
      order ? let_in_early(gang, thread, *order, wait, wait.phase) : nullptr;
  if (arrival) {
    report.missing(
        "a later arrival at {}: the arrival of {} at {} let this thread proceed before that thread's own "
        "warpgroup had waited for phase {} of {}. The arrival belongs after the last wait of the warpgroup's "
        "turn",
        name_mbarrier(*order->barrier), name_thread(gang.grid, arrival->stamp), arrival->where.text(),
        wait.phase, name_mbarrier(full));
    return;
  }
  report.missing(next ? fmt::format("a wait for the phase that delivers k-tile {}: this thread reaches its "
                                    "wait before phase {} has completed, which delivers k-tile {}, and a "
                                    "parity cannot distinguish a phase from the next but one",
                                    k_tile, wait.phase, *next)
                      : fmt::format("a wait for the phase that delivers k-tile {}: the parity is wrong for "
                                    "this phase, or the thread waits one phase too early",
                                    k_tile));
}

/// Threads that were let through by a phase that brought another k-tile than they waited for.
bool explain_early_pass(Report& report, const Gang& gang, const Mbarrier& full, const ReaderName& reader) {
  for (const auto& cta : gang.ctas) {
    if (cta->key != reader.cta) continue;
    for (std::uint32_t i = reader.first; i < reader.first + reader.count; ++i) {
      const LastWait* wait = last_wait(cta->threads[i], full);
      if (!wait || !wait->activity.role || wait->phase == 0) continue;
      const std::optional<int> brought = brought_by(gang, full, wait->phase - 1);
      if (!brought || *brought == wait->activity.k_tile) continue;
      report.line("early",
                  "{} was let through at {}: it waited for k-tile {} by parity {} of {}, and phase {} there, "
                  "which had that parity, delivered k-tile {}",
                  name_thread(gang.grid, make_stamp(cta->key, i, 1)), wait->where.text(),
                  wait->activity.k_tile, wait->parity, name_mbarrier(full), wait->phase - 1, *brought);
      add_missing_phase(report, gang, cta->threads[i], full, *wait);
      return true;
    }
  }
  return false;
}

/// Who ended the phase of `empty` in the reader's place: a thread that a phase of another k-tile had let
/// through. False where none of these was.
bool explain_early_arrivals(Report& report, const Gang& gang, const Mbarrier& empty, const Mbarrier& full,
                            const ReaderName& reader) {
  for (const Mbarrier::Event& event : empty.previous_events) {
    if (event.kind == Mbarrier::Event::kExpect) continue;
    const std::uint32_t key = stamp_cta(event.stamp);
    const std::uint32_t index = stamp_thread(event.stamp);
    if (key == reader.cta && index - reader.first < reader.count) continue;
    const auto cta = std::find_if(gang.ctas.begin(), gang.ctas.end(),
                                  [key](const auto& other) { return other->key == key; });
    if (cta == gang.ctas.end()) continue;
    const auto& barriers = gang.hopper->cta(**cta).barrier_at;
    const auto own = barriers.find(full.offset);
    if (own == barriers.end() || !own->second->live) continue;
    ReaderName arrived;
    arrived.cta = key;
    arrived.first = index;
    arrived.count = 1;
    if (!explain_early_pass(report, gang, *own->second, arrived)) continue;
    const std::uint32_t mine = index / kWarpgroupSize;
    const auto times = std::count_if(
        empty.previous_events.begin(), empty.previous_events.end(), [&](const Mbarrier::Event& other) {
          return other.kind != Mbarrier::Event::kExpect && other.stamp >> 32 == event.stamp >> 32;
        });
    if (times > 1) {
      report.line("instead",
                  "{} arrived {} times in this phase, although each reader of the stage should arrive once: "
                  "it released a stage that it had not waited for (its read state and its release state do "
                  "not advance together), and {} has not arrived",
                  name_thread(gang.grid, event.stamp), times, reader.name);
    } else if (key == reader.cta && reader.count == kWarpgroupSize && mine != reader.first / kWarpgroupSize) {
      report.line("instead",
                  "warpgroup {} arrived instead of warpgroup {}: both read k-tiles from this ring, so each "
                  "may wait there only after the other has passed its own waits; an order barrier between "
                  "their main loops ensures that",
                  mine, reader.first / kWarpgroupSize);
    }
    return true;
  }
  return false;
}

}  // namespace

bool explain_two_copies(Report& report, const Thread& thread, const LoadRecord& load, const Cta& target,
                        const LoadRecord& before) {
  if (before.barrier != load.barrier || before.phase != load.phase || before.remote || load.remote)
    return false;
  const Grid& grid = thread.cta->gang->grid;
  // Of two k-tiles the later one comes too early: nobody has waited for the readers of the first.
  const std::optional<int> first = k_tile_of(grid, before);
  const std::optional<int> second = k_tile_of(grid, load);
  if (first && second && *first != *second) return false;
  const auto of = [&](const LoadRecord& copy) {
    return fmt::format("{} of CTA {}{}", describe_load(grid, copy), name_cta(grid, stamp_cta(copy.issuer)),
                       copy.ctas != 0 ? fmt::format(" with mask {:#x}", copy.ctas) : std::string());
  };
  const auto bytes = [&](const LoadRecord& copy) {
    return fmt::format("{} bytes from {} on", copy.bytes, name_shared_offset(target, copy.offset));
  };
  report.line("both", "{}: {}, which takes {}", before.where.text(), of(before), bytes(before));
  report.line("and", "{}: {}, which takes {}", load.where.text(), of(load), bytes(load));
  const bool two_ctas = stamp_cta(before.issuer) != stamp_cta(load.issuer);
  const std::string phase = fmt::format("phase {} of {}", load.phase, name_mbarrier(*load.barrier));
  if (two_ctas) {
    report.missing(
        "a separate destination for each copy of {}: CTA {} gets the same part of the tile from two CTAs{}. "
        "A CTA's bit must be set only in the masks of the CTAs that share its rows or its columns, and each "
        "of these CTAs loads a different part of the tile",
        phase, text(target.id),
        load.ctas != 0 && before.ctas != 0
            ? fmt::format(", as bit {} (its rank) is set in {:#x} and in {:#x}", target.rank_in_cluster,
                          before.ctas, load.ctas)
            : std::string());
  } else {
    const std::uint32_t apart =
        load.offset > before.offset ? load.offset - before.offset : before.offset - load.offset;
    const LoadRecord& lower = load.offset > before.offset ? before : load;
    report.missing(
        apart > 0 && lower.bytes % apart == 0
            ? fmt::format("a box of {} bytes where this one has {}: the two destinations of {} lie {} bytes "
                          "apart, so the box of the tensor map is {} times too large for them (compare it "
                          "with the tile), or the second destination is wrong",
                          apart, lower.bytes, phase, apart, lower.bytes / apart)
            : fmt::format("a separate destination for each copy of {}: one of the two destinations is wrong, "
                          "or there is one copy too many",
                          phase));
  }
  return true;
}

void explain_other_buffers(Report& report, const Thread& thread, Stamp reader) {
  const Gang& gang = *thread.cta->gang;
  const ReaderName name = reader_name(gang, reader);
  if (name.cta != thread.cta->key) return;
  const auto& threads = gang.hopper->cta(*thread.cta).threads;
  const std::uint32_t warpgroup = thread.index / kWarpgroupSize;
  if (name.first / kWarpgroupSize != warpgroup) {
    report.line("owner",
                "warpgroup {} stores from these bytes and warpgroup {} writes them: either each needs its "
                "own buffers, or one must wait for the other",
                name.first / kWarpgroupSize, warpgroup);
    return;
  }
  for (std::size_t i = std::size_t{warpgroup} * kWarpgroupSize;
       i < std::min<std::size_t>(threads.size(), (std::size_t{warpgroup} + 1) * kWarpgroupSize); ++i) {
    const BulkStores& stores = threads[i].stores;
    if (i == name.first || stores.waits == 0 || stores.committed > 0) continue;
    report.line(
        "waited",
        "{} waits for bulk groups at {} but has committed none: a wait covers only its own thread's groups",
        name_thread(thread.cta->threads[i]), stores.waited.text());
    return;
  }
}

namespace {

/// One phase of `empty` has let the thread fill the stage twice, with `before` and now: the state that it
/// fills with has not moved on as it should. False where that is not so.
bool explain_phase_used_twice(Report& report, const Gang& gang, const LoadRecord& load,
                              const LoadRecord& before, const Mbarrier& empty, const LastWait& wait) {
  if (wait.phase_before != wait.phase || wait.loads_before_that > before.serial) return false;
  const LoadRecord* latest = nullptr;  // of the stage that the thread filled before this one
  gang.hopper->copies.visit_loads([&](const LoadRecord& other) {
    if (other.issuer >> 32 != load.issuer >> 32 || other.serial >= load.serial || other.remote ||
        other.serial >= wait.loads_before || (latest && latest->serial > other.serial))
      return;
    latest = &other;
  });
  const std::optional<int> held = k_tile_of(gang.grid, before);
  const std::string of_stage = held ? fmt::format("k-tile {}", *held) : std::string("what the stage holds");
  std::string missing = fmt::format(
      "a wait for phase {} (parity {}) of {}, in which the readers release {}: phase {} had already let this "
      "thread fill the stage with {}",
      wait.phase, wait.phase & 1, name_mbarrier(empty), of_stage, wait.phase - 1, of_stage);
  if (latest && latest->barrier == load.barrier) {
    missing += fmt::format(
        ", and that was the last stage that it filled. Another stage is due: the thread's fill state (stage "
        "and parity) does not continue from there (it starts again from the beginning, or is not advanced)");
  } else if (latest) {
    missing += fmt::format(
        ". The stage that it filled last belongs to {}: either this stage is not the next one (the state "
        "starts again from the beginning, or advances by a wrong number), or it is the next one and the "
        "parity has not flipped",
        name_mbarrier(*latest->barrier));
  }
  report.missing(missing);
  return true;
}

}  // namespace

bool explain_read_before_copy(Report& report, const Cta& target, const Mbarrier& signalled, Stamp reader,
                              Where read_at) {
  if (stamp_cta(reader) != target.key) return false;
  const Thread& thread = target.threads[stamp_thread(reader)];
  if (const LastWait* const wait = last_wait(thread, signalled)) {
    if (wait->phase > signalled.phase) return false;
    if (explain_skipped_waits(report, *target.gang, thread, signalled, *wait)) return true;
    report.missing(
        "a wait for phase {} (parity {}) of {} before the read at {}: the latest wait there of {}, at {} for "
        "parity {}, passed at once, because an earlier phase of that parity had completed. The bytes held "
        "nothing when it read them, so what it wants is what this copy brings. Does the parity flip as often "
        "as the barrier completes a phase?",
        signalled.phase, signalled.phase & 1, name_mbarrier(signalled), read_at.text(),
        name_thread(target.gang->grid, reader), wait->where.text(), wait->parity);
    return true;
  }
  report.missing(
      "a wait at {} before the read at {}: {} has never waited there. The bytes held nothing when it read "
      "them, so what it wants is what this copy brings. Every thread that reads waits, not only the one that "
      "copies (or a barrier of the CTA follows that one's wait)",
      name_mbarrier(signalled), read_at.text(), name_thread(target.gang->grid, reader));
  return true;
}

void explain_overwrite(Report& report, const Thread& thread, const LoadRecord& load, const Cta& target,
                       const LoadRecord* before, Stamp reader, Where read_at) {
  const Gang& gang = *thread.cta->gang;
  std::string content;
  if (const auto next = k_tile_of(gang.grid, load)) content = fmt::format("k-tile {} is being loaded", *next);
  if (before) {
    if (const auto held = k_tile_of(gang.grid, *before)) {
      content += fmt::format("{}the bytes hold k-tile {}", content.empty() ? "" : ", ", *held);
    }
  }
  const std::string stage = stage_text(target, target.dynamic_window.begin + load.offset);
  if (!content.empty()) report.line("content", (stage.empty() ? "" : stage + ": ") + content);

  if (before && explain_two_issuers(report, thread, load.where, *before)) return;
  if (before && explain_two_warps(report, thread, load, *before)) return;
  if (before && explain_two_copies(report, thread, load, target, *before)) return;
  if (explain_early_pass(report, gang, *load.barrier, reader_name(gang, reader))) return;
  const Mbarrier* empty = empty_of(*thread.cta, *load.barrier);
  // What was released for nothing may be missed at any stage that comes later.
  if (empty && !gang.hopper->early_arrivals.empty())
    report.line("early", text(gang.grid, gang.hopper->early_arrivals.front()));
  if (!empty) {
    explain_missing_end(report, gang, reader, read_at, "this copy");
    return;
  }
  const LastWait* wait = last_wait(thread, *empty);
  if (!wait) {
    report.missing("{} {} before the copy: {}", name_mbarrier(*empty),
                   empty->observed_phases == empty->first_phase && empty->waiting.empty()
                       ? "is not waited for by any thread"
                       : "is not waited for by this thread",
                   "no thread waits for the readers of the stage");
    return;
  }
  const bool own_before = before && before->issuer >> 32 == load.issuer >> 32;
  if (own_before && wait->loads_before <= before->serial) {
    report.missing(
        "a wait for {} before the copy: the thread's latest wait there, at {}, precedes the previous copy "
        "into the stage",
        name_mbarrier(*empty), wait->where.text());
    return;
  }
  if (wait->phase == empty->first_phase) {
    report.missing(
        "a wait for the readers: at {}, the thread waited for parity {} of {} before its first phase had "
        "completed; a fresh barrier lets a wait for parity 1 pass, once per stage",
        wait->where.text(), wait->parity, name_mbarrier(*empty));
    return;
  }
  if (empty->phase != wait->phase) {
    const std::string saw =
        fmt::format("its wait at {} saw phase {} of {} end; phase {} has completed since then",
                    wait->where.text(), wait->phase - 1, name_mbarrier(*empty), empty->phase - 1);
    const std::string many = too_many_arrivals(gang, *empty, *load.barrier, reader_name(gang, reader));
    if (!many.empty()) report.line("waited", saw);
    report.missing(many.empty() ? saw : many);
    return;
  }
  report.line("waited", "at {} for parity {} of {}; these arrivals ended phase {} there:", wait->where.text(),
              wait->parity, name_mbarrier(*empty), wait->phase - 1);
  report.block(arrivals_text(gang.grid, empty->previous_events));
  if (own_before && explain_phase_used_twice(report, gang, load, *before, *empty, *wait)) return;
  if (explain_early_arrivals(report, gang, *empty, *load.barrier, reader_name(gang, reader))) return;
  // That adds lines of its own, which come first.
  const std::string missing =
      what_the_reader_missed(report, gang, empty->previous_events, *empty, reader, read_at, target, load);
  report.missing(missing);
}

namespace {

/// The thread fills a stage again behind a wait for `empty` that came in time, and saw a phase of an earlier
/// use of the stage. False where that is not so.
bool explain_stale_release(Report& report, const Thread& thread, const Mbarrier& full,
                           const Mbarrier& empty) {
  const Gang& gang = *thread.cta->gang;
  const LoadRecord* const load = gang.hopper->copies.latest_load(full);
  const LastWait* const wait = last_wait(thread, empty);
  if (!load || !wait || wait->loads_before <= load->serial || load->issuer >> 32 != thread.stamp() >> 32)
    return false;
  const bool fresh = wait->phase == empty.first_phase;
  const CommitRecord* const commit = fresh ? nullptr : commit_that_ended(empty, wait->phase - 1);
  report.line("early", "its wait at {} for parity {} of {} {}{}", wait->where.text(), wait->parity,
              name_mbarrier(empty),
              fresh ? std::string("passed at once: a fresh barrier lets a wait for parity 1 pass, once")
                    : fmt::format("was satisfied by phase {}, which had already completed", wait->phase - 1),
              commit ? fmt::format(": {} ended it", describe_commit(*commit)) : std::string());
  const std::optional<int> held = k_tile_of(gang.grid, *load);
  report.missing("a wait for phase {} (parity {}) of {}, in which the readers release {}", wait->phase,
                 wait->phase & 1, name_mbarrier(empty),
                 held ? fmt::format("k-tile {}", *held) : std::string("what the stage holds"));
  return true;
}

}  // namespace

void explain_refill(Report& report, const Thread& thread, const Mbarrier& full) {
  const Gang& gang = *thread.cta->gang;
  if (const LoadRecord* load = gang.hopper->copies.latest_load(full)) {
    report.line("load", "{}: {}", load->where.text(), describe_load(gang.grid, *load));
  }
  const Mbarrier* empty = empty_of(*thread.cta, full);
  if (empty && !last_wait(thread, *empty)) {
    std::string filled;
    if (const std::optional<int> latest = gang.hopper->copies.latest_k_tile_of(thread.stamp()))
      filled = fmt::format(" with k-tile {} (the latest that this thread has loaded is k-tile {})",
                           *latest + 1, *latest);
    report.missing("a wait for {} before the stage is filled{}: no thread waits for the readers",
                   name_mbarrier(*empty), filled);
  } else if (empty && explain_stale_release(report, thread, full, *empty)) {
    return;
  } else if (empty) {
    report.missing("a wait for {} before the stage is filled again, or an arrival by one thread too many",
                   name_mbarrier(*empty));
  }
}

namespace {

/// Stores of other CTAs bring the bytes, and threads of such a CTA wait at mbarriers that lack arrivals.
bool senders_are_held_up(const Gang& gang, const Mbarrier& barrier) {
  if (!barrier.remote_agent) return false;
  return std::any_of(gang.ctas.begin(), gang.ctas.end(), [&](const auto& cta) {
    if (cta.get() == barrier.cta) return false;
    const auto& barriers = gang.hopper->cta(*cta).barriers;
    return std::any_of(barriers.begin(), barriers.end(), [](const auto& other) {
      return other->live && !other->waiting.empty() && other->pending > 0 && !other->remote_agent;
    });
  });
}

/// ": CTA (0,0,0) expected as many at ... and got them", of the same mbarrier of the cluster's other CTAs;
/// `by_stores`: those that got them by stores of other CTAs.
std::string peers_that_got(const Gang& gang, const Mbarrier& barrier, bool by_stores = false) {
  const auto expected = [](const std::vector<Mbarrier::Event>& events) {
    std::uint64_t bytes = 0;
    for (const Mbarrier::Event& event : events)
      bytes += event.kind == Mbarrier::Event::kArrive ? 0 : event.bytes;
    return bytes;
  };
  std::string list;
  for (const Cta* other : gang.hopper->cta(*barrier.cta).cluster) {
    const auto& barriers = gang.hopper->cta(*other).barrier_at;
    const auto same = barriers.find(barrier.offset);
    if (other == barrier.cta || same == barriers.end() || !same->second->live ||
        same->second->phase <= barrier.phase || (by_stores && !same->second->remote_agent) ||
        expected(same->second->previous_events) != expected(barrier.events))
      continue;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", text(other->id));
  }
  return list.empty() ? list
                      : fmt::format(
                            ". CTA {} expected as many at the same mbarrier and got them: this CTA's share "
                            "may be smaller (the last one in a cluster, for example), and it must expect "
                            "exactly the bytes that are sent to it",
                            list);
}

}  // namespace

bool explain_missing_bytes(Report& report, const Gang& gang) {
  constexpr int kShown = 2;
  if (!gang.hopper) return false;
  int shown = 0;
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : gang.hopper->cta(*cta).barriers) {
      if (!barrier->live || barrier->waiting.empty() || barrier->pending != 0 || barrier->tx <= 0 ||
          barrier->loads > 0 || barrier->late > 0)
        continue;
      if (senders_are_held_up(gang, *barrier)) continue;
      if (shown++ == kShown) return true;
      std::string expects;
      for (const Mbarrier::Event& event : barrier->events) {
        if (event.kind == Mbarrier::Event::kArrive) continue;
        expects += fmt::format("{}{} at {}", expects.empty() ? "" : ", ", event.bytes, event.where.text());
      }
      report.line("first",
                  "{} has all arrivals for phase {} and waits only for bytes: {} are expected ({}), but the "
                  "copies issued in this phase deliver {}{}",
                  name_mbarrier(*barrier), barrier->phase, barrier->expected, expects, barrier->issued,
                  bytes_by_cta(*barrier));
      const bool unsent =
          barrier->issued == 0 && !barrier->remote_agent && !peers_that_got(gang, *barrier, true).empty();
      if (!unsent &&
          (explain_absent_loader(report, gang, *barrier) || explain_idle_peer(report, gang, *barrier)))
        continue;
      report.missing("a copy of {} bytes, or an expect_tx that is {} bytes smaller{}", barrier->tx,
                     barrier->tx, peers_that_got(gang, *barrier));
    }
  }
  return shown > 0;
}

void explain_empty_phase(Report& report, const Thread& thread) {
  const Gang& gang = *thread.cta->gang;
  if (!gang.hopper || gang.hopper->thread(thread).waits.empty()) return;
  // The latest wait that was for copies, by what it said or by its name.
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& other) {
    return member_name(*other.barrier->cta, other.barrier->offset).find("full") != std::string::npos;
  });
  if (wait == waits.rend() || !wait->barrier->live || wait->phase == wait->barrier->first_phase ||
      wait->barrier->loaded_phases >= wait->phase)
    return;
  report.line("waited",
              "at {} for phase {} of {}, in which no copy was issued: arrivals alone completed it, so it "
              "delivered nothing that could be read",
              wait->where.text(), wait->phase - 1, name_mbarrier(*wait->barrier));
}

namespace {

/// "ring.stage[1].scales[115]" -> "ring.stage[1].scales", with the numbers or, `bare`, "ring.stage[].scales".
std::string member_of(const Cta& cta, std::uint32_t offset, bool bare) {
  std::string name = member_name(cta, offset);
  const std::size_t end = name.rfind(']');
  if (end + 1 == name.size() && end != std::string::npos) name.erase(name.rfind('['));
  if (!bare) return name;
  std::string text;
  bool inside = false;
  for (const char c : name) {
    if (c == ']') inside = false;
    if (!inside) text += c;
    if (c == '[') inside = true;
  }
  return text;
}

}  // namespace

void explain_not_brought(Report& report, const Thread& thread, std::uintptr_t address) {
  const Cta& cta = *thread.cta;
  const Gang& gang = *cta.gang;
  const std::uintptr_t offset = address - cta.dynamic_window.begin;
  if (!gang.hopper || offset >= cta.dynamic_window.bytes) return;
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& other) {
    return other.barrier->live && other.barrier->loaded_phases > 0;
  });
  const std::string own = member_of(cta, static_cast<std::uint32_t>(offset), false);
  if (wait == waits.rend() || wait->phase == wait->barrier->first_phase || own.empty()) return;
  const std::string like = member_of(cta, static_cast<std::uint32_t>(offset), true);
  std::string brought;               // by the phase that was waited for
  const LoadRecord* same = nullptr;  // to such a member, the one issued next to these
  std::uint32_t serial = 0;
  gang.hopper->copies.visit_loads([&](const LoadRecord& load) {
    if (load.barrier == wait->barrier && load.phase + 1 == wait->phase) serial = load.serial;
  });
  const auto apart = [&](const LoadRecord& load) {
    return std::max(load.serial, serial) - std::min(load.serial, serial);
  };
  gang.hopper->copies.visit_loads([&](const LoadRecord& load) {
    if (load.barrier->cta != &cta) return;
    if (load.barrier == wait->barrier && load.phase + 1 == wait->phase) {
      const std::string to = member_of(cta, load.offset, false);
      if (!to.empty() && brought.find(to) == std::string::npos) brought += (brought.empty() ? "" : ", ") + to;
    }
    if (member_of(cta, load.offset, true) == like && (same == nullptr || apart(load) < apart(*same)))
      same = &load;
  });
  if (brought.empty() || brought.find(own) != std::string::npos) return;
  report.line("brought", "by phase {} of {}, which was waited for at {}: {}", wait->phase - 1,
              name_mbarrier(*wait->barrier), wait->where.text(), brought);
  if (same == nullptr) {
    report.missing("a copy into {}: none has been issued into a {} yet", own, like);
    return;
  }
  report.missing(
      "a copy into {}. One was issued into {}, at {}, and it signals {}: data that arrive with another stage "
      "must be read from that stage, after the wait for it",
      own, member_of(cta, same->offset, false), same->where.text(), name_mbarrier(*same->barrier));
}

namespace {

/// No wait of the warpgroup covers its wgmma `reader`: adds what its latest wait left. Returns the wait that
/// is missing.
std::string explain_unwaited(Report& report, const Warpgroup& warpgroup, Stamp reader) {
  const std::uint64_t number = stamp_time(reader);
  const std::string name =
      fmt::format("warpgroup {} of CTA {}", warpgroup.first_thread / kWarpgroupSize, text(warpgroup.cta->id));
  const auto end = std::lower_bound(warpgroup.group_end.begin(), warpgroup.group_end.end(), number);
  const auto group = static_cast<std::uint64_t>(end - warpgroup.group_end.begin()) + 1;
  const auto late = std::find_if(warpgroup.threads.begin(), warpgroup.threads.end(),
                                 [&](const WgmmaThread& thread) { return thread.waited < number; });
  if (end == warpgroup.group_end.end() || late->committed < group)
    return fmt::format("wgmma.commit_group after the wgmma, and a wgmma.wait_group by {}", name);
  if (late->waits == 0) return fmt::format("wgmma.wait_group of {}", name);
  const std::string wait = fmt::format("wgmma.wait_group<{}> at {}", late->left, late->waited_at.text());
  if (late->at_wait < group) {
    report.line("waited", "{}, before this wgmma's group, number {}, was committed", wait, group);
    return fmt::format("wgmma.wait_group by {}, after the commit of group {}", name, group);
  }
  report.line(
      "waited",
      "{}, when {} group{} committed: it leaves the latest {} in flight, and this wgmma belongs to group {}",
      wait, late->at_wait, late->at_wait == 1 ? " was" : "s were", late->left, group);
  return fmt::format(
      "wgmma.wait_group<{}> by {} instead of wait_group<{}>, which leaves this wgmma in flight",
      late->at_wait - group, name, late->left);
}

}  // namespace

void explain_missing_end(Report& report, const Gang& gang, Stamp reader, Where read_at,
                         const std::string& before) {
  const ReaderName name = reader_name(gang, reader);
  const char* wait = nullptr;
  bool waited = false;
  bool committed = true;
  std::string lacking;  // the wait, and where the one that is there falls short
  for (const auto& cta : gang.ctas) {
    if (!name.agent || cta->key != name.cta) continue;
    const HopperCta& state = gang.hopper->cta(*cta);
    if (name.kind == AgentKind::kMultiplications) {
      report.missing(gang.hopper->tcgen05->missing_commit(*cta, name.first, stamp_time(reader)));
      return;
    }
    if (name.kind == AgentKind::kWgmma) {
      wait = "wgmma.wait_group";
      const auto& threads = state.warpgroups[name.first / kWarpgroupSize]->threads;
      waited = std::all_of(threads.begin(), threads.end(),
                           [&](const WgmmaThread& thread) { return thread.waited >= stamp_time(reader); });
      if (!waited) lacking = explain_unwaited(report, *state.warpgroups[name.first / kWarpgroupSize], reader);
    } else if (name.kind == AgentKind::kStoreReads) {
      wait = "cp.async.bulk.wait_group.read";
      waited = state.threads[name.first].stores.read >= stamp_time(reader);
      committed = state.threads[name.first].stores.committed >= stamp_time(reader);
      if (!waited && committed)
        lacking = gang.hopper->copies.explain_unread(report, cta->threads[name.first], stamp_time(reader));
    }
  }
  if (!wait) {
    std::string together;  // where the reader's warp was together after the read
    for (const auto& cta : gang.ctas) {
      if (!name.agent && cta->key == stamp_cta(reader) && stamp_thread(reader) < cta->threads.size())
        together = warp_instruction_since(*cta, stamp_thread(reader), stamp_time(reader));
    }
    report.missing("a barrier (or an mbarrier that the readers arrive on) between the read at {} and {}",
                   read_at.text(), before);
    if (!together.empty())
      report.line("note",
                  "where one lane arrives for its warp, a __syncwarp must come between the read and the "
                  "arrival: {} orders execution, not memory (--allow release-for-warp accepts it)",
                  together);
  } else if (!committed) {
    report.missing(
        "cp.async.bulk.commit_group after the store at {}: the store is in no group yet, and {} by {} covers "
        "only committed groups",
        read_at.text(), wait, name.name);
  } else if (waited) {
    report.missing("a barrier (or an mbarrier arrival) between {} by {} and {}", wait, name.name, before);
  } else {
    report.missing("{}, and a barrier after it, before {}", lacking, before);
  }
}

namespace {

/// The wait that the thread passed was for another k-tile than the phase that let it pass brought: what let
/// it come so early.
void explain_let_in(Report& report, const Thread& thread, const LastWait& wait) {
  const Gang& gang = *thread.cta->gang;
  if (wait.phase == wait.barrier->first_phase || !wait.activity.role || !is_ring(wait.activity)) return;
  const LoadRecord* const load = gang.hopper->copies.load_of_phase(*wait.barrier, wait.phase - 1);
  const std::optional<int> brought = load ? k_tile_of(gang.grid, *load) : std::nullopt;
  if (!brought || *brought == wait.activity.k_tile) return;
  report.line("early",
              "it waited for k-tile {} by parity {}, and phase {}, which had that parity, brought k-tile {}: "
              "the thread reached this wait before the phase in between had completed, and a parity cannot "
              "distinguish a phase from the next but one",
              wait.activity.k_tile, wait.parity, wait.phase - 1, *brought);
  if (const LastWait* const order = let_in_by(thread)) add_let_in(report, gang, *order);
}

/// Warpgroups take the phases of a barrier in turn, and this one was let in when another one had not yet
/// waited for `phase`: its wait was for a later one, and passed on one that the other had taken. False where
/// that is not so.
bool explain_out_of_turn(Report& report, const Thread& thread, const LastWait& wait, std::uint64_t phase) {
  const Gang& gang = *thread.cta->gang;
  const Mbarrier& full = *wait.barrier;
  const LastWait* const order = let_in_by(thread);
  if (wait.phase != phase || wait.phase == full.first_phase || !order) return false;
  const Mbarrier::Event* const arrival = let_in_early(gang, thread, *order, wait, phase);
  if (!arrival) return false;
  const Thread* other = nullptr;  // of the arrival's warpgroup, that has taken the phase before
  const std::uint32_t first = stamp_thread(arrival->stamp) / kWarpgroupSize * kWarpgroupSize;
  for (std::uint32_t i = first;
       i < std::min<std::size_t>(first + kWarpgroupSize, thread.cta->threads.size()) && !other; ++i) {
    const LastWait* const theirs = last_wait(thread.cta->threads[i], full);
    if (theirs && theirs->phase == wait.phase) other = &thread.cta->threads[i];
  }
  report.line(
      "early",
      "its wait at {} for parity {} of {} passed on phase {}{}; phase {} had not completed, and a parity "
      "cannot distinguish a phase from the next but one",
      wait.where.text(), wait.parity, name_mbarrier(full), wait.phase - 1,
      other ? fmt::format(", which belongs to warpgroup {}", other->index / kWarpgroupSize) : std::string(),
      phase);
  add_let_in(report, gang, *order);
  report.missing(
      "a later arrival at {}: the arrival of {} at {} let this thread proceed before that thread's own "
      "warpgroup had waited for phase {} of {}. If the two take turns, the arrival belongs after the last "
      "wait of a turn",
      name_mbarrier(*order->barrier), name_thread(gang.grid, arrival->stamp), arrival->where.text(), phase,
      name_mbarrier(full));
  return true;
}

}  // namespace

bool explain_too_large_box(Report& report, const LoadRecord& load, const std::string& bytes) {
  if (load.remote || load.barrier == nullptr || load.spec.rank < 2) return false;
  const Cta& cta = *load.barrier->cta;
  // "stage[0].b" of "stage[0].b[0][0]"
  const auto member = [](const std::string& name) {
    const std::size_t bracket = name.find('[', name.rfind('.') + 1);
    return name.rfind('.') == std::string::npos ? std::string() : name.substr(0, bracket);
  };
  const std::string own = member(member_name(cta, load.offset));
  const std::string there = member(bytes.substr(0, bytes.find(' ')));
  if (own.empty() || there.empty() || own == there) return false;
  constexpr std::uint32_t kStep = 16;
  std::uint32_t fits = 0;
  while (fits < load.bytes && member(member_name(cta, load.offset + fits)) == own) fits += kStep;
  if (fits == 0 || fits >= load.bytes || member(member_name(cta, load.offset + load.bytes - kStep)) == own)
    return false;
  const std::uint32_t row = load.spec.box[1] > 0 ? load.bytes / load.spec.box[1] : 0;
  report.line("over",
              "the copy writes {} bytes to {}, which has room for {} from there on: the last {} bytes lie "
              "past its end, where {} begins",
              load.bytes, own, fits, load.bytes - fits, there);
  report.missing(
      "a box of {} in the tensor map instead of {}: that is what {} holds. (The host must give each map a "
      "box as large as the part of the operand's tile that one copy loads.) No wait is missing",
      row > 0 && fits % row == 0 && load.spec.rank == 2 ? fmt::format("{} rows", fits / row)
                                                        : fmt::format("{} bytes", fits),
      load.spec.rank == 2 ? std::to_string(load.spec.box[1]) : std::to_string(load.bytes), own);
  return true;
}

void explain_missing_wait(Report& report, const Thread& thread, const Mbarrier& barrier, std::uint64_t phase,
                          bool remote) {
  const LastWait* wait = last_wait(thread, barrier);
  if (!wait) {
    report.missing("a wait for phase {} (parity {}) of {}: {} has never waited for it", phase, phase & 1,
                   name_mbarrier(barrier), name_thread(thread));
  } else if (const LoadRecord* const load = thread.cta->gang->hopper->copies.load_of_phase(barrier, phase);
             (load && explain_small_expectation(report, *wait, *load)) ||
             explain_out_of_turn(report, thread, *wait, phase)) {
    return;
  } else if (wait->phase <= phase) {
    report.missing(
        "a wait for phase {} (parity {}) of {}: the latest wait there by {}, at {} for parity {}, {}", phase,
        phase & 1, name_mbarrier(barrier), name_thread(thread), wait->where.text(), wait->parity,
        wait->phase == barrier.first_phase
            ? std::string("passed at once, before the first phase had completed")
            : fmt::format("saw phase {} end", wait->phase - 1));
    explain_let_in(report, thread, *wait);
  } else if (remote && !wait->cluster) {
    report.line("waited", "at {} for parity {} of {}, which saw phase {} end, with acquire at CTA scope",
                wait->where.text(), wait->parity, name_mbarrier(barrier), wait->phase - 1);
    report.missing(
        "acquire at cluster scope in the wait at {}: another CTA stored these bytes, and acquire.cta covers "
        "only writes from the thread's own CTA",
        wait->where.text());
  }
}

void explain_passed_too_early(Report& report, const Thread& thread) {
  const Gang& gang = *thread.cta->gang;
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& other) {
    return other.barrier->live && other.barrier->loaded_phases > 0;
  });
  if (wait == waits.rend() || !wait->activity.role || !is_ring(wait->activity) || wait->phase == 0) return;
  const Mbarrier& full = *wait->barrier;
  const std::optional<int> brought = brought_by(gang, full, wait->phase - 1);
  if (!brought || *brought == wait->activity.k_tile) return;
  report.line("early",
              "{} was let through at {}: it waited for k-tile {} by parity {} of {}, and phase {} there, "
              "which had that parity, delivered k-tile {}",
              name_thread(gang.grid, thread.stamp()), wait->where.text(), wait->activity.k_tile, wait->parity,
              name_mbarrier(full), wait->phase - 1, *brought);
  add_missing_phase(report, gang, thread, full, *wait);
}

std::uint32_t arriving_threads(const Gang& gang, const Mbarrier& barrier) {
  std::uint32_t count = 0;
  for (const auto& cta : gang.ctas) {
    for (const HopperThread& thread : gang.hopper->cta(*cta).threads) {
      for (const Arrivals& arrivals : thread.arrivals) count += arrivals.barrier == &barrier ? 1 : 0;
    }
  }
  return count;
}

namespace {

/// What an arrival in the phase that `thread` waited for, or none, did not say of the earlier access.
std::string what_the_arrival_missed(const Mbarrier& barrier, Stamp earlier, Where earlier_where,
                                    Access access) {
  const char* did = access == Access::kRead ? "read" : "written";
  const char* act = access == Access::kRead ? "read" : "write";
  const std::uint32_t warp = stamp_thread(earlier) / kWarpSize;
  const Mbarrier::Event* mate = nullptr;
  for (const Mbarrier::Event& event : barrier.previous_events) {
    if (event.kind == Mbarrier::Event::kExpect || stamp_cta(event.stamp) != stamp_cta(earlier)) continue;
    if (event.stamp >> 32 == earlier >> 32) {
      mate = &event;
      break;
    }
    if (stamp_thread(event.stamp) / kWarpSize == warp) mate = &event;
  }
  if (!mate) {
    return fmt::format(
        "the arrival of warp {} (after its {} at {}): the phase ended without it. The count of {} is {}, set "
        "at {}. Either that is too small because more than {} arrivals belong to each phase, or warp {} does "
        "not arrive there",
        warp, act, earlier_where.text(), name_mbarrier(barrier), barrier.count, barrier.init_where.text(),
        barrier.count, warp);
  }
  const std::string arrival = fmt::format("the arrival at {}", mate->where.text());
  const std::string behind = fmt::format("{} after the {} at {}", arrival, act, earlier_where.text());
  if (mate->stamp >> 32 == earlier >> 32)
    return fmt::format("{}: thread {} had arrived before it had {}", behind, stamp_thread(earlier), did);
  const std::uint32_t lane = stamp_thread(mate->stamp) % kWarpSize;
  const std::string for_all = fmt::format("lane {} arrived for warp {} before lane {} had {}", lane, warp,
                                          stamp_thread(earlier) % kWarpSize, did);
  const std::string syncwarp =
      fmt::format("__syncwarp between the {} at {} and {}", act, earlier_where.text(), arrival);
  if (mate->where.file() != earlier_where.file())
    return fmt::format("{}, or {}: {}", syncwarp, behind, for_all);
  return fmt::format("{}: {}", mate->where.line() > earlier_where.line() ? syncwarp : behind, for_all);
}

/// How often threads of a warp have arrived: the most of any.
std::uint32_t arrivals_of_warp(const HopperCta& cta, std::uint32_t warp, const Mbarrier& barrier) {
  std::uint32_t most = 0;
  for (std::size_t i = std::size_t{warp} * kWarpSize;
       i < std::min<std::size_t>(cta.threads.size(), (std::size_t{warp} + 1) * kWarpSize); ++i) {
    for (const Arrivals& arrivals : cta.threads[i].arrivals) {
      if (arrivals.barrier == &barrier) most = std::max(most, arrivals.count);
    }
  }
  return most;
}

/// The latest wait, of those that are not for loads.
std::vector<LastWait>::const_reverse_iterator latest_plain_wait(const std::vector<LastWait>& waits) {
  return std::find_if(waits.rbegin(), waits.rend(),
                      [](const LastWait& last) { return last.barrier->loaded_phases == 0; });
}

/// The later access comes behind a wait on an mbarrier at which the warp of the earlier one arrives, and its
/// own does not: what that wait has not told. False where there is no such wait.
bool explain_guarded(Report& report, const Thread& thread, std::uintptr_t address, Stamp earlier,
                     Where earlier_where, Access access) {
  const Gang& gang = *thread.cta->gang;
  if (!gang.hopper) return false;
  const std::uint32_t warp = stamp_thread(earlier) / kWarpSize;
  const HopperCta& cta = gang.hopper->cta(*thread.cta);
  const auto arrives = [&](std::uint32_t of_warp, const Mbarrier& barrier) {
    return arrivals_of_warp(cta, of_warp, barrier) > 0;
  };
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = latest_plain_wait(waits);
  if (wait == waits.rend() || !wait->barrier->live ||
      arrives(static_cast<std::uint32_t>(thread.warp()), *wait->barrier))
    return false;
  // It said that it guards something else than stages, or the earlier thread waits in turn for this one's
  // warp.
  const bool entry = wait->activity.role && !is_ring(wait->activity);
  const auto& of_earlier = cta.threads[stamp_thread(earlier)].waits;
  const auto back = latest_plain_wait(of_earlier);
  const bool pair =
      back != of_earlier.rend() && arrives(static_cast<std::uint32_t>(thread.warp()), *back->barrier);
  if (!entry && !pair && !arrives(warp, *wait->barrier)) return false;
  // What orders roles says nothing of two warps of one role.
  const bool one_role = stamp_thread(earlier) / kWarpgroupSize == thread.index / kWarpgroupSize;
  if (entry && !pair && one_role && !arrives(warp, *wait->barrier)) return false;
  const std::string stage = stage_text(*thread.cta, address);
  const std::string index = index_in(member_name(*wait->barrier->cta, wait->barrier->offset));
  if (!stage.empty() && !index.empty() && "stage " + index.substr(1, index.size() - 2) != stage) return false;
  const Mbarrier& barrier = *wait->barrier;
  const std::string at =
      fmt::format("at {} for parity {} of {}", wait->where.text(), wait->parity, name_mbarrier(barrier));
  if (wait->phase == barrier.first_phase) {
    report.line(
        "waited",
        at + ", whose first phase had not completed: a fresh barrier lets a wait for parity 1 pass, once");
    report.missing("a wait for the arrival of warp {} there, after its {} at {}", warp,
                   access == Access::kRead ? "read" : "write", earlier_where.text());
    return true;
  }
  if (barrier.phase != wait->phase) {
    report.line("waited", "{}, which saw phase {} end; phase {} has completed since then", at,
                wait->phase - 1, barrier.phase - 1);
    report.missing(
        "the arrival of warp {} in the phase that was waited for: the count of {} is {}, but {} threads "
        "arrive there in all, so its phases may end before all of them have arrived",
        warp, name_mbarrier(barrier), barrier.count, arriving_threads(gang, barrier));
    return true;
  }
  report.line("waited", "{}; these arrivals ended phase {} there:", at, wait->phase - 1);
  report.block(arrivals_text(gang.grid, barrier.previous_events));
  const std::uint32_t arriving = arriving_threads(gang, barrier);
  report.missing(what_the_arrival_missed(barrier, earlier, earlier_where, access) +
                 (arriving > barrier.count
                      ? fmt::format(" ({} threads have arrived at {} so far, and its count is {})", arriving,
                                    name_mbarrier(barrier), barrier.count)
                      : std::string()));
  return true;
}

/// The thread of the earlier access waits behind it at a named barrier of its warpgroup, to which `thread`,
/// of the same one, is still to come. False where that is not so.
bool explain_named_barrier(Report& report, const Thread& thread, Stamp earlier, Where where, Access now,
                           Where earlier_where, Access access) {
  const Gang& gang = *thread.cta->gang;
  if (!gang.hopper || stamp_thread(earlier) / kWarpgroupSize != thread.index / kWarpgroupSize) return false;
  const auto& barriers = gang.hopper->cta(*thread.cta).named_barriers;
  for (const NamedBarrier& barrier : barriers) {
    const auto of = [&](std::uint32_t index) {
      return std::find_if(
          barrier.arrivals.begin(), barrier.arrivals.end(),
          [&](const NamedBarrier::Arrival& arrival) { return arrival.thread->index == index; });
    };
    const auto waiting = of(stamp_thread(earlier));
    if (barrier.threads < kWarpgroupSize || waiting == barrier.arrivals.end() || !waiting->waits ||
        of(thread.index) != barrier.arrivals.end())
      continue;
    const char* act = now == Access::kRead ? "read" : "write";
    const char* did = access == Access::kRead ? "read" : "write";
    const auto number = &barrier - barriers.data();
    report.line(
        "next",
        "{} waits at {} for named barrier {} of {} threads, after its {}; {} has not reached the barrier yet",
        name_thread(gang.grid, earlier), waiting->where.text(), number, barrier.threads, did,
        name_thread(gang.grid, thread.stamp()));
    report.missing(
        "a barrier between the {} at {} and the {} at {}: the bar.sync of barrier {} at {} follows both; it, "
        "or another barrier, belongs between them",
        did, earlier_where.text(), act, where.text(), number, waiting->where.text());
    return true;
  }
  return false;
}

/// A write comes before the read of what was there: the warp of the reader has said before that it had read,
/// at the mbarrier that the writer waited for.
bool reads_too_late(const Thread& reader, Stamp writer, Access earlier, Access now) {
  const Gang& gang = *reader.cta->gang;
  if (!gang.hopper || earlier != Access::kWrite || now != Access::kRead) return false;
  const HopperCta& cta = gang.hopper->cta(*reader.cta);
  const auto& of_writer = cta.threads[stamp_thread(writer)].waits;
  const auto& of_reader = gang.hopper->thread(reader).waits;
  const auto freed = latest_plain_wait(of_writer);
  const auto filled = latest_plain_wait(of_reader);
  if (freed == of_writer.rend() || filled == of_reader.rend()) return false;
  // The first wait at a fresh barrier passes without an arrival: no reader has let the writer in.
  if (freed->phase == freed->barrier->first_phase && freed->count == 1) return false;
  return arrivals_of_warp(cta, static_cast<std::uint32_t>(reader.warp()), *freed->barrier) >= filled->count;
}

/// A read comes before the first write, by a thread that nobody had to let in: its first wait at a fresh
/// barrier passes without an arrival.
bool reads_too_early(const Thread& writer, Stamp reader, Access earlier, Access now, Stamp held) {
  const Gang& gang = *writer.cta->gang;
  if (!gang.hopper || earlier != Access::kRead || now != Access::kWrite || held != 0) return false;
  const auto& of_writer = gang.hopper->thread(writer).waits;
  const auto& of_reader = gang.hopper->cta(*writer.cta).threads[stamp_thread(reader)].waits;
  const auto freed = latest_plain_wait(of_writer);
  return freed != of_writer.rend() && latest_plain_wait(of_reader) != of_reader.rend() &&
         freed->phase == freed->barrier->first_phase && freed->count == 1;
}

/// Two warpgroups write one place at one line: whether one of them goes on, behind the end of an array
/// element (a row) that it writes, into the next one.
bool explain_overrun(Report& report, const Thread& thread, std::uintptr_t address, Where where, Stamp other) {
  const Cta& cta = *thread.cta;
  const std::uintptr_t place = address - cta.dynamic_window.begin;
  if (place >= cta.dynamic_window.bytes) return false;
  const auto name_at = [&](std::int64_t offset) {
    return offset < 0 ? std::string() : member_name(cta, static_cast<std::uint32_t>(offset));
  };
  const std::string here = name_at(static_cast<std::int64_t>(place));
  constexpr std::int64_t kWord = 4;
  constexpr std::int64_t kFarthest = 16384;
  // Two with the same place in their warpgroups lack an index by the warpgroup.
  if (here.empty() || here.back() != ']' ||
      stamp_thread(other) % kWarpgroupSize == thread.index % kWarpgroupSize)
    return false;
  std::int64_t begin = static_cast<std::int64_t>(place) / kWord * kWord;  // of the row
  const std::int64_t last = begin - kFarthest;
  while (begin >= kWord && begin > last && name_at(begin - kWord) == here) begin -= kWord;
  const std::string before = name_at(begin - kWord);
  if (before.empty() || before.substr(0, before.rfind('[')) != here.substr(0, here.rfind('['))) return false;
  // By warpgroup: a thread that has written the row before, at this line.
  std::map<std::uint32_t, std::uint32_t> writers;
  std::int64_t first = begin;
  for (; first >= kWord && first > last && name_at(first - kWord) == before; first -= kWord) {
    const auto offset = static_cast<std::uintptr_t>(first - kWord);
    Line& line = cta.dynamic_window.lines[offset / 16];
    if (line.tag() != cta.tag || line.cells() == nullptr) continue;
    const Cell& cell = line.cells()[offset % 16 >> line.granule_log2()];
    if (cell.write != 0 && stamp_cta(cell.write) == cta.key &&
        (cell.write_where & ~kAtomicBit) == where.packed())
      writers.emplace(stamp_thread(cell.write) / kWarpgroupSize, stamp_thread(cell.write));
  }
  const std::uint32_t one = thread.index / kWarpgroupSize;
  const std::uint32_t two = stamp_thread(other) / kWarpgroupSize;
  if (writers.contains(one) == writers.contains(two)) return false;
  const std::uint32_t over = writers.contains(one) ? one : two;
  const std::uint32_t owner = over == one ? two : one;
  report.missing(
      "a bound: warpgroup {} writes {} at {} (thread {} did), but thread {} writes past its end, {} bytes "
      "from its beginning, although it has only {}. Those bytes are {}, which warpgroup {} writes",
      over, before, where.text(), writers[over], over == one ? thread.index : stamp_thread(other),
      static_cast<std::int64_t>(place) - first, begin - first, here, owner);
  return true;
}

/// What a thread has written at one line, near a place of its CTA: "d[1][0][31] (32 bytes)".
std::string written_near(const Cta& cta, std::uintptr_t place, std::uint32_t thread, Where where) {
  constexpr std::uintptr_t kFarthest = 16384;
  constexpr std::size_t kShown = 2;
  std::vector<std::pair<std::string, std::uint32_t>> rows;
  const std::uintptr_t begin = (place > kFarthest ? place - kFarthest : 0) / 16 * 16;
  const std::uintptr_t end = std::min<std::uintptr_t>(cta.dynamic_window.bytes, place + kFarthest);
  for (std::uintptr_t offset = begin; offset < end; offset += 16) {
    const Line& line = cta.dynamic_window.lines[offset / 16];
    if (line.tag() != cta.tag || line.cells() == nullptr) continue;
    const unsigned granule = line.granule_log2();
    for (unsigned i = 0; i < 16u >> granule; ++i) {
      const Cell& cell = line.cells()[i];
      if (cell.write == 0 || is_agent(cell.write) || stamp_cta(cell.write) != cta.key ||
          stamp_thread(cell.write) != thread || (cell.write_where & ~kAtomicBit) != where.packed())
        continue;
      std::string name =
          member_name(cta, static_cast<std::uint32_t>(offset + (std::uintptr_t{i} << granule)));
      if (name.empty()) return {};
      if (rows.empty() || rows.back().first != name) rows.emplace_back(std::move(name), 0);
      rows.back().second += 1u << granule;
    }
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, rows.size()); ++i)
    list += fmt::format("{}{} ({} bytes)", i == 0 ? "" : ", ", rows[i].first, rows[i].second);
  if (rows.size() > kShown) list += fmt::format(" and {} more", rows.size() - kShown);
  return list;
}

/// Two threads of one warpgroup write one place at one line.
void explain_one_statement(Report& report, const Thread& thread, std::uintptr_t address, Where where,
                           Stamp other) {
  const Cta& cta = *thread.cta;
  const std::uintptr_t place = address - cta.dynamic_window.begin;
  if (place < cta.dynamic_window.bytes) {
    std::string list;
    for (const std::uint32_t one : {stamp_thread(other), static_cast<std::uint32_t>(thread.index)}) {
      const std::string rows = written_near(cta, place, one, where);
      if (!rows.empty()) list += fmt::format("{}thread {}: {}", list.empty() ? "" : "; ", one, rows);
    }
    if (!list.empty()) report.line("there", fmt::format("what {} writes otherwise, {}", where.text(), list));
  }
  report.line(
      "missing",
      fmt::format(
          "separate bytes for each thread: threads {} and {} both write these, and nothing orders the two "
          "writes. A barrier would only decide which of the two values remains: the address that one of them "
          "gives (for a matrix, the lane that owns the row) belongs to another thread",
          stamp_thread(other), thread.index));
}

/// Whether a thread of the CTA has read at `where` what it has not written since: bytes whose readers it is
/// still among, as a write would have ended their list. Such a line is no update of what it reads.
bool reads_and_keeps(const Cta& cta, Where where) {
  for (const Window* window : {&cta.dynamic_window, &cta.static_window}) {
    if (!window->lines) continue;
    for (std::uintptr_t offset = 0; offset < window->bytes; offset += 16) {
      const Line& line = window->lines[offset / 16];
      if (line.tag() != cta.tag || line.cells() == nullptr) continue;
      for (unsigned i = 0; i < 16u >> line.granule_log2(); ++i) {
        const Cell& cell = line.cells()[i];
        for (std::size_t j = 0; j < cell.readers; ++j) {
          const Reader& reader = j == 0 ? cell.first : cell.more[j - 1];
          if (reader.where == where.packed() && !is_agent(reader.stamp) && stamp_cta(reader.stamp) == cta.key)
            return true;
        }
      }
    }
  }
  return false;
}

/// A read and a write at one line: an update (+=) of bytes that two threads share, or a thread that reads
/// what another one updates (a reduction).
void explain_one_line(Report& report, const Thread& thread, Where where, Access earlier, Stamp stamp,
                      Stamp held) {
  const bool read_came_first = earlier == Access::kRead;
  const bool wrote_it_before = held != 0 && !is_agent(held) && stamp_cta(held) == stamp_cta(stamp) &&
                               stamp_thread(held) == stamp_thread(stamp);
  const bool keeps = read_came_first ? !wrote_it_before : reads_and_keeps(*thread.cta, where);
  if (!keeps) {
    report.line(
        "missing",
        fmt::format(
            "an atomic at {} (atomicAdd, for example), if a thread reads these bytes there and stores an "
            "updated value, as += does. Otherwise, a barrier between this line's reads and its writes",
            where.text()));
    return;
  }
  const std::uint32_t other = stamp_thread(stamp);
  const auto mine = static_cast<std::uint32_t>(thread.index);
  report.line("missing",
              fmt::format("a barrier between the reads and the writes at {}: thread {} reads there what "
                          "thread {} writes, and itself writes elsewhere, so an atomic would not help. In a "
                          "loop, the barrier belongs in the body, and every thread must reach it",
                          where.text(), read_came_first ? other : mine, read_came_first ? mine : other));
}

}  // namespace

bool explain_cluster_scope(Report& report, const Thread& thread, Stamp stamp) {
  const Gang& gang = *thread.cta->gang;
  const LastWait* passed = nullptr;
  const Thread* waiter = nullptr;
  const auto look = [&](const Thread& of) {
    if (passed != nullptr) return;
    for (const LastWait& wait : gang.hopper->thread(of).waits) {
      const Mbarrier::Published& completed = wait.barrier->completed;
      if (!completed.cluster.covers(stamp) && !completed.execution.covers(stamp)) continue;
      passed = &wait;
      waiter = &of;
    }
  };
  if (gang.hopper != nullptr && thread.execution.covers(stamp)) {
    look(thread);
    for (const Thread& mate : thread.cta->threads) look(mate);
  }
  if (passed == nullptr) return false;
  const bool released = passed->barrier->completed.cluster.covers(stamp);
  report.line("mbarrier", "{}: {} waited for it at {}, after an arrival by CTA {}",
              name_mbarrier(*passed->barrier), name_thread(gang.grid, waiter->stamp()), passed->where.text(),
              name_cta(gang.grid, stamp_cta(stamp)));
  const std::string wait = passed->where.text();
  report.missing(
      released ? fmt::format("an acquire at cluster scope: the wait at {} acquires at the scope of its CTA, "
                             "which says that the other CTA is through, and makes nothing visible that it "
                             "wrote (cuda::ptx: sem_acquire, scope_cluster)",
                             wait)
               : fmt::format("a release at cluster scope: the arrival releases at the scope of its own CTA, "
                             "which says to the wait at {} that the thread is through, and makes nothing "
                             "visible that it wrote. The arrival has .release.cluster, and the wait "
                             ".acquire.cluster (cuda::ptx: sem_release, sem_acquire, scope_cluster)",
                             wait));
  return true;
}

void explain_race(Report& report, const Thread& thread, std::uintptr_t address, Access now, Where where,
                  Access earlier, Stamp stamp, Where earlier_where, Stamp held) {
  const Cta& cta = *thread.cta;
  // A write that came first is in memory; one that comes now finds what was written before.
  const std::string content = content_text(thread, address, now, earlier == Access::kRead ? held : stamp);
  if (!content.empty()) report.line("content", content);
  if (cta.gang->hopper != nullptr && cta.gang->hopper->thread(thread).behind_relaxed.covers(stamp)) {
    report.missing(
        "a release at the barrier of the cluster between {} and {}: barrier.cluster.arrive.relaxed orders no "
        "accesses to memory. The arrival has .release, which is also what it has without a qualifier",
        earlier_where.text(), where.text());
    return;
  }
  if (stamp_cta(stamp) != cta.key) {
    if (!explain_cluster_scope(report, thread, stamp))
      report.missing(
          "a barrier of the cluster between {} and {}, or an arrival that releases and a wait that acquires "
          "at cluster scope",
          earlier_where.text(), where.text());
    return;
  }
  const BarrierInterval* barrier = last_barrier(cta, stamp);
  if (earlier == Access::kWrite && now == Access::kRead && cta.gang->cp_async &&
      cta.gang->cp_async->has_written(cta, address)) {
    report.line(
        "missing",
        fmt::format("a barrier after cp.async.wait_group and before {}: the wait by {} covers only that "
                    "thread's own copies, and only a barrier after it makes them visible to other threads",
                    where.text(), name_thread(cta.gang->grid, stamp)));
    if (barrier)
      report.line("last", fmt::format("both follow {} number {} of the CTA, at {}", barrier->what,
                                      barrier - cta.intervals.data() + 1, barrier->where.text()));
    return;
  }
  if (explain_named_barrier(report, thread, stamp, where, now, earlier_where, earlier)) return;
  if (reads_too_late(thread, stamp, earlier, now) || reads_too_early(thread, stamp, earlier, now, held)
          ? explain_guarded(report, cta.threads[stamp_thread(stamp)], address, thread.stamp(), where, now)
          : explain_guarded(report, thread, address, stamp, earlier_where, earlier))
    return;
  if (earlier == Access::kWrite && now == Access::kWrite && earlier_where.packed() == where.packed() &&
      stamp_thread(stamp) / kWarpgroupSize != thread.index / kWarpgroupSize) {
    if (explain_overrun(report, thread, address, where, stamp)) return;
    report.line(
        "missing",
        fmt::format("separate bytes for each warpgroup: warpgroups {} and {} both execute {} and write the "
                    "same bytes there (the index does not depend on the warpgroup or its role, or is the "
                    "same for both). If the two should take turns, an order between them is missing instead",
                    stamp_thread(stamp) / kWarpgroupSize, thread.index / kWarpgroupSize, where.text()));
    return;
  }
  if (earlier == Access::kWrite && now == Access::kWrite && earlier_where.packed() == where.packed()) {
    explain_one_statement(report, thread, address, where, stamp);
    return;
  }
  const bool read_and_write = (earlier == Access::kRead && now == Access::kWrite) ||
                              (earlier == Access::kWrite && now == Access::kRead);
  if (read_and_write && earlier_where.is_line_of(where)) {
    explain_one_line(report, thread, where, earlier, stamp, held);
    return;
  }
  if (!barrier) {
    report.line("missing", fmt::format("a barrier between {} and {}; the CTA has passed none so far",
                                       earlier_where.text(), where.text()));
    return;
  }
  // In a loop the access above the last barrier is of the next round.
  const auto below = [&](Where access) { return access.line() > barrier->where.line(); };
  const bool one_file = earlier_where.file() == where.file() && where.file() == barrier->where.file();
  const bool wraps = one_file && below(where) != below(earlier_where);
  report.line("missing",
              wraps ? fmt::format("a barrier after {}, before {} in the next iteration",
                                  (below(where) ? where : earlier_where).text(),
                                  (below(where) ? earlier_where : where).text())
                    : fmt::format("a barrier between {} and {}", earlier_where.text(), where.text()));
  report.line("last", fmt::format("both follow {} number {} of the CTA, at {}", barrier->what,
                                  barrier - cta.intervals.data() + 1, barrier->where.text()));
}

}  // namespace emulator
