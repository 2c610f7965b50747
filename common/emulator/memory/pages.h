// Memory by pages: as the operating system hands it out, or in WebAssembly, where every address can be
// written, from the heap.
#pragma once

#include <cstddef>

namespace emulator {

/// Memory whose bytes are zero and that costs nothing until it is touched. Throws std::bad_alloc.
void* map_zeroed(std::size_t bytes);
/// Between two parts of at least `guard` bytes that nobody can access, where there is such a thing.
void* map_guarded(std::size_t bytes, std::size_t guard);
/// Gives back what map_zeroed has returned.
void unmap(void* memory, std::size_t bytes) noexcept;
void unmap_guarded(void* memory, std::size_t bytes, std::size_t guard) noexcept;

/// The address space of all device memory: nobody can access it yet.
struct AddressSpace {
  void* begin = nullptr;  // nullptr: there is none
  std::size_t bytes = 0;
};
AddressSpace reserve_device_space();
/// Makes a part of it accessible; false where the machine has no memory left.
bool make_accessible(void* begin, std::size_t bytes);
/// The opposite; its bytes are lost.
void make_inaccessible(void* begin, std::size_t bytes) noexcept;

/// How much memory buffers may take altogether, and how much of it the machine has left.
std::size_t memory_bytes();
std::size_t memory_bytes_free();

}  // namespace emulator
