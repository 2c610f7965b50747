#include "emulator/report/causes/wrong_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/member_names.h"

namespace emulator {
namespace {

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
  return std::any_of(thread.cta->threads.begin(), thread.cta->threads.end(), [&](const Thread& other) {
    const auto& waits = thread.cta->gang->hopper->thread(other).waits;
    return other.index / kWarpgroupSize != thread.index / kWarpgroupSize &&
           std::any_of(waits.begin(), waits.end(),
                       [&](const LastWait& wait) { return wait.barrier == &barrier && wait.phase > phase; });
  });
}

}  // namespace

bool explain_unseen_item(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* full : waited_for(gang)) {
    // The latest phase brought something, and no wait has seen it.
    if (!has_completed(*full) || full->loaded_phases < full->phase || full->observed_phases >= full->phase)
      continue;
    const LoadRecord* const load = gang.hopper->copies.load_of_phase(*full, full->phase - 1);
    if (load == nullptr) continue;
    for (const Thread* thread : full->waiting) {
      const HopperThread& state = gang.hopper->thread(*thread);
      if (!fills(load->activity, state.activity)) continue;
      const int item = load->activity.k_tile;
      const bool is_own = item == state.activity.k_tile;
      if (is_own && !is_ring(state.activity)) continue;  // only k-tiles have numbers
      report.line("first",
                  "{} waits at {} as {}, for parity {} of {}; but item {} is there: it arrived in phase {}, "
                  "which has completed, has parity {}, and for which no thread has waited",
                  plain_name(*thread), thread->wait.where.text(), text(state.activity), state.waiting_parity,
                  name_mbarrier(*full), item, full->phase - 1, 1 - state.waiting_parity);
      report.missing(
          is_own
              ? fmt::format(
                    "parity {} in this wait: the thread's state has the right stage but the wrong parity. "
                    "The "
                    "parity must flip each time the state passes the last stage (once per lap if the state "
                    "advances by many k-tiles). A thread that gets the state from another thread needs the "
                    "reader's state, which begins with parity 0, not the filler's",
                    1 - state.waiting_parity)
              : fmt::format(
                    "a wait for item {} by its owner. If this consumer is the owner, its state is wrong: "
                    "when several consumers take items from one ring, each must also advance its state past "
                    "the items that the others take",
                    item));
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
  for (const auto& cta : gang.ctas) {
    for (const auto& empty : gang.hopper->cta(*cta).barriers) {
      if (!empty->live || empty->commits > 0) continue;
      const Mbarrier* full = empty->count == 1 ? filled_by_copies(*cta, *empty) : nullptr;
      const bool stage = full != nullptr;
      if (full == nullptr) full = beside(*cta, *empty);
      if (full == nullptr) continue;
      // Who has hurried on to its second entry has handed back another one so far.
      const MbarrierArray handed_back = stage ? MbarrierArray{empty.get()} : array_of(gang, *empty);
      std::map<std::uint32_t, std::uint32_t> speakers;  // of each warpgroup
      std::map<std::uint64_t, std::map<std::uint32_t, Where>>
          by;  // phase -> warpgroups that have waited for it
      for (const Thread& thread : cta->threads) {
        const HopperThread& state = gang.hopper->thread(thread);
        if (std::any_of(state.arrivals.begin(), state.arrivals.end(), [&](const Arrivals& one) {
              return one.count > 0 &&
                     std::find(handed_back.begin(), handed_back.end(), one.barrier) != handed_back.end();
            }))
          ++speakers[thread.index / kWarpgroupSize];
        for (const LastWait& wait : state.waits) {
          if (wait.barrier == full && wait.phase > full->first_phase)
            by[wait.phase - 1][thread.index / kWarpgroupSize] = wait.where;
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

bool explain_waits_for_itself(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    if (barrier->pending != 1 || barrier->late > 0 || barrier->commits > 0 || barrier->events.empty())
      continue;
    for (const Thread* thread : barrier->waiting) {
      // The others that arrived there have its place in their warpgroups.
      const bool alike =
          std::all_of(barrier->events.begin(), barrier->events.end(), [&](const Mbarrier::Event& event) {
            return event.kind == Mbarrier::Event::kArrive && stamp_cta(event.stamp) == thread->cta->key &&
                   stamp_thread(event.stamp) / kWarpgroupSize != thread->index / kWarpgroupSize &&
                   stamp_thread(event.stamp) % kWarpgroupSize == thread->index % kWarpgroupSize;
          });
      const Mbarrier* const full = filled_by_copies(*thread->cta, *barrier);
      if (!alike || full == nullptr || waits_passed(*thread->cta, thread->index / kWarpgroupSize, *full) == 0)
        continue;
      const Mbarrier::Event& other = barrier->events.back();
      report.line(
          "first",
          "{} waits at {} for {}, and the arrival that is missing there is from its own warpgroup, {}, which "
          "has read the stage. For warpgroup {}, thread {} arrived, at {}: thread {} is its counterpart",
          plain_name(*thread), thread->wait.where.text(), name_mbarrier(*barrier),
          thread->index / kWarpgroupSize, stamp_thread(other.stamp) / kWarpgroupSize,
          stamp_thread(other.stamp), other.where.text(), thread->index);
      // It may have released another stage more often than it has waited for that.
      const auto& arrivals = gang.hopper->thread(*thread).arrivals;
      const auto instead = std::find_if(arrivals.begin(), arrivals.end(), [&](const Arrivals& one) {
        const Mbarrier* const of = family_of(*one.barrier) == family_of(*barrier)
                                       ? filled_by_copies(*thread->cta, *one.barrier)
                                       : nullptr;
        const LastWait* const wait = of != nullptr ? last_wait(*thread, *of) : nullptr;
        return of != nullptr && one.count > (wait != nullptr ? wait->count : 0);
      });
      report.missing(
          instead != arrivals.end()
              ? fmt::format(
                    "its arrival at {} for the stage that it has read: it has arrived at {}, more often "
                    "than it has waited for that stage. Its release state is not at a stage that it has "
                    "read (it has already advanced, or is the one for the next read)",
                    name_mbarrier(*barrier), name_mbarrier(*instead->barrier))
              : fmt::format(
                    "the arrival at {} before the wait at {}: the thread waits for itself, because it "
                    "would arrive only after this wait",
                    other.where.text(), thread->wait.where.text()));
      return true;
    }
  }
  return false;
}

namespace {

/// Whether two phases are over since the latest wait there of any lane of the thread's warp.
bool is_lapped(const Thread& thread, const Mbarrier& barrier) {
  std::uint64_t seen = barrier.first_phase;
  const auto first = static_cast<std::size_t>(thread.warp()) * kWarpSize;
  for (std::size_t i = first; i < std::min(first + kWarpSize, thread.cta->threads.size()); ++i) {
    if (const LastWait* const wait = last_wait(thread.cta->threads[i], barrier))
      seen = std::max(seen, wait->phase);
  }
  return barrier.phase >= seen + 2;
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

/// What is missing where what `thread` waits for was overwritten, as a count leaves its warp out; or "".
std::string reader_left_out(const Thread& thread, const Mbarrier& full) {
  HopperEngine& engine = *thread.cta->gang->hopper;
  if (!is_lapped(thread, full)) return {};
  for (const Cta* other : engine.cta(*full.cta).cluster) {
    const auto& barriers = engine.cta(*other).barrier_at;
    const auto same = barriers.find(full.offset);
    const Mbarrier* const empty =
        same == barriers.end() || !same->second->live ? nullptr : empty_of(*other, *same->second);
    if (empty == nullptr) continue;
    const std::size_t warps = warps_of(*empty, full);
    // Two groups that take turns arrive in different phases, as many of the one as of the other.
    if (warps <= empty->count || warps % empty->count == 0) continue;
    return fmt::format(
        "the arrival of warp {} of CTA {} at {} in a phase that ended without it: the count there is {}, "
        "set at {}, and {} warps read the bytes that are overwritten after that phase. If one lane of "
        "each warp arrives, the count must be the number of warps",
        thread.warp(), text(thread.cta->id), name_mbarrier(*empty), empty->count, empty->init_where.text(),
        warps);
  }
  return {};
}

}  // namespace

bool explain_told_too_often(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    const std::vector<Mbarrier::Event>& events = barrier->previous_events;
    const bool arrivals_alone = std::none_of(events.begin(), events.end(), [](const Mbarrier::Event& event) {
      return event.kind != Mbarrier::Event::kArrive || event.commit;
    });
    for (const Thread* thread : barrier->waiting) {
      const LastWait* const waited = last_wait(*thread, *barrier);
      const std::uint64_t seen = waited != nullptr ? waited->phase : barrier->first_phase;
      const bool is_first = waited == nullptr && barrier->phase == seen + 1 && arrivals_alone &&
                            gang.hopper->thread(*thread).waiting_parity == 1;
      if ((barrier->phase < seen + 2 && !is_first) || events.empty()) continue;
      const std::string left_out = reader_left_out(*thread, *barrier);
      // Of a ring with several consumers each waits for some of the phases.
      if (left_out.empty() && others_have_waited(*thread, *barrier, seen)) continue;
      const std::string name = array_name(*barrier);
      const std::string ended =
          fmt::format("phase {} was ended by {}", barrier->phase - 1, ended_by(gang, events));
      report.line("first", "{} waits {}at {} for {} of {}, but {}", plain_name(*thread),
                  is_first ? "for the first time " : "", thread->wait.where.text(),
                  is_first ? std::string("parity 1") : fmt::format("phase {}", seen), name_mbarrier(*barrier),
                  is_first ? std::string("its first phase has completed, and only a fresh mbarrier lets a "
                                         "wait for parity 1 pass at once")
                           : fmt::format("{} phases have completed since its last wait there: it was "
                                         "signalled more often than it has waited",
                                         barrier->phase - seen));
      report.missing(
          !left_out.empty() ? left_out
          : is_first
              ? fmt::format("later arrivals: {}; these release something that had not been filled yet (one "
                            "arrival too many for each, before the first use). If the first wait is meant "
                            "for phase 0, it needs parity 0 instead",
                            ended)
              : fmt::format(
                    "one arrival for each wait: {}. That is one too many{}", ended,
                    name.empty()
                        ? std::string()
                        : fmt::format(", or meant for another of {}[] (the one for the stage that was read)",
                                      name)));
      return true;
    }
  }
  return false;
}

bool explain_handed_back_out_of_order(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  const auto completed = [](const Mbarrier& barrier) { return barrier.phase - barrier.first_phase; };
  for (const Mbarrier* barrier : waited_for(gang)) {
    const Mbarrier* const full = full_by_name(*barrier->cta, *barrier);
    if (full == nullptr || barrier->pending != barrier->count || completed(*barrier) >= completed(*full))
      continue;
    for (const Mbarrier* other : array_of(gang, *barrier)) {
      const Mbarrier* const filled = other == barrier ? nullptr : full_by_name(*other->cta, *other);
      // Stages are filled in the order of their numbers, round by round.
      if (filled == nullptr || completed(*other) == 0 || completed(*other) < completed(*filled) ||
          other->previous_events.empty() ||
          std::pair(completed(*other), last_index(*other)) <=
              std::pair(completed(*barrier) + 1, last_index(*barrier)))
        continue;
      // Who had waited for another stage by then has released the one before it, as it should.
      const Activity& at = other->previous_events.back().activity;
      if (at.role != nullptr && at.stage != last_index(*other)) continue;
      report.line("first",
                  "{} has been released {} time{} and {}, which was filled before it, {} time{}: phase {} of "
                  "{} was completed by {}",
                  name_mbarrier(*other), completed(*other), completed(*other) == 1 ? "" : "s",
                  name_mbarrier(*barrier), completed(*barrier), completed(*barrier) == 1 ? "" : "s",
                  other->phase - 1, name_mbarrier(*other), ended_by(gang, other->previous_events));
      report.missing(
          "{} arrivals at {}, which is waited for by {}: they went to {}. A reader must release the previous "
          "stage, which it has finished reading, and not the stage that it is about to read (the index has "
          "already advanced, or belongs to the next stage)",
          barrier->count, name_mbarrier(*barrier), waiters_text(*barrier), name_mbarrier(*other));
      return true;
    }
  }
  return false;
}

}  // namespace emulator
