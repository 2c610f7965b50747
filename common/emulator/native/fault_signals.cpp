// The processor tells of a fault with a signal.
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <mutex>

#include "emulator/machine/float_trap.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/faults.h"

namespace emulator {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction previous[std::size(kSignals)];

void handle(int number, siginfo_t* info, void* machine) {
  if (number == SIGFPE && info->si_code == FPE_FLTINV && handle_invalid(machine)) return;
  stop_fiber({.signal = number,
              .code = info->si_code,
              .instruction = instruction_of(machine),
              .address = reinterpret_cast<std::uintptr_t>(info->si_addr)});
  // No kernel's thread.
  const struct sigaction& before =
      previous[std::find(std::begin(kSignals), std::end(kSignals), number) - kSignals];
  sigaction(number, &before, nullptr);
  if (before.sa_flags & SA_SIGINFO) {
    if (before.sa_sigaction) before.sa_sigaction(number, info, machine);
  }
  // Otherwise the instruction faults again and the previous action applies.
}

}  // namespace

void install_fault_handlers() {
  // Looked at before every launch: test frameworks come and go with handlers of their own.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction current {};
    sigaction(kSignals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == handle) continue;
    previous[i] = current;
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, nullptr);
  }
}

void use_signal_stack() {
  static constexpr std::size_t kBytes = std::size_t{128} * 1024;
  struct Stack {
    void* memory;
    Stack() {
      memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      stack_t stack{};
      stack.ss_sp = memory;
      stack.ss_size = kBytes;
      if (memory != MAP_FAILED) sigaltstack(&stack, nullptr);
    }
    ~Stack() {
      stack_t off{};
      off.ss_flags = SS_DISABLE;
      sigaltstack(&off, nullptr);
      if (memory != MAP_FAILED) munmap(memory, kBytes);
    }
  };
  thread_local Stack stack;
}

}  // namespace emulator
