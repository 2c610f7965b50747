#include "emulator/memory/faults.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>

#include "emulator/machine/fiber.h"
#include "emulator/machine/float_trap.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/places.h"
#include "emulator/report/report.h"

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

Failure describe_fault(const Fault& fault, const Thread& thread) {
  const std::string place = place_with_callers(lines_of_instruction(fault.instruction));
  const auto begin = [&](const std::string& headline) {
    Report report(headline);
    if (!place.empty()) report.line("where", place);
    report.line("by", name_thread(thread));
    return report;
  };
  if (fault.signal == SIGFPE) {
    return {"division-by-zero", begin("an integer is divided by zero")
                                    .rule("a division by zero yields an unspecified value on a GPU, and the "
                                          "kernel continues with that value",
                                          "PTX ISA, \"Integer Arithmetic Instructions: div, rem\"")
                                    .str()};
  }
  if (fault.signal == SIGILL) {
    return {"illegal-instruction",
            begin("the kernel reached a point that the compiler assumed to be unreachable")
                .rule("a kernel must do nothing that C++ leaves undefined",
                      "CUDA C++ Programming Guide, \"C++ Language Support\"")
                .str()};
  }
  if (device_space.buffers && fault.address >= device_space.begin &&
      fault.address - device_space.begin < device_space.slots << kSlotLog2) {
    return {"global-out-of-bounds",
            begin("a pointer was dereferenced without a wrapper, " + describe_address(fault.address, 1))
                .rule("a kernel may access only memory that has been allocated, and only through ld_global "
                      "and st_global",
                      "CUDA C++ Programming Guide, \"Device Memory\"")
                .str()};
  }
  if (is_fiber_guard(reinterpret_cast<const void*>(fault.address))) {
    return {
        "stack-overflow",
        begin(
            "the stack of an emulated thread is full: its local arrays or its recursion do not fit in 64 KB")
            .str()};
  }
  const auto shared = reinterpret_cast<std::uintptr_t>(thread.cta->shared);
  constexpr std::uintptr_t kNear = std::uintptr_t{64} * 1024;
  if (fault.address >= shared - kNear && fault.address < shared + kMaxSharedBytes + kNear) {
    return {"shared-out-of-bounds",
            begin("a pointer outside dynamic shared memory was dereferenced without a wrapper")
                .rule("shared memory must be accessed through ld_shared and st_shared",
                      "this course, common/ptx/memory.cuh")
                .str()};
  }
  Report report =
      begin(fmt::format("a kernel accesses {:#x}, which is {}", fault.address,
                        fault.address < 4096 ? "null or nearly null" : "in no memory of the GPU"));
  if (const std::string wrapped = wrapped_index(fault.address); !wrapped.empty())
    report.line("note", "{}", wrapped);
  return {"invalid-address", report
                                 .rule("a kernel may access only memory that has been allocated",
                                       "CUDA C++ Programming Guide, \"Device Memory\"")
                                 .str()};
}

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
