#include "emulator/memory/touched_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "emulator/machine/machine.h"
#include "emulator/memory/device_memory.h"
#include "emulator/memory/shadow.h"

namespace emulator {
namespace {

constexpr std::size_t kMostRanges = 8192;

}  // namespace

void Touched::sort() {
  for (std::vector<TouchedBytes>* ranges : {&writes, &reads})
    std::sort(ranges->begin(), ranges->end(), begins_before);
}

void add_touched(std::vector<TouchedBytes>& ranges, const TouchedBytes& bytes) {
  if (!ranges.empty()) {
    TouchedBytes& last = ranges.back();
    if (last.end == bytes.begin && last.where == bytes.where && last.is_atomic == bytes.is_atomic) {
      last.end = bytes.end;
      return;
    }
  }
  if (ranges.size() < kMostRanges) ranges.push_back(bytes);
}

void collect_touched(const Grid& grid, const std::function<bool(const Buffer&)>& counts, Touched& touched) {
  for_buffers([&](const Buffer& buffer) {
    if (!buffer.has_lines || !counts(buffer)) return;
    const std::uintptr_t first = buffer.allocation_begin / 16 * 16;
    const std::size_t count = (buffer.allocation_begin + buffer.allocation_bytes - first + 15) / 16;
    for (std::size_t i = 0; i < count; ++i) {
      const Line& line = buffer.lines[i];
      if (line.tag() != grid.tag) continue;
      const unsigned bytes = 1u << line.granule_log2();
      for (unsigned at = 0; at < 16; at += bytes) {
        const Cell& cell = line.cells()[at / bytes];
        const std::uintptr_t begin = first + 16 * i + at;
        const auto by = [&](std::uint64_t where) {
          return TouchedBytes{begin, begin + bytes, where & ~kAtomicBit, (where & kAtomicBit) != 0};
        };
        if (cell.write != 0) add_touched(touched.writes, by(cell.write_where));
        if (cell.readers != 0) add_touched(touched.reads, by(cell.first.where));
      }
    }
  });
}

std::pair<const TouchedBytes*, const TouchedBytes*> common_bytes(const std::vector<TouchedBytes>& one,
                                                                 const std::vector<TouchedBytes>& other,
                                                                 bool atomics_race) {
  for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end();) {
    const bool overlap = a->begin < b->end && b->begin < a->end;
    if (overlap && (atomics_race || !(a->is_atomic && b->is_atomic))) return {&*a, &*b};
    ++(a->end < b->end ? a : b);
  }
  return {};
}

std::string name_common_bytes(const TouchedBytes& one, const TouchedBytes& other) {
  const std::uintptr_t begin = std::max(one.begin, other.begin);
  return fmt::format("{} ({} bytes)", name_address(begin), std::min(one.end, other.end) - begin);
}

}  // namespace emulator
