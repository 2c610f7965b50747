// What step 52 taught: the work tiles of all groups as one sequence, and a warp that looks at 32 groups at a
// time to find the one that a tile is in.
#pragma once

#include <algorithm>

#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/schedule/raster.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm {

/// A work tile of a problem in groups.
struct alignas(16) GroupTile {
  int row = 0;     // of A and of D
  int end = 0;     // of its group's rows
  int column = 0;  // of D
  int b_row = 0;   // of B, where N rows for each group lie behind each other
};

/// Where a kernel finds its work tiles; in device memory.
struct GroupTable {
  const GroupRows* groups;  // [count]
  int count;
  const GroupTile* tiles;  // [tile_count]; nullptr where the kernel finds them itself
  int tile_count;
};

/// The tiles of a group, in tiles of T.
template <typename T>
constexpr TileGrid group_grid(const GroupRows& rows, int n) {
  return {ceil_div(rows.count(), T::kM), ceil_div(n, T::kN)};
}

/// Number `index` of the tiles of one group.
template <typename T>
constexpr GroupTile group_tile(int index, int group, const GroupRows& rows, int n, Raster raster) {
  const TilePosition at = tile_at(index, group_grid<T>(rows, n), raster);
  return {rows.begin + at.m * T::kM, rows.end, at.n * T::kN, group * n + at.n * T::kN};
}

/// The group that the warp has come to, and its tiles in the sequence: [begin, end).
struct FoundGroup {
  int group = -1;
  GroupRows rows;
  int begin = 0;
  int end = 0;
  GroupSize own{};
};

/// Whether groups may have an N and a K of their own: sizes.own(group).
template <typename Sizes>
inline constexpr bool kOwnSizes = requires(const Sizes sizes) {
  sizes.own(0);
};

/// Which rows a group has: a table says it (step 52), or a count of rows for which there is room, and then no
/// count that the device has written makes it more, or fewer than none (step 53). Both are in device memory.
struct GroupsOnDevice {
  int count;
  const GroupRows* table;  // [count]; nullptr where there are counts
  const int* counts;       // [count]
  int capacity;

  __device__ __forceinline__ GroupRows rows(int group) const {
    if (table != nullptr) return ptx::ld_global(&table[group]);
    const int begin = group * capacity;
    return {begin, begin + std::min(std::max(ptx::ld_global(&counts[group]), 0), capacity)};
  }
};

/// Finds tiles by speculation. Sizes: how many groups there are, sizes.count, and the rows of one of them,
/// sizes.rows(group), as they lie in device memory; perhaps N and K. Each warp has its own. The whole warp
/// calls find(), with numbers that ascend.
template <typename T, typename Sizes>
struct GroupSearch {
  int n;
  Raster raster;
  Sizes sizes;
  FoundGroup at;
  int first = -32;  // lane 0's group
  GroupRows mine;   // of this lane's group
  GroupSize own{};  // of this lane's group
  int through = 0;  // tiles of all groups up to this lane's, and with it

  __device__ __forceinline__ int columns(const GroupSize& size) const {
    return kOwnSizes<Sizes> ? size.n : n;
  }

  /// The next 32 groups.
  __device__ __forceinline__ void look() {
    constexpr unsigned kWholeWarp = 0xffffffffu;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int before = __shfl_sync(kWholeWarp, through, 31);
    first += 32;
    mine = first + lane < sizes.count ? sizes.rows(first + lane) : GroupRows{};
    if constexpr (kOwnSizes<Sizes>) own = first + lane < sizes.count ? sizes.own(first + lane) : GroupSize{};
    through = group_grid<T>(mine, columns(own)).count();
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int others = __shfl_up_sync(kWholeWarp, through, static_cast<unsigned>(distance));
      if (lane >= distance) through += others;
    }
    through += before;
  }

  /// False where the sequence has ended.
  __device__ __forceinline__ bool find(int index, GroupTile& tile) {
    constexpr unsigned kWholeWarp = 0xffffffffu;
    while (index >= at.end) {
      const unsigned behind = __ballot_sync(kWholeWarp, index < through);
      if (behind != 0) {
        const int lane = __ffs(static_cast<int>(behind)) - 1;
        at.group = first + lane;
        at.rows = {__shfl_sync(kWholeWarp, mine.begin, lane), __shfl_sync(kWholeWarp, mine.end, lane)};
        at.end = __shfl_sync(kWholeWarp, through, lane);
        if constexpr (kOwnSizes<Sizes>)
          at.own = {__shfl_sync(kWholeWarp, own.n, lane), __shfl_sync(kWholeWarp, own.k, lane)};
        at.begin = at.end - group_grid<T>(at.rows, columns(at.own)).count();
      } else if (first + 32 < sizes.count) {
        look();
      } else {
        return false;
      }
    }
    tile = group_tile<T>(index - at.begin, at.group, at.rows, columns(at.own), raster);
    return true;
  }
};

}  // namespace gemm
