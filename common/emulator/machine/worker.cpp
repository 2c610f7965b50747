// What an OS thread keeps between gangs: shared memory and its history.
#include <link.h>
#include <sys/mman.h>

#include <new>

#include "emulator/machine/machine.h"
#include "emulator/memory/faults.h"

namespace emulator {
namespace {

constexpr std::size_t kGuard = std::size_t{64} * 1024;
// Room for the largest CTA, rounded up to pages, ending at the inaccessible part only
// when all of it is asked for.
constexpr std::size_t kArenaBytes = (std::size_t{kMaxSharedBytes} + 4095) / 4096 * 4096;
constexpr std::size_t kArenaLines = kArenaBytes / 16;

struct TlsQuery {
  std::uintptr_t address;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

}  // namespace

Worker::Worker() = default;

Worker::~Worker() {
  for (SharedArena& arena : shared_) {
    munmap(arena.mapping, arena.mapping_bytes);
    arena.lines.release();
    for (Window& window : arena.static_windows) window.lines.release();
  }
}

Worker::SharedArena& Worker::shared_arena(std::size_t index) {
  while (shared_.size() <= index) {
    SharedArena arena;
    arena.mapping_bytes = kArenaBytes + 2 * kGuard;
    void* memory =
        mmap(nullptr, arena.mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    arena.mapping = static_cast<unsigned char*>(memory);
    arena.memory = arena.mapping + kGuard;
    mprotect(arena.memory, kArenaBytes, PROT_READ | PROT_WRITE);
    arena.lines = LineTable(kArenaLines);
    shared_.push_back(arena);
  }
  return shared_[index];
}

Window Worker::static_window(std::size_t index, std::uintptr_t address) {
  std::vector<Window>& windows = shared_arena(index).static_windows;
  for (const Window& window : windows) {
    if (address - window.begin < window.bytes) return window;
  }
  TlsQuery query{.address = address};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* q = static_cast<TlsQuery*>(data);
        if (!info->dlpi_tls_data) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
          const auto begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
          const std::size_t bytes = info->dlpi_phdr[i].p_memsz;
          if (q->address - begin < bytes) {
            q->begin = begin;
            q->bytes = bytes;
            return 1;
          }
        }
        return 0;
      },
      &query);
  if (query.bytes == 0) return {};
  Window window;
  window.begin = query.begin / 16 * 16;
  window.bytes = query.bytes + (query.begin - window.begin);
  window.fast_bytes = window.bytes / 16 * 16;
  window.lines = LineTable((window.bytes + 31) / 16);
  windows.push_back(window);
  return window;
}

}  // namespace emulator
