// What the running thread's loads and stores need at hand, and their inline paths.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/machine/where.h"
#include "emulator/memory/device_memory.h"
#include "emulator/memory/shadow.h"

namespace emulator {

struct Thread;

/// Of the OS thread; the scheduler updates it when it switches to another emulated thread.
struct Context {
  Stamp now = 0;           // what an access of the running thread is stamped with
  Stamp writes_as = 0;     // not 0: what its writes to global memory are stamped with instead, an agent's
  std::uint32_t base = 0;  // accesses of the same CTA with a time below it are ordered before
  std::uint64_t tag = 0;   // of the CTA's lines, shifted left by 8
  Window dynamic_shared;
  Window static_shared;
  Thread* thread = nullptr;  // nullptr: host code
  bool counters = false;
  const void* first_load =
      nullptr;  // from global memory, by the running thread; not yet stored in shared memory
  const void* last_load = nullptr;
  // Those of them that the thread's stores to shared memory since the last barrier have put there.
  const void* first_stored = nullptr;
  const void* last_stored = nullptr;
};
/// Not inline: a kernel's file has no thread-local variables but its own, which are __shared__ (symbols.h).
extern constinit thread_local Context context;

inline void note_load(const void* global) {
  Context& c = context;
  if (!c.first_load) c.first_load = global;
  c.last_load = global;
}

/// The general paths: bounds, alignment, races, initialisation, pending asynchronous operations. They report
/// and never return when a rule is broken.
void check_shared(const void* address, unsigned bytes, Access access, Where where);
void check_global(const void* address, unsigned bytes, Access access, Where where);
/// The latest read of global memory that was reported because nothing had been written there.
struct UnwrittenRead {
  std::uintptr_t address = 0;
  unsigned bytes = 0;
  Where where;
};
UnwrittenRead latest_unwritten_read();
/// The compiler tells of a store before the value is there. What the running thread has stored is looked at
/// before it goes on, for two reasons. Lanes of a warp may store the same value in the same bytes with one
/// instruction (CUDA C++ Programming Guide: which of the stores is the last one is undefined). And no thread
/// may store what it has copied from a register that wgmma or tcgen05.ld is still writing.
extern constinit thread_local bool store_is_open;
void settle_store();
/// The running thread, which may hold such a register, is about to store there.
void note_store(std::uintptr_t address, unsigned bytes, Where where);
/// The running thread has accessed its CTA's shared memory through volatile: reports warp-synchronous code,
/// in which a lane reads what other lanes of its warp store without a __syncwarp.
void note_volatile_shared(const void* pointer, bool is_load, Where where);
/// Remembers one more reader of the cell.
void add_reader(Cell& cell, Where where);
/// Whether every reader since the last write is ordered before the running thread.
bool readers_ordered(const Cell& cell);
void count_shared(const void* address, unsigned bytes, Access access, Where where);
void count_global(const void* address, unsigned bytes, Access access, Where where);

inline bool same_cta_before(Stamp stamp, const Context& c) {
  const Stamp difference = stamp ^ c.now;
  return (difference >> 42) == 0 && (static_cast<std::uint32_t>(stamp) < c.base || (difference >> 32) == 0);
}

/// Finds the cell when the access is the ordinary case: aligned, in a known window, in a line of this CTA
/// whose granule is the size of the access.
template <unsigned kLog2>
inline Cell* fast_cell(std::uintptr_t address, const Context& c) {
  if ((address & ((1u << kLog2) - 1)) != 0) return nullptr;
  const Window* window = &c.dynamic_shared;
  std::uintptr_t offset = address - window->begin;
  if (offset >= window->fast_bytes) {
    window = &c.static_shared;
    offset = address - window->begin;
    if (offset >= window->fast_bytes) return nullptr;
  }
  Line& line = window->lines[offset >> 4];
  if (line.state.load(std::memory_order_relaxed) != (c.tag | kLog2)) return nullptr;
  if constexpr (kLog2 == Line::kWholeLog2) return &line.whole;
  return &line.fine[(offset & 15) >> kLog2];
}

template <unsigned kLog2>
inline void shared_read(const void* address, Where where) {
  const Context& c = context;
  if (c.counters) [[unlikely]]
    count_shared(address, 1u << kLog2, Access::kRead, where);
  Cell* cell = fast_cell<kLog2>(reinterpret_cast<std::uintptr_t>(address), c);
  if (!cell || !same_cta_before(cell->write, c)) [[unlikely]] {
    return check_shared(address, 1u << kLog2, Access::kRead, where);
  }
  if (cell->first.stamp == c.now && cell->readers != 0) return;
  // Readers of before the last barrier are all ordered before whatever comes now.
  if (cell->readers == 0 || same_cta_before(cell->first.stamp, c)) {
    if (cell->readers <= 1 || static_cast<std::uint32_t>(cell->first.stamp) < c.base) {
      cell->first = {c.now, where.packed()};
      cell->readers = 1;
      return;
    }
  }
  add_reader(*cell, where);
}

/// What the thread has loaded goes to shared memory now.
inline void note_stored(Context& c) {
  if (!c.first_stored) c.first_stored = c.first_load;
  c.last_stored = c.last_load;
  c.first_load = nullptr;
}

template <unsigned kLog2>
inline void shared_write(void* address, Where where) {
  Context& c = context;
  if (c.first_load) note_stored(c);
  if (c.counters) [[unlikely]]
    count_shared(address, 1u << kLog2, Access::kWrite, where);
  Cell* cell = fast_cell<kLog2>(reinterpret_cast<std::uintptr_t>(address), c);
  if (!cell || !same_cta_before(cell->write, c)) [[unlikely]] {
    return check_shared(address, 1u << kLog2, Access::kWrite, where);
  }
  if (cell->readers != 0) {
    const bool all_old = same_cta_before(cell->first.stamp, c) &&
                         (cell->readers == 1 || static_cast<std::uint32_t>(cell->first.stamp) < c.base);
    if (!all_old && !readers_ordered(*cell)) [[unlikely]] {
      return check_shared(address, 1u << kLog2, Access::kWrite, where);
    }
    cell->readers = 0;
  }
  cell->write = c.now;
  cell->write_where = where.packed();
}

template <unsigned kLog2>
inline void global_read(const void* address, Where where) {
  const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(address);
  if (context.counters) [[unlikely]]
    count_global(address, 1u << kLog2, Access::kRead, where);
  const std::uintptr_t slot = (value - device_space.begin) >> kSlotLog2;
  if (slot < device_space.slots && (value & ((1u << kLog2) - 1)) == 0) [[likely]] {
    const Buffer* buffer = device_space.buffers[slot];
    if (buffer && value - buffer->begin < buffer->fast_bytes(kLog2) &&
        buffer->plain.load(std::memory_order_relaxed)) [[likely]]
      return;
  }
  check_global(address, 1u << kLog2, Access::kRead, where);
}

template <unsigned kLog2>
inline void global_write(void* address, Where where) {
  if (context.counters) [[unlikely]]
    count_global(address, 1u << kLog2, Access::kWrite, where);
  check_global(address, 1u << kLog2, Access::kWrite, where);
}

}  // namespace emulator
