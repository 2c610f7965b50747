// Starting a persistent kernel whose work tiles are those of all groups of a problem, one group behind the
// other.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/problem.h"
#include "gemm/schedule/group_search.cuh"
#include "ptx/launch.cuh"

namespace gemm {

/// The groups of a problem: without any, all rows are one.
inline std::vector<GroupRows> groups_of(const Problem& problem) {
  return problem.groups.empty() ? std::vector<GroupRows>{{0, problem.shape.m}} : problem.groups;
}

/// Tiles of all groups together; of groups whose sizes only the device knows, as many as if each were full,
/// and of those that the host does not know at all any number. Throws std::invalid_argument where an int
/// cannot count them.
template <typename T>
int count_tiles(const Problem& problem) {
  constexpr int kMost = std::numeric_limits<int>::max() / 2;  // a CTA counts on, past the last one
  if (problem.placed != nullptr && problem.known.empty()) return kMost;
  std::int64_t rows_of_tiles = 0;
  if (problem.placed != nullptr) {
    for (const PlacedGroup& group : problem.known) rows_of_tiles += ceil_div(group.rows, T::kM);
  } else if (problem.capacity != 0) {
    rows_of_tiles = std::int64_t{problem.shape.m / problem.capacity} * ceil_div(problem.capacity, T::kM);
  } else {
    for (const GroupRows& rows : groups_of(problem)) rows_of_tiles += ceil_div(rows.count(), T::kM);
  }
  const std::int64_t tiles = rows_of_tiles * ceil_div(problem.shape.n, T::kN);
  if (tiles > kMost)
    throw std::invalid_argument(std::string("the groups have ") + (problem.capacity != 0 ? "room for " : "") +
                                std::to_string(tiles) + " tiles: the kernel counts to " +
                                std::to_string(kMost));
  return static_cast<int>(tiles);
}

/// How many groups a problem has whose groups are rows of one A, each with a B.
inline int count_groups(const Problem& problem) {
  return problem.capacity != 0 ? problem.shape.m / problem.capacity
                               : static_cast<int>(groups_of(problem).size());
}

/// The argument of a kernel that reads them from device memory.
inline auto groups_on_device(const Problem& problem) {
  const bool counted = problem.capacity != 0;
  return [table = device_copy(counted ? std::vector<GroupRows>{} : groups_of(problem)),
          count = count_groups(problem), counts = problem.counts, capacity = problem.capacity](ptx::Stream) {
    return GroupsOnDevice{count, capacity != 0 ? nullptr : table.get(), counts, capacity};
  };
}

/// Persistent CTAs for the tiles of all groups.
template <typename T, typename Shared, int kThreads>
struct GroupedCtas {
  using Tile = T;
  static LaunchPlan plan(const void* kernel, int tiles) {
    return {persistent_launch(kernel, {.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>}, tiles)};
  }
  static LaunchPlan plan(const void* kernel, const Shape& shape) {  // of one group
    return plan(kernel, clustered_ctas<T>(shape));
  }
  static LaunchPlan plan(const void* kernel, const Problem& problem) {
    return plan(kernel, count_tiles<T>(problem));
  }
};

}  // namespace gemm
