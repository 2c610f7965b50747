// Atomics, fences, shuffles and votes: what the language header is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "emulator/machine/context.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/sanitizer.h"
#include "emulator/machine/where.h"

namespace emulator {

/// Where there is one device, the system is no more.
enum class Scope { kCta, kDevice, kSystem };

/// fence.acq_rel and fence.sc. __threadfence() is fence.sc.
enum class FenceOrder { kAcquireRelease, kSequential };

/// Orders the thread's accesses before it against those after it, as seen by threads in `scope` that
/// synchronise through an atomic: fence, atomic write ... atomic read, fence. PTX ISA,
/// "Memory Consistency Model".
///
/// A fence.sc also synchronises with each fence.sc that follows it in Fence-SC order. A fence that comes (in
/// causality order, over a barrier, say) before an atomic write precedes one that comes after a read of what
/// was written: in the other order the read would come before the write. So the fences need not be those of
/// the threads that write and read the flag.
void fence(Scope scope, const char* what, Where where, FenceOrder order = FenceOrder::kAcquireRelease);

/// A load releases nothing, a store acquires nothing and ends what others released by the word; an update
/// (read, modify, write) does both and ends nothing.
enum class AtomicKind { kLoad, kStore, kUpdate };

/// The thread that changed (or set) the word last with an atomic in this launch, or a stamp of 0.
struct AtomicWriter {
  Stamp writer = 0;
  Where where;
  std::uint64_t number = 0;  // among all that changed a word
};
AtomicWriter last_atomic_writer(const void* address, const Thread& thread);

/// "; before that thread ... stored 1 there at ...": what other threads have done to the word in this launch.
std::string other_atomic_writers(const void* address, const Thread& thread);

class Report;
/// For a race on global memory between CTAs: which flag they passed, and which half of a release and an
/// acquire it lacks. False where that is not known. `earlier`: the access that came first.
bool explain_flag(Report& report, const Thread& thread, Where where, Stamp earlier, Where earlier_where,
                  Access earlier_access, Access access);

/// For a race between ranks: the fence that would order them if its scope were the system. False where there
/// is none.
bool explain_rank_scope(Report& report, const Thread& thread, Stamp earlier);

/// `thread` writes what `reader`, of another CTA, has read, and `held`, of the CTA of `thread`, had written:
/// whether that is a second result in the slot of a first one. False where that is not known.
bool explain_overwritten_slot(Report& report, const Thread& thread, Where where, Stamp reader, Stamp held,
                              Where held_where);

/// The thread's atomics are of this scope for as long as the object lives.
class AtomicScope {
 public:
  explicit AtomicScope(Scope scope) { set(scope); }
  ~AtomicScope() { set(Scope::kDevice); }
  AtomicScope(const AtomicScope&) = delete;
  AtomicScope& operator=(const AtomicScope&) = delete;

 private:
  static void set(Scope scope) {
    if (!context.thread) return;
    running_thread().narrow_atomics = scope == Scope::kCta;
    running_thread().system_atomics = scope == Scope::kSystem;
  }
};

/// An atomic access in progress: checks it, serialises it, and passes happens-before through the address. A
/// relaxed atomic alone orders nothing; the fences of both sides do.
class AtomicAccess {
 public:
  /// `asks`: a thread that waits for another value may execute it, again and again.
  AtomicAccess(const void* address, unsigned bytes, const char* what, Where where,
               AtomicKind kind = AtomicKind::kUpdate, bool asks = true);
  ~AtomicAccess();
  AtomicAccess(const AtomicAccess&) = delete;
  AtomicAccess& operator=(const AtomicAccess&) = delete;
  void changed();  // the value is another one than before
  /// A store of the value that is there already: whoever reads it cannot tell this store from the one before,
  /// so it acquires only what both released.
  void repeated(std::uint64_t value);
  void saw(std::uint64_t value);  // a load

 private:
  void check_relaxed_order();
  void remember_writer(bool by_update);
  void check_scope(const char* what, AtomicKind kind);
  void check_ranks(const char* what, AtomicKind kind);
  struct Shard* shard_ = nullptr;
  struct FlagWord* flag_ = nullptr;
  Where where_;
};

/// Whether a thread may wait for another value by this update: an exchange (of a lock), or one that changes
/// nothing (atomicAdd of 0). A maximum or a sum that finds the same value several times is no wait.
template <typename T, typename Update>
EMULATOR_NOT_INSTRUMENTED bool may_ask(std::string_view what, Update& update) {
  for (const char* exchange : {"CAS", "cas", "xch", "compare"}) {
    if (what.find(exchange) != std::string_view::npos) return true;
  }
  for (const std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{0x4343434343434343}}) {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    const T next = update(value);
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, &value, sizeof value);
    std::memcpy(&after, &next, sizeof next);
    if (before != after) return false;
  }
  return true;
}

template <typename T, typename Update>
EMULATOR_NOT_INSTRUMENTED T atomic_update(T* address, const char* what, Where where, Update update,
                                          AtomicKind kind = AtomicKind::kUpdate) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2, "atomics are 2, 4 or 8 bytes wide");
  const bool asks = kind != AtomicKind::kUpdate || may_ask<T>(what, update);
  AtomicAccess access(address, sizeof(T), what, where, kind, asks);
  T old;
  std::memcpy(&old, address, sizeof(T));
  const T next = update(old);
  std::memcpy(static_cast<void*>(address), &next, sizeof(T));
  const auto bits = [](const T& word) {
    std::uint64_t value = 0;
    std::memcpy(&value, &word, sizeof(T));
    return value;
  };
  if (kind == AtomicKind::kLoad) access.saw(bits(old));
  if (bits(old) != bits(next)) {
    access.changed();
  } else if (kind == AtomicKind::kStore) {
    access.repeated(bits(old));
  }
  return old;
}

struct Ballot {
  unsigned lanes = 0;   // whose predicate holds
  unsigned voters = 0;  // lanes of the mask, without those that have returned
};
Ballot vote(const char* what, unsigned mask, int predicate, Where where);
inline unsigned ballot(const char* what, unsigned mask, int predicate, Where where) {
  return vote(what, mask, predicate, where).lanes;
}

enum class Shuffle { kIndex, kUp, kDown, kXor };
/// Exchanges 4 or 8 raw bytes between lanes.
void shuffle_bytes(const char* what, Shuffle kind, unsigned mask, void* value, unsigned bytes, int operand,
                   int width, Where where);

template <typename T>
T shuffle(const char* what, Shuffle kind, unsigned mask, T value, int operand, int width, Where where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 32,
                "the emulator's shuffles move 1 to 32 bytes");
  constexpr std::size_t kWords = (sizeof(T) + 7) / 8;
  std::uint64_t words[kWords] = {};
  std::memcpy(words, &value, sizeof(T));
  for (std::size_t i = 0; i < kWords; ++i) {
    const bool is_half = sizeof(T) - i * 8 <= 4;
    shuffle_bytes(what, kind, mask, &words[i], is_half ? 4 : 8, operand, width, where);
  }
  std::memcpy(static_cast<void*>(&value), words, sizeof(T));
  return value;
}

/// The CTA's dynamic shared memory; reports when it is smaller than `bytes`.
void* dynamic_shared(std::size_t bytes, Where where);
std::uint32_t shared_address(const void* pointer, Where where);

[[noreturn]] void trap(Where where);

}  // namespace emulator
