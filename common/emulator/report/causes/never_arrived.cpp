#include "emulator/report/causes/never_arrived.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/departures.h"

namespace emulator {
namespace {

/// Whether someone who arrives at the mbarrier waits at one that nobody has ever arrived at, or for such a
/// thread.
bool leads_to_untouched(const Gang& gang, const Mbarrier& barrier, std::set<const Mbarrier*>& visited) {
  const MbarrierArray all = array_of(gang, barrier);
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

/// Whether a warp that arrives there in other launches waits at one of these mbarriers.
bool arriver_waits_at_one(const Gang& gang, const Mbarrier& barrier, const MbarrierArray& untouched) {
  const std::optional<UsualPhase> usual = usual_phase(barrier);
  if (!usual) return false;
  return std::any_of(barrier.cta->threads.begin(), barrier.cta->threads.end(), [&](const Thread& thread) {
    const Mbarrier* const at = gang.hopper->thread(thread).waiting_for;
    return thread.state == ThreadState::kWaiting && at != nullptr && at != &barrier &&
           std::find(untouched.begin(), untouched.end(), at) != untouched.end() &&
           std::any_of(usual->parties.begin(), usual->parties.end(), [&](const PhaseParty& party) {
             return party.cta == thread.cta->key && party.warp == static_cast<std::uint32_t>(thread.warp());
           });
  });
}

/// A warpgroup that has waited for each stage of the ring, has handed back none, and waits for one again.
struct KeepsAll {
  const Thread* thread = nullptr;
  const Mbarrier* full = nullptr;  // where it waits
  std::uint32_t stages = 0;        // that it has waited for
};

/// Whether what fills the stages comes from another CTA as well, so that readers there may hand them back.
bool is_shared_ring(const Gang& gang, const MbarrierArray& all) {
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

KeepsAll who_keeps_all(const Gang& gang, const MbarrierArray& all) {
  const std::vector<const Thread*> arrivers = arrivers_of(gang, all);
  const bool shared = is_shared_ring(gang, all);
  for (const auto& cta : gang.ctas) {
    if (!shared && cta.get() != all.front()->cta) continue;
    for (const Thread& thread : cta->threads) {
      const Mbarrier* const at = gang.hopper->thread(thread).waiting_for;
      if (thread.state != ThreadState::kWaiting || at == nullptr) continue;
      const bool arrives = std::any_of(arrivers.begin(), arrivers.end(), [&](const Thread* other) {
        return other->cta == cta.get() && other->index / kWarpgroupSize == thread.index / kWarpgroupSize;
      });
      if (arrives) continue;
      KeepsAll found{&thread, at, 0};
      bool is_full = false;
      for (const Mbarrier* empty : all) {
        const Mbarrier* const full = filled_by_copies(*cta, *empty);
        if (full == nullptr || waits_passed(*cta, thread.index / kWarpgroupSize, *full) == 0) continue;
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

HeldUp who_is_held_up(const Gang& gang, const MbarrierArray& all) {
  const std::vector<const Thread*> arrivers = arrivers_of(gang, all);
  const bool shared = is_shared_ring(gang, all);
  for (const auto& cta : gang.ctas) {
    if (!shared && cta.get() != all.front()->cta) continue;
    for (const Thread& thread : cta->threads) {
      if (thread.state != ThreadState::kWaiting) continue;
      const auto of_its_warpgroup = [&](const Thread* other) {
        return other->cta == cta.get() && other->index / kWarpgroupSize == thread.index / kWarpgroupSize;
      };
      if (std::any_of(arrivers.begin(), arrivers.end(), of_its_warpgroup)) continue;
      for (const Mbarrier* empty : all) {
        const Mbarrier* const full = filled_by_copies(*cta, *empty);
        if (full != nullptr && waits_passed(*cta, thread.index / kWarpgroupSize, *full) > 0)
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
bool explain_circle_of_turns(Report& report, const Gang& gang, const MbarrierArray& all, const HeldUp& held) {
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
              held.thread->index / kWarpgroupSize, text(cta.id), name_mbarrier(*held.full),
              held.thread->wait.where.text(), number, turn->arrivals.size(), turn->threads, names(others),
              others.front()->wait.where.text(),
              activity.role ? ", as " + text(activity) + "," : std::string(), name_mbarrier(*full),
              plain_name(*(*empty)->waiting.front()), name_mbarrier(**empty),
              held.thread->index / kWarpgroupSize);
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
  const MbarrierArray all = array_of(gang, barrier);
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
    const MbarrierArray all = array_of(gang, *barrier);
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
                  plain_name(thread), thread.index / kWarpgroupSize, thread.wait.where.text(),
                  activity.role ? ", as " + text(activity) + "," : std::string(), name_mbarrier(*keeps.full),
                  keeps.stages, name);
      report.missing(
          "the arrival{} of warpgroup {} at {}[] after each wait, before it waits for the stage to be filled "
          "again{}: it would arrive only after waiting for more k-tiles than there are stages, or never. (A "
          "count of {} instead of {}, set at {}, is right only if the warpgroup reads nothing from the "
          "stages and need not wait.)",
          barrier->pending == 1 ? "" : "s", thread.index / kWarpgroupSize, name,
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
          barrier->pending, barrier->pending == 1 ? "" : "s", name, held.thread->index / kWarpgroupSize,
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
  MbarrierArray passed{&root};
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
  MbarrierArray untouched;
  for (const Mbarrier* barrier : waited_for(gang)) {
    const MbarrierArray all = array_of(gang, *barrier);
    if (std::all_of(all.begin(), all.end(), [](const Mbarrier* one) { return never_touched(*one); })) {
      untouched.push_back(barrier);
      continue;
    }
    std::set<const Mbarrier*> visited;
    if (!leads_to_untouched(gang, *barrier, visited)) return false;
  }
  // Who arrives at one of them may itself wait at another one.
  MbarrierArray roots;
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
      "an arrival {}: no thread has ever arrived there, and all other threads wait for that arrival", list);
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
