#include "emulator/report/causes/wrong_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
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
  return std::any_of(thread.cta->threads.begin(), thread.cta->threads.end(), [&](const Thread& other) {
    const auto& waits = thread.cta->gang->hopper->thread(other).waits;
    return other.index / kWarpgroupSize != thread.index / kWarpgroupSize &&
           std::any_of(waits.begin(), waits.end(),
                       [&](const LastWait& wait) { return wait.barrier == &barrier && wait.phase > phase; });
  });
}

}  // namespace

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
std::string release_begins_elsewhere(const Gang& gang, const MbarrierArray& all) {
  std::string list;
  std::string stages;
  for (const auto& cta : gang.ctas) {
    for (std::uint32_t first = 0; first < cta->threads.size(); first += kWarpgroupSize) {
      std::vector<std::uint32_t> waits;
      std::vector<std::uint32_t> arrivals;
      const Mbarrier* begins = nullptr;
      for (const Mbarrier* empty : all) {
        const Mbarrier* const full = filled_by_copies(*cta, *empty);
        if (full == nullptr || last_index(*empty) != static_cast<int>(waits.size())) return {};
        waits.push_back(waits_passed(*cta, first / kWarpgroupSize, *full));
        std::uint32_t most = 0;
        for (std::uint32_t i = first; i < std::min<std::size_t>(first + kWarpgroupSize, cta->threads.size());
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
      list += fmt::format("{}warpgroup {} of CTA {}", list.empty() ? "" : " and ", first / kWarpgroupSize,
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

}  // namespace emulator
