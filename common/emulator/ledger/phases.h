// Who has ended the phases of an mbarrier so far: the part of the ledger that is always kept, as it is small.
// Reports compare a phase with it (report/causes/departures.h).
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/where.h"

namespace emulator {

/// A warp that arrives in a phase, itself or by tcgen05.commit.
struct PhaseParty {
  std::uint32_t cta = 0;  // key
  std::uint32_t warp = 0;
  bool commits = false;
  std::uint32_t times = 0;
  Where where;                 // of its first arrival in the phase
  const char* role = nullptr;  // of its latest wait then, if it said

  bool is_same_warp(const PhaseParty& other) const {
    return cta == other.cta && warp == other.warp && commits == other.commits;
  }
};
using PhaseParties = std::vector<PhaseParty>;  // in order of CTA and warp

/// Whether the same warps arrive, as often.
bool is_alike(const PhaseParties& one, const PhaseParties& other);
/// Counts one more arrival.
void add_arrival(PhaseParties& parties, const PhaseParty& arrival);

/// The completed phases of an mbarrier.
struct PhaseHistory {
  struct Kind {
    PhaseParties parties;
    std::uint64_t phases = 0;
  };
  std::vector<Kind> kinds;        // the first few that differ
  std::uint64_t phases = 0;       // of all kinds
  std::uint64_t least_bytes = 0;  // expected in a phase
  std::uint64_t most_bytes = 0;
  void add(PhaseParties&& parties, std::uint64_t bytes);
};

}  // namespace emulator
