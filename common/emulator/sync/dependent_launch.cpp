#include "emulator/sync/dependent_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/async/async_memory.h"
#include "emulator/explore/left_out.h"
#include "emulator/machine/launch/running_grid.h"
#include "emulator/machine/machine.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"

namespace emulator {
namespace {

/// No CTA has this key. A thread whose clock covers kWaited is behind a griddepcontrol.wait of its grid: its
/// own, or one that a barrier has told it of.
constexpr std::uint32_t kWaitKey = 0;
constexpr Stamp kWaited = make_stamp(kWaitKey, 0, 1);

struct PastAccess {
  Stamp stamp = 0;  // 0: none
  std::uint64_t where = 0;
};

/// What a grid did to some bytes of a line of 16: its last write, and one of the reads behind it.
struct PastCell {
  std::uint8_t begin = 0;
  std::uint8_t end = 0;
  PastAccess write;
  PastAccess read;
};

/// A grid that has run, and that later grids may overlap.
struct PastGrid {
  std::uint64_t launch = 0;
  std::unique_ptr<Grid> grid;  // its shape, for the names of threads
  const void* kernel = nullptr;
  bool waited = false;                          // one of its threads, anywhere
  bool started_behind_wait = false;             // one of its CTAs waited before it let dependents start
  std::vector<std::uint64_t> at_start, behind;  // launches that may run when it starts; and behind its wait
  bool put_aside = false;
  std::unordered_map<std::uintptr_t, std::vector<PastCell>> lines;  // by address / 16
};

/// Of the only stream. Launches follow each other; other threads of host code may free memory meanwhile.
struct Stream {
  std::mutex mutex;
  std::deque<PastGrid> grids;
};
Stream& only_stream() {
  static auto* const stream = new Stream;
  return *stream;
}

/// Takes the accesses of the grid that has just run out of the histories of all buffers.
void put_aside(PastGrid& past) {
  if (std::exchange(past.put_aside, true)) return;
  for_buffers([&past](Buffer& buffer) {
    if (!buffer.has_lines) return;
    const std::uintptr_t first = buffer.allocation_begin / 16;
    const std::size_t count = (buffer.allocation_begin + buffer.allocation_bytes + 15) / 16 - first;
    for (std::size_t i = 0; i < count; ++i) {
      const Line& line = buffer.lines[i];
      if (line.tag() != past.grid->tag) continue;
      const unsigned bytes = 1u << line.granule_log2();
      std::vector<PastCell> cells;
      for (unsigned at = 0; at < 16; at += bytes) {
        const Cell& cell = line.cells()[at / bytes];
        PastCell kept{.begin = static_cast<std::uint8_t>(at), .end = static_cast<std::uint8_t>(at + bytes)};
        if (cell.write != 0) kept.write = {cell.write, cell.write_where & ~kAtomicBit};
        if (cell.readers != 0) kept.read = {cell.first.stamp, cell.first.where & ~kAtomicBit};
        if (cell.write != 0 || cell.readers != 0) cells.push_back(kept);
      }
      if (!cells.empty()) past.lines.emplace(first + i, std::move(cells));
    }
  });
}

std::string name_past(const PastGrid& past, const PastAccess& access) {
  if (is_agent(access.stamp)) {
    const std::uint32_t key = stamp_cta(access.stamp) & (kAgentKey - 1);
    return fmt::format("a copy of CTA {}", name_cta(*past.grid, key));
  }
  return name_thread(*past.grid, access.stamp);
}

const char* verb_of(Access access) {
  return access == Access::kRead ? "read" : access == Access::kWrite ? "write" : "atomic access";
}

[[noreturn]] void fail_overlap(const Thread& thread, const PastGrid& past, const PastAccess& earlier,
                               bool earlier_writes, std::uintptr_t address, unsigned bytes, Access access,
                               Where where, bool waited) {
  const Grid& grid = thread.cta->gang->grid;
  const std::uint64_t apart = grid.launch - past.launch;
  const std::string which =
      apart == 1 ? std::string("the previous grid") : fmt::format("the grid {} launches earlier", apart);
  Report report("{} may still run: nothing orders its {} and this {} of the same bytes", which,
                earlier_writes ? "write" : "read", verb_of(access));
  report.line("bytes", "{} ({} bytes)", name_address(address), bytes);
  report.line("one", "{} at {} by {} of {}{}", earlier_writes ? "write" : "read",
              Where::from_packed(earlier.where).text(), name_past(past, earlier), which,
              past.kernel == nullptr ? "" : ", " + name_function(past.kernel));
  report.line("other", "{} at {} by {}", verb_of(access), where.text(), name_thread(thread));
  if (apart == 1) {
    report.missing(
        "griddepcontrol.wait before this {}, by this thread, or by another thread and followed by a barrier",
        verb_of(access));
  } else if (waited) {
    report.missing(
        "griddepcontrol.wait in the grid in between: none of its threads has waited, so it may have "
        "completed before {}",
        which);
  } else {
    report.missing(
        "griddepcontrol.wait before this {}: the grid in between let this grid start before it had waited "
        "itself",
        verb_of(access));
  }
  report.rule(
      "a dependent grid starts when every CTA of the previous grid has executed "
      "griddepcontrol.launch_dependents or exited, which orders no memory accesses. griddepcontrol.wait "
      "waits until that grid has completed and its writes are visible",
      "PTX ISA, \"Parallel Synchronization and Communication Instructions: griddepcontrol\"");
  fail("dependent-launch", report.str());
}

}  // namespace

void wait_for_prerequisites(const char* what, Where where) {
  Thread& thread = this_thread(what, where);
  if (is_left_out(what, where)) return;
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  thread.clock.raise_base(kWaitKey, stamp_time(kWaited) + 1);
  thread.cta->waited = true;
  thread.cta->gang->yield();
}

void launch_dependents(const char* what, Where where) {
  Thread& thread = this_thread(what, where);
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  if (!thread.clock.covers(kWaited)) thread.cta->let_start_before_wait = true;
  thread.cta->gang->yield();
}

const void* latest_kernel() {
  const std::deque<PastGrid>& grids = only_stream().grids;
  return grids.empty() ? nullptr : grids.back().kernel;
}

void begin_grid(Grid& grid, const void* kernel) {
  const std::lock_guard lock(only_stream().mutex);
  std::deque<PastGrid>& grids = only_stream().grids;
  PastGrid next;
  if (grid.shape.dependent && !grids.empty()) {
    PastGrid& before = grids.back();
    put_aside(before);
    // It completes behind what it has waited for, and it lets this grid start there at the earliest.
    next.behind = before.waited ? before.behind : before.at_start;
    next.at_start = before.started_behind_wait ? before.behind : before.at_start;
    next.at_start.push_back(before.launch);
    std::erase_if(grids, [&next](const PastGrid& past) {
      return std::find(next.at_start.begin(), next.at_start.end(), past.launch) == next.at_start.end() &&
             std::find(next.behind.begin(), next.behind.end(), past.launch) == next.behind.end();
    });
  } else {
    grids.clear();
  }
  grid.overlaps = !grids.empty();
  next.launch = grid.launch;
  next.grid = std::make_unique<Grid>();
  next.grid->shape = grid.shape;
  next.grid->tag = grid.tag;
  next.kernel = kernel;
  grids.push_back(std::move(next));
}

void note_exits(const Gang& gang) {
  for (const auto& cta : gang.ctas) {
    if (!cta->waited) continue;
    gang.grid.waited = true;
    if (!cta->let_start_before_wait) gang.grid.started_behind_wait = true;
  }
}

void end_grid(const Grid& grid) {
  const std::lock_guard lock(only_stream().mutex);
  PastGrid& past = only_stream().grids.back();
  past.waited = grid.waited;
  past.started_behind_wait = grid.started_behind_wait;
}

void forget_grids() {
  const std::lock_guard lock(only_stream().mutex);
  only_stream().grids.clear();
}

void complete_grids() {
  // Not by a wrapper that fills memory of its own, and not under a grid that another thread has launched.
  if (context.thread == nullptr && !is_running_grid()) forget_grids();
}

std::string written_by_grid_before(std::uintptr_t address) {
  const std::deque<PastGrid>& grids = only_stream().grids;
  if (grids.size() < 2) return {};
  for (auto past = grids.rbegin() + 1; past != grids.rend(); ++past) {
    const auto line = past->lines.find(address / 16);
    if (line == past->lines.end()) continue;
    const unsigned at = address % 16;
    for (const PastCell& cell : line->second) {
      if (cell.write.stamp == 0 || at < cell.begin || at >= cell.end) continue;
      const std::uint64_t apart = grids.back().launch - past->launch;
      return fmt::format("{} by {} of the grid {}", Where::from_packed(cell.write.where).text(),
                         name_past(*past, cell.write),
                         apart == 1 ? std::string("before") : fmt::format("{} launches before", apart));
    }
  }
  return {};
}

void check_overlapping_grids(const Thread& thread, std::uintptr_t address, unsigned bytes, Access access,
                             Where where) {
  const std::deque<PastGrid>& grids = only_stream().grids;
  const bool waited = thread.clock.covers(kWaited);
  const std::vector<std::uint64_t>& running = waited ? grids.back().behind : grids.back().at_start;
  const unsigned begin = address % 16;
  for (const PastGrid& past : grids) {
    if (std::find(running.begin(), running.end(), past.launch) == running.end()) continue;
    const auto line = past.lines.find(address / 16);
    if (line == past.lines.end()) continue;
    for (const PastCell& cell : line->second) {
      if (cell.end <= begin || cell.begin >= begin + bytes) continue;
      if (cell.write.stamp != 0)
        fail_overlap(thread, past, cell.write, true, address, bytes, access, where, waited);
      if (cell.read.stamp != 0 && access != Access::kRead)
        fail_overlap(thread, past, cell.read, false, address, bytes, access, where, waited);
    }
  }
}

}  // namespace emulator
