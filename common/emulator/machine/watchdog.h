// What ends a kernel that would run forever or die without a word.
//
// Threads are fibers of one OS thread, so one that spins without ever giving way would keep all others from
// running. A timer of the OS thread's processor time notices: after a few ticks without a switch the wrappers
// of plain loads are watched, and one that reads the same value again and again gives way. A thread that
// meets no wrapper at all is stopped where it is, after Options::stall_seconds. Faults of the processor (an
// integer division by zero, a full stack, a wild pointer) are stopped in the same way.
#pragma once

#include <time.h>

#include <cstdint>
#include <memory>
#include <string>

#include "emulator/machine/machine.h"

namespace emulator {

/// While it lives, the calling OS thread's processor time is watched.
class WatchTimer {
 public:
  explicit WatchTimer(double stall_seconds);
  ~WatchTimer();
  WatchTimer(const WatchTimer&) = delete;
  WatchTimer& operator=(const WatchTimer&) = delete;

 private:
  timer_t timer_{};
  bool made_ = false;
};

/// The scheduler switches to a fiber, and is back.
/// Whether the timer has ticked since the last call: whether a look at the clock is worth it.
bool watch_has_ticked();
/// The running thread has had its time without giving way (Options::stall_seconds): its next wrapper ends it.
bool watch_has_expired();
double watch_stall_seconds();
/// The processor time of this OS thread in the present launch.
double watch_seconds();
void watch_fiber_begins();
void watch_fiber_ends();

/// What stopped a fiber from outside.
struct Fault {
  int signal = 0;  // 0: it ran for too long
  int code = 0;    // siginfo_t::si_code
  std::uintptr_t instruction = 0;
  std::uintptr_t address = 0;
};
/// The interrupted instruction's address, from a signal handler's third argument; 0 where that is not known.
std::uintptr_t instruction_of(const void* machine);
/// From a signal handler, on the fiber's OS thread: back to the scheduler, for good. Returns if no fiber
/// runs.
void stop_fiber(const Fault& fault);
/// The fault that stopped the fiber which the scheduler has just left, as a report.
std::unique_ptr<Failure> take_fault(const Thread& thread);

/// The running thread asks again for what it has asked for before.
void note_poll(const Poll& poll);
/// "poll at kernel.cuh:41 ld_acquire_gpu: flags + 4 holds 0, and no thread has changed it since the kernel
/// began"
std::string describe_poll(const Thread& thread);
/// Which threads of the gang poll what, who wrote it last, and where the others are.
std::string describe_polls(const Gang& gang);
/// How the neighbours are written of words that are polled and that nobody has changed: lines of a report.
std::string unset_words(const Gang& gang);

}  // namespace emulator
