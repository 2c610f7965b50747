#include "emulator/memory/segfault.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "emulator/machine/context.h"
#include "emulator/machine/fiber.h"
#include "emulator/machine/float_trap.h"
#include "emulator/machine/machine.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/report.h"
#include "harness/backend/backend.h"

namespace emulator {
namespace {

struct sigaction previous;
struct sigaction previous_arithmetic;

[[noreturn]] void end_with(const std::string& text) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  _exit(harness::kExitEmulator);
}

void handle(int number, siginfo_t* info, void* machine) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const Thread* thread = context.thread;
  const std::string reader = thread ? name_thread(*thread) : "host code";
  // Formatting allocates, which a signal handler may not do in general; here the process is about to end, and
  // the fault came from a load or store of a kernel, not from inside the allocator.
  if (device_space.buffers && address >= device_space.begin &&
      address - device_space.begin < device_space.slots << kSlotLog2) {
    end_with(Report("global-out-of-bounds: a pointer was dereferenced without a wrapper, " +
                    describe_address(address, 1))
                 .line("by", reader)
                 .rule("a kernel touches only memory that was allocated, and through ld_global and st_global",
                       "CUDA C++ Programming Guide, \"Device Memory\"")
                 .str());
  }
  if (thread && is_fiber_guard(info->si_addr)) {
    end_with(Report("stack-overflow: the stack of an emulated thread is full; its local arrays or its "
                    "recursion are too large for the 64 KB it has")
                 .line("by", reader)
                 .str());
  }
  if (thread) {
    const auto begin = reinterpret_cast<std::uintptr_t>(thread->cta->shared);
    constexpr std::uintptr_t kNear = 64 * 1024;
    if (address >= begin - kNear && address < begin + kMaxSharedBytes + kNear) {
      end_with(Report("shared-out-of-bounds: a pointer outside dynamic shared memory was dereferenced "
                      "without a wrapper")
                   .line("by", reader)
                   .rule("shared memory is touched through ld_shared and st_shared",
                         "this course, common/ptx/memory.cuh")
                   .str());
    }
  }
  sigaction(number, &previous, nullptr);
  if (previous.sa_flags & SA_SIGINFO) {
    if (previous.sa_sigaction) previous.sa_sigaction(number, info, machine);
  }
  // Otherwise the instruction faults again and the previous action applies.
}

/// SIGFPE. Where it went before, unless it is an invalid operation of a thread's on floats.
void handle_arithmetic(int number, siginfo_t* info, void* machine) {
  if (info->si_code == FPE_FLTINV && handle_invalid(machine)) return;
  sigaction(number, &previous_arithmetic, nullptr);
  if ((previous_arithmetic.sa_flags & SA_SIGINFO) && previous_arithmetic.sa_sigaction) {
    previous_arithmetic.sa_sigaction(number, info, machine);
  }
}

/// Ours for this signal, unless it is already.
void install(int number, void (*handler)(int, siginfo_t*, void*), struct sigaction& before) {
  struct sigaction current {};
  sigaction(number, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == handler) return;
  before = current;
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void install_segfault_handler() {
  // Looked at before every launch: test frameworks come and go with handlers of their own.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  install(SIGSEGV, handle, previous);
  install(SIGFPE, handle_arithmetic, previous_arithmetic);
}

void use_signal_stack() {
  static constexpr std::size_t kBytes = 128 * 1024;
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
