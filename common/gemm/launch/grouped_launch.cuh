// How the host starts a persistent kernel whose work tiles are those of all groups of a problem, one group
// behind the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/group_search.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/launch.cuh"
#include "ptx/workspace.h"

namespace gemm {

/// The groups of a problem: without any, all rows are one.
inline std::vector<GroupRows> groups_of(const Problem& problem) {
  return problem.groups.empty() ? std::vector<GroupRows>{{0, problem.shape.m}} : problem.groups;
}

/// Of all groups together. Throws std::invalid_argument where an int cannot count them.
template <typename T>
int count_tiles(const std::vector<GroupRows>& groups, int n) {
  std::int64_t tiles = 0;
  for (const GroupRows& rows : groups)
    tiles += std::int64_t{ceil_div(rows.count(), T::kM)} * ceil_div(n, T::kN);
  constexpr int kMost = std::numeric_limits<int>::max() / 2;  // a CTA counts on, past the last one
  if (tiles > kMost)
    throw std::invalid_argument("the groups have " + std::to_string(tiles) + " tiles: the kernel counts to " +
                                std::to_string(kMost));
  return static_cast<int>(tiles);
}

/// All of them, in the order in which the kernel takes them.
template <typename T>
std::vector<GroupTile> list_tiles(const std::vector<GroupRows>& groups, int n, Raster raster) {
  std::vector<GroupTile> tiles;
  for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
    const GroupRows& rows = groups[static_cast<std::size_t>(group)];
    for (int i = 0; i < group_grid<T>(rows, n).count(); ++i)
      tiles.push_back(group_tile<T>(i, group, rows, n, raster));
  }
  return tiles;
}

/// How the host starts kKernel(gemm, raster, table, a_map, b_map, d_map), persistent. kHostList: with the
/// list of all tiles.
template <auto kKernel, typename T, typename Shared, int kThreads, RasterOrder kOrder, int kGroup,
          bool kHostList>
struct GroupedLaunch {
  static ptx::LaunchShape launch_of(int tiles) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>}, tiles);
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // of one group
    return launch_of(tile_grid<T>(shape).count());
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    const std::vector<GroupRows> groups = groups_of(problem);
    const auto count = static_cast<int>(groups.size());
    const int tiles = count_tiles<T>(groups, n);
    if (tiles == 0) return [](ptx::Stream) {};
    const Raster raster{kOrder, kGroup};
    const std::vector<GroupTile> list =
        kHostList ? list_tiles<T>(groups, n, raster) : std::vector<GroupTile>{};
    const auto on_device =
        std::make_shared<ptx::DeviceCopy>(groups.data(), groups.size() * sizeof(GroupRows));
    const auto list_on_device =
        std::make_shared<ptx::DeviceCopy>(list.data(), list.size() * sizeof(GroupTile));
    return [gemm = static_cast<const Gemm&>(problem), raster, count, tiles, on_device, list_on_device,
            a_map = operand_map<T>(problem.a, m, k, T::kM),
            b_map = operand_map<T>(problem.b, count * n, k, T::kN), d_map = store_map(problem.d, m, n),
            launch = launch_of(tiles)](ptx::Stream stream) {
      const GroupTable table{static_cast<const GroupRows*>(on_device->memory()), count,
                             static_cast<const GroupTile*>(list_on_device->memory()), tiles};
      ptx::launch(kKernel, launch, stream, gemm, raster, table, a_map, b_map, d_map);
    };
  }
  static Launcher prepare(const Gemm& gemm) { return prepare_problem(gemm); }
  static Variant variant(Variant given) {
    given.groups = true;
    given.prepare_problem = prepare_problem;
    return complete_variant<kKernel, T, GroupedLaunch>(given);
  }
};

}  // namespace gemm
