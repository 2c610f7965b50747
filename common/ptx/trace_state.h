// What a role of a CTA is doing: the states of a timeline. Shared by the GPU and the emulator.
#pragma once

#include <cstdint>

#include "ptx/wait_info.h"

namespace gemm::ptx {

/// A record says: from this time on the role does this. The state lasts until the role's next record.
enum class TraceState : std::uint8_t {
  kNone,       // what the timeline shows as a gap
  kWaitFull,   // for a k-tile to arrive
  kWaitEmpty,  // for a stage to be free
  kWaitOrder,  // for the other consumer group (step 17), for an accumulator (step 73)
  kIssue,      // issues copies
  kFill,       // vectors of a k-tile go to shared memory: cp.async, or st.shared, which waits for its loads
  kCommit,     // the end of an issue with cp.async
  kMultiply,
  kDrain,       // waits for the last multiplications of a tile
  kEpilogue,    // rounds, writes to shared memory
  kWaitStore,   // for a TMA store to have read its buffer
  kStore,       // writes to global memory, or issues TMA stores
  kPass,        // stores partials for another CTA, or adds those of its peers (step 18)
  kWaitSource,  // for a subtile of C to arrive (step 30)
};

/// What a wait on an mbarrier is, by the name of the barrier.
constexpr TraceState wait_state(const WaitInfo& info) {
  if (info.barrier[0] == 'd' && info.barrier[1] == 'o') return TraceState::kDrain;  // "done": tcgen05.commit
  if (info.barrier[0] == 'f') return TraceState::kWaitFull;
  if (info.barrier[0] == 'e' && info.barrier[1] == 'm') return TraceState::kWaitEmpty;
  if (info.barrier[0] == 's') return TraceState::kWaitSource;
  return TraceState::kWaitOrder;
}

struct TraceRecord {
  TraceState state = TraceState::kNone;
  char role = 0;   // the first letter of WaitInfo::role, or 0
  int stage = -1;  // kMultiply: how deep along K, if not a k-tile
  int k_tile = -1;
};

// A kernel writes 8 bytes: the SM's clock (its lower half) and this word: 4 bits state, 3 role, 8 stage, 17
// k-tile; all ones: none.
constexpr std::uint32_t trace_word(const TraceRecord& record) {
  const std::uint32_t role = record.role == 0     ? 0
                             : record.role == 'p' ? 1  // producer
                             : record.role == 'c' ? 2  // consumer
                             : record.role == 'i' ? 3  // issuer
                             : record.role == 'e' ? 4  // epilogue
                                                  : 5;
  return static_cast<std::uint32_t>(record.state) | role << 4 |
         (static_cast<std::uint32_t>(record.stage) & 0xff) << 7 |
         static_cast<std::uint32_t>(record.k_tile) << 15;
}
constexpr TraceRecord trace_record(std::uint32_t word) {
  constexpr char kRoles[] = {0, 'p', 'c', 'i', 'e', '?', '?', '?'};
  const int stage = static_cast<int>(word >> 7 & 0xff);
  const int k_tile = static_cast<int>(word >> 15);
  return {static_cast<TraceState>(word & 15), kRoles[word >> 4 & 7], stage == 0xff ? -1 : stage,
          k_tile == 0x1ffff ? -1 : k_tile};
}

}  // namespace gemm::ptx
