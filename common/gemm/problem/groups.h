// A problem in groups, as the experts of a mixture have it: rows of A and D that lie behind each other, and a
// B for each group.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"

namespace gemm {

/// Rows [begin, end) of A and of D are a group's; none, where begin is end. Rows between two groups belong to
/// none: nobody writes them.
struct alignas(8) GroupRows {
  int begin = 0;
  int end = 0;
  constexpr int count() const { return end - begin; }
  bool operator==(const GroupRows&) const = default;
};

/// A group that lies anywhere in memory. Pitches: elements from one row to the next.
struct alignas(8) PlacedGroup {
  const bf16* a = nullptr;  // [rows][a_pitch], the first K of each row
  const bf16* b = nullptr;  // [N][b_pitch], the first K of each row
  bf16* d = nullptr;        // [rows][d_pitch], the first N of each row
  int rows = 0;
  int a_pitch = 0;
  int b_pitch = 0;
  int d_pitch = 0;
};

/// "", or what is wrong with groups that lie anywhere, of a problem with this N and K; M says nothing. TMA
/// takes addresses and rows that begin at multiples of 16 bytes.
inline std::string violated_placement_rule(const std::vector<PlacedGroup>& groups, const Shape& shape) {
  constexpr int kUnit = 16;
  constexpr int kMostRows = 1 << 30;  // rounded up to whole tiles they are still an int
  struct Matrix {
    const char* name;
    const void* address;
    int pitch;
    int columns;
    const char* columns_name;
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const PlacedGroup& one = groups[i];
    const std::string group = "group " + std::to_string(i);
    if (one.rows < 0) return group + " has " + std::to_string(one.rows) + " rows: a group has none, or more";
    if (one.rows > kMostRows)
      return group + " has " + std::to_string(one.rows) + " rows: a group has at most " +
             std::to_string(kMostRows);
    if (one.rows == 0) continue;  // nobody looks at its addresses
    for (const auto& [name, address, pitch, columns, columns_name] :
         {Matrix{"A", one.a, one.a_pitch, shape.k, "K"}, Matrix{"B", one.b, one.b_pitch, shape.k, "K"},
          Matrix{"D", one.d, one.d_pitch, shape.n, "N"}}) {
      const std::string matrix = std::string(name) + " of " + group;
      const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(address) % kUnit;
      if (address == nullptr) return "the address of " + matrix + " is null, and the group has rows";
      if (past != 0)
        return matrix + " begins " + std::to_string(past) +
               " bytes behind a multiple of 16: its address must be a multiple of 16";
      if (pitch < columns)
        return "a row of " + matrix + " begins " + std::to_string(pitch) +
               " elements behind the one before, and has " + columns_name + " = " + std::to_string(columns) +
               ": the pitch must be at least " + columns_name;
      if (pitch % (kUnit / static_cast<int>(sizeof(bf16))) != 0)
        return "a row of " + matrix + " begins " + std::to_string(pitch) +
               " elements behind the one before: the pitch must be a multiple of 8, which is 16 bytes";
    }
  }
  return "";
}

/// "", or what is wrong with groups of a problem of this shape: M is the number of rows of A and of D, and B
/// has N rows for each group.
inline std::string violated_group_rule(const std::vector<GroupRows>& groups, const Shape& shape) {
  const auto group = [](std::size_t index) { return "group " + std::to_string(index); };
  int last = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto [begin, end] = groups[i];
    if (begin < 0) return group(i) + " begins at row " + std::to_string(begin) + ": rows count from 0";
    if (end < begin)
      return group(i) + " begins at row " + std::to_string(begin) + " and ends at row " +
             std::to_string(end) + ": a group has no rows, or more, and never fewer";
    if (begin < last)
      return group(i) + " begins at row " + std::to_string(begin) + ", and " + group(i - 1) +
             " ends at row " + std::to_string(last) + ": offsets must ascend";
    if (end > shape.m)
      return group(i) + " ends at row " + std::to_string(end) + ", and A has " + std::to_string(shape.m) +
             ": M must count the rows of all groups";
    last = end;
  }
  const std::int64_t rows_of_b = offset(static_cast<int>(groups.size()), 0, shape.n);
  if (rows_of_b > std::numeric_limits<int>::max())
    return "B has " + std::to_string(groups.size()) + " x " + std::to_string(shape.n) +
           " rows: a tensor map counts at most 2147483647, so take fewer groups or a smaller N";
  return "";
}

/// "", or what is wrong with groups that have room for `capacity` rows each, group g from row g * capacity
/// on. `groups`: what the host knows of their rows; a host that knows nothing leaves it empty.
inline std::string violated_capacity_rule(const std::vector<GroupRows>& groups, int capacity,
                                          const Shape& shape) {
  if (capacity < 1)
    return "groups have room for " + std::to_string(capacity) + " rows each: the capacity must be at least 1";
  if (shape.m % capacity != 0)
    return "groups have room for " + std::to_string(capacity) + " rows each, and A has " +
           std::to_string(shape.m) + ": M must be a multiple of the capacity";
  const int count = shape.m / capacity;
  if (!groups.empty() && static_cast<int>(groups.size()) != count)
    return "there are " + std::to_string(groups.size()) + " groups, and A has room for " +
           std::to_string(count) + ": M must be the number of groups times the capacity";
  for (int i = 0; i < static_cast<int>(groups.size()); ++i) {
    const auto& [begin, end] = groups[static_cast<std::size_t>(i)];
    if (begin != i * capacity)
      return "group " + std::to_string(i) + " begins at row " + std::to_string(begin) +
             ", and its room at row " + std::to_string(i * capacity) +
             ": group g must begin at row g times the capacity";
    if (end - begin < 0 || end - begin > capacity)
      return "group " + std::to_string(i) + " has " + std::to_string(end - begin) + " rows, and room for " +
             std::to_string(capacity) + ": a count must be 0 to the capacity";
  }
  return violated_group_rule(std::vector<GroupRows>(static_cast<std::size_t>(count)), shape);
}

}  // namespace gemm
