#include "emulator/memory/shadow.h"

#include "emulator/memory/pages.h"

namespace emulator {

namespace {

std::size_t table_bytes(std::size_t lines) {
  return lines * (sizeof(Line) + 16 * sizeof(Cell));
}

}  // namespace

LineTable::LineTable(std::size_t lines) : count_(lines) {
  lines_ = static_cast<Line*>(map_zeroed(table_bytes(lines)));
  fine_ = reinterpret_cast<Cell*>(lines_ + lines);
}

void LineTable::release() {
  if (lines_) unmap(lines_, table_bytes(count_));
  *this = LineTable();
}

}  // namespace emulator
