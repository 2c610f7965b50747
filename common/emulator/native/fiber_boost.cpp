#include "emulator/machine/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "emulator/machine/sanitizer.h"

#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {
namespace {

#ifdef EMULATOR_ASAN
constexpr std::size_t kStackBytes = 256 * 1024;  // instrumented frames are larger
#else
constexpr std::size_t kStackBytes = std::size_t{64} * 1024;
#endif
constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kSlotBytes = kStackBytes + kGuardBytes;
constexpr std::size_t kBatch = 64;  // fibers mapped together

// Every mapping there is, for the signal handler, which reads without a lock. A range with no end is free.
constexpr std::size_t kMaxMappings = 1 << 13;  // half a million threads at once
struct Range {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
};
Range ranges[kMaxMappings];
std::mutex ranges_mutex;  // for writing

/// Without a free range, an overflow of these stacks is reported as any other crash.
void add_range(const char* begin, std::size_t bytes) {
  const std::lock_guard lock(ranges_mutex);
  for (Range& range : ranges) {
    if (range.end != 0) continue;
    range.begin = reinterpret_cast<std::uintptr_t>(begin);
    range.end = reinterpret_cast<std::uintptr_t>(begin + bytes);
    return;
  }
}

void remove_range(const char* begin) {
  const std::lock_guard lock(ranges_mutex);
  for (Range& range : ranges) {
    if (range.end != 0 && range.begin == reinterpret_cast<std::uintptr_t>(begin)) range.end = 0;
  }
}

/// Boost frees a fiber's stack when the fiber ends; ours stay with the pool.
struct KeepStack {
  static void deallocate(boost::context::stack_context&) {}
};

}  // namespace

/// What continuation_ holds.
struct Fiber::Continuation {
  static_assert(sizeof(boost::context::fiber) == sizeof(void*));
  static_assert(alignof(boost::context::fiber) == alignof(void*));

  static boost::context::fiber& of(Fiber& fiber) {
    return *std::launder(reinterpret_cast<boost::context::fiber*>(fiber.continuation_));
  }
  /// Forgets what was there.
  template <typename... Arguments>
  static void make(Fiber& fiber, Arguments&&... arguments) {
    new (fiber.continuation_) boost::context::fiber(std::forward<Arguments>(arguments)...);
  }
  /// Goes there; returns when the switch back comes.
  static void swap(Fiber& fiber) { of(fiber) = std::move(of(fiber)).resume(); }
};

void Fiber::start(Entry entry, void* argument) {
  fiber_fake_stack_ = nullptr;
#ifdef EMULATOR_ASAN
  __asan_unpoison_memory_region(stack_, stack_bytes_);  // an abandoned fiber leaves its frames poisoned
#endif
  boost::context::stack_context stack;
  stack.sp = stack_ + stack_bytes_ - colour_;
  stack.size = stack_bytes_ - colour_;
  auto run = [this, entry, argument](boost::context::fiber&& scheduler) {
#ifdef EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_bottom_, &scheduler_bytes_);
#endif
    Continuation::make(*this, std::move(scheduler));
    entry(argument);
#ifdef EMULATOR_ASAN
    __sanitizer_start_switch_fiber(nullptr, scheduler_bottom_, scheduler_bytes_);
#endif
    return std::move(Continuation::of(*this));
  };
  Continuation::make(*this, std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                     KeepStack{}, run);
}

void Fiber::resume() {
#ifdef EMULATOR_ASAN
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, stack_bytes_);
#endif
  Continuation::swap(*this);
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#ifdef EMULATOR_ASAN
  __sanitizer_start_switch_fiber(&fiber_fake_stack_, scheduler_bottom_, scheduler_bytes_);
#endif
  Continuation::swap(*this);
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(fiber_fake_stack_, &scheduler_bottom_, &scheduler_bytes_);
#endif
}

// Where a boost::context::fiber continues is the stack pointer that it was left with.
__attribute__((no_sanitize("address", "undefined"))) std::uint64_t Fiber::fingerprint() const {
  const volatile std::uint64_t* word = nullptr;
  std::memcpy(&word, continuation_, sizeof word);
  const auto* const end = reinterpret_cast<const std::uint64_t*>(
      stack_ + (stack_bytes_ - colour_) / sizeof(std::uint64_t) * sizeof(std::uint64_t));
  std::uint64_t print = reinterpret_cast<std::uintptr_t>(word);
  for (; word < end; ++word) {
    print = (print ^ *word) * 0x9e3779b97f4a7c15u;
    print ^= print >> 32;
  }
  return print;
}

FiberPool::~FiberPool() {
  for (Fiber* fiber : fibers_) delete fiber;
  for (const Mapping& mapping : mappings_) {
    remove_range(mapping.begin);
    munmap(mapping.begin, mapping.bytes);
  }
}

void FiberPool::reserve(std::size_t count) {
  while (fibers_.size() < count) {
    const std::size_t bytes = kBatch * kSlotBytes;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    auto* begin = static_cast<char*>(memory);
    mappings_.push_back({begin, bytes});
    add_range(begin, bytes);
    for (std::size_t i = 0; i < kBatch; ++i) {
      char* slot = begin + i * kSlotBytes;
      mprotect(slot, kGuardBytes, PROT_NONE);
      auto* fiber = new Fiber;
      fiber->stack_ = slot + kGuardBytes;
      fiber->stack_bytes_ = kStackBytes;
      // Stacks that start at equal offsets would fight for the same cache sets: all their hot frames lie at
      // the top. Spread the tops over 16 KB.
      fiber->colour_ = fibers_.size() * 320 % 16384 / 64 * 64;
      fibers_.push_back(fiber);
    }
  }
}

bool is_fiber_guard(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  for (const Range& range : ranges) {
    const std::uintptr_t begin = range.begin;
    if (value >= begin && value < range.end) return (value - begin) % kSlotBytes < kGuardBytes;
  }
  return false;
}

}  // namespace emulator
