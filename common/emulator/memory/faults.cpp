#include "emulator/memory/faults.h"

#include <fmt/format.h>
#include <signal.h>

#include <string>

#include "emulator/machine/fiber.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/places.h"
#include "emulator/report/report.h"

namespace emulator {

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

}  // namespace emulator
