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
