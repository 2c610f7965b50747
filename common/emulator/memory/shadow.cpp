#include "emulator/memory/shadow.h"

#include <sys/mman.h>

#include <new>

namespace emulator {

namespace {

std::size_t table_bytes(std::size_t lines) {
  return lines * (sizeof(Line) + 16 * sizeof(Cell));
}

}  // namespace

LineTable::LineTable(std::size_t lines) : count_(lines) {
  void* memory = mmap(nullptr, table_bytes(lines), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  lines_ = static_cast<Line*>(memory);
  fine_ = reinterpret_cast<Cell*>(lines_ + lines);
}

void LineTable::release() {
  if (lines_) munmap(lines_, table_bytes(count_));
  *this = LineTable();
}

}  // namespace emulator
