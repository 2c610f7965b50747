// The history of global memory, cell by cell, for what reads or writes it without being a thread's access.
#pragma once

#include <cstdint>

#include "emulator/async/async_memory.h"
#include "emulator/machine/machine.h"
#include "emulator/memory/device_memory.h"

namespace emulator {

/// Calls visit(cell) for the cells of global memory's history that the range covers.
template <typename Visit>
void for_global_cells(std::uintptr_t address, std::uint32_t bytes, Visit visit) {
  Buffer& buffer = *find_buffer(address);
  const std::uintptr_t first = buffer.allocation_begin / 16 * 16;
  const bool shared_with_others = !running_thread().cta->gang->grid.single_os_thread;
  const std::uint64_t tag = running_thread().cta->gang->grid.tag;
  const LineTable& lines = history(buffer);
  for (std::uintptr_t at = address / 16 * 16; at < address + bytes; at += 16) {
    Line& line = lines[(at - first) / 16];
    while (shared_with_others &&
           (line.state.fetch_or(Line::kLockBit, std::memory_order_acquire) & Line::kLockBit)) {
    }
    if (line.tag() == tag) {
      const unsigned log2 = line.granule_log2();
      for (unsigned i = 0; i < cells_of(line); ++i) {
        const std::uintptr_t begin = at + (std::uintptr_t{i} << log2);
        if (begin + (1u << log2) > address && begin < address + bytes) visit(line.cells()[i]);
      }
    }
    if (shared_with_others) line.state.fetch_and(~Line::kLockBit, std::memory_order_release);
  }
}

}  // namespace emulator
