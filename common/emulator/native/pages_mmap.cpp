#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "emulator/memory/pages.h"

namespace emulator {
namespace {

constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
constexpr std::size_t kLeastSpace = std::size_t{1} << 30;
constexpr std::size_t kUsualSpace = std::size_t{64} << 30;

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void* map_zeroed(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kPrivate, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

void* map_guarded(std::size_t bytes, std::size_t guard) {
  void* const mapping = mmap(nullptr, bytes + 2 * guard, PROT_NONE, kPrivate, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  void* const memory = static_cast<unsigned char*>(mapping) + guard;
  mprotect(memory, bytes, PROT_READ | PROT_WRITE);
  return memory;
}

void unmap(void* memory, std::size_t bytes) noexcept {
  munmap(memory, bytes);
}

void unmap_guarded(void* memory, std::size_t bytes, std::size_t guard) noexcept {
  munmap(static_cast<unsigned char*>(memory) - guard, bytes + 2 * guard);
}

AddressSpace reserve_device_space() {
  // Twice the memory: small buffers take a whole slot. Less where the address space is limited.
  for (std::size_t bytes = std::max(kUsualSpace, 2 * memory_bytes()); bytes >= kLeastSpace; bytes /= 2) {
    void* const memory = mmap(nullptr, bytes, PROT_NONE, kPrivate, -1, 0);
    if (memory != MAP_FAILED) return {memory, bytes};
  }
  return {};
}

bool make_accessible(void* begin, std::size_t bytes) {
  return mprotect(begin, bytes, PROT_READ | PROT_WRITE) == 0;
}

void make_inaccessible(void* begin, std::size_t bytes) noexcept {
  // A fresh mapping gives the pages back to the system.
  static_cast<void>(mmap(begin, bytes, PROT_NONE, kPrivate | MAP_FIXED, -1, 0));
}

std::size_t memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
}

std::size_t memory_bytes_free() {
  return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * page_bytes();
}

}  // namespace emulator
