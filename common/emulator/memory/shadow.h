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
  std::uint64_t where;  // kAtomicBit marks an atomic load
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
/// smaller access arrives, so that most accesses look at one cell. The copy engine and the tensor cores touch
/// 16 bytes at a time: their only cell lies beside the state, in one line of the host's cache.
struct alignas(64) Line {
  /// tag << 8 | lock << 5 | slow << 4 | log2(granule bytes). The tag names the CTA (or launch) whose history
  /// this is: a line with another tag is empty, so nothing is ever cleared. `slow` sends every access to the
  /// general path.
  std::atomic<std::uint64_t> state;
  Cell* fine;  // 16 cells for granules below 16 bytes; set with the first of them
  Cell whole;  // the cell of a granule of 16 bytes

  static constexpr std::uint64_t kSlowBit = 16;
  static constexpr std::uint64_t kLockBit = 32;  // global memory only: CTAs run on several OS threads
  static constexpr unsigned kWholeLog2 = 4;
  std::uint64_t tag() const { return state.load(std::memory_order_relaxed) >> 8; }
  unsigned granule_log2() const { return state.load(std::memory_order_relaxed) & 15u; }
  Cell* cells() { return granule_log2() == kWholeLog2 ? &whole : fine; }
  const Cell* cells() const { return granule_log2() == kWholeLog2 ? &whole : fine; }
  /// Shared memory only: the CTAs of a gang run on one OS thread.
  void set_slow(bool slow) {
    const std::uint64_t now = state.load(std::memory_order_relaxed);
    state.store(slow ? now | kSlowBit : now & ~kSlowBit, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Line) == 64);

/// The lines of a range of memory, and room for the cells of each. Mapped, so that what no access touches
/// costs nothing.
class LineTable {
 public:
  LineTable() = default;
  explicit LineTable(std::size_t lines);
  void release();

  explicit operator bool() const { return lines_ != nullptr; }
  Line& operator[](std::size_t index) const { return lines_[index]; }
  bool contains(const Line& line) const { return &line >= lines_ && &line < lines_ + count_; }
  std::size_t index(const Line& line) const { return static_cast<std::size_t>(&line - lines_); }
  /// Where line `index` keeps the cells of granules below 16 bytes.
  Cell* fine(std::size_t index) const { return fine_ + 16 * index; }

 private:
  Line* lines_ = nullptr;
  Cell* fine_ = nullptr;
  std::size_t count_ = 0;
};

/// Of atomics, kAtomic reads and writes.
enum class Access : std::uint8_t { kRead, kWrite, kAtomic, kAtomicLoad, kAtomicStore };

/// A range of addresses with its lines. `fast_bytes` is its size rounded down to whole lines: the inline path
/// needs no further bounds check, the general path looks at `bytes`.
struct Window {
  std::uintptr_t begin = 0;
  std::size_t fast_bytes = 0;
  std::size_t bytes = 0;
  LineTable lines;
};

}  // namespace emulator
