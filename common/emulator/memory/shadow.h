// What the emulator remembers about every byte of shared memory, and of global memory that kernels write: the
// last write, the reads since, whether an asynchronous copy is on its way to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emulator/machine/where.h"
#include "emulator/memory/happens_before.h"

namespace emulator {

struct Reader {
  Stamp stamp;
  std::uint64_t where;
};

/// The history of one granule. Everything else is derived from these two questions: is the last write ordered
/// before me, and are all reads since then?
struct Cell {
  Stamp write;                // 0: not written since the CTA (shared) or the launch (global) began
  std::uint64_t write_where;  // Where::packed; kAtomicBit marks an atomic access
  Reader first;               // the readers since the last write; with more than one, the rest is in `more`
  Reader* more;
  std::uint16_t readers;
  std::uint16_t capacity;  // of `more`
  std::uint32_t pending;   // the asynchronous operation that will write here, or 0
};
static_assert(sizeof(Cell) == 48);

/// User-space addresses end below 2^47, so the top bit of a packed Where is free.
inline constexpr std::uint64_t kAtomicBit = std::uint64_t{1} << 63;

/// The cells of 16 bytes. A line starts with granules of the size of its first access and splits them when a
/// smaller access arrives, so that most accesses look at one cell.
struct Line {
  /// tag << 8 | slow << 4 | log2(granule bytes). The tag names the CTA (or launch) whose history this is: a
  /// line with another tag is empty, so nothing is ever cleared. `slow` sends every
  /// access to the general path.
  std::atomic<std::uint64_t> state;
  std::atomic<std::uint32_t> lock;  // global memory only: CTAs run on several OS threads
  std::uint32_t unused;
  Cell cells[16];

  static constexpr std::uint64_t kSlowBit = 16;
  std::uint64_t tag() const { return state.load(std::memory_order_relaxed) >> 8; }
  unsigned granule_log2() const { return state.load(std::memory_order_relaxed) & 15u; }
};
static_assert(sizeof(Line) == 784);

enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

/// A range of addresses with its lines. `fast_bytes` is its size rounded down to whole lines: the inline path
/// needs no further bounds check, the general path looks at `bytes`.
struct Window {
  std::uintptr_t begin = 0;
  std::size_t fast_bytes = 0;
  std::size_t bytes = 0;
  Line* lines = nullptr;
};

}  // namespace emulator
