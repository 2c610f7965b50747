#include <cstdlib>
#include <cstring>
#include <new>

#include "emulator/memory/pages.h"

namespace emulator {
namespace {

// Address space, which the browser fills with memory where it is touched. Small buffers take a slot of 2 MiB.
constexpr std::size_t kDeviceSpace = std::size_t{128} << 20;
constexpr std::size_t kMemory = kDeviceSpace / 2;

}  // namespace

void* map_zeroed(std::size_t bytes) {
  void* const memory = std::calloc(bytes, 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* map_guarded(std::size_t bytes, std::size_t guard) {
  static_cast<void>(guard);
  constexpr std::size_t kAlignment = 1024;  // what swizzled tiles need
  void* const memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void unmap(void* memory, std::size_t) noexcept {
  std::free(memory);
}

void unmap_guarded(void* memory, std::size_t, std::size_t) noexcept {
  std::free(memory);
}

AddressSpace reserve_device_space() {
  return {std::malloc(kDeviceSpace), kDeviceSpace};
}

bool make_accessible(void* begin, std::size_t bytes) {
  std::memset(begin, 0, bytes);
  return true;
}

void make_inaccessible(void*, std::size_t) noexcept {}

std::size_t memory_bytes() {
  return kMemory;
}

std::size_t memory_bytes_free() {
  return kMemory;
}

}  // namespace emulator
