// One flag that the wrappers of plain loads and stores look at: somebody wants to know of them.
#pragma once

#include <atomic>
#include <cstdint>

#include "emulator/machine/where.h"

namespace emulator {

inline constexpr unsigned kTimelineAttention = 1;  // a timeline is recorded
inline constexpr unsigned kWatchAttention = 2;     // a thread has not given way for long: see watchdog.h

inline std::atomic<unsigned> attention_flags{0};
inline bool attention() {
  return attention_flags.load(std::memory_order_relaxed) != 0;
}

/// A plain load, after it was checked; a plain store, before the memory holds the new bytes.
void attend_load(bool global, const void* address, unsigned bytes, Where where);
void attend_store(bool global, void* address, const void* value, unsigned bytes, Where where);

}  // namespace emulator
