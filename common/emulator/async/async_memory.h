// What the asynchronous engines of Hopper (copy engine, tensor cores) have in common: how their accesses are
// stamped, what a proxy fence covers, and the history of the shared memory that they touch.
//
// An engine's accesses are ordered by completion, not by program order, so they carry stamps of their own: an
// *agent* (a warpgroup's wgmma, the loads that signal one mbarrier, one thread's bulk stores) counts its own
// time, and a thread that observes a completion (wait_group, a successful mbarrier wait) adds the agent's
// time to its clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine/machine.h"
#include "emulator/memory/shared_space.h"

namespace emulator {

/// Set in Cell::pending by the engines here; cp.async numbers its operations below it.
inline constexpr std::uint32_t kHopperPending = 1u << 31;

enum class AgentKind : std::uint8_t {
  kWgmma,            // object: warpgroup; time: number of its instructions
  kMultiplications,  // tcgen05.mma, .cp, .shift. object: issuing thread; time: number of its operations
  kCommits,          // object: index of the mbarrier; time: number of the tcgen05.commit that arrives there
  kLoads,            // object: index of the mbarrier; time: phase + 1
  kCopies,           // the cp.async copies that arrive at it; they write through the generic proxy
  kRemote,           // the st.async stores that signal it; they do, too
  kStoreReads,       // object: thread; time: its bulk group. Its reads of shared memory
  kStoreWrites,      // the same group's writes of global memory
};

struct Agent {
  AgentKind kind;
  std::uint32_t object;
};

/// The agents of a CTA share the key kAgentKey | Cta::key; the thread field of a stamp is the agent's number.
Stamp agent_stamp(const Cta& cta, std::uint32_t agent, std::uint32_t time);
inline bool is_agent(Stamp stamp) {
  return stamp_cta(stamp) >= kAgentKey;
}

/// Whether the access stamped so happened before what `thread` does now.
bool knows(const Thread& thread, Stamp stamp);
/// Whether it is at least over, so that a copy issued by `thread` may overwrite the bytes.
inline bool knows_over(const Thread& thread, Stamp stamp) {
  return knows(thread, stamp) || thread.execution.covers(stamp);
}

/// The times at which one thread executed fences of one kind, ascending.
using FenceTimes = std::vector<std::uint32_t>;
/// Executes a fence: everything that the thread did before has a time up to the one recorded.
void record_fence(FenceTimes& times, Thread& thread);
/// The first fence at or after `time`, or 0.
std::uint32_t first_fence(const FenceTimes& times, std::uint32_t time);

inline unsigned cells_of(const Line& line) {
  return 16u >> line.granule_log2();
}

/// One more reader, an agent. Later accesses must know its stamp.
void add_another_async_reader(Cell& cell, Stamp stamp, Where where, const Thread& issuer);
inline void add_async_reader(Cell& cell, Stamp stamp, Where where, const Thread& issuer) {
  if (cell.readers == 0 || cell.first.stamp >> 32 == stamp >> 32) {
    // The first, or a later time of the same agent: knowing it implies the earlier ones.
    cell.first = {stamp, where.packed()};
    cell.readers = std::max<std::uint16_t>(cell.readers, 1);
  } else {
    add_another_async_reader(cell, stamp, where, issuer);
  }
}

/// A tile with a swizzle starts at `offset`: remembers the first that does not start where the pattern of the
/// swizzle does, for the diagnosis of a wrong result.
void note_misaligned_tile(const char* what, const Cta& cta, std::uint32_t offset, std::uint32_t span,
                          Where where);
inline void note_swizzle_start(const char* what, const Cta& cta, std::uint32_t offset, std::int64_t span,
                               bool swizzled, Where where) {
  constexpr std::uint32_t kRows = 8;  // after which the pattern repeats
  const auto bytes = static_cast<std::uint32_t>(span);
  if (swizzled && offset / bytes % kRows != 0) note_misaligned_tile(what, cta, offset, bytes, where);
}
/// The sentence about it, and forgets it. Empty where there is none.
std::string take_misaligned_tile();

/// A bulk store moves nothing, because its box lies wholly outside of its tensor.
void note_outside_store(const char* what, const std::string& box, const Thread& thread, Where where);
/// The sentence about all of them, and forgets them. Empty where there is none.
std::string take_outside_stores();
/// A load brings zeros alone: its box lies more than a tile behind the end of its tensor.
void note_outside_load(const char* what, const std::string& box, const Thread& thread, Where where);
/// The box of a load begins behind the last row of a table (scales, say), whatever its column is.
void note_outside_row(const char* what, const std::string& box, const Thread& thread, Where where);
/// A bulk load overwrites what another one has brought to `offset` and what nobody has read: so many bytes of
/// that box.
void note_unread(const Cta& cta, std::uint32_t offset, std::uint32_t bytes, const std::string& box);
/// What a tensor map says cannot be so: a sentence without its full stop. The first is kept.
void note_map_fault(const std::string& sentence);
std::string take_outside_loads();
/// `by` has cancelled the cluster of so many CTAs that `first` begins.
void note_cancelled(uint3 first, std::size_t ctas, uint3 by);
std::string take_cancelled();

/// "shared memory + 0x400 of CTA (0,0,0)".
std::string name_shared_offset(const Cta& cta, std::uint32_t offset);

}  // namespace emulator
