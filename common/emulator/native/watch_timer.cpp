// A timer of the OS thread's processor time, whose signal looks at what the thread does.
#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "emulator/machine/attention.h"
#include "emulator/machine/sanitizer.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/faults.h"
#include "emulator/report/places.h"
#include "emulator/report/report.h"

#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#endif

// Of the linker: where the program's own instructions lie.
extern "C" const char __executable_start;  // NOLINT(readability-identifier-naming)
extern "C" const char etext;               // NOLINT(readability-identifier-naming)

#ifndef sigev_notify_thread_id  // glibc has the field, and a name for it only in newer versions
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace emulator {
namespace {

constexpr int kTickMilliseconds = 20;
constexpr int kTicksUntilWatched = 2;
// Between asking a thread to stop at its next wrapper and stopping it where it is.
constexpr int kTicksOfGrace = 10;

int tick_signal() {
  return SIGRTMIN + 5;
}

/// Of the OS thread.
struct Watch {
  std::atomic<std::uint64_t> switches{0};
  std::atomic<bool> in_fiber{false};
  std::atomic<bool> expired{false};
  std::uint64_t seen = 0;
  int quiet_ticks = 0;
  int ticks_allowed = 0;
  double stall_seconds = 0;
  std::atomic<bool> ticked{false};
  std::atomic<int> ticks{0};  // in this launch
  bool faulted = false;
  Fault fault;
};
constinit thread_local Watch watch;

void tick(int, siginfo_t*, void* machine) {
  const int error = errno;
  Watch& w = watch;
  w.ticked.store(true, std::memory_order_relaxed);
  w.ticks.store(w.ticks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const std::uint64_t switches = w.switches.load(std::memory_order_relaxed);
  if (!w.in_fiber.load(std::memory_order_relaxed) || switches != w.seen) {
    w.seen = switches;
    w.quiet_ticks = 0;
    return;
  }
  ++w.quiet_ticks;
  if (w.quiet_ticks >= kTicksUntilWatched) attention_flags.fetch_or(kWatchAttention);
  if (w.quiet_ticks >= w.ticks_allowed) w.expired = true;
  const std::uintptr_t instruction = instruction_of(machine);
  // Not inside a library, which may hold a lock.
  const bool own = instruction >= reinterpret_cast<std::uintptr_t>(&__executable_start) &&
                   instruction < reinterpret_cast<std::uintptr_t>(&etext);
  if (w.quiet_ticks >= w.ticks_allowed + kTicksOfGrace && (own || instruction == 0)) {
    stop_fiber({.instruction = instruction});
  }
  errno = error;
}

}  // namespace

WatchTimer::WatchTimer(double stall_seconds) {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = tick;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    return sigaction(tick_signal(), &action, nullptr) == 0;
  }();
  Watch& w = watch;
  w.ticks = 0;
  w.quiet_ticks = 0;
  w.stall_seconds = stall_seconds;
  w.ticks_allowed = static_cast<int>(stall_seconds * 1000 / kTickMilliseconds) + 1;
  w.expired = false;
  if (!installed) return;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = tick_signal();
  event.sigev_notify_thread_id = gettid();
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) != 0) return;
  made_ = true;
  itimerspec every{};
  every.it_interval.tv_nsec = 1L * kTickMilliseconds * 1'000'000;
  every.it_value = every.it_interval;
  timer_settime(timer_, 0, &every, nullptr);
}

WatchTimer::~WatchTimer() {
  if (made_) timer_delete(timer_);
}

bool watch_has_ticked() {
  if (!watch.ticked.load(std::memory_order_relaxed)) return false;
  watch.ticked.store(false, std::memory_order_relaxed);
  return true;
}

bool watch_has_expired() {
  return watch.expired;
}

double watch_stall_seconds() {
  return watch.stall_seconds;
}

double watch_seconds() {
  return watch.ticks.load(std::memory_order_relaxed) * (kTickMilliseconds / 1000.0);
}

void watch_fiber_begins() {
  watch.switches.store(watch.switches.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  watch.in_fiber.store(true, std::memory_order_relaxed);
}

void watch_fiber_ends() {
  watch.in_fiber.store(false, std::memory_order_relaxed);
}

std::uintptr_t instruction_of(const void* machine) {
  const auto* state = static_cast<const ucontext_t*>(machine);
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(state->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return state->uc_mcontext.pc;
#else
  static_cast<void>(state);
  return 0;
#endif
}

void stop_fiber(const Fault& fault) {
  Watch& w = watch;
  if (!w.in_fiber.load(std::memory_order_relaxed)) return;
  w.in_fiber = false;
  w.fault = fault;
  w.faulted = true;
  // The handler never returns, so nobody else takes back what the kernel did for it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, fault.signal == 0 ? tick_signal() : fault.signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
#ifdef EMULATOR_ASAN
  // Its frames, which never end, would look like those of the next handler.
  stack_t stack{};
  sigaltstack(nullptr, &stack);
  __asan_unpoison_memory_region(stack.ss_sp, stack.ss_size);
#endif
  running_thread().cta->gang->abandon();
}

std::unique_ptr<Failure> take_fault(const Thread& thread) {
  Watch& w = watch;
  if (!w.faulted) return nullptr;
  w.faulted = false;
  if (w.fault.signal != 0) return std::make_unique<Failure>(describe_fault(w.fault, thread));
  Report report(
      "a thread has run for {} seconds of processor time without waiting or yielding: it is in a loop that "
      "does not end",
      w.stall_seconds);
  const std::string place = place_with_callers(lines_of_instruction(w.fault.instruction));
  report.line("where", place.empty() ? "(unknown place)" : place).line("by", name_thread(thread));
  report.rule(
      "a thread must wait for another thread at a barrier, at an mbarrier or with atomics (on the emulator, "
      "polling through a plain pointer lets no other thread run), and its loops must end",
      "PTX ISA, \"Memory Consistency Model\"");
  return std::make_unique<Failure>(Failure{"livelock", report.str()});
}

}  // namespace emulator
