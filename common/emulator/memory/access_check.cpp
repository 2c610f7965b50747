// The general path of every memory access: bounds, alignment, history, races.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "emulator/async/cp_async.h"
#include "emulator/async/hopper.h"
#include "emulator/machine/context.h"
#include "emulator/machine/gang_notes.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/poison.h"
#include "emulator/machine/ranks.h"
#include "emulator/memory/atomics.h"
#include "emulator/memory/faults.h"
#include "emulator/memory/remote_accesses.h"
#include "emulator/memory/shared_space.h"
#include "emulator/report/causes/byte_counts.h"
#include "emulator/report/causes/groups.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/causes/passed_phases.h"
#include "emulator/report/causes/races.h"
#include "emulator/report/counters.h"
#include "emulator/report/member_names.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "emulator/sync/dependent_launch.h"

namespace emulator {
namespace {

constexpr std::size_t kMaxReaders = 8192;  // per granule; beyond that the oldest half is forgotten

const char* verb(Access access) {
  return access == Access::kRead ? "read" : access == Access::kWrite ? "write" : "atomic access";
}

std::string one(Access access) {
  return fmt::format("{} {}", access >= Access::kAtomic ? "an" : "a", verb(access));
}

bool writes(Access access) {
  return access != Access::kRead && access != Access::kAtomicLoad;
}
bool reads(Access access) {
  return access != Access::kWrite && access != Access::kAtomicStore;
}

bool ordered(Stamp stamp, const Thread& thread) {
  return same_cta_before(stamp, context) || thread.clock.covers(stamp);
}

/// An earlier access that forbids the present one.
struct Conflict {
  enum Kind { kNone, kRace, kPending } kind = kNone;
  Stamp held = 0;  // the write whose bytes are there
  std::uint64_t held_where = 0;
  Access earlier = Access::kRead;
  Stamp stamp = 0;
  std::uint64_t where = 0;
  std::uint32_t pending = 0;
};

void append_reader(Cell& cell, Reader reader, Arena& arena) {
  if (cell.readers == 0) {
    cell.first = reader;
    cell.readers = 1;
    return;
  }
  const std::size_t more = cell.readers - 1u;
  if (more > 0 ? cell.more[more - 1].stamp == reader.stamp : cell.first.stamp == reader.stamp) return;
  if (more == cell.capacity) {
    std::size_t kept = more;
    if (more >= kMaxReaders) {
      // A thread that has read the granule twice counts once, with its later time.
      std::sort(cell.more, cell.more + more,
                [](const Reader& a, const Reader& b) { return a.stamp < b.stamp; });
      kept = 0;
      for (std::size_t i = 0; i < more; ++i) {
        if (i + 1 < more && cell.more[i + 1].stamp >> 32 == cell.more[i].stamp >> 32) continue;
        cell.more[kept++] = cell.more[i];
      }
      if (kept > kMaxReaders / 2) {
        std::memmove(cell.more, cell.more + kept / 2, (kept - kept / 2) * sizeof(Reader));
        kept -= kept / 2;
      }
    } else {
      const std::size_t capacity = std::max<std::size_t>(8, 2 * more);
      auto* grown = static_cast<Reader*>(arena.allocate(capacity * sizeof(Reader)));
      if (more > 0) std::memcpy(grown, cell.more, more * sizeof(Reader));
      cell.more = grown;
      cell.capacity = static_cast<std::uint16_t>(capacity);
    }
    cell.readers = static_cast<std::uint16_t>(kept + 1);
  }
  cell.more[cell.readers - 1u] = reader;
  ++cell.readers;
}

/// The line, with granules of at most 2^log2 bytes.
Line& refined_line(const LineTable& lines, std::size_t index, std::uint64_t tag, unsigned log2) {
  Line& line = lines[index];
  const std::uint64_t state = line.state.load(std::memory_order_relaxed);
  const bool fresh = state >> 8 != tag;
  const unsigned old = state & 15u;
  if (!fresh && old <= log2) return line;
  if (log2 < Line::kWholeLog2) line.fine = lines.fine(index);
  Cell* cells = log2 < Line::kWholeLog2 ? line.fine : &line.whole;
  if (fresh) {
    std::memset(static_cast<void*>(cells), 0, sizeof(Cell) * (16u >> log2));
    line.state.store(tag << 8 | (state & Line::kLockBit) | log2, std::memory_order_relaxed);
    return line;
  }
  const unsigned factor = 1u << (old - log2);
  const Cell* coarse = line.cells();
  for (unsigned i = 16u >> old; i-- > 0;) {
    Cell cell = coarse[i];
    // The parts share the list of readers from now on, so the next one to add must copy it.
    if (cell.readers > 1) cell.capacity = static_cast<std::uint16_t>(cell.readers - 1);
    for (unsigned part = 0; part < factor; ++part) cells[i * factor + part] = cell;
  }
  line.state.store((state & ~std::uint64_t{15}) | log2, std::memory_order_relaxed);
  return line;
}

/// Whether an atomic access that is ordered before this one has read what the last write left there. An
/// atomic write comes before what is behind such a read, whether it releases or not (PTX ISA, "Causality
/// Order": an operation precedes what is behind a read that observes it).
bool observed(const Cell& cell, const Thread& thread) {
  for (std::size_t i = 0; i < cell.readers; ++i) {
    const Reader& reader = i == 0 ? cell.first : cell.more[i - 1];
    if ((reader.where & kAtomicBit) != 0 && ordered(reader.stamp, thread)) return true;
  }
  return false;
}

Conflict find_conflict(const Cell& cell, Access access, const Thread& thread) {
  const bool atomic_write = (cell.write_where & kAtomicBit) != 0;
  const bool atomic = access >= Access::kAtomic;
  if (cell.write != 0 && !(atomic && atomic_write) && !ordered(cell.write, thread) &&
      !(atomic_write && observed(cell, thread))) {
    return {.kind = Conflict::kRace,
            .earlier = atomic_write ? Access::kAtomic : Access::kWrite,
            .stamp = cell.write,
            .where = cell.write_where & ~kAtomicBit};
  }
  // Ordered behind the issue of a copy is not yet behind the copy.
  if (cell.pending != 0) return {.kind = Conflict::kPending, .pending = cell.pending};
  if (!writes(access)) return {};
  for (std::size_t i = 0; i < cell.readers; ++i) {
    const Reader& reader = i == 0 ? cell.first : cell.more[i - 1];
    const bool atomic_read = (reader.where & kAtomicBit) != 0;
    if (!(atomic && atomic_read) && !ordered(reader.stamp, thread)) {
      return {.kind = Conflict::kRace,
              .earlier = atomic_read ? Access::kAtomic : Access::kRead,
              .stamp = reader.stamp,
              .where = reader.where & ~kAtomicBit};
    }
  }
  return {};
}

void record(Cell& cell, Access access, Where where, Arena& arena) {
  const Stamp now = context.now;
  if (access == Access::kRead) {
    const bool ordinary = same_cta_before(cell.first.stamp, context) &&
                          (cell.readers == 1 || static_cast<std::uint32_t>(cell.first.stamp) < context.base);
    if (cell.readers == 0 || ordinary) {
      cell.first = {now, where.packed()};
      cell.readers = 1;
    } else {
      append_reader(cell, {now, where.packed()}, arena);
    }
    return;
  }
  if (access == Access::kAtomicLoad) {
    // A poll counts once, with its later time.
    const std::uint64_t marked = where.packed() | kAtomicBit;
    constexpr std::size_t kLatest = 32;
    for (std::size_t i = 0; i < std::min<std::size_t>(cell.readers, kLatest); ++i) {
      Reader& reader = i + 1 == cell.readers ? cell.first : cell.more[cell.readers - 2u - i];
      if (reader.stamp >> 32 != now >> 32) continue;
      const bool own =
          i + 1 == cell.readers || cell.capacity > cell.readers - 1u;  // and not another cell's as well
      if ((reader.where & kAtomicBit) != 0 && own) reader = {now, marked};
      if (reader.stamp == now) return;
    }
    append_reader(cell, {now, marked}, arena);
    return;
  }
  cell.write = context.writes_as != 0 ? context.writes_as : now;
  cell.write_where = where.packed() | (access == Access::kWrite ? 0 : kAtomicBit);
  cell.readers = 0;
}

struct SharedPlace {
  Cta* owner = nullptr;  // whose memory it is; nullptr: outside
  Window window;
  const StaticVariable* variable = nullptr;  // nullptr: dynamic
};

/// The window that contains the address, or one with no bytes. The address of bytes that are not in place
/// becomes that of their place.
SharedPlace locate(std::uintptr_t& address, const Thread& thread, Where where) {
  Gang& gang = *thread.cta->gang;
  gang.static_shared.use_extern_array(address);
  Cta& own = *thread.cta;
  if (address - own.dynamic_window.begin < own.dynamic_window.bytes) return {&own, own.dynamic_window};
  for (const auto& cta : gang.ctas) {
    const Window& window = cta->dynamic_window;
    if (address - window.begin < window.bytes) return {cta.get(), window};
    // Of a CTA whose bytes are not in place (memory/static_shared.h): a pointer from cluster_pointer().
    const std::uintptr_t in_arena = address - reinterpret_cast<std::uintptr_t>(cta->arena);
    if (in_arena < window.bytes) {
      address = window.begin + in_arena;
      return {cta.get(), window};
    }
    const std::uintptr_t inside = address - reinterpret_cast<std::uintptr_t>(cta->static_image.data());
    if (inside >= cta->static_image.size()) continue;
    const std::uint32_t offset = cta->static_begin + static_cast<std::uint32_t>(inside);
    if (const StaticVariable* variable = gang.static_shared.at(offset)) {
      address = variable->address + (offset - variable->offset);
      return {cta.get(), cta->static_window, variable};
    }
  }
  const StaticVariable* variable = gang.static_shared.touch(address, where);
  if (variable) return {&own, own.static_window, variable};
  return {};
}

}  // namespace

Line& refined_shared_line(const Cta& cta, std::uint32_t offset, unsigned log2) {
  const Line& line = shared_line(cta, offset);
  const LineTable& dynamic = cta.dynamic_window.lines;
  const LineTable& lines = dynamic.contains(line) ? dynamic : cta.static_window.lines;
  return refined_line(lines, lines.index(line), cta.tag, log2);
}

const Cta* shared_owner(std::uintptr_t& address, const Thread& thread) {
  if (address - thread.cta->dynamic_window.begin < thread.cta->dynamic_window.bytes) return thread.cta;
  return locate(address, thread, Where()).owner;
}

/// `thread` reads bytes of global memory that `writer` wrote, a thread of a warpgroup of another CTA, over
/// what another warpgroup of that CTA had written there: adds that two results share a slot. False where that
/// is not so.
bool explain_reused_slot(Report& report, const Thread& thread, std::uintptr_t address, Stamp writer,
                         Where written);

namespace {

std::string name_shared(std::uintptr_t address, const SharedPlace& place, const Thread& thread) {
  if (!place.variable) {
    const std::string base = place.owner == thread.cta
                                 ? "dynamic shared memory"
                                 : fmt::format("dynamic shared memory of CTA {}", text(place.owner->id));
    const auto offset = static_cast<std::uint32_t>(address - place.window.begin);
    const std::string member = member_name(*place.owner, offset);
    return member.empty() ? fmt::format("{} + {}", base, offset)
                          : fmt::format("{} ({} + {})", member, base, offset);
  }
  return static_name(*place.owner,
                     place.variable->offset + static_cast<std::uint32_t>(address - place.variable->address));
}

[[noreturn]] void fail_bounds(std::uintptr_t address, unsigned bytes, Access access, Where where,
                              const Thread& thread) {
  const Window& window = thread.cta->dynamic_window;
  std::string relation;
  if (address - window.begin >= kMaxSharedBytes) relation = near_static_shared(address, bytes);
  if (!relation.empty()) {
    Report report("{} of {} bytes lies outside a __shared__ variable", one(access), bytes);
    report.line("where", where.text()).line("by", name_thread(thread)).line("address", relation);
    report.rule("an index must stay inside its array", "CUDA C++ Programming Guide, \"__shared__\"");
    fail("shared-out-of-bounds", report.str());
  }
  if (address >= window.begin && address - window.begin < std::uintptr_t{kMaxSharedBytes} + 4096) {
    relation =
        fmt::format("{} bytes past the end of the {} bytes of dynamic shared memory",
                    address - window.begin - std::min<std::uintptr_t>(window.bytes, address - window.begin),
                    window.bytes);
    if (address - window.begin < window.bytes) {
      relation =
          fmt::format("{} bytes into the {} bytes of dynamic shared memory, its last {} bytes past the end",
                      address - window.begin, window.bytes, address - window.begin + bytes - window.bytes);
    }
  } else if (address < window.begin && window.begin - address < 65536) {
    relation = fmt::format("{} bytes before dynamic shared memory", window.begin - address);
  } else if (find_buffer(address)) {
    relation = "in global memory: " + describe_address(address, bytes);
  } else {
    relation = "not in this CTA's shared memory";
  }
  Report report("{} of {} bytes lies outside shared memory", one(access), bytes);
  report.line("where", where.text()).line("by", name_thread(thread)).line("address", relation);
  report.rule("the address of a shared access must be in the CTA's shared memory",
              "PTX ISA, \"Shared State Space\"");
  fail("shared-out-of-bounds", report.str());
}

/// Of an operand, or of D: which element it is, and how rows that follow each other are aligned.
void explain_pitch(Report& report, const Grid& grid, std::uintptr_t address, unsigned bytes) {
  const std::string element = element_text(grid, address);
  const Buffer* const buffer = find_buffer(address);
  if (element.empty() || buffer == nullptr) return;
  report.line("element", element);
  const bool of_d = buffer->name == "D";
  const int columns = of_d ? grid.options.n : grid.options.k;
  const std::uint64_t pitch = 2 * static_cast<std::uint64_t>(columns);
  if (buffer->begin % bytes != 0) return;
  const std::uint64_t along = (address - buffer->begin) % pitch;
  if (pitch % bytes == 0) {
    report.missing(
        "a column that is a multiple of {}: rows of {} bytes keep the alignment, but {} bytes into a row the "
        "access is not aligned",
        bytes / 2, pitch, along);
    return;
  }
  report.missing(
      "narrower accesses where {} is not a multiple of {}: here it is {}, so rows are {} bytes apart, which "
      "is a multiple of {} but not of {}, and not every row begins at an address aligned to {} bytes",
      of_d ? "N" : "K", bytes / 2, columns, pitch, pitch & (~pitch + 1), bytes, bytes);
}

[[noreturn]] void fail_alignment(const char* space, const std::string& name, std::uintptr_t address,
                                 unsigned bytes, Access access, Where where, const Thread& thread) {
  Report report("{} of {} bytes has a misaligned address", one(access), bytes);
  report.line("where", where.text()).line("by", name_thread(thread));
  report.line("address", "{}, {:#x}: {} bytes off a multiple of {}", name, address, address % bytes, bytes);
  if (space[0] == 'g') explain_pitch(report, thread.cta->gang->grid, address, bytes);
  report.rule("an address must be a multiple of the access size", "PTX ISA, \"Addresses as Operands\"");
  fail(std::string(space) + "-misaligned", report.str());
}

/// Writes of a CTA over what it has written itself: two results in one slot, perhaps.
struct Rewritten {
  Stamp before = 0;
  std::uint64_t where = 0;
  Stamp after = 0;
};
struct RewrittenBytes {
  std::mutex mutex;
  std::uint64_t launch = 0;
  std::unordered_map<std::uintptr_t, Rewritten> lines;  // by address / 16
};
RewrittenBytes& rewritten_bytes() {
  static RewrittenBytes bytes;
  return bytes;
}

void note_rewritten(std::uintptr_t address, const Cell& cell, const Thread& thread) {
  constexpr std::size_t kMost = 1 << 16;
  const std::uint64_t launch = thread.cta->gang->grid.launch;
  RewrittenBytes& bytes = rewritten_bytes();
  const std::lock_guard lock(bytes.mutex);
  if (bytes.launch != launch) {
    bytes.lines.clear();
    bytes.launch = launch;
  }
  if (bytes.lines.size() < kMost)
    bytes.lines[address / 16] = {cell.write, cell.write_where & ~kAtomicBit, context.now};
}

/// Whether the write, of the running thread's CTA, is one that nobody has read.
bool unread_by_own_cta(const Cell& cell) {
  return cell.write != 0 && cell.readers == 0 && cell.write >> 42 == context.now >> 42;
}

/// Of two CTAs that store an element of D in the first columns of a row, one has a tile that hangs over the
/// end of the row above. False where that cannot be.
bool explain_overrun(Report& report, const Grid& grid, std::uintptr_t address,
                     const std::uint32_t (&ctas)[2]) {
  const Options& of = grid.options;
  Buffer* const d = find_buffer(address);
  if (d == nullptr || d->name != "D" || of.n <= 0 || of.tile_m <= 0 || of.tile_n <= 0 || of.n <= of.tile_n ||
      !d->has_lines.load(std::memory_order_acquire))
    return false;
  const auto element = static_cast<std::int64_t>(address - d->begin) / 2;
  const std::int64_t row = element / of.n;
  const std::int64_t column = element % of.n;
  const std::int64_t over = (of.n + of.tile_n - 1) / of.tile_n * of.tile_n - of.n;
  if (row == 0 || column >= over || over == of.tile_n) return false;
  // Whose tile it is has stored, or will store, columns of it that no overrun reaches.
  bool further[2] = {};
  const LineTable& lines = history(*d);
  const std::uintptr_t first_line = d->allocation_begin / 16 * 16;
  const std::int64_t last_row =
      std::min(row / of.tile_m * of.tile_m + of.tile_m, static_cast<std::int64_t>(d->bytes) / 2 / of.n);
  for (std::int64_t r = row / of.tile_m * of.tile_m; r < last_row; ++r) {
    for (std::int64_t c = over; c < of.tile_n; ++c) {
      const std::uintptr_t place = d->begin + 2 * static_cast<std::uintptr_t>(r * of.n + c);
      const Line& line = lines[(place - first_line) / 16];
      if (line.tag() != grid.tag || line.cells() == nullptr) continue;
      const Stamp write = line.cells()[place % 16 >> line.granule_log2()].write;
      for (int i = 0; i < 2; ++i)
        further[i] = further[i] || (write != 0 && (stamp_cta(write) & ~kAgentKey) == ctas[i]);
    }
  }
  if (further[0] && further[1]) return false;
  const bool known = further[0] != further[1];
  const std::string who = known ? fmt::format("CTA {}", name_cta(grid, ctas[further[0] ? 1 : 0]))
                                : std::string("one of the two CTAs");
  report.missing(
      "a bound along N: row {}, column {} is where row {} continues past its end, column {}. The last tile "
      "extends beyond D by {} columns, and {} stores {} of them: store only if the column is below N = {}. "
      "(Alternatively, CTAs {} and {} have the same work tile; each part of D must have one owner)",
      row, column, row - 1, of.n - 1, over, who, known ? "what it has" : "some", of.n,
      name_cta(grid, ctas[0]), name_cta(grid, ctas[1]));
  return true;
}

/// Two threads that store the same element of D.
void explain_second_store(Report& report, const Thread& thread, Stamp first, std::uintptr_t address) {
  const auto warpgroup = [](std::uint32_t index) { return index / kWarpgroupSize; };
  const Grid& grid = thread.cta->gang->grid;
  const std::uint64_t other = stamp_cta(first);
  if (other != thread.cta->key) {
    if (explain_groups(report, grid, address, static_cast<std::uint32_t>(other), thread.cta->key)) return;
    // An overrun is another thread's row of its tile. The same thread of both CTAs has the same work tile.
    if (stamp_thread(first) != thread.index &&
        explain_overrun(report, grid, address, {static_cast<std::uint32_t>(other), thread.cta->key}))
      return;
    report.missing(
        "two CTAs write the same element, {} and {}: each part of D must have one owner, so a work tile must "
        "go to only one CTA",
        name_cta(grid, other), name_cta(*thread.cta));
  } else if (warpgroup(stamp_thread(first)) != warpgroup(thread.index)) {
    report.missing(
        "warpgroups {} and {} both store this element: their rows in the tile overlap, and as many other "
        "rows are stored by no warpgroup",
        warpgroup(stamp_thread(first)), warpgroup(thread.index));
  } else {
    report.missing(
        "two threads of one warpgroup both store this element: each thread must store different elements");
  }
}

/// One access reads, the other writes, what an earlier grid of the chain has written. False where none has.
bool explain_old_value(Report& report, std::uintptr_t address) {
  const std::string written = written_by_grid_before(address);
  if (written.empty()) return false;
  report.line("content", "written at " + written);
  report.missing(
      "a second buffer: this launch overwrites what it reads, and its CTAs run in any order, so no barrier "
      "covers all readers. Read one buffer and write the other, and swap them from launch to launch. (If "
      "this launch's value is meant to be read, the read is too early.)");
  return true;
}

/// Two lanes of one warp race in shared memory: another warp has done at the same place, nearby, what the
/// other lane has. Says so. False where that is not so.
bool add_other_warps(Report& report, const Thread& thread, const Conflict& conflict, std::uintptr_t address) {
  constexpr std::uintptr_t kFarthest = 8192;
  const Cta& cta = *thread.cta;
  const std::uintptr_t place = address - cta.dynamic_window.begin;
  if (place >= cta.dynamic_window.bytes) return false;
  const auto races = [&](Stamp stamp, std::uint64_t where) {
    return stamp != 0 && !is_agent(stamp) && stamp_cta(stamp) == cta.key &&
           stamp_thread(stamp) / kWarpSize != thread.index / kWarpSize &&
           (where & ~kAtomicBit) == conflict.where;
  };
  const std::uintptr_t begin = (place > kFarthest ? place - kFarthest : 0) / 16 * 16;
  const std::uintptr_t end = std::min<std::uintptr_t>(cta.dynamic_window.bytes, place + kFarthest);
  Stamp other = 0;
  std::uintptr_t at = 0;
  for (std::uintptr_t offset = begin; offset < end; offset += 16) {
    const Line& line = cta.dynamic_window.lines[offset / 16];
    if (line.tag() != cta.tag || line.cells() == nullptr) continue;
    const unsigned granule = line.granule_log2();
    for (unsigned i = 0; i < 16u >> granule; ++i) {
      const Cell& cell = line.cells()[i];
      Stamp found = 0;
      if (conflict.earlier != Access::kRead && races(cell.write, cell.write_where)) found = cell.write;
      for (std::size_t j = 0; conflict.earlier == Access::kRead && j < cell.readers; ++j) {
        const Reader& reader = j == 0 ? cell.first : cell.more[j - 1];
        if (races(reader.stamp, reader.where)) found = reader.stamp;
      }
      const std::uintptr_t here = offset + (std::uintptr_t{i} << granule);
      const auto apart = [&](std::uintptr_t one) { return one > place ? one - place : place - one; };
      if (found == 0 || (other != 0 && apart(here) >= apart(at))) continue;
      other = found;
      at = here;
    }
  }
  if (other == 0) return false;
  report.line("also",
              "a {} at {} by {}, of bytes that are {} away: another warp makes the same access, and where "
              "its bytes are accessed here, __syncwarp is not enough",
              verb(conflict.earlier), Where::from_packed(conflict.where).text(),
              name_thread(thread.cta->gang->grid, other), at > place ? at - place : place - at);
  return true;
}

/// For threads that store the same bytes at one place: perhaps they all store one value.
std::string flag_advice(const Conflict& conflict, Where where) {
  if (conflict.where != where.packed()) return {};
  return ". Where all of them store the same value, as to a flag that says that something was found, an "
         "atomic store (atomicExch, cuda::atomic_ref or a volatile pointer) is no race";
}

/// A race on global memory between ranks, or with a copy engine.
[[noreturn]] void fail_rank_race(Report& report, const Thread& thread, Stamp earlier, int other_rank) {
  const bool by_engine = thread.cta->gang->grid.is_engine || ranks::is_engine(earlier);
  const bool is_scope = !by_engine && other_rank >= 0 && explain_rank_scope(report, thread, earlier);
  if (by_engine) {
    report.missing(
        "an event that is recorded after the first of the two (cudaEventRecord) and for which the other's "
        "stream "
        "waits (cudaStreamWaitEvent); or a flag that a kernel behind the copy, in the copy's stream, raises");
    report.rule("a copy engine moves the bytes of a copy in any order, and its copies are ordered by streams",
                "CUDA C++ Programming Guide, \"Streams\"");
  } else {
    report.rule(
        "ranks run in any order: a rank may access what another rank accesses only after a release and an "
        "acquire "
        "of system scope",
        "PTX ISA, \"Memory Consistency Model: Scope\"");
  }
  fail(is_scope ? "scope-too-small" : "global-race", report.str());
}

[[noreturn]] void fail_race(const char* space, const std::string& name, unsigned bytes, Access access,
                            Where where, const Thread& thread, const Conflict& conflict,
                            std::uintptr_t address) {
  const int rank = ranks::rank_of_other(thread.cta->gang->grid, conflict.stamp);
  if (is_agent(conflict.stamp) && (rank < 0 || conflict.earlier != Access::kRead)) {
    fail_async_race(space, fmt::format("{} ({} bytes)", name, bytes), address, access, where, thread,
                    conflict.earlier, conflict.stamp, Where::from_packed(conflict.where));
  }
  const Grid& grid = thread.cta->gang->grid;
  const bool both_write = access == Access::kWrite && conflict.earlier == Access::kWrite;
  const bool stored_twice = both_write && space[0] == 'g' && is_result(address);
  const bool warp_mates =
      stamp_cta(conflict.stamp) == thread.cta->key && stamp_thread(conflict.stamp) / 32 == thread.index / 32;
  Report report("race on {} memory: nothing orders {} and {} of the same bytes", space, one(conflict.earlier),
                one(access));
  report.line("bytes", "{} ({} bytes)", name, bytes);
  if (space[0] == 'g') {
    if (const std::string element = element_text(grid, address); !element.empty())
      report.line("element", element);
  }
  report.line("one", "{} at {} by {}", verb(conflict.earlier), Where::from_packed(conflict.where).text(),
              name_thread(grid, conflict.stamp));
  report.line("other", "{} at {} by {}", verb(access), where.text(), name_thread(thread));
  if (space[0] == 's') {
    explain_race(report, thread, address, access, where, conflict.earlier, conflict.stamp,
                 Where::from_packed(conflict.where), conflict.held);
  }
  if (rank >= 0 || grid.is_engine || (grid.rank >= 0 && ranks::is_engine(conflict.stamp)))
    fail_rank_race(report, thread, conflict.stamp, rank);
  const bool of_warps =
      space[0] == 's' && warp_mates && !both_write && add_other_warps(report, thread, conflict, address);
  const bool one_reads = access == Access::kRead || conflict.earlier == Access::kRead;
  if (stored_twice) {
    explain_second_store(report, thread, conflict.stamp, address);
  } else if (space[0] == 'g' &&
             ((one_reads && explain_old_value(report, address)) ||
              (conflict.earlier == Access::kWrite && access == Access::kRead &&
               explain_reused_slot(report, thread, address, conflict.stamp,
                                   Where::from_packed(conflict.where))) ||
              (conflict.earlier == Access::kRead && access == Access::kWrite &&
               explain_overwritten_slot(report, thread, where, conflict.stamp, conflict.held,
                                        Where::from_packed(conflict.held_where))))) {
    // They have told what is missing.
  } else if (space[0] == 'g' && stamp_cta(conflict.stamp) != thread.cta->key &&
             !explain_cluster_scope(report, thread, conflict.stamp) &&
             !explain_flag(report, thread, where, conflict.stamp, Where::from_packed(conflict.where),
                           conflict.earlier, access) &&
             both_write) {
    report.missing(
        "a separate place for what each CTA writes: CTAs {} and {} both write these bytes. Two partial tiles "
        "need separate slots (the slot's number, or the work tile from which it is derived, is the same for "
        "two CTAs){}",
        name_cta(grid, stamp_cta(conflict.stamp)), name_cta(*thread.cta), flag_advice(conflict, where));
  } else if (space[0] == 'g' && stamp_cta(conflict.stamp) == thread.cta->key && both_write && !warp_mates) {
    const std::uint32_t one = stamp_thread(conflict.stamp) / kWarpgroupSize;
    const std::uint32_t two = thread.index / kWarpgroupSize;
    report.missing(
        (one == two
             ? fmt::format("separate bytes for each thread: two threads of warpgroup {} both write these, at "
                           "{} and at {}",
                           one, Where::from_packed(conflict.where).text(), where.text())
             : fmt::format(
                   "separate bytes for each warpgroup: {} and {} of CTA {} both write these, at {} and at "
                   "{}. "
                   "Either an index does not depend on the warpgroup, or both have taken the same work tile",
                   one, two, name_cta(*thread.cta), Where::from_packed(conflict.where).text(),
                   where.text())) +
        flag_advice(conflict, where));
  } else if (space[0] == 'g' && stamp_cta(conflict.stamp) == thread.cta->key && one_reads && !warp_mates) {
    const Where earlier = Where::from_packed(conflict.where);
    report.missing(
        "a barrier of the CTA between {} and {}. If other CTAs also read these bytes, a second buffer is "
        "missing instead: CTAs run in any order, and a barrier within one CTA cannot keep data that a launch "
        "reads from being overwritten in the same launch. Read one buffer and write the other, and swap them "
        "after each launch",
        earlier.text(), where.text());
  }
  if (stored_twice) {
    report.rule(
        "if nothing orders two writes, either value may remain, so each element of D must be stored by only "
        "one thread",
        "PTX ISA, \"Memory Consistency Model\"");
  } else if (stamp_cta(conflict.stamp) != thread.cta->key) {
    report.rule(
        "CTAs run in any order: a CTA may access what another CTA writes only after a release and an acquire "
        "at gpu (or cluster) scope",
        "PTX ISA, \"Memory Consistency Model\"");
  } else if (warp_mates && !of_warps) {
    report.rule(
        "being in the same warp does not order lanes: __syncwarp or a barrier must come between the accesses",
        "CUDA C++ Programming Guide, \"Independent Thread Scheduling\"");
  } else {
    report.rule(
        "a barrier (or a release and an acquire) must come between accesses by two threads if one of them "
        "writes",
        "PTX ISA, \"Memory Consistency Model\"");
  }
  fail(std::string(space) + "-race", report.str());
}

Report describe_unwritten(const char* space, const std::string& name, unsigned bytes, Where where,
                          const Thread& thread, const char* rule, const char* source,
                          std::uintptr_t address = 0) {
  Report report("a read accesses {} memory that has never been written", space);
  report.line("bytes", "{} ({} bytes)", name, bytes)
      .line("where", where.text())
      .line("by", name_thread(thread));
  if (space[0] == 's') explain_empty_phase(report, thread);
  if (space[0] == 's') explain_not_brought(report, thread, address);
  add_wait_notes(report, thread);
  return report.rule(rule, source);
}

class LineLock {
 public:
  LineLock(Line& line, bool needed) : line_(needed ? &line : nullptr) {
    if (!line_) return;
    while (line_->state.fetch_or(Line::kLockBit, std::memory_order_acquire) & Line::kLockBit) {
    }
  }
  ~LineLock() {
    if (line_) line_->state.fetch_and(~Line::kLockBit, std::memory_order_release);
  }
  LineLock(const LineLock&) = delete;
  LineLock& operator=(const LineLock&) = delete;

 private:
  Line* line_;
};

}  // namespace

bool explain_reused_slot(Report& report, const Thread& thread, std::uintptr_t address, Stamp writer,
                         Where written) {
  if (stamp_cta(writer) == thread.cta->key || is_agent(writer)) return false;
  const Grid& grid = thread.cta->gang->grid;
  Rewritten found;
  {
    RewrittenBytes& bytes = rewritten_bytes();
    const std::lock_guard lock(bytes.mutex);
    const auto line = bytes.lines.find(address / 16);
    if (bytes.launch != grid.launch || line == bytes.lines.end() || line->second.after >> 32 != writer >> 32)
      return false;
    found = line->second;
  }
  const auto warpgroup = [](Stamp stamp) { return stamp_thread(stamp) / kWarpgroupSize; };
  const bool one_warpgroup = warpgroup(found.before) == warpgroup(writer);
  // Without word of the first one this thread has just not waited.
  if (one_warpgroup && !thread.clock.covers(found.before)) return false;
  report.line("before", "written at {} by {}", Where::from_packed(found.where).text(),
              name_thread(grid, found.before));
  report.missing(
      "a separate slot for each of two results: warpgroup {} of CTA {} wrote these bytes at {}, and {} "
      "overwrote them at {} before CTA {} had read them. Either two partial tiles need separate slots, or "
      "the second must wait until the first has been read",
      warpgroup(found.before), name_cta(grid, stamp_cta(writer)), Where::from_packed(found.where).text(),
      one_warpgroup ? std::string("the same one") : fmt::format("warpgroup {}", warpgroup(writer)),
      written.text(), name_cta(*thread.cta));
  return true;
}

void add_reader(Cell& cell, Where where) {
  append_reader(cell, {context.now, where.packed()}, running_thread().cta->gang->worker.cta_arena);
}

bool readers_ordered(const Cell& cell) {
  const Thread& thread = running_thread();
  for (std::size_t i = 0; i < cell.readers; ++i) {
    if (!ordered((i == 0 ? cell.first : cell.more[i - 1]).stamp, thread)) return false;
  }
  return true;
}

namespace {

/// A store to bytes that another lane of the warp has just stored to at the same place.
struct SameValue {
  bool global = false;
  std::uintptr_t address = 0;
  unsigned bytes = 0;
  unsigned char held[16] = {};
  Conflict conflict;
  Where where;
};
constinit thread_local SameValue same_value;
constinit thread_local bool same_value_is_open = false;

/// The latest store of a thread that may hold poison.
struct StoredBytes {
  std::uintptr_t address = 0;
  unsigned bytes = 0;  // 0: none
  Where where;
};
constinit thread_local StoredBytes stored_bytes;

/// Whether the conflict may be one instruction of a warp, of which nobody has read anything yet. Only stores
/// that the compiler has told of come before the value is there, so that it can be compared.
bool by_one_instruction(const Conflict& conflict, const Cell& cell, Access access, const Thread& thread,
                        Where where) {
  return access == Access::kWrite && thread.in_hook && conflict.kind == Conflict::kRace &&
         conflict.earlier == Access::kWrite && conflict.stamp == cell.write && !is_agent(cell.write) &&
         cell.readers == 0 && cell.pending == 0 && conflict.where == where.packed() &&
         stamp_cta(conflict.stamp) == stamp_cta(thread.stamp()) &&
         stamp_thread(conflict.stamp) / kWarpSize == thread.index / kWarpSize;
}

void note_same_value(bool global, std::uintptr_t address, unsigned bytes, const Conflict& conflict,
                     Where where) {
  same_value = {.global = global, .address = address, .bytes = bytes, .conflict = conflict, .where = where};
  std::memcpy(same_value.held, reinterpret_cast<const void*>(address), bytes);
  same_value_is_open = true;
  store_is_open = true;
}

}  // namespace

void note_store(std::uintptr_t address, unsigned bytes, Where where) {
  stored_bytes = {.address = address, .bytes = bytes, .where = where};
  store_is_open = true;
}

void settle_store() {
  store_is_open = false;
  const StoredBytes latest = std::exchange(stored_bytes, {});
  for (unsigned at = 0; at + sizeof(std::uint32_t) <= latest.bytes; at += sizeof(std::uint32_t)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const void*>(latest.address + at), sizeof bits);
    if (is_poisoned(bits)) {
      same_value_is_open = false;
      fail_poisoned("a store", bits, latest.where);
    }
  }
  if (!std::exchange(same_value_is_open, false)) return;
  const SameValue& stored = same_value;
  if (std::memcmp(stored.held, reinterpret_cast<const void*>(stored.address), stored.bytes) == 0) return;
  const Thread& thread = running_thread();
  std::uintptr_t address = stored.address;
  const std::string name = stored.global
                               ? name_address(address)
                               : name_shared(address, locate(address, thread, stored.where), thread);
  fail_race(stored.global ? "global" : "shared", name, stored.bytes, Access::kWrite, stored.where, thread,
            stored.conflict, stored.address);
}

namespace {

/// The volatile accesses of a thread to shared memory: the places of its latest stores, and its latest load.
struct VolatileAccesses {
  static constexpr std::size_t kKept = 8;
  std::array<std::uint64_t, kKept> stores{};
  std::uint32_t stored = 0;
  const void* loaded = nullptr;
  std::uint64_t load = 0;
};
struct VolatileNotes {
  explicit VolatileNotes(const Gang&) {}
  void thread_exits(const Thread&) {}
  std::unordered_map<const Thread*, VolatileAccesses> of;
};

}  // namespace

void note_volatile_shared(const void* pointer, bool is_load, Where where) {
  Thread& thread = running_thread();
  VolatileAccesses& own = NotesOf<VolatileNotes>::make(*thread.cta->gang).of[&thread];
  if (!is_load) {
    own.stores[own.stored++ % VolatileAccesses::kKept] = where.packed();
    own.loaded = nullptr;
    return;
  }
  const bool polls = own.loaded == pointer && own.load == where.packed();
  own.loaded = pointer;
  own.load = where.packed();
  if (polls || !course_rule_on(CourseRule::kWarpSynchronous)) return;
  auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const SharedPlace place = locate(address, thread, where);
  if (place.owner != thread.cta) return;
  const std::uintptr_t offset = address - place.window.begin;
  const Line& line = place.window.lines[offset / 16];
  const Cell& cell = line.cells()[offset % 16 >> line.granule_log2()];
  const std::uint64_t written = cell.write_where & ~kAtomicBit;
  // Each lane stores its own element by the same instruction: not a flag that one lane raises for another.
  const bool same_instruction =
      std::find(own.stores.begin(), own.stores.end(), written) != own.stores.end() && written != 0;
  if (cell.write == 0 || (cell.write_where & kAtomicBit) == 0 || !same_instruction || is_agent(cell.write) ||
      stamp_cta(cell.write) != thread.cta->key || stamp_thread(cell.write) == thread.index ||
      stamp_thread(cell.write) / kWarpSize != thread.index / kWarpSize || ordered(cell.write, thread))
    return;
  Report report(
      "a lane reads through volatile what another lane of its warp stores, and nothing orders the two");
  report.line("bytes", name_shared(address, place, thread));
  report.line("store", "{} by {}", Where::from_packed(written).text(),
              name_thread(thread.cta->gang->grid, cell.write));
  report.line("load", "{} by {}", where.text(), name_thread(thread));
  report.missing(
      "__syncwarp() between the store and the load, and another one between the load and the next store of "
      "these bytes: lanes of a warp do not run in step, and volatile only keeps the compiler from leaving an "
      "access out");
  report.rule("lanes of a warp are not ordered by being in one warp: __syncwarp or a barrier goes between",
              "CUDA C++ Programming Guide, \"Independent Thread Scheduling\"");
  fail("warp-synchronous", report.course_rule(CourseRule::kWarpSynchronous).str());
}

void check_shared(const void* pointer, unsigned bytes, Access access, Where where) {
  constexpr const char* kWhat = "a shared memory access";
  // Most accesses do not come here, and whether one does is no step on the thread's way (sync/convergence.h).
  Thread& thread = context.thread != nullptr ? *context.thread : this_thread(kWhat, where);
  auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const SharedPlace place = locate(address, thread, where);
  const std::uintptr_t end = place.variable ? place.variable->address + place.variable->bytes
                                            : place.window.begin + place.window.bytes;
  if (!place.owner || end - address < bytes) fail_bounds(address, bytes, access, where, thread);
  if (address % bytes != 0) {
    fail_alignment("shared", name_shared(address, place, thread), address, bytes, access, where, thread);
  }
  const std::uintptr_t offset = address - place.window.begin;
  Line& line = refined_line(place.window.lines, offset / 16, place.owner->tag,
                            static_cast<unsigned>(std::countr_zero(bytes)));
  const unsigned granule = line.granule_log2();
  Arena& arena = thread.cta->gang->worker.cta_arena;
  for (unsigned i = 0; i < bytes >> granule; ++i) {
    Cell& cell = line.cells()[(offset % 16 >> granule) + i];
    Conflict conflict = find_conflict(cell, access, thread);
    if (by_one_instruction(conflict, cell, access, thread, where)) {
      note_same_value(false, address, bytes, conflict, where);
    } else if (conflict.kind != Conflict::kNone) {
      conflict.held = cell.write;
      const std::uintptr_t place_of_cell = address + (std::uintptr_t{i} << granule);
      const std::string name = name_shared(place_of_cell, place, thread);
      if (conflict.kind == Conflict::kPending) {
        if (conflict.pending & kHopperPending) {
          thread.cta->gang->hopper->fail_touched(conflict.pending, name, access, where);
        }
        thread.cta->gang->cp_async->fail_touched(conflict.pending, name, access, where);
      }
      fail_race("shared", name, 1u << granule, access, where, thread, conflict, place_of_cell);
    }
    if (cell.write == 0 && reads(access)) {
      const std::uintptr_t place_of_cell = address + (std::uintptr_t{i} << granule);
      if (access == Access::kRead && !course_rule_on(CourseRule::kSharedUninitialised)) {
        // Where the value matters, the result is NaN: no sum and no product gets rid of it.
        std::memset(static_cast<unsigned char*>(const_cast<void*>(pointer)) + (std::size_t{i} << granule),
                    0xff, std::size_t{1} << granule);
      } else if (thread.cta->unwritten_read.empty()) {
        Report report = describe_unwritten(
            "shared", name_shared(place_of_cell, place, thread), 1u << granule, where, thread,
            "shared memory has arbitrary contents when a CTA starts, and a read of it is reported whether or "
            "not the value reaches the result",
            "CUDA C++ Programming Guide, \"__shared__\"", place_of_cell);
        if (access == Access::kRead) report.course_rule(CourseRule::kSharedUninitialised);
        thread.cta->unwritten_read = report.str();
      }
    }
    record(cell, access, where, arena);
  }
  if (place.owner != thread.cta) note_remote_access(*place.owner, access, where);
  if (place.owner != thread.cta && !(line.state.load(std::memory_order_relaxed) & Line::kSlowBit)) {
    // A reader of another CTA is not in the inline path's picture: this line takes the
    // general path from now on.
    line.set_slow(true);
  }
}

namespace {

/// What an access outside of all buffers was for, and what would keep it inside.
void explain_out_of_bounds(Report& report, const Thread& thread, std::uintptr_t address, unsigned bytes) {
  const Grid& grid = thread.cta->gang->grid;
  if (is_freed(address)) {
    report.missing(
        "an owner that lives until the kernel has run: the buffer was freed before this launch ended. A "
        "launcher keeps only what it captures (the owner, not the bare pointer)");
    return;
  }
  const std::string element = element_text(grid, address);
  if (!element.empty()) report.line("element", element);
  const Buffer* const buffer = nearest_buffer(address);
  // The row that the thread has read before.
  const auto last = reinterpret_cast<std::uintptr_t>(context.last_load);
  if (!element.empty() && buffer && grid.options.k > 0 && (buffer->name == "A" || buffer->name == "B") &&
      address >= buffer->begin + buffer->bytes) {
    const std::uint64_t row_bytes = 2 * static_cast<std::uint64_t>(grid.options.k);
    const std::uint64_t row = (address - buffer->begin) / row_bytes;
    const std::uint64_t column = (address - buffer->begin) % row_bytes / 2;
    const bool along = find_buffer(last) == buffer && (last - buffer->begin) / row_bytes + 1 == row &&
                       buffer->bytes == row * row_bytes;
    report.missing(
        along ? fmt::format("a bound along K: the thread's last load was of row {}, column {}, and this one "
                            "continues along that row to column {}, beyond K = {}. That an iteration's first "
                            "element lies inside K does not mean that all its elements do",
                            row - 1, (last - buffer->begin) % row_bytes / 2,
                            column + static_cast<std::uint64_t>(grid.options.k), grid.options.k)
              : fmt::format("a bound: {} has rows 0 to {}, of K = {} columns. Nothing beyond them may be "
                            "read, and elements that are not read count as 0",
                            buffer->name, buffer->bytes / row_bytes - 1, grid.options.k));
  }
  if (!element.empty() && buffer && buffer->name == "D" && grid.options.n > 0 &&
      address >= buffer->begin + buffer->bytes) {
    const auto columns = static_cast<std::uint64_t>(grid.options.n);
    const std::uint64_t rows = buffer->bytes / (2 * columns);
    const std::uint64_t row = (address - buffer->begin) / 2 / columns;
    const std::uint64_t column = (address - buffer->begin) / 2 % columns;
    const auto width = static_cast<std::uint64_t>(std::max(grid.options.tile_n, 0));
    // Where the last tile hangs over the right edge, its columns would run on into the next row.
    const std::uint64_t over = width == 0 ? columns : (columns + width - 1) / width * width - columns;
    report.missing(row == rows && column < over
                       ? fmt::format("a bound along M or along N: row {} lies after the last one, {}, and "
                                     "its column {} is where row {} would continue past column {}. The part "
                                     "of a tile outside D may be computed but not stored",
                                     row, rows - 1, column, rows - 1, columns - 1)
                       : fmt::format("a bound along M: row {} lies after the last one, {}. The last rows of "
                                     "a tile (or of a warp, or of a thread) may lie outside D; they may be "
                                     "computed but not stored, so store only if row < M = {}",
                                     row, rows - 1, rows));
  }
  if (!buffer || address + bytes <= buffer->begin + buffer->bytes || address < buffer->begin) return;
  const std::uint64_t past = address + bytes - buffer->begin - buffer->bytes;
  if (buffer->name == "workspace") {
    report.missing(
        "at least {} bytes: the step's plan requested {} (workspace_bytes), but the kernel uses byte {}",
        past, buffer->bytes, buffer->bytes + past - 1);
    return;
  }
  // A vector with an entry for each column (or row) of D.
  const auto columns = std::int64_t{grid.options.n};
  std::int64_t rows = 0;
  if (columns > 0) {
    for_buffers([&](const Buffer& other) {
      if (other.name == "D") rows = static_cast<std::int64_t>(other.bytes) / (2 * columns);
    });
  }
  for (const auto& [what, extent] : {std::pair("column", columns), std::pair("row", rows)}) {
    const auto entries = static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 0));
    if (entries == 0 || buffer->bytes % entries != 0) continue;
    const std::uint64_t size = buffer->bytes / entries;
    if (size != 2 && size != 4 && size != 8) continue;
    report.line("element",
                "{} has an entry of {} bytes for each {} of D, and D has {}: this is the entry for {} {}",
                buffer->name, size, what, extent, what, (address - buffer->begin) / size);
    report.missing(
        "a bound: at the edge of D, a tile extends past {} {}, where nothing may be read or stored", what,
        extent - 1);
    return;
  }
  // A table: as many entries as accesses of this size fit.
  const std::uint64_t place = address - buffer->begin;
  if (!element.empty() || bytes == 0 || buffer->bytes % bytes != 0 || place % bytes != 0) return;
  const std::uint64_t entries = buffer->bytes / bytes;
  report.line("element", "{} has {} entries of {} bytes, and this is the entry with index {}", buffer->name,
              entries, bytes, place / bytes);
  report.missing(
      "a bound: index {} is the last one. A lane or a thread beyond it must read nothing and take part with "
      "a value that changes nothing",
      entries - 1);
}

/// Calls visit(line, cell) for the cells of dynamic or static shared memory that the range covers.
template <typename Visit>
void for_shared_cells(const void* pointer, unsigned bytes, const Thread& thread, Visit visit) {
  auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const SharedPlace place = locate(address, thread, Where());
  const std::uintptr_t offset = address - place.window.begin;
  Line& line = place.window.lines[offset / 16];
  const unsigned granule = line.granule_log2();
  for (unsigned i = 0; i < std::max(1u, bytes >> granule); ++i)
    visit(line, line.cells()[(offset % 16 >> granule) + i]);
}

}  // namespace

void mark_pending(const void* address, unsigned bytes, std::uint32_t operation) {
  for_shared_cells(address, bytes, running_thread(), [operation](Line& line, Cell& cell) {
    cell.pending = operation;
    line.set_slow(true);
  });
}

void mark_copied(const void* address, unsigned bytes, std::uint32_t operation, const Thread& thread,
                 Stamp stamp, Where where) {
  Line* line = nullptr;
  for_shared_cells(address, bytes, thread, [&](Line& l, Cell& cell) {
    line = &l;
    if (cell.pending != operation) return;
    cell.pending = 0;
    cell.write = stamp;
    cell.write_where = where.packed();
    cell.readers = 0;
  });
  // Back to the inline path when no other copy is on its way to the same 16 bytes.
  const unsigned cells = 16u >> line->granule_log2();
  const bool any =
      std::any_of(line->cells(), line->cells() + cells, [](const Cell& cell) { return cell.pending != 0; });
  if (!any && thread.cta->gang->ctas.size() == 1) {
    line->set_slow(false);
  }
}

namespace {
std::mutex unwritten_mutex;
UnwrittenRead unwritten_read;
}  // namespace

UnwrittenRead latest_unwritten_read() {
  const std::lock_guard lock(unwritten_mutex);
  return unwritten_read;
}

namespace {

/// An access to memory that has been freed, in a run of several devices.
[[noreturn]] void fail_gone(const Thread& thread, std::uintptr_t address, unsigned bytes, Access access,
                            Where where) {
  fail("peer-gone",
       Report("{} of {} bytes of memory that has been freed", one(access), bytes)
           .line("where", where.text())
           .line("by", name_thread(thread))
           .line("address", describe_address(address, bytes))
           .missing("a wait for rank {} before that memory is freed: cudaFree and cudaDeviceReset wait for "
                    "their own device only",
                    thread.cta->gang->grid.rank)
           .rule("a rank's memory must exist for as long as its peers use it",
                 "CUDA C++ Programming Guide, \"Peer-to-Peer Memory Access\"")
           .str());
}

/// An access to memory of another device.
void check_peer(const Thread& thread, const Buffer& buffer, std::uintptr_t address, unsigned bytes,
                Access access, Where where) {
  const int rank = thread.cta->gang->grid.rank;
  if (has_peer_access(rank, buffer.owner)) return;
  fail(
      "peer-access",
      Report("{} by rank {} of memory of rank {}, which it may not access", one(access), rank, buffer.owner)
          .line("bytes", "{} ({} bytes)", name_address(address), bytes)
          .line("where", where.text())
          .line("by", name_thread(thread))
          .missing(
              "cudaDeviceEnablePeerAccess({}, 0) while device {} is current, before the launch. It holds "
              "for one direction: rank {} needs a call of its own",
              buffer.owner, rank, buffer.owner)
          .rule(
              "a kernel may access memory of another device only after its own device has enabled the access",
              "CUDA C++ Programming Guide, \"Peer-to-Peer Memory Access\"")
          .str());
}

}  // namespace

void check_global(const void* pointer, unsigned bytes, Access access, Where where) {
  constexpr const char* kWhat = "a global memory access";
  // Most accesses do not come here, and whether one does is no step on the thread's way (sync/convergence.h).
  Thread& thread = context.thread != nullptr ? *context.thread : this_thread(kWhat, where);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Buffer* buffer = find_buffer(address);
  if (!buffer) [[unlikely]]
    buffer = adopt_variable(address);
  const bool inside = buffer && address >= buffer->begin && buffer->bytes >= bytes &&
                      address - buffer->begin <= buffer->bytes - bytes &&
                      std::none_of(buffer->holes.begin(), buffer->holes.end(), [&](const auto& hole) {
                        return address < hole.second && address + bytes > hole.first;
                      });
  if (!inside) {
    if (thread.cta->gang->grid.rank >= 0 && is_freed(address))
      fail_gone(thread, address, bytes, access, where);
    Report report("{} of {} bytes is out of bounds of global memory", one(access), bytes);
    report.line("where", where.text())
        .line("by", name_thread(thread))
        .line("address", describe_address(address, bytes));
    explain_out_of_bounds(report, thread, address, bytes);
    report.rule("a kernel may access only memory that has been allocated",
                "CUDA C++ Programming Guide, \"Device Memory\"");
    fail("global-out-of-bounds", report.str());
  }
  if (address % bytes != 0)
    fail_alignment("global", name_address(address), address, bytes, access, where, thread);
  if (reads(access) && !buffer->is_written(address, bytes)) {
    {
      const std::lock_guard lock(unwritten_mutex);
      unwritten_read = {address, bytes, where};
    }
    fail("global-uninitialised",
         describe_unwritten("global", name_address(address), bytes, where, thread,
                            "device memory has arbitrary contents when it is allocated",
                            "CUDA Runtime API, cudaMalloc")
             .str());
  }
  const Grid& grid = thread.cta->gang->grid;
  if (grid.rank >= 0 && buffer->owner >= 0 && buffer->owner != grid.rank && !grid.is_engine) [[unlikely]]
    check_peer(thread, *buffer, address, bytes, access, where);
  if (grid.overlaps) [[unlikely]]
    check_overlapping_grids(thread, address, bytes, access, where);
  if (access == Access::kRead) {
    // Nothing was ever written by a kernel: no history to compare with, and none to keep for the next grid.
    if (!buffer->device_written.load(std::memory_order_acquire) && !grid.keeps_reads) return;
  } else {
    if (!buffer->device_written.load(std::memory_order_relaxed)) {
      buffer->device_written.store(true, std::memory_order_release);
      buffer->plain.store(false, std::memory_order_relaxed);
    }
    if (access == Access::kWrite) ++thread.cta->gang->global_stores;
    if (writes(access)) buffer->mark_written(address, bytes);
  }
  const std::uintptr_t offset = address - buffer->allocation_begin / 16 * 16;
  const LineTable& lines = history(*buffer);
  Line& line = lines[offset / 16];
  Conflict conflict;
  std::uintptr_t place = address;
  unsigned granule = 0;
  {
    const LineLock lock(line, !grid.single_os_thread);
    refined_line(lines, offset / 16, grid.tag, static_cast<unsigned>(std::countr_zero(bytes)));
    granule = line.granule_log2();
    for (unsigned i = 0; i < bytes >> granule && conflict.kind == Conflict::kNone; ++i) {
      Cell& cell = line.cells()[(offset % 16 >> granule) + i];
      conflict = find_conflict(cell, access, thread);
      place = address + (std::uintptr_t{i} << granule);
      if (by_one_instruction(conflict, cell, access, thread, where)) {
        note_same_value(true, address, bytes, conflict, where);
        conflict = {};
      }
      if (conflict.kind != Conflict::kNone) {
        conflict.held = cell.write;
        conflict.held_where = cell.write_where & ~kAtomicBit;
        break;
      }
      if (access == Access::kWrite && unread_by_own_cta(cell)) note_rewritten(place, cell, thread);
      record(cell, access, where, thread.cta->gang->worker.launch_arena);
    }
  }
  if (conflict.kind == Conflict::kRace) {
    fail_race("global", name_address(place), 1u << granule, access, where, thread, conflict, place);
  }
}

void count_shared(const void* address, unsigned bytes, Access access, Where where) {
  count_access(access == Access::kRead    ? "ld_shared"
               : access == Access::kWrite ? "st_shared"
                                          : "atomic_shared",
               true, address, bytes, where);
}

void count_global(const void* address, unsigned bytes, Access access, Where where) {
  count_access(access == Access::kRead    ? "ld_global"
               : access == Access::kWrite ? "st_global"
                                          : "atomic_global",
               false, address, bytes, where);
}

}  // namespace emulator
