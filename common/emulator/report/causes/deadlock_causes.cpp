#include "emulator/report/causes/deadlock_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/async/hopper.h"
#include "emulator/report/causes/causes.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/member_names.h"
#include "emulator/sync/dependent_launch.h"

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

/// The mbarrier that copies into the stage signal: where several rings have one of this index, that of the
/// same struct, loaded.full[2] of loaded.empty[2]. nullptr where none is known.
const Mbarrier* filled_by_copies(const Cta& cta, const Mbarrier& empty) {
  if (const Mbarrier* const full = full_of(cta, empty)) return full;
  std::string name = member_name(cta, empty.offset);
  const std::size_t at = name.rfind("empty[");
  if (at == std::string::npos) return nullptr;
  name.replace(at, 5, "full");
  for (const auto& barrier : cta.gang->hopper->cta(cta).barriers) {
    if (barrier->live && barrier->loaded_phases > 0 && member_name(cta, barrier->offset) == name)
      return barrier.get();
  }
  return nullptr;
}

/// The number in "ring.empty[2]", or -1.
int last_index(const Mbarrier& barrier) {
  const std::string name = member_name(*barrier.cta, barrier.offset);
  const std::size_t bracket = name.rfind('[');
  return bracket == std::string::npos || name.back() != ']' ? -1 : std::stoi(name.substr(bracket + 1));
}

/// Those who ended the first phase of `empty` had last waited for another stage, and that of `empty` had not
/// been filled once: what is missing then, or "".
std::string of_another_stage(const Gang& gang, const Mbarrier& empty) {
  const int stage = last_index(empty);
  const Mbarrier* full = nullptr;  // by way of one that has been filled
  for (const Mbarrier* other : array_of(gang, empty)) {
    const Mbarrier* const filled = filled_by_copies(*empty.cta, *other);
    if (filled == nullptr) continue;
    for (const Mbarrier* one : array_of(gang, *filled)) {
      if (last_index(*one) == stage) full = one;
    }
  }
  if (full == nullptr || has_completed(*full)) return {};
  std::set<int> read;
  for (const Mbarrier::Event& event : empty.previous_events) {
    if (event.activity.role == nullptr || event.activity.barrier == nullptr ||
        std::strcmp(event.activity.barrier, "full") != 0)
      return {};
    read.insert(event.activity.stage);
  }
  if (read.size() != 1 || *read.begin() == stage) return {};
  return fmt::format(
      "the same arrivals at {}[{}], which belongs to the stage that was read: they went to {} before its "
      "stage had been filled for the first time ({} has completed no phase), so they release something that "
      "no thread could have read. Their release state belongs to another k-tile",
      array_name(empty), *read.begin(), name_mbarrier(empty), name_mbarrier(*full));
}

/// Whether the one label is that of the "empty" side of a ring and the other that of its "full" side, in one
/// stage: both number what comes through it.
bool fills(const Activity& filler, const Activity& reader) {
  if (filler.role == nullptr || reader.role == nullptr || filler.stage != reader.stage) return false;
  const std::string_view empty = filler.barrier;
  const std::string_view full = reader.barrier;
  return empty.ends_with("empty") && full.ends_with("full") &&
         empty.substr(0, empty.size() - 5) == full.substr(0, full.size() - 4);
}

/// Whether a warpgroup of the thread's CTA that is not its own has waited at the mbarrier for a later phase.
bool others_have_waited(const Thread& thread, const Mbarrier& barrier, std::uint64_t phase) {
  constexpr std::uint32_t kWarpgroup = 128;
  return std::any_of(thread.cta->threads.begin(), thread.cta->threads.end(), [&](const Thread& other) {
    const auto& waits = thread.cta->gang->hopper->thread(other).waits;
    return other.index / kWarpgroup != thread.index / kWarpgroup &&
           std::any_of(waits.begin(), waits.end(),
                       [&](const LastWait& wait) { return wait.barrier == &barrier && wait.phase > phase; });
  });
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

/// A warp that arrived at an mbarrier in a launch that came to its end.
struct KnownArriver {
  std::uint32_t warp = 0;
  Where where;
  std::string role;  // of its latest wait, or ""
};

/// By kernel, where in it an mbarrier is initialised, and where that lies.
using BarrierOfKernel = std::tuple<const void*, std::uint64_t, std::uint32_t>;
BarrierOfKernel key_of(const Mbarrier& barrier) {
  return {latest_kernel(), barrier.init_where.packed(), barrier.offset};
}

struct KnownArrivers {
  std::mutex mutex;
  std::map<BarrierOfKernel, KnownArriver> all;
};
KnownArrivers& known_arrivers() {
  static KnownArrivers arrivers;
  return arrivers;
}

std::optional<KnownArriver> known_arriver(const Mbarrier& barrier) {
  KnownArrivers& known = known_arrivers();
  const std::lock_guard lock(known.mutex);
  const auto found = known.all.find(key_of(barrier));
  if (found == known.all.end()) return std::nullopt;
  return found->second;
}

/// The threads of the warp that arrives there in other launches.
std::vector<const Thread*> warp_of(const Mbarrier& barrier, const KnownArriver& arriver) {
  std::vector<const Thread*> warp;
  for (const Thread& thread : barrier.cta->threads) {
    if (static_cast<std::uint32_t>(thread.warp()) == arriver.warp) warp.push_back(&thread);
  }
  return warp;
}

/// Whether the warp that arrives there in other launches waits at one of these mbarriers.
bool arriver_waits_at_one(const Gang& gang, const Mbarrier& barrier, const Array& untouched) {
  const std::optional<KnownArriver> arriver = known_arriver(barrier);
  if (!arriver) return false;
  const std::vector<const Thread*> warp = warp_of(barrier, *arriver);
  return std::any_of(warp.begin(), warp.end(), [&](const Thread* thread) {
    const Mbarrier* const at = gang.hopper->thread(*thread).waiting_for;
    return thread->state == ThreadState::kWaiting && at != nullptr && at != &barrier &&
           std::find(untouched.begin(), untouched.end(), at) != untouched.end();
  });
}

/// ". In other launches warp 8 arrives there, as producer, at ...; here it has returned", or "".
std::string arriver_text(const Gang& gang, const Mbarrier& barrier) {
  const std::optional<KnownArriver> arriver = known_arriver(barrier);
  if (!arriver) return {};
  const std::vector<const Thread*> warp = warp_of(barrier, *arriver);
  if (warp.empty()) return {};
  const bool gone = std::all_of(warp.begin(), warp.end(),
                                [](const Thread* thread) { return thread->state == ThreadState::kExited; });
  std::string now =
      "it has returned without arriving: the condition for its arrival (a branch, a number of items) must be "
      "true whenever a thread waits there";
  if (!gone) {
    const Thread* waits = nullptr;
    for (const Thread* thread : warp) {
      if (thread->state != ThreadState::kWaiting) continue;
      if (waits == nullptr || gang.hopper->thread(*thread).waiting_for != nullptr) waits = thread;
    }
    if (waits == nullptr) return {};
    now = fmt::format("its {} waits at {}", plain_name(*waits), waits->wait.where.text());
  }
  return fmt::format(". In launches that finished, warp {} arrives there{}, at {}; here {}", arriver->warp,
                     arriver->role.empty() ? std::string() : fmt::format(" (as {})", arriver->role),
                     arriver->where.text(), now);
}

}  // namespace

void remember_arrivers(const Gang& gang) {
  if (!gang.hopper) return;
  KnownArrivers& known = known_arrivers();
  const std::lock_guard lock(known.mutex);
  constexpr std::size_t kMost = 4096;
  const Cta& cta = *gang.ctas.front();
  for (const auto& barrier : gang.hopper->cta(cta).barriers) {
    const BarrierOfKernel key = key_of(*barrier);
    if (known.all.size() >= kMost || known.all.contains(key)) continue;
    for (const auto* events : {&barrier->previous_events, &barrier->events}) {
      const auto own = std::find_if(events->begin(), events->end(), [&](const Mbarrier::Event& event) {
        return event.kind != Mbarrier::Event::kExpect && !event.commit && stamp_cta(event.stamp) == cta.key;
      });
      if (own == events->end()) continue;
      known.all[key] = {stamp_thread(own->stamp) / kWarpSize, own->where,
                        own->activity.role != nullptr ? own->activity.role : ""};
      break;
    }
  }
}

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
      const Array held = waited_for(gang);
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

bool explain_parity_off(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* full : waited_for(gang)) {
    // The latest phase brought something, and no wait has seen it.
    if (!has_completed(*full) || full->loaded_phases < full->phase || full->observed_phases >= full->phase)
      continue;
    const LoadRecord* const load = gang.hopper->copies.load_of_phase(*full, full->phase - 1);
    if (load == nullptr || !load->activity.role) continue;
    for (const Thread* thread : full->waiting) {
      const Activity& activity = gang.hopper->thread(*thread).activity;
      if (!activity.role || std::strcmp(activity.barrier, "full") != 0 ||
          activity.k_tile != load->activity.k_tile || activity.stage != load->activity.stage)
        continue;
      const std::uint32_t parity = gang.hopper->thread(*thread).waiting_parity;
      report.line("first",
                  "{} waits at {} as {}, for parity {} of {}; but k-tile {} arrived in phase {}, which has "
                  "completed, has parity {}, and for which no thread has waited",
                  plain_name(*thread), thread->wait.where.text(), text(activity), parity,
                  name_mbarrier(*full), activity.k_tile, full->phase - 1, 1 - parity);
      report.missing(
          "parity {} in this wait: the thread's state has the right stage but the wrong parity. The parity "
          "must flip each time the state passes the last stage (once per lap if the state advances by many "
          "k-tiles). A thread that gets the state from another thread needs the reader's state, which begins "
          "with parity 0, not the filler's",
          1 - parity);
      return true;
    }
  }
  return false;
}

bool explain_wrong_item(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const auto& cta : gang.ctas) {
    for (const Thread& thread : cta->threads) {
      for (const LastWait& wait : gang.hopper->thread(thread).waits) {
        if (!wait.activity.role || !wait.barrier->live || wait.phase <= wait.barrier->first_phase) continue;
        const LoadRecord* const load = gang.hopper->copies.load_of_phase(*wait.barrier, wait.phase - 1);
        if (load == nullptr || !fills(load->activity, wait.activity) ||
            load->activity.k_tile == wait.activity.k_tile)
          continue;
        // What came two phases before has the same parity: the thread was overtaken.
        const LoadRecord* const earlier =
            wait.phase < 3 ? nullptr : gang.hopper->copies.load_of_phase(*wait.barrier, wait.phase - 3);
        if (earlier != nullptr && earlier->activity.k_tile == wait.activity.k_tile) continue;
        report.line("first",
                    "{} waited at {} at {}, stage {}, for item {}; phase {} of {}, which let it pass, had "
                    "delivered item {}",
                    plain_name(thread), wait.where.text(), wait.activity.barrier, wait.activity.stage,
                    wait.activity.k_tile, wait.phase - 1, name_mbarrier(*wait.barrier),
                    load->activity.k_tile);
        report.missing(
            "a state that advances past everything that goes through the ring, including what other "
            "consumers take from it in between. This thread's state is behind or ahead, so the thread waits "
            "for, reads and releases items of another consumer");
        return true;
      }
    }
  }
  return false;
}

namespace {

/// The only other mbarrier of the struct that has the same index: queue.enqueued[1] of queue.dequeued[1].
const Mbarrier* beside(const Cta& cta, const Mbarrier& barrier) {
  const std::string name = member_name(cta, barrier.offset);
  const int index = last_index(barrier);
  const std::string parent = name.substr(0, name.rfind('.') + 1);
  const Mbarrier* found = nullptr;
  for (const auto& other : cta.gang->hopper->cta(cta).barriers) {
    if (!other->live || other.get() == &barrier || index < 0 || last_index(*other) != index) continue;
    const std::string like = member_name(cta, other->offset);
    if (parent.empty() || like.substr(0, like.rfind('.') + 1) != parent) continue;
    if (found != nullptr) return nullptr;
    found = other.get();
  }
  return found;
}

}  // namespace

bool explain_taken_twice(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  constexpr std::uint32_t kWarpgroup = 128;
  for (const auto& cta : gang.ctas) {
    for (const auto& empty : gang.hopper->cta(*cta).barriers) {
      if (!empty->live || empty->commits > 0) continue;
      const Mbarrier* full = empty->count == 1 ? filled_by_copies(*cta, *empty) : nullptr;
      const bool stage = full != nullptr;
      if (full == nullptr) full = beside(*cta, *empty);
      if (full == nullptr) continue;
      // Who has hurried on to its second entry has handed back another one so far.
      const Array handed_back = stage ? Array{empty.get()} : array_of(gang, *empty);
      std::map<std::uint32_t, std::uint32_t> speakers;  // of each warpgroup
      std::map<std::uint64_t, std::map<std::uint32_t, Where>>
          by;  // phase -> warpgroups that have waited for it
      for (const Thread& thread : cta->threads) {
        const HopperThread& state = gang.hopper->thread(thread);
        if (std::any_of(state.arrivals.begin(), state.arrivals.end(), [&](const Arrivals& one) {
              return one.count > 0 &&
                     std::find(handed_back.begin(), handed_back.end(), one.barrier) != handed_back.end();
            }))
          ++speakers[thread.index / kWarpgroup];
        for (const LastWait& wait : state.waits) {
          if (wait.barrier == full && wait.phase > full->first_phase)
            by[wait.phase - 1][thread.index / kWarpgroup] = wait.where;
        }
      }
      for (auto& [phase, warpgroups] : by) {
        // One that is a whole group of readers: its arrivals alone hand the item back.
        std::erase_if(warpgroups, [&](const auto& one) {
          const auto known = speakers.find(one.first);
          return known == speakers.end() || known->second < empty->count;
        });
        if (warpgroups.size() < 2) continue;
        const auto& [first, at] = *warpgroups.begin();
        report.line("first",
                    "warpgroups {} and {} of CTA {} have both waited for phase {} of {}, at {}: both took "
                    "the item that it delivered, and each releases it, although {} counts {} arrival{}",
                    first, std::next(warpgroups.begin())->first, text(cta->id), phase, name_mbarrier(*full),
                    at.text(), name_mbarrier(*empty), empty->count,
                    empty->count == 1 ? "" : "s, enough for one of them");
        report.missing(
            "a state that also advances past the items that the other warpgroup takes from the {}: each item "
            "has one reader, so the two states must never be at the same item",
            stage ? "ring" : "queue");
        return true;
      }
    }
  }
  return false;
}

bool explain_unclaimed(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* full : waited_for(gang)) {
    if (!has_completed(*full) || full->loaded_phases < full->phase || full->observed_phases >= full->phase)
      continue;
    const LoadRecord* const load = gang.hopper->copies.load_of_phase(*full, full->phase - 1);
    if (load == nullptr) continue;
    for (const Thread* thread : full->waiting) {
      const Activity& activity = gang.hopper->thread(*thread).activity;
      if (!fills(load->activity, activity) || load->activity.k_tile == activity.k_tile) continue;
      report.line("first",
                  "{} waits at {} for item {}, but stage {} holds item {}, which arrived in phase {} of {}, "
                  "and no thread has waited for it",
                  plain_name(*thread), thread->wait.where.text(), activity.k_tile, activity.stage,
                  load->activity.k_tile, full->phase - 1, name_mbarrier(*full));
      report.missing(
          "a wait for item {} by its owner. If this consumer is the owner, its state is wrong: when several "
          "consumers take items from one ring, each must also advance its state past the items that the "
          "others take",
          load->activity.k_tile);
      return true;
    }
  }
  return false;
}

namespace {

/// The thread has released a stage beside `empty` that it has not waited for as often, and not this one:
/// which.
bool explain_released_beside(Report& report, const Thread& thread, const Mbarrier& empty) {
  const Gang& gang = *thread.cta->gang;
  const HopperThread& state = gang.hopper->thread(thread);
  for (const Mbarrier* other : array_of(gang, empty)) {
    const Mbarrier* const full = filled_by_copies(*thread.cta, *other);
    if (other == &empty || full == nullptr) continue;
    const auto arrivals = std::find_if(state.arrivals.begin(), state.arrivals.end(),
                                       [&](const Arrivals& one) { return one.barrier == other; });
    const auto wait = std::find_if(state.waits.begin(), state.waits.end(),
                                   [&](const LastWait& one) { return one.barrier == full; });
    const std::uint32_t waited = wait == state.waits.end() ? 0 : wait->count;
    if (arrivals == state.arrivals.end() || arrivals->count <= waited) continue;
    const Mbarrier::Event* at = nullptr;
    for (const auto* events : {&other->previous_events, &other->events}) {
      for (const Mbarrier::Event& event : *events)
        if (event.stamp >> 32 == thread.stamp() >> 32) at = &event;
    }
    if (at == nullptr) continue;
    const std::string activity = text(at->activity);
    report.line("instead", "{} arrived at {}{}, at {}: {} time{} so far, and it has waited for {} {} time{}",
                plain_name(thread), name_mbarrier(*other),
                activity.empty() ? "" : ", after its wait as " + activity, at->where.text(), arrivals->count,
                arrivals->count == 1 ? "" : "s", name_mbarrier(*full), waited, waited == 1 ? "" : "s");
    report.missing(
        "that arrival at {}, whose stage it has read, and not at {}, whose stage it has not read: its "
        "release state does not belong to a stage that it has read (the state has already advanced, or is "
        "the one for its next read)",
        name_mbarrier(empty), name_mbarrier(*other));
    return true;
  }
  return false;
}

}  // namespace

bool explain_waits_for_itself(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  constexpr std::uint32_t kWarpgroup = 128;
  for (const Mbarrier* barrier : waited_for(gang)) {
    if (barrier->pending != 1 || barrier->late > 0 || barrier->commits > 0 || barrier->events.empty())
      continue;
    for (const Thread* thread : barrier->waiting) {
      // The others that arrived there have its place in their warpgroups.
      const bool alike =
          std::all_of(barrier->events.begin(), barrier->events.end(), [&](const Mbarrier::Event& event) {
            return event.kind == Mbarrier::Event::kArrive && stamp_cta(event.stamp) == thread->cta->key &&
                   stamp_thread(event.stamp) / kWarpgroup != thread->index / kWarpgroup &&
                   stamp_thread(event.stamp) % kWarpgroup == thread->index % kWarpgroup;
          });
      const Mbarrier* const full = filled_by_copies(*thread->cta, *barrier);
      if (!alike || full == nullptr || waits_passed(*thread->cta, thread->index / kWarpgroup, *full) == 0)
        continue;
      const Mbarrier::Event& other = barrier->events.back();
      report.line(
          "first",
          "{} waits at {} for {}, and the arrival that is missing there is from its own warpgroup, {}, which "
          "has read the stage. For warpgroup {}, thread {} arrived, at {}: thread {} is its counterpart",
          plain_name(*thread), thread->wait.where.text(), name_mbarrier(*barrier), thread->index / kWarpgroup,
          stamp_thread(other.stamp) / kWarpgroup, stamp_thread(other.stamp), other.where.text(),
          thread->index);
      if (explain_released_beside(report, *thread, *barrier)) return true;
      report.missing(
          "the arrival at {} before the wait at {}: the thread waits for itself, because it would arrive "
          "only after this wait",
          other.where.text(), thread->wait.where.text());
      return true;
    }
  }
  return false;
}

namespace {

/// A commit of an accumulator that went to the mbarrier of another one, where nobody has waited for it.
bool explain_commit_of_accumulator(Report& report, const Gang& gang, const Mbarrier& barrier) {
  if (!barrier.commit_log.empty() && !barrier.commit_log.back().phase) return false;  // one is to come
  for (const Mbarrier* other : array_of(gang, barrier)) {
    if (other == &barrier || !has_completed(*other) || other->observed_phases >= other->phase ||
        other->loaded_phases > 0)
      continue;
    const CommitRecord* const commit = commit_that_ended(*other, other->phase - 1);
    if (commit == nullptr || commit->columns == 0) continue;
    const auto accumulator = static_cast<int>(commit->column / commit->columns);
    report.line("first",
                "phase {} of {}, for which no thread has waited, was completed by {}, into columns {} to {} "
                "of tensor memory",
                other->phase - 1, name_mbarrier(*other), describe_commit(*commit), commit->column,
                commit->column + commit->columns - 1);
    report.missing(
        accumulator == last_index(barrier) && accumulator != last_index(*other)
            ? fmt::format("that commit at {}, which {} wait{} for: those columns are accumulator {}. The "
                          "state that selects the mbarrier for the commit at {} had already advanced",
                          name_mbarrier(barrier), waiters_text(barrier),
                          barrier.waiting.size() == 1 ? "s" : "", accumulator, commit->where.text())
            : fmt::format("a commit at {}, which {} wait{} for, or a wait for {}: the committing thread's "
                          "state and the waiting threads' state are at different accumulators",
                          name_mbarrier(barrier), waiters_text(barrier),
                          barrier.waiting.size() == 1 ? "s" : "", name_mbarrier(*other)));
    return true;
  }
  return false;
}

}  // namespace

bool explain_commit_elsewhere(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    if (filled_by_copies(*barrier->cta, *barrier) == nullptr &&
        explain_commit_of_accumulator(report, gang, *barrier))
      return true;
  }
  for (const Mbarrier* barrier : waited_for(gang)) {
    const Mbarrier* const full = filled_by_copies(*barrier->cta, *barrier);
    if (full == nullptr || barrier->commit_log.empty()) continue;
    const LoadRecord* const load = gang.hopper->copies.latest_load(*full);
    const std::optional<int> k_tile = load ? k_tile_of(gang.grid, *load) : std::nullopt;
    if (!k_tile || barrier->commit_log.back().k_tile == *k_tile) continue;
    for (const Mbarrier* other : array_of(gang, *barrier)) {
      if (other == barrier || other->commit_log.empty()) continue;
      const CommitRecord& commit = other->commit_log.back();
      if (commit.k_tile != *k_tile) continue;
      report.line("first",
                  "k-tile {} was the last one that {} delivered, but the commit after its multiplications "
                  "went to {}: {}",
                  *k_tile, name_mbarrier(*full), name_mbarrier(*other), describe_commit(commit));
      report.missing(
          "that commit at {}, the mbarrier of the stage that was multiplied: at {}, the state belongs to "
          "another k-tile (it had already advanced)",
          name_mbarrier(*barrier), commit.where.text());
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
      report.line("first",
                  "{} waits for the first time at {}, with parity 1, which passes at once on a fresh "
                  "mbarrier; but phase 0 had already completed, ended by {}",
                  plain_name(*thread), name_mbarrier(*barrier), ended_by(gang, barrier->previous_events));
      const std::string other = of_another_stage(gang, *barrier);
      report.missing(other.empty() ? "later arrivals: these release something that had not been filled yet "
                                     "(one arrival too many for each, before the first use). If the first "
                                     "wait is meant for phase 0, it needs parity 0 instead"
                                   : other);
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
      // Of a ring with several consumers each waits for some of the phases.
      if (barrier->phase < seen + 2 || barrier->previous_events.empty() ||
          others_have_waited(*thread, *barrier, seen))
        continue;
      const std::string name = array_name(*barrier);
      report.line("first",
                  "{} waits at {} for phase {} of {}, but {} phases have completed since its last wait "
                  "there: it was signalled more often than it has waited",
                  plain_name(*thread), thread->wait.where.text(), seen, name_mbarrier(*barrier),
                  barrier->phase - seen);
      report.missing(
          "one arrival for each wait: phase {} was ended by {}. That is one too many{}", barrier->phase - 1,
          ended_by(gang, barrier->previous_events),
          name.empty()
              ? std::string()
              : fmt::format(", or meant for another of {}[] (the one for the stage that was read)", name));
      return true;
    }
  }
  return false;
}

namespace {

/// A warpgroup that has waited for each stage of the ring, has handed back none, and waits for one again.
struct KeepsAll {
  const Thread* thread = nullptr;
  const Mbarrier* full = nullptr;  // where it waits
  std::uint32_t stages = 0;        // that it has waited for
};

/// Whether what fills the stages comes from another CTA as well, so that readers there may hand them back.
bool is_shared_ring(const Gang& gang, const Array& all) {
  bool shared = false;
  for (const Mbarrier* empty : all) {
    const Mbarrier* const full = filled_by_copies(*empty->cta, *empty);
    gang.hopper->copies.visit_loads([&](const LoadRecord& load) {
      shared =
          shared || (load.barrier == full && (load.ctas != 0 || stamp_cta(load.issuer) != empty->cta->key));
    });
  }
  return shared;
}

KeepsAll who_keeps_all(const Gang& gang, const Array& all) {
  constexpr std::uint32_t kWarpgroup = 128;
  const std::vector<const Thread*> arrivers = arrivers_of(gang, all);
  const bool shared = is_shared_ring(gang, all);
  for (const auto& cta : gang.ctas) {
    if (!shared && cta.get() != all.front()->cta) continue;
    for (const Thread& thread : cta->threads) {
      const Mbarrier* const at = gang.hopper->thread(thread).waiting_for;
      if (thread.state != ThreadState::kWaiting || at == nullptr) continue;
      const bool arrives = std::any_of(arrivers.begin(), arrivers.end(), [&](const Thread* other) {
        return other->cta == cta.get() && other->index / kWarpgroup == thread.index / kWarpgroup;
      });
      if (arrives) continue;
      KeepsAll found{&thread, at, 0};
      bool is_full = false;
      for (const Mbarrier* empty : all) {
        const Mbarrier* const full = filled_by_copies(*cta, *empty);
        if (full == nullptr || waits_passed(*cta, thread.index / kWarpgroup, *full) == 0) continue;
        ++found.stages;
        is_full = is_full || full == at;
      }
      if (is_full && found.stages == all.size()) return found;
    }
  }
  return {};
}

/// The first threads that have waited for a stage of the ring, that have arrived at none of its empty[], as
/// nobody of their warpgroup has, and that wait somewhere.
struct HeldUp {
  const Thread* thread = nullptr;  // the first of the warpgroup that waits
  const Mbarrier* full = nullptr;  // of a stage that it has waited for
};

HeldUp who_is_held_up(const Gang& gang, const Array& all) {
  constexpr std::uint32_t kWarpgroup = 128;
  const std::vector<const Thread*> arrivers = arrivers_of(gang, all);
  const bool shared = is_shared_ring(gang, all);
  for (const auto& cta : gang.ctas) {
    if (!shared && cta.get() != all.front()->cta) continue;
    for (const Thread& thread : cta->threads) {
      if (thread.state != ThreadState::kWaiting) continue;
      const auto of_its_warpgroup = [&](const Thread* other) {
        return other->cta == cta.get() && other->index / kWarpgroup == thread.index / kWarpgroup;
      };
      if (std::any_of(arrivers.begin(), arrivers.end(), of_its_warpgroup)) continue;
      for (const Mbarrier* empty : all) {
        const Mbarrier* const full = filled_by_copies(*cta, *empty);
        if (full != nullptr && waits_passed(*cta, thread.index / kWarpgroup, *full) > 0)
          return {&thread, full};
      }
    }
  }
  return {};
}

const NamedBarrier* named_barrier_of(const Thread& thread) {
  for (const NamedBarrier& barrier : thread.cta->gang->hopper->cta(*thread.cta).named_barriers) {
    for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
      if (arrival.thread == &thread && arrival.waits) return &barrier;
    }
  }
  return nullptr;
}

/// The threads that a named barrier still lacks, where only these are left that can come: in whole warps, of
/// which nobody has come or returned, or waits for all of the CTA. Empty where more could come.
std::vector<const Thread*> those_to_come(const Cta& cta, const NamedBarrier& barrier) {
  constexpr std::uint32_t kLanes = 32;
  std::vector<const Thread*> found;
  for (std::size_t first = 0; first + kLanes <= cta.threads.size(); first += kLanes) {
    const bool can_come = std::all_of(
        cta.threads.begin() + static_cast<std::ptrdiff_t>(first),
        cta.threads.begin() + static_cast<std::ptrdiff_t>(first + kLanes), [&](const Thread& lane) {
          const bool came =
              std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                          [&](const NamedBarrier::Arrival& one) { return one.thread == &lane; });
          return !came && lane.state == ThreadState::kWaiting && lane.wait.kind != WaitKind::kCtaBarrier;
        });
    for (std::size_t i = first; can_come && i < first + kLanes; ++i) found.push_back(&cta.threads[i]);
  }
  if (barrier.arrivals.size() + found.size() != barrier.threads) found.clear();
  return found;
}

/// A warpgroup keeps stages because it waits at a named barrier for one that waits for the next filling of
/// such a stage. False where that is not so.
bool explain_circle_of_turns(Report& report, const Gang& gang, const Array& all, const HeldUp& held) {
  const Cta& cta = *held.thread->cta;
  const NamedBarrier* const turn = named_barrier_of(*held.thread);
  if (turn == nullptr) return false;
  const std::vector<const Thread*> others = those_to_come(cta, *turn);
  if (others.empty()) return false;
  const Mbarrier* const full = gang.hopper->thread(*others.front()).waiting_for;
  if (full == nullptr || std::any_of(others.begin(), others.end(), [&](const Thread* other) {
        return gang.hopper->thread(*other).waiting_for != full;
      }))
    return false;
  const auto empty = std::find_if(all.begin(), all.end(), [&](const Mbarrier* one) {
    return filled_by_copies(cta, *one) == full && !one->waiting.empty();
  });
  if (empty == all.end()) return false;
  const auto names = [](const std::vector<const Thread*>& threads) {
    std::vector<std::uint32_t> numbers;
    for (const Thread* thread : threads) numbers.push_back(thread->index);
    return ranges("thread", numbers);
  };
  const std::string number = std::to_string(turn - gang.hopper->cta(cta).named_barriers.data());
  const Activity& activity = gang.hopper->thread(*others.front()).activity;
  const std::string name = array_name(**empty);
  report.line("circle",
              "warpgroup {} of CTA {} has waited for {} and waits at {} for named barrier {}, where {} of {} "
              "threads have arrived. Only {} can still arrive there, but they wait at {}{} at {}. {} fills "
              "that stage only after its wait at {}, which lacks the arrival of warpgroup {}",
              held.thread->index / 128, text(cta.id), name_mbarrier(*held.full),
              held.thread->wait.where.text(), number, turn->arrivals.size(), turn->threads, names(others),
              others.front()->wait.where.text(),
              activity.role ? ", as " + text(activity) + "," : std::string(), name_mbarrier(*full),
              plain_name(*(*empty)->waiting.front()), name_mbarrier(**empty), held.thread->index / 128);
  report.missing(
      "an arrival of {} at named barrier {} before their wait at {}: between two arrivals there, they may "
      "wait for at most as many stages to be filled as the ring has ({}), because the other warpgroup "
      "releases none until its turn. The count of {}[] is not the cause",
      names(others), number, others.front()->wait.where.text(), all.size(), name);
  return true;
}

}  // namespace

bool no_phase_has_ended(const Gang& gang, const Mbarrier& barrier) {
  if (barrier.events.empty() || barrier.count == barrier.pending || barrier.pending == 0 ||
      barrier.late > 0 || barrier.tx != 0)
    return false;
  const Array all = array_of(gang, barrier);
  const bool alike = std::all_of(all.begin(), all.end(), [&](const Mbarrier* one) {
    return !has_completed(*one) && one->count == barrier.count &&
           (never_touched(*one) || one->pending == barrier.pending);
  });
  // A single one may be in the middle of a phase.
  return alike &&
         std::count_if(all.begin(), all.end(), [](const Mbarrier* one) { return !never_touched(*one); }) > 1;
}

bool explain_never_enough(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    const Array all = array_of(gang, *barrier);
    const std::uint32_t here = barrier->count - barrier->pending;
    if (!no_phase_has_ended(gang, *barrier)) continue;
    const auto touched =
        std::count_if(all.begin(), all.end(), [](const Mbarrier* one) { return !never_touched(*one); });
    const std::string name = array_name(*barrier);
    report.line(
        "first",
        "no phase of any {}[] has ever completed: {} of them have received {} of {} arrivals each. At {}: {}",
        name, touched, here, barrier->count, name_mbarrier(*barrier), ended_by(gang, barrier->events));
    if (const KeepsAll keeps = who_keeps_all(gang, all); keeps.thread != nullptr) {
      const Thread& thread = *keeps.thread;
      const Activity& activity = gang.hopper->thread(thread).activity;
      report.line("keeps",
                  "{} of warpgroup {} waits at {}{} at {}: it has waited for all {} stages and has arrived "
                  "at none of {}[], and the stage that it waits for can be filled only after its own arrival",
                  plain_name(thread), thread.index / 128, thread.wait.where.text(),
                  activity.role ? ", as " + text(activity) + "," : std::string(), name_mbarrier(*keeps.full),
                  keeps.stages, name);
      report.missing(
          "the arrival{} of warpgroup {} at {}[] after each wait, before it waits for the stage to be filled "
          "again{}: it would arrive only after waiting for more k-tiles than there are stages, or never. (A "
          "count of {} instead of {}, set at {}, is right only if the warpgroup reads nothing from the "
          "stages and need not wait.)",
          barrier->pending == 1 ? "" : "s", thread.index / 128, name,
          barrier->events.front().commit
              ? std::string()
              : " (another warpgroup's arrival is at " + barrier->events.front().where.text() + ")",
          here, barrier->count, barrier->init_where.text());
      return true;
    }
    if (const HeldUp held = who_is_held_up(gang, all); held.thread != nullptr) {
      if (explain_circle_of_turns(report, gang, all, held)) return true;
      report.missing(
          "{} more arrival{} in each phase of {}[]: warpgroup {} of CTA {} has waited for {}, has arrived at "
          "none of them, and waits at {} {}",
          barrier->pending, barrier->pending == 1 ? "" : "s", name, held.thread->index / 128,
          text(held.thread->cta->id), name_mbarrier(*held.full), held.thread->wait.where.text(),
          held.thread->wait.what);
      return true;
    }
    report.missing(
        "{} more arrival{} in each phase of {}[], or a smaller count: it is {}, set at {}, and {} would "
        "match",
        barrier->pending, barrier->pending == 1 ? "" : "s", name, barrier->count, barrier->init_where.text(),
        here);
    return true;
  }
  return false;
}

namespace {

/// Who waits for those that wait at the mbarrier, and so on, from the last ones back to it: "mbarrier A
/// (waited for by threads 0-127 of CTA (0,0,0)) lacks thread 160; ...", or "" where nobody does. `last`: the
/// first ones.
std::string chain_text(const Gang& gang, const Mbarrier& root, std::string& last) {
  constexpr std::size_t kLongest = 4;
  std::string chain;
  Array passed{&root};
  while (passed.size() < kLongest) {
    const std::vector<Thread*>& waiting = passed.back()->waiting;
    const Mbarrier* next = nullptr;
    const Thread* arrives = nullptr;
    for (const Mbarrier* barrier : waited_for(gang)) {
      if (std::find(passed.begin(), passed.end(), barrier) != passed.end()) continue;
      for (const Thread* arriver : arrivers_of(gang, array_of(gang, *barrier))) {
        if (std::find(waiting.begin(), waiting.end(), arriver) == waiting.end()) continue;
        next = barrier;
        arrives = arriver;
        break;
      }
      if (next != nullptr) break;
    }
    if (next == nullptr) break;
    last = waiters_text(*next);
    chain = fmt::format("{} (waited for by {}) lacks {}{}{}", name_mbarrier(*next), last,
                        plain_name(*arrives), chain.empty() ? std::string() : "; ", chain);
    passed.push_back(next);
  }
  return chain;
}

}  // namespace

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
  // Who arrives at one of them may itself wait at another one.
  Array roots;
  for (const Mbarrier* barrier : untouched) {
    if (!arriver_waits_at_one(gang, *barrier, untouched)) roots.push_back(barrier);
  }
  if (!roots.empty()) untouched = roots;
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
  report.missing(
      "an arrival {}: no thread has ever arrived there, and all other threads wait for that arrival{}", list,
      untouched.size() == 1 ? arriver_text(gang, *untouched.front()) : std::string());
  std::string last;
  const std::string chain =
      untouched.size() == 1 ? chain_text(gang, *untouched.front(), last) : std::string();
  if (!chain.empty()) {
    report.line("chain",
                "{}; and {} lacks an arrival. If the code for that arrival follows the first of these waits, "
                "by {}, it is never reached: the arrival belongs before that wait",
                chain, name_mbarrier(*untouched.front()), last);
  }
  return true;
}

namespace {

/// The stage with which numbers begin that run through the stages in turn, from how often each had one: the
/// stages with one more than the others follow each other. -1 where that says nothing.
int first_in_turn(const std::vector<std::uint32_t>& times) {
  const std::uint32_t fewest = *std::min_element(times.begin(), times.end());
  int first = -1;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] > fewest + 1) return -1;
    const std::uint32_t before = times[(i + times.size() - 1) % times.size()];
    if (times[i] == fewest || before != fewest) continue;
    if (first >= 0) return -1;
    first = static_cast<int>(i);
  }
  return first;
}

/// A warpgroup whose waits began with another stage than 0, and whose arrivals with stage 0: what is wrong
/// with its release state; or "".
std::string release_begins_elsewhere(const Gang& gang, const Array& all) {
  constexpr std::uint32_t kWarpgroup = 128;
  std::string list;
  std::string stages;
  for (const auto& cta : gang.ctas) {
    for (std::uint32_t first = 0; first < cta->threads.size(); first += kWarpgroup) {
      std::vector<std::uint32_t> waits;
      std::vector<std::uint32_t> arrivals;
      const Mbarrier* begins = nullptr;
      for (const Mbarrier* empty : all) {
        const Mbarrier* const full = filled_by_copies(*cta, *empty);
        if (full == nullptr || last_index(*empty) != static_cast<int>(waits.size())) return {};
        waits.push_back(waits_passed(*cta, first / kWarpgroup, *full));
        std::uint32_t most = 0;
        for (std::uint32_t i = first; i < std::min<std::size_t>(first + kWarpgroup, cta->threads.size());
             ++i) {
          for (const Arrivals& one : gang.hopper->thread(cta->threads[i]).arrivals)
            most = std::max(most, one.barrier == empty && !one.ahead ? one.count : 0);
        }
        arrivals.push_back(most);
      }
      if (waits.size() < 2) return {};
      const int waited = first_in_turn(waits);
      const int arrived = first_in_turn(arrivals);
      if (waited <= 0 || arrived != 0) continue;
      begins = all[static_cast<std::size_t>(waited)];
      list += fmt::format("{}warpgroup {} of CTA {}", list.empty() ? "" : " and ", first / kWarpgroup,
                          text(cta->id));
      if (stages.empty())
        stages = fmt::format(
            "began to wait at stage {} (its first item) but began to arrive at stage 0: its first arrival "
            "belongs at {}",
            waited, name_mbarrier(*begins));
    }
  }
  if (list.empty()) return {};
  return fmt::format(
      "{} {}. Its release state must begin where its read state begins, advanced past the items that others "
      "take from the ring first",
      list, stages);
}

}  // namespace

bool explain_handed_back_out_of_order(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  // full[2] of empty[2], whoever signals it.
  const auto filled_side = [&](const Mbarrier& empty) -> const Mbarrier* {
    std::string name = member_name(*empty.cta, empty.offset);
    const std::size_t at = name.rfind("empty[");
    if (at == std::string::npos) return nullptr;
    name.replace(at, 5, "full");
    for (const auto& barrier : gang.hopper->cta(*empty.cta).barriers) {
      if (barrier->live && member_name(*empty.cta, barrier->offset) == name) return barrier.get();
    }
    return nullptr;
  };
  const auto completed = [](const Mbarrier& barrier) { return barrier.phase - barrier.first_phase; };
  for (const Mbarrier* barrier : waited_for(gang)) {
    const Mbarrier* const full = filled_side(*barrier);
    if (full == nullptr || barrier->pending != barrier->count || completed(*barrier) >= completed(*full))
      continue;
    for (const Mbarrier* other : array_of(gang, *barrier)) {
      const Mbarrier* const filled = other == barrier ? nullptr : filled_side(*other);
      // Stages are filled in the order of their numbers, round by round.
      if (filled == nullptr || completed(*other) == 0 || completed(*other) < completed(*filled) ||
          other->previous_events.empty() ||
          std::pair(completed(*other), last_index(*other)) <=
              std::pair(completed(*barrier) + 1, last_index(*barrier)))
        continue;
      report.line("first",
                  "{} has been released {} time{} and {}, which was filled before it, {} time{}: phase {} of "
                  "{} was completed by {}",
                  name_mbarrier(*other), completed(*other), completed(*other) == 1 ? "" : "s",
                  name_mbarrier(*barrier), completed(*barrier), completed(*barrier) == 1 ? "" : "s",
                  other->phase - 1, name_mbarrier(*other), ended_by(gang, other->previous_events));
      const std::string begins = release_begins_elsewhere(gang, array_of(gang, *barrier));
      report.missing(
          "{} arrivals at {}, which is waited for by {}: they went to {}. {}", barrier->count,
          name_mbarrier(*barrier), waiters_text(*barrier), name_mbarrier(*other),
          begins.empty()
              ? "A reader must release the previous stage, which it has finished reading, and not the stage "
                "that it is about to read (the index has already advanced, or belongs to the next stage)"
              : begins);
      return true;
    }
  }
  return false;
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
    report.missing(
        "{} arrival{} at {} (waited for by {}). The threads that arrive at {} have moved on and wait "
        "elsewhere: {}{}",
        barrier->pending, barrier->pending == 1 ? "" : "s", name_mbarrier(*barrier), waiters_text(*barrier),
        name.empty() ? std::string("it") : name + "[]", list,
        arrivers.size() > kShown ? fmt::format(" and {} more", arrivers.size() - kShown) : std::string());
    return true;
  }
  return false;
}

}  // namespace emulator
