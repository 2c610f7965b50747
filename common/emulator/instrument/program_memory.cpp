#include "emulator/instrument/program_memory.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "emulator/memory/device_memory.h"

namespace emulator {

constinit ProgramMemory program_memory[kProgramSections];

namespace {

struct HostAccess {
  std::uintptr_t address = 0;
  Access access = Access::kRead;
  Where where;
};
HostAccess first_access;

}  // namespace

void register_program_memory(const void* begin, const void* end) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const auto last = reinterpret_cast<std::uintptr_t>(end);
  if (first == 0 || last <= first) return;
  ProgramMemory& section = program_memory[program_memory[0].bytes == 0 ? 0 : 1];
  section = {first, last - first};
  adopt_program_buffer(first, last - first);
}

void note_host_access(std::uintptr_t address, Access access, Where where) {
  if (address - device_space.begin >= device_space.slots << kSlotLog2 || first_access.address != 0) return;
  first_access = {address, access, where};
}

std::string take_host_access() {
  const HostAccess taken = std::exchange(first_access, {});
  if (taken.address == 0) return {};
  return fmt::format("host code at {} {} device memory, {}: a host has no access to it; copy with cudaMemcpy",
                     taken.where.text(), taken.access == Access::kRead ? "reads" : "writes",
                     describe_address(taken.address, 1));
}

}  // namespace emulator
