// What a program with instrumented kernels has beside device buffers: __device__ and __constant__ variables,
// and host code that dereferences device pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/machine/where.h"
#include "emulator/memory/shadow.h"

namespace emulator {

/// The variables of the kernel's own source (sections of its object that tools/emulate renames); one buffer
/// of global memory, written from the start.
struct ProgramMemory {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};
extern constinit ProgramMemory program_memory;

/// Tells the emulator where they are; a program without such sections has none.
void register_program_memory(const void* begin, const void* end);

/// Host code touches these bytes: the first time that they are device memory is kept.
void note_host_access(std::uintptr_t address, Access access, Where where);
/// A sentence about it, or nothing; forgets it.
std::string take_host_access();

}  // namespace emulator
