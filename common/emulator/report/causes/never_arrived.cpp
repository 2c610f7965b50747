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

/// The first thread that waits somewhere, has waited for a stage of the ring, and has arrived at none of its
/// empty[], as nobody of its warpgroup has; before all others one that waits for a stage again, as it has for
/// all of them.
struct HeldUp {
  const Thread* thread = nullptr;  // the first of the warpgroup that waits
  const Mbarrier* full = nullptr;  // of a stage that it has waited for, or, with keeps_all, waits for
  bool keeps_all = false;
};

HeldUp who_is_held_up(const Gang& gang, const MbarrierArray& all) {
  const std::vector<const Thread*> arrivers = arrivers_of(gang, all);
  const bool shared = is_shared_ring(gang, all);
  HeldUp first;
  for (const auto& cta : gang.ctas) {
    if (!shared && cta.get() != all.front()->cta) continue;
    for (const Thread& thread : cta->threads) {
      if (thread.state != ThreadState::kWaiting ||
          std::any_of(arrivers.begin(), arrivers.end(), [&](const Thread* other) {
            return other->cta == cta.get() && other->index / kWarpgroupSize == thread.index / kWarpgroupSize;
          }))
        continue;
      const Mbarrier* const at = gang.hopper->thread(thread).waiting_for;
      std::size_t stages = 0;  // that it has waited for
      bool waits_again = false;
      for (const Mbarrier* empty : all) {
        const Mbarrier* const full = filled_by_copies(*cta, *empty);
        if (full == nullptr || waits_passed(*cta, thread.index / kWarpgroupSize, *full) == 0) continue;
        ++stages;
        waits_again = waits_again || full == at;
        if (first.thread == nullptr) first = {&thread, full};
      }
      if (waits_again && stages == all.size()) return {&thread, at, true};
    }
  }
  return first;
}

/// ": 128 of 256 threads have arrived there", where it waits at a named barrier.
std::string named_barrier_text(const Thread& thread) {
  const std::vector<NamedBarrier>& all = thread.cta->gang->hopper->cta(*thread.cta).named_barriers;
  for (const NamedBarrier& barrier : all) {
    for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
      if (arrival.thread == &thread && arrival.waits)
        return fmt::format(
            " for named barrier {}, where {} of {} threads have arrived. Between two arrivals there, a "
            "warpgroup may read at most as many items as the ring has stages",
            &barrier - all.data(), barrier.arrivals.size(), barrier.threads);
    }
  }
  return {};
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
    const std::string more = barrier->pending == 1 ? "" : "s";
    const HeldUp held = who_is_held_up(gang, all);
    if (held.thread != nullptr) {
      const Thread& thread = *held.thread;
      const std::uint32_t warpgroup = thread.index / kWarpgroupSize;
      const Activity& activity = gang.hopper->thread(thread).activity;
      report.line(
          "keeps",
          "{} of warpgroup {} waits at {} {}{}: it has waited for {} and has arrived at none of {}[]{}",
          plain_name(thread), warpgroup, thread.wait.where.text(), thread.wait.what,
          !held.keeps_all ? named_barrier_text(thread)
          : activity.role ? fmt::format(", as {}, at {}", text(activity), name_mbarrier(*held.full))
                          : " at " + name_mbarrier(*held.full),
          held.keeps_all ? fmt::format("all {} stages", all.size()) : name_mbarrier(*held.full), name,
          held.keeps_all ? ", and the stage that it waits for can be filled only after its own arrival" : "");
      report.missing(
          "the arrival{} of warpgroup {} at {}[] after each wait, before it waits for what comes only after "
          "it{}. "
          "(A count of {} instead of {}, set at {}, is right only if the warpgroup reads nothing from the "
          "stages and need not wait.)",
          more, warpgroup, name,
          barrier->events.front().commit
              ? std::string()
              : " (another warpgroup's arrival is at " + barrier->events.front().where.text() + ")",
          here, barrier->count, barrier->init_where.text());
      return true;
    }
    report.missing(
        "{} more arrival{} in each phase of {}[], or a smaller count: it is {}, set at {}, and {} would "
        "match",
        barrier->pending, more, name, barrier->count, barrier->init_where.text(), here);
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
    if (std::any_of(arrivers.begin(), arrivers.end(), [&](const Thread* thread) {
          return thread->state == ThreadState::kRunnable ||
                 gang.hopper->thread(*thread).waiting_for != nullptr;
        }))
      continue;
    constexpr std::size_t kShown = 3;
    std::string list;
    for (std::size_t i = 0; i < std::min(kShown, arrivers.size()); ++i) {
      const Thread& thread = *arrivers[i];
      list += fmt::format("{}{} {}", i == 0 ? "" : ", ", plain_name(thread),
                          thread.state == ThreadState::kExited
                              ? std::string("has returned")
                              : fmt::format("at {} {}", thread.wait.where.text(), thread.wait.what));
    }
    const std::string name = array_name(*barrier);
    report.missing(
        "{} arrival{} at {} (waited for by {}). The threads that arrive at {} have moved on: "
        "{}{}",
        barrier->pending, barrier->pending == 1 ? "" : "s", name_mbarrier(*barrier), waiters_text(*barrier),
        name.empty() ? std::string("it") : name + "[]", list,
        arrivers.size() > kShown ? fmt::format(" and {} more", arrivers.size() - kShown) : std::string());
    return true;
  }
  return false;
}

}  // namespace emulator
