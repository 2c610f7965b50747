// What a program with instrumented kernels has beside device buffers: __device__ and __constant__ variables,
// and host code that dereferences device pointers.
#pragma once

#include <atomic>
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
void note_host_access(std::uintptr_t address, unsigned bytes, Access access, Where where);
/// Managed and pinned memory, which both sides may touch, though not at the same time.
void share_with_host(const void* memory);
/// A sentence about it, or nothing; forgets it.
std::string take_host_access();

/// What no kernel may touch: what the host code of the file has on its stack, and what it has allocated with
/// malloc, new or a container. The range around all of it, so that most accesses need no look at the list.
struct HostMemory {
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<std::uintptr_t> arguments{0}, arguments_end{0};  // of the launch, which its threads copy
};
extern constinit HostMemory host_memory;
inline bool is_launch_argument(std::uintptr_t address) {
  const std::uintptr_t begin = host_memory.arguments.load(std::memory_order_relaxed);
  return address - begin < host_memory.arguments_end.load(std::memory_order_relaxed) - begin;
}

/// A kernel is launched from the calling thread: its stack is the host's, but for the arguments, which the
/// threads of the grid copy.
void note_launch_arguments(const void* arguments, std::size_t bytes);
/// An allocation by the file's own code. What a kernel allocates, and what is pinned, both sides may touch.
void note_allocation(std::uintptr_t begin, std::size_t bytes, bool by_host);
void forget_allocation(const void* memory);
/// A run of the host code begins. What it has left of an earlier one may have been freed elsewhere.
void forget_allocations();
/// "16 bytes into 1024 bytes that ...", or nothing where the address is none of the host's.
std::string describe_host_memory(std::uintptr_t address);

/// Whether a kernel's thread that runs on the calling fiber may touch the address, as far as the range tells.
inline bool may_be_host_memory(std::uintptr_t address) {
  constexpr std::uintptr_t kNear = std::uintptr_t{64} * 1024;  // its own stack
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return address - (here - kNear) >= 2 * kNear &&
         address - host_memory.begin.load(std::memory_order_relaxed) <
             host_memory.end.load(std::memory_order_relaxed) -
                 host_memory.begin.load(std::memory_order_relaxed);
}

}  // namespace emulator
