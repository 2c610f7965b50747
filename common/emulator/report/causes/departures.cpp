#include "emulator/report/causes/departures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/never_arrived.h"
#include "emulator/sync/dependent_launch.h"

namespace emulator {
namespace {

/// The phases of some mbarriers, as long as they agree.
struct Common {
  const PhaseParties* parties = nullptr;
  bool agree = true;
  std::uint64_t phases = 0;
  std::uint64_t least_bytes = ~std::uint64_t{0};
  std::uint64_t most_bytes = 0;

  /// `but`: parties of one phase that is left out.
  void add(const PhaseHistory& history, const PhaseParties* but = nullptr) {
    for (const PhaseHistory::Kind& kind : history.kinds) {
      const std::uint64_t left_out = but != nullptr && is_alike(kind.parties, *but) ? 1 : 0;
      if (kind.phases == left_out) continue;
      agree = agree && (parties == nullptr || is_alike(*parties, kind.parties));
      parties = &kind.parties;
      phases += kind.phases - left_out;
    }
    if (history.phases == 0) return;
    least_bytes = std::min(least_bytes, history.least_bytes);
    most_bytes = std::max(most_bytes, history.most_bytes);
  }
};

/// The place of an mbarrier in a kernel.
using PlaceInKernel = std::tuple<const void*, std::uint64_t, std::uint32_t, int>;

struct FinishedPhases {
  std::mutex mutex;
  std::map<PlaceInKernel, PhaseHistory> all;  // the CTA of a party is 0
};

FinishedPhases& finished_phases() {
  static FinishedPhases phases;
  return phases;
}

PlaceInKernel place_of(const Mbarrier& barrier) {
  return {latest_kernel(), barrier.init_where.packed(), barrier.offset, barrier.cta->rank_in_cluster};
}

/// The parties as those of a barrier of CTA `to`, where all are of the barrier's own CTA.
std::optional<PhaseParties> moved(PhaseParties parties, std::uint32_t from, std::uint32_t to) {
  for (PhaseParty& party : parties) {
    if (party.cta != from) return std::nullopt;
    party.cta = to;
  }
  return parties;
}

PhaseParty party_of(const Mbarrier::Event& event) {
  return {stamp_cta(event.stamp), stamp_thread(event.stamp) / kWarpSize, event.commit, 0, event.where,
          event.activity.role};
}

/// Mbarriers that should behave alike: those of the array, or, where it has no name, those that the same
/// line has initialised with the same count.
MbarrierArray alike(const Mbarrier& barrier) {
  const Gang& gang = *barrier.cta->gang;
  if (!array_name(barrier).empty()) return array_of(gang, barrier);
  MbarrierArray all;
  for (const auto& other : gang.hopper->cta(*barrier.cta).barriers) {
    if (other->live && other->count == barrier.count && array_name(*other).empty() &&
        other->init_where.is_line_of(barrier.init_where))
      all.push_back(other.get());
  }
  return all;
}

std::string name_of_all(const MbarrierArray& all, const Mbarrier& barrier) {
  if (all.size() == 1) return name_mbarrier(barrier);
  const std::string name = array_name(barrier);
  return fmt::format("the {} mbarriers {}", all.size(),
                     name.empty() ? "initialised at " + barrier.init_where.text() : name + "[]");
}

std::string name_of_cta(const PhaseParty& party, const Cta& home) {
  return party.cta == home.key ? std::string()
                               : fmt::format(" of CTA {}", name_cta(home.gang->grid, party.cta));
}

/// "warps 4, 8" of each group that has the same text, in order: calls say(text, warps, number of warps).
template <typename TextOf, typename Say>
void for_groups(const PhaseParties& parties, const Cta& home, TextOf text_of, Say say) {
  std::vector<std::pair<std::string, std::vector<const PhaseParty*>>> groups;
  for (const PhaseParty& party : parties) {
    const std::string text = text_of(party);
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.first == text && group.second.front()->cta == party.cta &&
             group.second.front()->commits == party.commits;
    });
    (known == groups.end() ? groups.emplace_back(text, std::vector<const PhaseParty*>()) : *known)
        .second.push_back(&party);
  }
  for (const auto& [text, some] : groups) {
    std::vector<std::uint32_t> warps;
    for (const PhaseParty* party : some) warps.push_back(party->warp);
    say(text,
        (some.front()->commits ? "tcgen05.commit of " : "") + ranges("warp", warps) +
            name_of_cta(*some.front(), home),
        warps.size());
  }
}

/// "warps 4, 8 (once each, as consumer, at kernel.cuh:70) and warp 0 (...)"
std::string who_arrives(const PhaseParties& parties, const Cta& home) {
  std::string list;
  for_groups(
      parties, home,
      [](const PhaseParty& party) {
        return fmt::format("{}|{}at {}", party.times,
                           party.role != nullptr ? fmt::format("as {}, ", party.role) : std::string(),
                           party.where.text());
      },
      [&](const std::string& text, const std::string& warps, std::size_t number) {
        const std::size_t bar = text.find('|');
        const std::string times = text.substr(0, bar);
        list += fmt::format("{}{} ({}{}{})", list.empty() ? "" : " and ", warps,
                            times == "1" ? "once" : times + " times", number > 1 ? " each, " : ", ",
                            text.substr(bar + 1));
      });
  return list;
}

/// "warps 4, 8", without more.
std::string names_of(const PhaseParties& parties, const Cta& home) {
  std::string list;
  for_groups(
      parties, home, [](const PhaseParty&) { return std::string(); },
      [&](const std::string&, const std::string& warps, std::size_t) {
        list += (list.empty() ? "" : " and ") + warps;
      });
  return list;
}

const Cta* cta_of(const Gang& gang, std::uint32_t key) {
  const auto found =
      std::find_if(gang.ctas.begin(), gang.ctas.end(), [&](const auto& cta) { return cta->key == key; });
  return found == gang.ctas.end() ? nullptr : found->get();
}

/// "waits at kernel.cuh:70 for mbarrier full[1]": what the warp does.
std::string what_it_does(const Gang& gang, const PhaseParty& party) {
  const Cta* const cta = cta_of(gang, party.cta);
  if (cta == nullptr) return "has ended";
  const Thread* waits = nullptr;
  bool gone = true;
  const std::size_t first = std::size_t{party.warp} * kWarpSize;
  for (std::size_t i = first; i < std::min<std::size_t>(first + kWarpSize, cta->threads.size()); ++i) {
    const Thread& thread = cta->threads[i];
    gone = gone && thread.state == ThreadState::kExited;
    if (thread.state != ThreadState::kWaiting) continue;
    if (waits == nullptr ||
        (gang.hopper->thread(*waits).waiting_for == nullptr && gang.hopper->thread(thread).waiting_for))
      waits = &thread;
  }
  if (gone) return "has returned";
  if (waits == nullptr) return "can run";
  const Mbarrier* const at = gang.hopper->thread(*waits).waiting_for;
  return fmt::format("waits at {} {}", waits->wait.where.text(),
                     at != nullptr ? "for " + name_mbarrier(*at) : std::string(waits->wait.what));
}

bool waits_for(const PhaseParty& party, const Mbarrier& barrier) {
  return std::any_of(barrier.waiting.begin(), barrier.waiting.end(), [&](const Thread* thread) {
    return thread->cta->key == party.cta && static_cast<std::uint32_t>(thread->warp()) == party.warp;
  });
}

/// What of `parties` is not in `others`.
PhaseParties difference(const PhaseParties& parties, const PhaseParties& others) {
  PhaseParties left;
  for (PhaseParty party : parties) {
    const auto same = std::find_if(others.begin(), others.end(),
                                   [&](const PhaseParty& other) { return other.is_same_warp(party); });
    const std::uint32_t there = same == others.end() ? 0 : same->times;
    if (party.times <= there) continue;
    party.times -= there;
    left.push_back(party);
  }
  return left;
}

/// The parties that arrive more often than such a party usually does; nothing where another one arrives.
PhaseParties too_often(const PhaseParties& parties, const PhaseParties& usual) {
  PhaseParties more;
  for (const PhaseParty& party : parties) {
    const auto same = std::find_if(usual.begin(), usual.end(),
                                   [&](const PhaseParty& other) { return other.is_same_warp(party); });
    if (same == usual.end()) return {};
    if (party.times > same->times) more.push_back(party);
  }
  return more;
}

/// The lines that have initialised the mbarriers that these threads have waited for.
std::set<std::string> waited_there(const Cta& cta, std::size_t first, std::size_t count) {
  std::set<std::string> places;
  for (std::size_t i = first; i < std::min(first + count, cta.threads.size()); ++i) {
    const HopperThread& state = cta.gang->hopper->thread(cta.threads[i]);
    for (const LastWait& wait : state.waits) places.insert(wait.barrier->init_where.text());
    if (state.waiting_for != nullptr) places.insert(state.waiting_for->init_where.text());
  }
  return places;
}

/// Whether threads that do not arrive wait for the same as those that do: they may take turns with them.
bool may_take_turns(const Gang& gang, const PhaseParties& usual) {
  for (const PhaseParty& party : usual) {
    const Cta* const cta = cta_of(gang, party.cta);
    if (cta == nullptr) continue;
    // In a large CTA one warp may arrive for its warpgroup.
    const std::size_t together = cta->threads.size() > kWarpgroupSize ? kWarpgroupSize : kWarpSize;
    const auto group_of = [&](const PhaseParty& one) { return std::size_t{one.warp} * kWarpSize / together; };
    const std::set<std::string> own = waited_there(*cta, group_of(party) * together, together);
    for (std::size_t group = 0; group * together < cta->threads.size() && !own.empty(); ++group) {
      const bool arrives = std::any_of(usual.begin(), usual.end(), [&](const PhaseParty& other) {
        return other.cta == party.cta && group_of(other) == group;
      });
      if (!arrives && waited_there(*cta, group * together, together) == own) return true;
    }
  }
  return false;
}

/// A phase that threads wait for, beside the usual one.
struct Departure {
  bool partial = false;  // what sets it apart is not only that nobody has come yet
  bool bytes = false;
  const Mbarrier* barrier = nullptr;
  UsualPhase usual;
  PhaseParties here, missing;
};

std::optional<Departure> departure_of(const Gang& gang, const Mbarrier& barrier) {
  std::optional<UsualPhase> usual = usual_phase(barrier);
  if (!usual || barrier.late > 0) return std::nullopt;
  Departure found{.barrier = &barrier, .here = parties_of(barrier.events)};
  found.missing = difference(usual->parties, found.here);
  found.bytes = barrier.pending == 0 && barrier.tx > 0 && barrier.loads == 0 && usual->bytes > 0;
  const PhaseParties more = too_often(found.here, usual->parties);
  const bool strangers = more.empty() && !difference(found.here, usual->parties).empty();
  const bool lacks = barrier.pending > 0 && !found.missing.empty() && !strangers;
  found.partial = found.bytes || (lacks && !found.here.empty());
  if (!found.partial && (!lacks || may_take_turns(gang, usual->parties))) return std::nullopt;
  found.usual = std::move(*usual);
  return found;
}

/// Whether those who are late for it and those who issue copies wait for each other: a stage is filled only
/// when it has been released.
bool comes_first(const Departure& release, const std::vector<Departure>& all) {
  const auto wait_for = [](const Departure& one, const Departure& other) {
    return std::all_of(one.missing.begin(), one.missing.end(),
                       [&](const PhaseParty& party) { return waits_for(party, *other.barrier); });
  };
  return release.barrier->loaded_phases == 0 &&
         std::any_of(all.begin(), all.end(), [&](const Departure& other) {
           return other.barrier->loaded_phases > 0 && wait_for(release, other) && wait_for(other, release);
         });
}

/// ". Phase 1 of mbarrier full[1], for which no thread has waited, was ended by ...", of one of its array
/// whose turn comes later; or "".
std::string ended_out_of_turn(const Gang& gang, const Mbarrier& barrier) {
  const auto turn = [](const Mbarrier& one) {
    return std::pair(one.phase - one.first_phase, last_index(one));
  };
  const std::pair<std::uint64_t, int> own = turn(barrier);
  for (const Mbarrier* other : array_of(gang, barrier)) {
    if (other->observed_phases < other->phase && turn(*other) > std::pair(own.first + 1, own.second))
      return fmt::format(". Phase {} of {}, for which no thread has waited, was ended by {}",
                         other->phase - 1, name_mbarrier(*other), ended_by(gang, other->previous_events));
  }
  return {};
}

std::string usual_text(const UsualPhase& usual, const Cta& home) {
  return fmt::format("{}, {} {} arrived", usual.phases, who_arrives(usual.parties, home),
                     usual.parties.size() == 1 ? "has" : "have");
}

std::string departure_text(const Gang& gang, const Departure& departure) {
  const Mbarrier& barrier = *departure.barrier;
  const std::string phase = fmt::format("phase {} of {}", barrier.phase, name_mbarrier(barrier));
  if (departure.bytes) {
    const std::string usual =
        fmt::format("{}, {} bytes were expected", departure.usual.phases, departure.usual.bytes);
    return barrier.expected == departure.usual.bytes
               ? fmt::format(
                     "{}, and they came. For {}, copies of only {} bytes have been issued, the latest "
                     "at {}",
                     usual, phase, barrier.issued, barrier.last_load.text())
               : fmt::format("{}. P{} expects {}", usual, phase.substr(1), barrier.expected);
  }
  const Cta& home = *barrier.cta;
  const std::string usual = usual_text(departure.usual, home);
  std::string now = whereabouts(gang, departure.missing, home);
  if (now.find("returned") != std::string::npos)
    now +=
        ". The condition for an arrival (a branch, a number of items) must be true whenever a thread waits "
        "for it";
  if (departure.here.empty()) return fmt::format("{}. In {}, none has so far: {}", usual, phase, now);
  const bool partly =
      std::any_of(departure.missing.begin(), departure.missing.end(), [&](const PhaseParty& party) {
        return std::any_of(departure.here.begin(), departure.here.end(),
                           [&](const PhaseParty& other) { return other.is_same_warp(party); });
      });
  return fmt::format("{}. In {}, {} {} arrived, and {} {} not{}: {}", usual, phase,
                     who_arrives(departure.here, home), departure.here.size() == 1 ? "has" : "have",
                     names_of(departure.missing, home), departure.missing.size() == 1 ? "has" : "have",
                     partly ? " as often" : "", now);
}

}  // namespace

PhaseParties parties_of(const std::vector<Mbarrier::Event>& events) {
  PhaseParties parties;
  for (const Mbarrier::Event& event : events) {
    if (event.kind != Mbarrier::Event::kExpect) add_arrival(parties, party_of(event));
  }
  return parties;
}

void remember_phases(const Gang& gang) {
  if (!gang.hopper) return;
  constexpr std::size_t kMost = 4096;
  FinishedPhases& finished = finished_phases();
  const std::lock_guard lock(finished.mutex);
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : gang.hopper->cta(*cta).barriers) {
      const PlaceInKernel place = place_of(*barrier);
      if (finished.all.size() >= kMost && !finished.all.contains(place)) continue;
      PhaseHistory& known = finished.all[place];
      for (const PhaseHistory::Kind& kind : barrier->history.kinds) {
        // Nobody arrives in a phase: what this one was is not known.
        known.add(moved(kind.parties, cta->key, 0).value_or(PhaseParties()), barrier->history.most_bytes);
      }
    }
  }
}

std::optional<UsualPhase> usual_phase(const Mbarrier& barrier, bool latest) {
  constexpr std::uint64_t kFewest = 2;
  const MbarrierArray all = alike(barrier);
  const PhaseParties last = latest ? parties_of(barrier.previous_events) : PhaseParties();
  Common own;
  for (const Mbarrier* other : all) own.add(other->history, latest && other == &barrier ? &last : nullptr);
  const auto made = [](const Common& common, PhaseParties parties, std::string phases) {
    return UsualPhase{.parties = std::move(parties),
                      .phases = std::move(phases),
                      .bytes = common.least_bytes == common.most_bytes ? common.most_bytes : 0};
  };
  if (!own.agree) return std::nullopt;
  if (own.phases >= kFewest)
    return made(own, *own.parties,
                fmt::format("in all {} {} phases of {}", own.phases, latest ? "other" : "completed",
                            name_of_all(all, barrier)));
  if (own.phases > 0) return std::nullopt;
  Common others;
  std::optional<PhaseParties> parties;
  for (const Cta* cta : barrier.cta->gang->hopper->cta(*barrier.cta).cluster) {
    const auto& at = barrier.cta->gang->hopper->cta(*cta).barrier_at;
    const auto same = at.find(barrier.offset);
    if (cta == barrier.cta || same == at.end() || !same->second->live || same->second->history.phases == 0)
      continue;
    PhaseHistory history = same->second->history;
    for (PhaseHistory::Kind& kind : history.kinds) {
      std::optional<PhaseParties> here = moved(kind.parties, cta->key, barrier.cta->key);
      others.agree = others.agree && here && (!parties || is_alike(*parties, *here));
      parties = std::move(here);
    }
    others.phases += history.phases;
    others.least_bytes = std::min(others.least_bytes, history.least_bytes);
    others.most_bytes = std::max(others.most_bytes, history.most_bytes);
  }
  if (!others.agree) return std::nullopt;
  if (others.phases >= kFewest)
    return made(others, std::move(*parties),
                fmt::format("in all {} completed phases of the same mbarrier in the cluster's other CTAs",
                            others.phases));
  FinishedPhases& finished = finished_phases();
  const std::lock_guard lock(finished.mutex);
  const auto known = finished.all.find(place_of(barrier));
  if (known == finished.all.end() || known->second.kinds.size() != 1 ||
      known->second.kinds.front().parties.empty())
    return std::nullopt;
  Common before;
  before.add(known->second);
  return made(before, *moved(*before.parties, 0, barrier.cta->key),
              "in every phase of " + name_mbarrier(barrier) + " in launches that finished");
}

std::string whereabouts(const Gang& gang, const PhaseParties& parties, const Cta& home) {
  std::string list;
  for_groups(
      parties, home, [&](const PhaseParty& party) { return what_it_does(gang, party); },
      [&](const std::string& text, const std::string& warps, std::size_t number) {
        std::string verb = text;
        if (number > 1 && verb.starts_with("waits ")) verb.erase(4, 1);
        if (number > 1 && verb.starts_with("has ")) verb.replace(0, 3, "have");
        list += fmt::format("{}{} {}", list.empty() ? "" : ", and ", warps, verb);
      });
  return list;
}

void explain_departures(Report& report, const Gang& gang, bool known) {
  if (!gang.hopper) return;
  constexpr std::size_t kMost = 2;
  std::vector<Departure> all;
  for (const Mbarrier* barrier : waited_for(gang)) {
    if (std::optional<Departure> found = departure_of(gang, *barrier)) all.push_back(std::move(*found));
  }
  // Others are late because of those whom some of these phases lack.
  if (std::any_of(all.begin(), all.end(), [](const Departure& one) { return one.partial; })) {
    std::erase_if(all, [](const Departure& one) { return !one.partial; });
  } else {
    std::vector<Departure> first = all;
    std::erase_if(first, [&](const Departure& one) {
      return std::all_of(one.missing.begin(), one.missing.end(), [&](const PhaseParty& party) {
        return std::any_of(all.begin(), all.end(), [&](const Departure& other) {
          return other.barrier != one.barrier && waits_for(party, *other.barrier);
        });
      });
    });
    if (!first.empty()) all = std::move(first);
  }
  if (all.size() > kMost) all.resize(kMost);
  for (const Departure& one : all) report.line("ledger", departure_text(gang, one));
  if (known || (!all.empty() && all.front().bytes)) return;
  // Whoever waits at an mbarrier is late because of somebody else.
  const MbarrierArray waited = waited_for(gang);
  const auto is_late = [&](const Departure& one) {
    return std::any_of(waited.begin(), waited.end(), [&](const Mbarrier* barrier) {
      return std::any_of(one.missing.begin(), one.missing.end(),
                         [&](const PhaseParty& party) { return waits_for(party, *barrier); });
    });
  };
  const auto one = std::find_if(all.begin(), all.end(), [&](const Departure& departure) {
    return departure.partial || !is_late(departure) || comes_first(departure, all);
  });
  if (one == all.end()) {
    explain_arrivers_elsewhere(report, gang);
    return;
  }
  report.missing("the arrival of {} at {}{}", names_of(one->missing, *one->barrier->cta),
                 name_mbarrier(*one->barrier),
                 one->partial    ? std::string()
                 : is_late(*one) ? ", before the wait for what comes only after it"
                                 : ended_out_of_turn(gang, *one->barrier));
}

void explain_odd_phase(Report& report, const Mbarrier& barrier) {
  if (!has_completed(barrier)) return;
  const std::optional<UsualPhase> usual = usual_phase(barrier, true);
  if (!usual) return;
  const PhaseParties last = parties_of(barrier.previous_events);
  const PhaseParties more = too_often(last, usual->parties);
  const PhaseParties missing = difference(usual->parties, last);
  if (more.empty() || missing.empty()) return;
  report.line("ledger", "{}. Phase {} of {} was ended by {}, and without {}",
              usual_text(*usual, *barrier.cta), barrier.phase - 1, name_mbarrier(barrier),
              who_arrives(last, *barrier.cta), names_of(missing, *barrier.cta));
}

void explain_odd_arrival(Report& report, const Mbarrier& barrier, const Thread& thread, Where where) {
  const std::optional<UsualPhase> usual = usual_phase(barrier);
  if (!usual) return;
  PhaseParties here = parties_of(barrier.events);
  add_arrival(here, {thread.cta->key, static_cast<std::uint32_t>(thread.warp()), false, 0, where, nullptr});
  const PhaseParties more = too_often(here, usual->parties);
  if (more.empty()) return;
  report.line("ledger", "{}. In phase {} of {}, {} has arrived {} times", usual_text(*usual, *barrier.cta),
              barrier.phase, name_mbarrier(barrier), names_of(more, *barrier.cta), more.front().times);
}

}  // namespace emulator
