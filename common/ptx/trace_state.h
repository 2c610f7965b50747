// What a role of a CTA is doing: the states of a timeline. Shared by the GPU and the emulator.
#pragma once

#include <cstdint>

#include "ptx/wait_info.h"

namespace ptx {

/// A record says: from this time on the role does this. The state lasts until the role's next record.
enum class TraceState : std::uint8_t {
  kNone,       // what the timeline shows as a gap
  kWaitFull,   // for a k-tile to arrive
  kWaitEmpty,  // for a stage to be free
  kWaitTurn,   // for the other consumer (step 17)
  kIssue,      // starts copies
  kFill,       // vectors of a k-tile go to shared memory: cp.async, or st.shared, which waits for its loads
  kCommit,     // the end of an issue with cp.async
  kMultiply,
  kDrain,      // waits for the last multiplications of a tile
  kEpilogue,   // rounds, writes to shared memory
  kWaitStore,  // for a TMA store to have read its buffer
  kStore,      // writes to global memory, or starts TMA stores
  kPass,       // leaves sums for another CTA, or takes them (step 18)
};

/// What a wait on an mbarrier is, by the name of the barrier.
constexpr TraceState wait_state(const WaitInfo& info) {
  if (info.barrier[0] == 'f') return TraceState::kWaitFull;
  if (info.barrier[0] == 'e' && info.barrier[1] == 'm') return TraceState::kWaitEmpty;
  return TraceState::kWaitTurn;
}

/// 16 bytes, as a kernel writes them.
struct TraceRecord {
  std::uint32_t clock = 0;  // of the SM, its lower half
  TraceState state = TraceState::kNone;
  std::uint8_t role = 0;  // the first letter of WaitInfo::role, or 0
  std::int16_t stage = -1;
  std::int32_t k_tile = -1;
  std::uint32_t unused = 0;
};

/// One role of one CTA; the first warp of a warpgroup speaks for it.
inline constexpr int kTraceRoles = 8;         // warpgroups of a CTA
inline constexpr int kTraceRecords = 1 << 13;  // of a role; what comes later is dropped

}  // namespace ptx
