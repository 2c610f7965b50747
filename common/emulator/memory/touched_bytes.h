// Which bytes of global memory an operation of a stream has touched, to compare it with those that may run at
// the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace emulator {

struct Buffer;
struct Grid;

struct TouchedBytes {
  std::uintptr_t begin = 0, end = 0;
  std::uint64_t where = 0;  // Where::packed in a kernel or in host code; 0: a copy or a fill
  bool is_atomic = false;
};

struct Touched {
  std::vector<TouchedBytes> writes, reads;  // as far as they are needed

  void sort();
};

inline bool begins_before(const TouchedBytes& a, const TouchedBytes& b) {
  return a.begin < b.begin;
}

/// Adds bytes; those that follow each other and are touched by one line become one range.
void add_touched(std::vector<TouchedBytes>& ranges, const TouchedBytes& bytes);

/// Adds what a grid that has run has left in the histories of the buffers that `counts` chooses.
void collect_touched(const Grid& grid, const std::function<bool(const Buffer&)>& counts, Touched& touched);

/// The first bytes that both touch; both are sorted. With `atomics_race` also where both are atomics.
std::pair<const TouchedBytes*, const TouchedBytes*> common_bytes(const std::vector<TouchedBytes>& one,
                                                                 const std::vector<TouchedBytes>& other,
                                                                 bool atomics_race);

/// "workspace + 64 (4 bytes)"
std::string name_common_bytes(const TouchedBytes& one, const TouchedBytes& other);

}  // namespace emulator
