#include "emulator/machine/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/async/hopper.h"
#include "emulator/machine/attention.h"
#include "emulator/memory/atomics.h"
#include "emulator/memory/shared_space.h"
#include "emulator/report/causes/flags.h"
#include "emulator/report/places.h"
#include "emulator/report/report.h"
#include "emulator/sync/mbarrier.h"
#include "emulator/timeline/timeline.h"

namespace emulator {
namespace {

constexpr std::uint32_t kPollsUntilYield = 64;

[[noreturn]] void fail_stalled(const std::string& access, Where where) {
  const Thread& thread = running_thread();
  fail("livelock", Report("a thread has used {} seconds of processor time without waiting or yielding: it is "
                          "in a loop that does not end",
                          watch_stall_seconds())
                       .line("where", "{} {}", where.text(), access)
                       .line("by", name_thread(thread))
                       .rule("a thread must wait for another thread at a barrier, at an mbarrier or with "
                             "atomics, and its loops must end",
                             "PTX ISA, \"Memory Consistency Model\"")
                       .str());
}

/// "flags + 4", "__shared__ ready + 0", "full[1] (shared + 0x18048)"
/// The CTA of the gang that the bytes at `pointer` belong to, and where they are in it.
struct SharedByte {
  const Cta* cta = nullptr;  // nullptr: none
  std::uint32_t offset = 0;
};
SharedByte shared_byte(const Thread& thread, const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const auto& cta : thread.cta->gang->ctas) {
    const std::uintptr_t offset = address - cta->dynamic_window.begin;
    if (offset < cta->dynamic_window.bytes) return {cta.get(), static_cast<std::uint32_t>(offset)};
  }
  const std::optional<std::uint32_t> offset = shared_offset(*thread.cta, pointer, Where::here());
  return offset ? SharedByte{thread.cta, *offset} : SharedByte{};
}

std::string name_place(const Thread& thread, const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (find_buffer(address)) return name_address(address);
  const SharedByte byte = shared_byte(thread, pointer);
  return byte.cta ? name_shared_offset(*byte.cta, byte.offset) : fmt::format("memory at {:#x}", address);
}

/// The history of the bytes at `pointer`, or nullptr when this launch (or CTA) has not touched them.
const Cell* cell_of(const Thread& thread, const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (Buffer* buffer = find_buffer(address)) {
    if (!buffer->has_lines.load()) return nullptr;
    const Line& line = buffer->lines[(address - buffer->allocation_begin / 16 * 16) / 16];
    if (line.tag() != thread.cta->gang->grid.tag) return nullptr;
    return &line.cells()[address % 16 >> line.granule_log2()];
  }
  const SharedByte byte = shared_byte(thread, pointer);
  if (!byte.cta) return nullptr;
  const Line& line = shared_line(*byte.cta, byte.offset);
  return &line.cells()[byte.offset % 16 >> line.granule_log2()];
}

std::string writer_text(const Thread& thread, const void* address) {
  const Grid& grid = thread.cta->gang->grid;
  if (const auto [writer, where, number] = last_atomic_writer(address, thread); writer != 0) {
    return fmt::format("which {} wrote at {}{}", name_thread(grid, writer), where.text(),
                       other_atomic_writers(address, thread));
  }
  const Cell* cell = cell_of(thread, address);
  if (cell && cell->write != 0 && !(cell->write_where & kAtomicBit)) {
    return fmt::format(
        "which {} wrote at {}",
        is_agent(cell->write) ? name_agent(*thread.cta->gang, cell->write) : name_thread(grid, cell->write),
        Where::from_packed(cell->write_where).text());
  }
  return "and no thread has changed it since the kernel started";
}

std::string value_text(const Poll& poll) {
  std::uint64_t value = 0;
  std::memcpy(&value, poll.address, std::min<std::size_t>(sizeof value, poll.bytes));
  return value < 1'000'000 ? fmt::format("{}", value) : fmt::format("{:#x}", value);
}

}  // namespace

void note_poll(const Poll& poll) {
  auto& polls = running_thread().polls;
  auto found = std::find_if(polls.begin(), polls.end(), [&](const Poll& old) {
    return old.address == poll.address && old.barrier == poll.barrier &&
           old.where.packed() == poll.where.packed();
  });
  if (found == polls.end()) found = std::prev(polls.end());
  const bool again = found->what && found->address == poll.address &&
                     found->where.packed() == poll.where.packed() && found->value == poll.value &&
                     found->barrier == poll.barrier;
  const std::uint32_t repeats = again ? found->repeats + 1 : 0;
  std::rotate(polls.begin(), found, std::next(found));
  polls.front() = poll;
  polls.front().repeats = repeats;
}

void note_pause(const char* what, Where where) {
  Thread& thread = this_thread(what, where);
  if (!thread.polls.front().what) note_poll({.what = what, .where = where});
}

std::string describe_poll(const Thread& thread) {
  const Poll& poll = thread.polls.front();
  if (!poll.what) return "can run";
  std::string text = fmt::format("poll at {} {}", poll.where.text(), poll.what);
  if (poll.barrier)
    return text + fmt::format(": {}, {}", name_mbarrier(*poll.barrier), describe_mbarrier(*poll.barrier));
  if (!poll.address) return text;
  return text + fmt::format(": {} holds {}, {}", name_place(thread, poll.address), value_text(poll),
                            writer_text(thread, poll.address));
}

namespace {

/// What earlier launches have left in the buffers that threads poll.
std::string left_words(const Gang& gang) {
  std::vector<const Buffer*> seen;
  std::string lines;
  for (const auto& cta : gang.ctas) {
    for (const Thread& thread : cta->threads) {
      if (thread.state != ThreadState::kRunnable || !thread.polls.front().address) continue;
      const void* const address = thread.polls.front().address;
      const Buffer* const buffer = find_buffer(reinterpret_cast<std::uintptr_t>(address));
      if (!buffer || std::find(seen.begin(), seen.end(), buffer) != seen.end()) continue;
      seen.push_back(buffer);
      if (const std::string left = left_by_earlier_launches(address, thread); !left.empty())
        lines += "\n" + left;
    }
  }
  return lines;
}

}  // namespace

std::string unset_words(const Gang& gang) {
  constexpr std::size_t kShown = 2;
  std::vector<const void*> seen;
  std::string lines;
  for (const auto& cta : gang.ctas) {
    for (const Thread& thread : cta->threads) {
      const void* const address = thread.polls.front().address;
      if (thread.state != ThreadState::kRunnable || !address || seen.size() == kShown ||
          std::find(seen.begin(), seen.end(), address) != seen.end())
        continue;
      std::string line = written_neighbours(address, thread);
      if (line.empty()) line = uneven_counts(address, thread);
      if (line.empty()) line = lowered_before_seen(address, thread);
      if (line.empty()) continue;
      seen.push_back(address);
      lines += fmt::format("{}{:<8} {}", lines.empty() ? "" : "\n",
                           gang.grid.all_started() ? "missing" : "or", line);
    }
  }
  return lines;
}

std::string describe_polls(const Gang& gang) {
  constexpr std::size_t kShown = 8;
  std::string lines;
  std::string returned;
  std::size_t left = 0;
  for (const auto& cta : gang.ctas) {
    if (cta->exited == cta->thread_count) {
      if (++left <= kShown) returned += fmt::format("{}{}", returned.empty() ? "" : ", ", text(cta->id));
      continue;
    }
    lines +=
        fmt::format("{}CTA {}\n{}", lines.empty() ? "" : "\n", text(cta->id), places_of_threads(*cta, true));
  }
  if (left > 0)
    lines += fmt::format("\nCTA{} {}{} returned from the kernel", left == 1 ? "" : "s", returned,
                         left > kShown ? fmt::format(" and {} more", left - kShown) : std::string());
  return lines + left_words(gang);
}

void attend_load(bool global, const void* address, unsigned bytes, Where where) {
  const char* what = global ? "ld_global" : "ld_shared";
  if (timeline_on()) {
    global ? log_global(OperationKind::kLoadGlobal, address, bytes, where)
           : log_alone(OperationKind::kShared, 0, bytes, true, where);
  }
  if (!(attention_flags.load(std::memory_order_relaxed) & kWatchAttention)) return;
  Poll poll{.what = what, .address = address, .bytes = bytes, .where = where};
  std::memcpy(&poll.value, address, std::min<std::size_t>(sizeof poll.value, bytes));
  note_poll(poll);
  Thread& thread = running_thread();
  if (watch_has_expired()) {
    fail_stalled(fmt::format("{} of {}, which holds {}, {}", what, name_place(thread, address),
                             value_text(poll), writer_text(thread, address)),
                 where);
  }
  if (thread.polls.front().repeats >= kPollsUntilYield) thread.cta->gang->yield();
}

void attend_store(bool global, void* address, const void* value, unsigned bytes, Where where) {
  const char* what = global ? "st_global" : "st_shared";
  if (timeline_on()) {
    global ? log_global(OperationKind::kStoreGlobal, address, bytes, where)
           : log_alone(OperationKind::kShared, 0, bytes, false, where);
  }
  if (!(attention_flags.load(std::memory_order_relaxed) & kWatchAttention)) return;
  Thread& thread = running_thread();
  if (watch_has_expired()) fail_stalled(fmt::format("{} of {}", what, name_place(thread, address)), where);
  if (std::memcmp(address, value, bytes) != 0) ++thread.cta->gang->progress;
}

}  // namespace emulator
