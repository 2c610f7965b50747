// Step 52: the tiles of many groups as one sequence; a warp looks at 32 groups at a time to find the one that
// a tile is in.
#pragma once

#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/groups.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/ring_reader.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/group_search.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "other_searches.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "strided.cuh"

namespace gemm::step_52 {

inline constexpr unsigned kWholeWarp = 0xffffffffu;

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
};

// Lesson: a tile's number says nothing about its group until the tiles of all groups before are counted. The
// warp speculates that the tile is in one of the next 32 groups: each lane counts the tiles of one, a prefix
// sum gives each lane the number of tiles through its group, and the first lane whose number is larger than
// the tile's has it. An empty group adds nothing, so it is never the first. What the lanes hold stays there:
// until a tile lies behind the last of the 32, finding it is a ballot, and until it lies behind its group, a
// comparison. The whole warp calls find(), with numbers that ascend.
template <typename T>
struct Speculation {
  static constexpr bool kHostList = false;

  int n;
  Raster raster;
  GroupTable table;
  FoundGroup at;
  int first = -32;  // lane 0's group
  GroupRows mine;   // the rows of this lane's group
  int through = 0;  // the number of tiles in all groups up to this lane's, which is included

  // ANCHOR: look
  __device__ __forceinline__ void look() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int before = __shfl_sync(kWholeWarp, through, 31);
    first += 32;
    mine = first + lane < table.count ? ptx::ld_global(&table.groups[first + lane]) : GroupRows{};
    through = group_grid<T>(mine, n).count();
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int others = __shfl_up_sync(kWholeWarp, through, static_cast<unsigned>(distance));
      if (lane >= distance) through += others;
    }
    through += before;
  }
  // ANCHOR_END: look

  __device__ __forceinline__ bool find(int index, GroupTile& tile) {
    // ANCHOR: find_tile
    while (index >= at.end) {  // not in the same group as the previous tile
      const unsigned behind = __ballot_sync(kWholeWarp, index < through);
      if (behind != 0) {
        const int lane = __ffs(static_cast<int>(behind)) - 1;
        at.group = first + lane;
        at.rows = {__shfl_sync(kWholeWarp, mine.begin, lane), __shfl_sync(kWholeWarp, mine.end, lane)};
        at.end = __shfl_sync(kWholeWarp, through, lane);
        at.begin = at.end - group_grid<T>(at.rows, n).count();
      } else if (first + 32 < table.count) {
        look();
      } else {
        return false;
      }
    }
    // ANCHOR_END: find_tile
    tile = group_tile<T>(index - at.begin, at.group, at.rows, n, raster);
    return true;
  }
};

template <typename T, int kStages, template <typename> typename Search>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    grouped_kernel(Gemm gemm, Raster raster, GroupTable table, const __grid_constant__ ptx::TensorMap a_map,
                   const __grid_constant__ ptx::TensorMap b_map,
                   const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();
  int index = static_cast<int>(blockIdx.x);
  Search<T> search{gemm.shape.n, raster, table};  // each warp has its own
  GroupTile tile;

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    // ANCHOR: producer_and_end
    // ANCHOR: producer
    if (warp == Roles<T>::kProducerWarp) {
      const bool issues = ptx::elect_sync();  // one lane loads, but all lanes search
      PipelineState<kStages> fill{0, 1};
      for (; search.find(index, tile); index += step) {
        for (int i = 0; issues && i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          // ANCHOR_END: producer
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.row, tile.b_row,
                        i * T::kK);
          fill.advance();
          // ANCHOR_END: producer_and_end
        }
        __syncwarp();
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    WarpgroupTile<T> warpgroup;
    RingReader<T, kStages> reader{ring};
    // Lesson: between two tiles the tensor cores have nothing to do, and a search there shows. So the next
    // tile is found while the last k-tile of this one is multiplied.
    GroupTile next;
    for (bool more = search.find(index, next); more;) {
      tile = next;
      reader.multiply(warpgroup, k_tiles);
      more = search.find(index += step, next);
      reader.finish(warpgroup);
      // TMA clips at the end of D only. Behind the group's last row lies the next group's first, so what does
      // not fill this warpgroup's rows is stored by its threads, each of which asks whether its row is
      // inside.
      // ANCHOR: store_rows
      if (tile.row + warpgroup.row + T::kWarpgroupM <= tile.end) {
        store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, tile.row, tile.column);
      } else {
        const Gemm group{{tile.end, gemm.shape.n, gemm.shape.k}, gemm.a, gemm.b, gemm.d};
        warpgroup.store(group, tile.row, tile.column);
        // ANCHOR_END: store_rows
      }
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename T, int kStages, template <typename> typename Search, RasterOrder kOrder, int kGroup = 1>
Variant variant(const char* name, const char* summary) {
  using Grid = GroupedCtas<T, Shared<T, kStages>, Roles<T>::kThreads>;
  return variant_of<grouped_kernel<T, kStages, Search>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .groups = GroupForm::kRows},
      [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        const Raster raster{kOrder, kGroup};
        const std::vector<GroupRows> groups = groups_of(problem);
        const auto count = static_cast<int>(groups.size());
        const auto tiles = Search<T>::kHostList ? list_tiles<T>(groups, n, raster) : std::vector<GroupTile>{};
        const auto table = [rows = device_copy(groups), list = device_copy(tiles), count,
                            all = count_tiles<T>(problem)](ptx::Stream) {
          return GroupTable{rows.get(), count, list.get(), all};
        };
        return std::tuple(static_cast<const Gemm&>(problem), raster, table,
                          operand_map<T>(problem.a, m, k, T::kM),
                          operand_map<T>(problem.b, count * n, k, T::kN), store_map(problem.d, m, n));
      });
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using enum RasterOrder;

inline const Step kStep{
    .name = "52_grouped",
    .title = "the tiles of many groups as one sequence, found 32 groups at a time",
    .builds_on = "15_tma_store",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x256, 4, Speculation, kGrouped, 16>("speculation",
                                                           "a warp looks at 32 groups at once"),
        variant<Tile128x256, 4, LinearScan, kGrouped, 16>("linear_scan", "one group after the other"),
        variant<Tile128x256, 4, HostList, kGrouped, 16>("host_list", "the host lists all tiles"),
        variant<Tile128x256, 4, Speculation, kAlongN>("along_n", "row by row inside a group"),
        variant<Tile128x256, 4, kGrouped, 16>("strided", "groups of one size, by maps of three dimensions")}};

}  // namespace gemm::step_52
