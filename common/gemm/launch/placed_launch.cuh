// How the host starts a persistent kernel for groups that lie anywhere in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grouped_launch.cuh"
#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/memory.cuh"
#include "ptx/tensor_map.h"
#include "ptx/workspace.h"

namespace gemm {

/// What a kernel knows of groups that lie anywhere.
struct PlacedGroups {
  const PlacedGroup* groups;  // [count], in device memory
  int count;

  __device__ __forceinline__ GroupRows rows(int group) const {
    return {0, std::max(ptx::ld_global(&groups[group].rows), 0)};
  }
};

/// The tensor maps of a group.
struct GroupMaps {
  ptx::TensorMap a;
  ptx::TensorMap b;
  ptx::TensorMap d;
};
static_assert(sizeof(GroupMaps) == 3 * 128, "a tensor map is 128 bytes, and begins at a multiple of that");

/// The groups of a problem, where its memory is: those that the host knows, or rows of one A.
inline std::vector<PlacedGroup> placed_groups_of(const Problem& problem) {
  if (problem.placed != nullptr) return problem.known;
  const auto [m, n, k] = problem.shape;
  std::vector<PlacedGroup> placed;
  for (const GroupRows& rows : groups_of(problem)) {
    const auto index = static_cast<int>(placed.size());
    placed.push_back({problem.a + offset(rows.begin, 0, k), problem.b + offset(index * n, 0, k),
                      problem.d + offset(rows.begin, 0, n), rows.count(), k, k, n});
  }
  return placed;
}

/// The maps of a group. TMA clips at its last row.
template <typename T>
GroupMaps maps_of(const PlacedGroup& group, const Shape& shape) {
  constexpr ptx::Swizzle kSwizzle = kPanelSwizzle<T::kPanelK>;
  const auto map = [](const bf16* base, int rows, int columns, int pitch, int box_rows, int box_columns,
                      ptx::Swizzle swizzle) {
    auto spec = ptx::matrix_spec(base, rows, columns, box_rows, box_columns, swizzle);
    spec.stride_bytes[1] = static_cast<std::uint64_t>(pitch) * sizeof(bf16);
    return ptx::make_tensor_map(spec);
  };
  return {map(group.a, group.rows, shape.k, group.a_pitch, T::kM, T::kPanelK, kSwizzle),
          map(group.b, shape.n, shape.k, group.b_pitch, T::kN, T::kPanelK, kSwizzle),
          map(group.d, group.rows, shape.n, group.d_pitch, 64, 64, ptx::Swizzle::k128B)};
}

/// How the host starts kKernel(shape, raster, groups, maps, pattern), persistent. kMaps: maps that a CTA has
/// in `maps` and changes in turn, from a copy of `pattern`; 0: the host makes those of each group.
template <auto kKernel, typename T, typename Shared, int kThreads, RasterOrder kOrder, int kGroup, int kMaps>
struct PlacedLaunch {
  static ptx::LaunchShape launch_of(int tiles) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>}, tiles);
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // of one group
    return launch_of(tile_grid<T>(shape).count());
  }
  /// Throws std::invalid_argument where an int cannot count them. Groups that the host does not know may have
  /// any number.
  static int most_tiles(const std::vector<PlacedGroup>& groups, int n) {
    std::vector<GroupRows> rows;
    for (const PlacedGroup& group : groups) rows.push_back({0, group.rows});
    return groups.empty() ? std::numeric_limits<int>::max() : count_tiles<T>(rows, n);
  }
  static Launcher prepare_problem(const Problem& problem) {
    const Shape& shape = problem.shape;
    const std::vector<PlacedGroup> known = placed_groups_of(problem);
    const int tiles = most_tiles(known, shape.n);
    if (tiles == 0) return [](ptx::Stream) {};
    PlacedGroups groups{problem.placed, problem.placed_count};
    std::shared_ptr<ptx::DeviceCopy> table;  // of groups that are rows of one A
    if (problem.placed == nullptr) {
      table = std::make_shared<ptx::DeviceCopy>(known.data(), known.size() * sizeof(PlacedGroup));
      groups = {static_cast<const PlacedGroup*>(table->memory()), static_cast<int>(known.size())};
    }
    const ptx::LaunchShape launch = launch_of(tiles);
    std::vector<GroupMaps> made;
    for (const PlacedGroup& group : known)
      if (kMaps == 0) made.push_back(group.rows > 0 ? maps_of<T>(group, shape) : GroupMaps{});
    const auto of_the_host = std::make_shared<ptx::DeviceCopy>(made.data(), made.size() * sizeof(GroupMaps));
    const auto workspace = std::make_shared<ptx::Workspace>(launch.grid.x * kMaps * sizeof(GroupMaps));
    return [shape, groups, table, launch, of_the_host, workspace,
            pattern = pattern_of(shape, groups.groups)](ptx::Stream stream) {
      void* const maps = kMaps == 0 ? const_cast<void*>(of_the_host->memory()) : workspace->of(stream);
      ptx::launch(kKernel, launch, stream, shape, Raster{kOrder, kGroup}, groups,
                  static_cast<GroupMaps*>(maps), pattern);
    };
  }
  static Launcher prepare(const Gemm& gemm) { return prepare_problem(gemm); }
  static Variant variant(Variant given) {
    given.groups = true;
    given.placed = true;
    given.needs_known = kMaps == 0;
    given.prepare_problem = prepare_problem;
    return complete_variant<kKernel, T, PlacedLaunch>(given);
  }

 private:
  /// Of one row, somewhere in device memory, that nobody reads: address, rows and pitch are replaced.
  static GroupMaps pattern_of(const Shape& shape, const void* device_memory) {
    auto* const somewhere =
        reinterpret_cast<bf16*>(reinterpret_cast<std::uintptr_t>(device_memory) / 16 * 16);
    return maps_of<T>({somewhere, somewhere, somewhere, 1, shape.k, shape.k, shape.n}, shape);
  }
};

}  // namespace gemm
