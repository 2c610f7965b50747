#include "emulator/machine/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif

#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {
namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

#ifdef EMULATOR_ASAN
constexpr std::size_t kStackBytes = 256 * 1024;  // instrumented frames are larger
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif
constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kSlotBytes = kStackBytes + kGuardBytes;
constexpr std::size_t kBatch = 64;  // fibers mapped together

// Every mapping ever made, for the signal handler: append-only, so that reading needs no lock.
constexpr std::size_t kMaxMappings = 1 << 14;
struct Range {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
};
Range ranges[kMaxMappings];
std::atomic<std::size_t> range_count{0};

}  // namespace

struct FiberEntry {
  static void run(transfer_t from) {
    auto* fiber = static_cast<Fiber*>(from.data);
#ifdef EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &fiber->scheduler_bottom_, &fiber->scheduler_bytes_);
#endif
    fiber->scheduler_ = from.fctx;
    fiber->entry_(fiber->argument_);
#ifdef EMULATOR_ASAN
    __sanitizer_start_switch_fiber(nullptr, fiber->scheduler_bottom_, fiber->scheduler_bytes_);
#endif
    jump_fcontext(fiber->scheduler_, nullptr);
    std::abort();  // no fiber is resumed after its entry has returned
  }
};

void Fiber::start(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  fiber_fake_stack_ = nullptr;
#ifdef EMULATOR_ASAN
  __asan_unpoison_memory_region(stack_, stack_bytes_);  // an abandoned fiber leaves its frames poisoned
#endif
  context_ = make_fcontext(stack_ + stack_bytes_ - colour_, stack_bytes_ - colour_, &FiberEntry::run);
}

void Fiber::resume() {
#ifdef EMULATOR_ASAN
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, stack_bytes_);
#endif
  const transfer_t back = jump_fcontext(context_, this);
  context_ = back.fctx;
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#ifdef EMULATOR_ASAN
  __sanitizer_start_switch_fiber(&fiber_fake_stack_, scheduler_bottom_, scheduler_bytes_);
#endif
  const transfer_t back = jump_fcontext(scheduler_, nullptr);
  scheduler_ = back.fctx;
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(fiber_fake_stack_, &scheduler_bottom_, &scheduler_bytes_);
#endif
}

FiberPool::~FiberPool() {
  for (Fiber* fiber : fibers_) delete fiber;
  for (const Mapping& mapping : mappings_) {
    const std::size_t count = range_count.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
      if (ranges[i].begin.load() == reinterpret_cast<std::uintptr_t>(mapping.begin)) ranges[i].end = 0;
    }
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
    const std::size_t index = range_count.fetch_add(1);
    if (index < kMaxMappings) {
      ranges[index].begin = reinterpret_cast<std::uintptr_t>(begin);
      ranges[index].end = reinterpret_cast<std::uintptr_t>(begin + bytes);
    }
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
  const std::size_t count = range_count.load();
  for (std::size_t i = 0; i < count && i < kMaxMappings; ++i) {
    const std::uintptr_t begin = ranges[i].begin;
    if (value >= begin && value < ranges[i].end) return (value - begin) % kSlotBytes < kGuardBytes;
  }
  return false;
}

}  // namespace emulator
