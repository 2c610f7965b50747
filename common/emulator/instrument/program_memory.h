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
/// With and without an initial value.
inline constexpr std::size_t kProgramSections = 2;
extern constinit ProgramMemory program_memory[kProgramSections];
inline bool is_program_memory(std::uintptr_t address) {
  return address - program_memory[0].begin < program_memory[0].bytes ||
         address - program_memory[1].begin < program_memory[1].bytes;
}

/// Tells the emulator where they are; a program without such sections has none.
void register_program_memory(const void* begin, const void* end);

/// Host code touches these bytes: the first time that they are device memory is kept.
void note_host_access(std::uintptr_t address, Access access, Where where);
/// A sentence about it, or nothing; forgets it.
std::string take_host_access();

}  // namespace emulator
