// How a phase of an mbarrier departs from the ledger that the kernel has followed so far: from the completed
// phases of the same mbarrier and of its array, of the same mbarrier in other CTAs, or of launches that came
// to their end. Nothing is said where these phases do not agree with each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/async/hopper.h"
#include "emulator/ledger/phases.h"
#include "emulator/report/report.h"

namespace emulator {

/// The warps that arrive in a phase.
PhaseParties parties_of(const std::vector<Mbarrier::Event>& events);
/// Remembers the phases of the mbarriers of a gang that came to its end, for reports of later ones.
void remember_phases(const Gang& gang);

/// What completed phases have in common.
struct UsualPhase {
  PhaseParties parties;
  std::string phases;       // "in all 14 completed phases of the 4 mbarriers empty[]"
  std::uint64_t bytes = 0;  // expected in each, or 0 where that differs
};
/// `latest`: the latest completed phase is left out, as it is the one to compare with them.
std::optional<UsualPhase> usual_phase(const Mbarrier& barrier, bool latest = false);

/// "warp 0 waits at ... for mbarrier full[1], and warp 4 has returned". `home`: the CTA that needs no name.
std::string whereabouts(const Gang& gang, const PhaseParties& parties, const Cta& home);

/// Threads wait for phases that lack an arrival or bytes that all phases before had. `known`: what is missing
/// has been said.
void explain_departures(Report& report, const Gang& gang, bool known);
/// The latest completed phase of the mbarrier was ended by arrivals of which the phases before had fewer.
void explain_odd_phase(Report& report, const Mbarrier& barrier);
/// The thread arrives in the present phase, and not for the first time, as it did in all phases before.
void explain_odd_arrival(Report& report, const Mbarrier& barrier, const Thread& thread, Where where);

}  // namespace emulator
