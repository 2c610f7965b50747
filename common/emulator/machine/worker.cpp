// What an OS thread keeps between gangs: shared memory and its history.
#include "emulator/machine/machine.h"
#include "emulator/memory/pages.h"
#include "emulator/report/symbols.h"

namespace emulator {
namespace {

constexpr std::size_t kGuard = std::size_t{64} * 1024;
// Room for the largest CTA, rounded up to pages, ending at the inaccessible part only
// when all of it is asked for.
constexpr std::size_t kArenaBytes = (std::size_t{kMaxSharedBytes} + 4095) / 4096 * 4096;
constexpr std::size_t kArenaLines = kArenaBytes / 16;

}  // namespace

Worker::Worker() = default;

Worker::~Worker() {
  for (SharedArena& arena : shared_) {
    unmap_guarded(arena.memory, kArenaBytes, kGuard);
    arena.lines.release();
    for (Window& window : arena.static_windows) window.lines.release();
  }
}

Worker::SharedArena& Worker::shared_arena(std::size_t index) {
  while (shared_.size() <= index) {
    SharedArena arena;
    arena.memory = static_cast<unsigned char*>(map_guarded(kArenaBytes, kGuard));
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
  const ThreadBlock block = thread_block_around(address);
  if (block.bytes == 0) return {};
  Window window;
  window.begin = block.begin / 16 * 16;
  window.bytes = block.bytes + (block.begin - window.begin);
  window.fast_bytes = window.bytes / 16 * 16;
  window.lines = LineTable((window.bytes + 31) / 16);
  windows.push_back(window);
  return window;
}

}  // namespace emulator
