#include "emulator/memory/atomics.h"

#include <fmt/format.h>

#include <bit>
#include <mutex>

#include "emulator/machine/watchdog.h"
#include "emulator/memory/shared_space.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"

namespace emulator {

/// Atomics on global memory come from several OS threads: addresses are spread over a few locks.
struct Shard {
  std::mutex mutex;
  std::uint64_t launch = 0;
  struct Flag {
    VectorClock device;  // released by fences of device scope
    VectorClock cta;     // released by fences of CTA scope: only the parts of the same CTA count
    AtomicWriter writer;
  };
  std::unordered_map<std::uintptr_t, Flag> flags;
};

namespace {

constexpr std::size_t kShards = 64;
Shard& shard_of(std::uintptr_t address) {
  static Shard* shards = new Shard[kShards];
  return shards[address / 16 * 0x9e3779b97f4a7c15u >> 58];
}

bool is_shared(const void* address) {
  return !find_buffer(reinterpret_cast<std::uintptr_t>(address));
}

/// Shared memory of different CTAs may have the same address, one after the other.
std::uintptr_t flag_key(const void* address, const Thread& thread) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return is_shared(address) ? value ^ thread.cta->tag << 48 : value;
}

}  // namespace

AtomicWriter last_atomic_writer(const void* address, const Thread& thread) {
  Shard& shard = shard_of(reinterpret_cast<std::uintptr_t>(address));
  const std::lock_guard lock(shard.mutex);
  if (shard.launch != thread.cta->gang->grid.launch) return {};
  const auto found = shard.flags.find(flag_key(address, thread));
  return found == shard.flags.end() ? AtomicWriter{} : found->second.writer;
}

void fence(Scope scope, const char* what, Where where) {
  Thread& thread = this_thread(what, where);
  if (context.counters) count_instruction(what, where, 0, 1);
  // Acquire what relaxed atomics have seen.
  if (scope == Scope::kDevice) {
    thread.clock.join(thread.seen_device);
    thread.clock.join_only(thread.cta->key, thread.seen_cta);
    thread.seen_device.clear();
    thread.seen_cta.clear();
  } else {
    thread.clock.join_only(thread.cta->key, thread.seen_device);
    thread.clock.join_only(thread.cta->key, thread.seen_cta);
  }
  // What a later relaxed atomic releases.
  SyncObject snapshot;
  thread.release_into(snapshot);
  if (scope == Scope::kDevice) {
    thread.fenced_device = snapshot.clock;
  }
  thread.fenced_cta = std::move(snapshot.clock);
  thread.cta->gang->yield();
}

AtomicAccess::AtomicAccess(const void* address, unsigned bytes, const char* what, Where where,
                           AtomicKind kind) {
  Thread& thread = this_thread(what, where);
  thread.cta->gang->yield();  // any thread may come first
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  if (is_shared(address)) {
    if (context.counters) count_shared(address, bytes, Access::kAtomic, where);
    check_shared(address, bytes, Access::kAtomic, where);
  } else {
    if (context.counters) count_global(address, bytes, Access::kAtomic, where);
    check_global(address, bytes, Access::kAtomic, where);
  }
  shard_ = &shard_of(value);
  shard_->mutex.lock();
  const std::uint64_t launch = thread.cta->gang->grid.launch;
  if (shard_->launch != launch) {
    shard_->flags.clear();
    shard_->launch = launch;
  }
  Shard::Flag& flag = shard_->flags[flag_key(address, thread)];
  if (kind == AtomicKind::kStore) flag = {.writer = {thread.stamp(), where}};
  writer_ = &flag.writer;
  where_ = where;
  if (kind != AtomicKind::kStore) {
    note_poll({.what = what, .address = address, .bytes = bytes, .where = where});
  }
  if (kind != AtomicKind::kLoad && !thread.fenced_device.empty()) {
    flag.device.join(thread.fenced_device);
    flag.device.unshare();
  }
  if (kind != AtomicKind::kLoad && !thread.fenced_cta.empty()) {
    flag.cta.join_only(thread.cta->key, thread.fenced_cta);
    flag.cta.unshare();
  }
  if (kind == AtomicKind::kStore) return;
  if (!flag.device.empty()) {
    thread.seen_device.join(flag.device);
    thread.seen_device.unshare();
  }
  if (!flag.cta.empty()) {
    thread.seen_cta.join_only(thread.cta->key, flag.cta);
    thread.seen_cta.unshare();
  }
}

AtomicAccess::~AtomicAccess() {
  shard_->mutex.unlock();
}

void AtomicAccess::changed() {
  *writer_ = {running_thread().stamp(), where_};
  ++running_thread().cta->gang->progress;
}

unsigned ballot(const char* what, unsigned mask, int predicate, Where where) {
  struct Vote {
    int predicate;
    unsigned result;
  } vote{predicate, 0};
  warp_collective(
      what, mask, &vote,
      [](Rendezvous& meeting) {
        unsigned result = 0;
        for (unsigned lane = 0; lane < 32; ++lane) {
          if (meeting.mask >> lane & 1 && static_cast<Vote*>(meeting.arguments[lane])->predicate)
            result |= 1u << lane;
        }
        for (unsigned lane = 0; lane < 32; ++lane) {
          if (meeting.mask >> lane & 1) static_cast<Vote*>(meeting.arguments[lane])->result = result;
        }
      },
      false, false, where);
  return vote.result;
}

unsigned active_mask(Where where) {
  const Thread& thread = this_thread("__activemask", where);
  const unsigned self = 1u << thread.lane();
  Cta& cta = *thread.cta;
  if (cta.gang->random.below(2) == 0) return self;
  unsigned mask = self;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int index = thread.warp() * kWarpSize + lane;
    if (index < cta.thread_count &&
        cta.threads[static_cast<std::size_t>(index)].state == ThreadState::kRunnable) {
      mask |= 1u << lane;
    }
  }
  return mask;
}

void shuffle_bytes(const char* what, Shuffle kind, unsigned mask, void* value, unsigned bytes, int operand,
                   int width, Where where) {
  if (width < 1 || width > 32 || !std::has_single_bit(static_cast<unsigned>(width))) {
    const Thread& thread = this_thread(what, where);
    fail("warp-shuffle", Report(fmt::format("{} with width {}", what, width))
                             .line("where", where.text())
                             .line("by", name_thread(thread))
                             .rule("the width is 1, 2, 4, 8, 16 or 32",
                                   "CUDA C++ Programming Guide, \"Warp Shuffle Functions\"")
                             .str());
  }
  struct Exchange {
    void* value;
    unsigned bytes;
    Shuffle kind;
    int operand;
    int width;
    const char* what;
    Where where;
    std::uint64_t result;
    int missing;  // the source lane that the mask does not name, or -1
  } exchange{value, bytes, kind, operand, width, what, where, 0, -1};
  warp_collective(
      what, mask, &exchange,
      [](Rendezvous& meeting) {
        for (int lane = 0; lane < 32; ++lane) {
          if (!(meeting.mask >> lane & 1)) continue;
          auto& mine = *static_cast<Exchange*>(meeting.arguments[static_cast<std::size_t>(lane)]);
          const int segment = lane & ~(mine.width - 1);
          const int in_segment = lane - segment;
          int source = lane;
          switch (mine.kind) {
            case Shuffle::kIndex:
              source = segment + (mine.operand & (mine.width - 1));
              break;
            case Shuffle::kUp:
              source = in_segment < mine.operand ? lane : lane - mine.operand;
              break;
            case Shuffle::kDown:
              source = in_segment + mine.operand >= mine.width ? lane : lane + mine.operand;
              break;
            case Shuffle::kXor: {
              const int target = lane ^ mine.operand;
              // Earlier segments may be read, later ones answer with the lane's own value.
              source = target < segment + mine.width ? target : lane;
              break;
            }
          }
          source &= 31;
          if (!(meeting.mask >> source & 1)) {
            mine.missing = source;
            continue;
          }
          const auto& other = *static_cast<Exchange*>(meeting.arguments[static_cast<std::size_t>(source)]);
          std::memcpy(&mine.result, other.value, mine.bytes);
        }
      },
      false, false, where);
  if (exchange.missing >= 0) {
    fail("warp-shuffle", Report(fmt::format("{} reads from lane {}, which the mask {:#x} does not name", what,
                                            exchange.missing, mask))
                             .line("where", where.text())
                             .line("by", name_thread(running_thread()))
                             .rule("a value read from a lane that does not take part is undefined",
                                   "CUDA C++ Programming Guide, \"Warp Shuffle Functions\"")
                             .str());
  }
  std::memcpy(value, &exchange.result, bytes);
}

void* dynamic_shared(std::size_t bytes, Where where) {
  const Thread& thread = this_thread("dynamic_shared", where);
  const Cta& cta = *thread.cta;
  if (bytes > cta.dynamic_window.bytes) {
    fail("shared-out-of-bounds",
         Report(fmt::format("dynamic_shared wants {} bytes, the launch gave the CTA {}", bytes,
                            cta.dynamic_window.bytes))
             .line("where", where.text())
             .rule("LaunchShape::shared_bytes is at least the size of the shared-memory struct",
                   "CUDA C++ Programming Guide, \"Execution Configuration\"")
             .str());
  }
  return cta.shared;
}

std::uint32_t shared_address(const void* pointer, Where where) {
  const Thread& thread = this_thread("shared_address", where);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto in_cluster = [](const Cta& cta, std::uint32_t offset) {
    return static_cast<std::uint32_t>(cta.rank_in_cluster) << 24 | offset;
  };
  if (const std::optional<std::uint32_t> own = shared_offset(*thread.cta, pointer, where))
    return in_cluster(*thread.cta, *own);
  for (const auto& cta : thread.cta->gang->ctas) {
    const Window& window = cta->dynamic_window;
    if (address - window.begin <= window.bytes)
      return in_cluster(*cta, static_cast<std::uint32_t>(address - window.begin));
  }
  fail("shared-out-of-bounds", Report("shared_address of a pointer that is not into shared memory")
                                   .line("where", where.text())
                                   .line("by", name_thread(thread))
                                   .rule("cvta.to.shared takes an address in the shared window",
                                         "PTX ISA, \"Data Movement and Conversion Instructions: cvta\"")
                                   .str());
}

void trap(Where where) {
  const Thread& thread = this_thread("__trap", where);
  fail("trap",
       Report("the kernel executed __trap")
           .line("where", where.text())
           .line("by", name_thread(thread))
           .rule("__trap ends the kernel with an error", "CUDA C++ Programming Guide, \"Trap function\"")
           .str());
}

}  // namespace emulator
