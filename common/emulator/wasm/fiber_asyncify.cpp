// Fibers without a second stack of the machine's own. WebAssembly keeps return addresses where no program can
// reach them, so a fiber that suspends returns from all of its functions, and Binaryen's pass Asyncify has
// made each of them save its variables on the way and find them again when it is called anew. Only functions
// of the fiber do that: the scheduler calls a fiber like any function.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

#include "emulator/machine/fiber.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/faults.h"
#include "harness/backend/backend.h"

// The pass puts its own code in their place. Without noexcept they would be called through a pointer where
// something is caught, and the pass would not see who calls them.
#define ASYNCIFY(name) __attribute__((import_module("asyncify"), import_name(#name)))
extern "C" {
ASYNCIFY(start_unwind) void emulator_start_unwind(void* frames) noexcept;
ASYNCIFY(stop_unwind) void emulator_stop_unwind() noexcept;
ASYNCIFY(start_rewind) void emulator_start_rewind(void* frames) noexcept;
ASYNCIFY(stop_rewind) void emulator_stop_rewind() noexcept;

// Of Emscripten: the pointer of the stack that has the variables whose address is taken.
void* stackSave() noexcept;                  // NOLINT(readability-identifier-naming)
void stackRestore(void* position) noexcept;  // NOLINT(readability-identifier-naming)
}
#undef ASYNCIFY

namespace emulator {
namespace {

constexpr std::uint32_t kCanary[] = {0x6b616e61, 0x72696521, 0x5ca1ab1e, 0x0ddba11u};
constexpr std::size_t kGuardBytes = 64;
constexpr std::size_t kStackBytes = std::size_t{64} * 1024;
constexpr std::size_t kFrameBytes = std::size_t{16} * 1024;  // the pass traps where they are full
constexpr std::size_t kSlotBytes = kGuardBytes + kStackBytes + kFrameBytes;

}  // namespace

/// What continuation_ points to.
struct Fiber::Continuation {
  struct {
    char* next;  // free byte
    char* end;
  } frames{};                      // as the pass wants it
  void* stack_position = nullptr;  // of the fiber, while it does not run
  Entry entry = nullptr;
  void* argument = nullptr;
  bool is_suspended = false;

  static Continuation*& of(Fiber& fiber) {
    return *reinterpret_cast<Continuation**>(static_cast<void*>(fiber.continuation_));
  }
  static const Continuation& of(const Fiber& fiber) { return *of(const_cast<Fiber&>(fiber)); }
};

namespace {

/// The words below a stack that was full.
const void* damaged_guard = nullptr;

/// A fiber's functions find their variables again.
bool is_rewinding = false;

/// The lowest of a fiber's functions: where unwinding begins and where rewinding ends. The pass leaves it as
/// it is, and so the caller must not contain it.
[[gnu::noinline]] void turn(void* frames) {
  if (!is_rewinding) return emulator_start_unwind(frames);
  is_rewinding = false;
  emulator_stop_rewind();
}

/// The scheduler's place on its stack, which it has again when the fiber returns or throws.
class SchedulerStack {
 public:
  SchedulerStack() : position_(stackSave()) {}
  ~SchedulerStack() { stackRestore(position_); }
  SchedulerStack(const SchedulerStack&) = delete;
  SchedulerStack& operator=(const SchedulerStack&) = delete;

 private:
  void* position_;
};

}  // namespace

void Fiber::start(Entry entry, void* argument) {
  Continuation& self = *Continuation::of(*this);
  char* const frames = stack_ + kStackBytes;
  self = {.frames = {frames, frames + kFrameBytes},
          .stack_position = frames,
          .entry = entry,
          .argument = argument,
          .is_suspended = false};
  std::memcpy(stack_ - kGuardBytes, kCanary, sizeof kCanary);
}

// The caller of the fiber's functions: the pass leaves it as it is, too.
[[gnu::noinline]] void Fiber::resume() {
  Continuation& self = *Continuation::of(*this);
  const SchedulerStack scheduler;
  stackRestore(self.stack_position);
  if (self.is_suspended) {
    self.is_suspended = false;
    is_rewinding = true;
    emulator_start_rewind(&self.frames);
  }
  try {
    self.entry(self.argument);
    if (self.is_suspended) {
      emulator_stop_unwind();
      self.stack_position = stackSave();
    }
  } catch (const Stop&) {
    // The report is with the gang. Nobody resumes this fiber.
  }
  if (std::memcmp(stack_ - kGuardBytes, kCanary, sizeof kCanary) == 0) return;
  damaged_guard = stack_ - kGuardBytes;
  const Failure failure = describe_fault(
      {.signal = SIGSEGV, .address = reinterpret_cast<std::uintptr_t>(damaged_guard)}, running_thread());
  throw harness::EmulatorReport(failure.rule, failure.rule + ": " + failure.text);
}

void Fiber::suspend() {
  Continuation& self = *Continuation::of(*this);
  self.is_suspended = !is_rewinding;
  turn(&self.frames);
}

std::uint64_t Fiber::fingerprint() const {
  const Continuation& self = Continuation::of(*this);
  auto print = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(self.stack_position));
  const auto add = [&](const void* begin, const void* end) {
    for (const auto* word = static_cast<const std::uint32_t*>(begin); word < end; ++word) {
      print = (print ^ *word) * 0x9e3779b97f4a7c15u;
      print ^= print >> 32;
    }
  };
  add(self.stack_position, stack_ + kStackBytes);
  add(stack_ + kStackBytes, self.frames.next);
  return print;
}

FiberPool::~FiberPool() {
  for (Fiber* fiber : fibers_) {
    delete Fiber::Continuation::of(*fiber);
    delete fiber;
  }
  for (const Mapping& mapping : mappings_) std::free(mapping.begin);
}

void FiberPool::reserve(std::size_t count) {
  while (fibers_.size() < count) {
    auto* slot = static_cast<char*>(std::aligned_alloc(kGuardBytes, kSlotBytes));
    if (slot == nullptr) throw std::bad_alloc();
    mappings_.push_back({slot, kSlotBytes});
    auto* fiber = new Fiber;
    fiber->stack_ = slot + kGuardBytes;
    fiber->stack_bytes_ = kStackBytes;
    Fiber::Continuation::of(*fiber) = new Fiber::Continuation;
    fibers_.push_back(fiber);
  }
}

bool is_fiber_guard(const void* address) {
  return address != nullptr && address == damaged_guard;
}

}  // namespace emulator
