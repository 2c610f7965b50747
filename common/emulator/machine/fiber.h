// Fibers: a CUDA thread is one. In a program for the processor Boost.Context switches the stacks, and
// AddressSanitizer is told about it (native/fiber_boost.cpp); in one for WebAssembly a suspended fiber's
// frames are unwound (wasm/fiber_asyncify.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator {

/// A stack and a function running on it, resumed by the OS thread that owns it and by no other.
class Fiber {
 public:
  using Entry = void (*)(void* argument);
  /// What a fiber throws to leave its entry for good. In WebAssembly no destructor runs and no catch of the
  /// fiber's own is asked.
  struct Stop {};

  /// Makes the next resume() call entry(argument) on a clean stack, whatever ran here before.
  void start(Entry entry, void* argument);
  /// Runs the fiber until it suspends or its entry returns. From the scheduler only.
  void resume();
  /// Back to the scheduler. From inside the fiber only.
  void suspend();
  /// A fingerprint of all that decides where a suspended fiber goes on and with what: its stack, on which its
  /// registers are saved. From the scheduler only.
  std::uint64_t fingerprint() const;

 private:
  friend class FiberPool;

  struct Continuation;
  // Of the two, the one that does not run: where the fiber continues, or where its scheduler does. A
  // boost::context::fiber that is never destroyed: Boost would unwind a fiber that was abandoned.
  alignas(void*) std::byte continuation_[sizeof(void*)] = {};
  char* stack_ = nullptr;  // lowest usable address
  std::size_t stack_bytes_ = 0;
  std::size_t colour_ = 0;  // bytes left unused at the top, different for neighbours: see FiberPool
  // AddressSanitizer's view of the two stacks.
  void* fiber_fake_stack_ = nullptr;
  [[maybe_unused]] const void* scheduler_bottom_ = nullptr;
  [[maybe_unused]] std::size_t scheduler_bytes_ = 0;
};

/// The fibers of one OS thread, reused from CTA to CTA. Between two stacks lies an inaccessible page, or in
/// WebAssembly, which has none, words that are looked at when the fiber suspends.
class FiberPool {
 public:
  FiberPool() = default;
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  /// At least `count` fibers; a reference stays valid until the pool dies.
  void reserve(std::size_t count);
  Fiber& operator[](std::size_t index) { return *fibers_[index]; }

 private:
  struct Mapping {
    char* begin;
    std::size_t bytes;
  };
  std::vector<Fiber*> fibers_;
  std::vector<Mapping> mappings_;
};

/// Whether `address` lies in the inaccessible page below a fiber's stack of any pool: a stack overflow.
bool is_fiber_guard(const void* address);

}  // namespace emulator
