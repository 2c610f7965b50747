#include "emulator/ledger/phases.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace emulator {

bool is_alike(const PhaseParties& one, const PhaseParties& other) {
  return std::equal(
      one.begin(), one.end(), other.begin(), other.end(),
      [](const PhaseParty& a, const PhaseParty& b) { return a.is_same_warp(b) && a.times == b.times; });
}

void add_arrival(PhaseParties& parties, const PhaseParty& arrival) {
  const auto before = [](const PhaseParty& a, const PhaseParty& b) {
    return std::tie(a.cta, a.warp, a.commits) < std::tie(b.cta, b.warp, b.commits);
  };
  const auto at = std::lower_bound(parties.begin(), parties.end(), arrival, before);
  const bool is_known = at != parties.end() && at->is_same_warp(arrival);
  ++(is_known ? *at : *parties.insert(at, arrival)).times;
}

void PhaseHistory::add(PhaseParties&& parties, std::uint64_t bytes) {
  constexpr std::size_t kMost = 4;
  least_bytes = phases == 0 ? bytes : std::min(least_bytes, bytes);
  most_bytes = std::max(most_bytes, bytes);
  ++phases;
  for (Kind& kind : kinds) {
    if (!is_alike(kind.parties, parties)) continue;
    ++kind.phases;
    return;
  }
  if (kinds.size() < kMost) kinds.push_back({std::move(parties), 1});
}

}  // namespace emulator
