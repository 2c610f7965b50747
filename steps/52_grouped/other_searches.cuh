// Step 52: two other ways to find a tile of many groups, to compare the speculation with.
#pragma once

#include <cstddef>
#include <vector>

#include "gemm/problem/groups.h"
#include "gemm/schedule/group_search.cuh"
#include "gemm/schedule/raster.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm::step_52 {

/// One group after the other: each is a load that must have come before the next one can be asked for.
template <typename T>
struct LinearScan {
  static constexpr bool kHostList = false;

  int n;
  Raster raster;
  GroupTable table;
  FoundGroup at;

  __device__ __forceinline__ bool find(int index, GroupTile& tile) {
    while (index >= at.end) {
      if (++at.group == table.count) return false;
      at.rows = ptx::ld_global(&table.groups[at.group]);
      at.begin = at.end;
      at.end += group_grid<T>(at.rows, n).count();
    }
    tile = group_tile<T>(index - at.begin, at.group, at.rows, n, raster);
    return true;
  }
};

/// All tiles of all groups, in the order in which the kernel takes them.
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

/// The host has written down every tile: nothing to find, but it must know the groups.
template <typename T>
struct HostList {
  static constexpr bool kHostList = true;

  int n;
  Raster raster;
  GroupTable table;

  __device__ __forceinline__ bool find(int index, GroupTile& tile) {
    if (index >= table.tile_count) return false;
    tile = ptx::ld_global(&table.tiles[index]);
    return true;
  }
};

}  // namespace gemm::step_52
