// Step 54: groups that lie anywhere in memory; a warp changes tensor maps on the device, three in turn.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/groups.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/ring_reader.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/group_search.cuh"
#include "gemm/schedule/group_slots.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "placed_groups.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tensormap.cuh"
#include "ptx/tma.cuh"

namespace gemm::step_54 {

// Lesson: a tensor map holds the address, so groups that lie anywhere need a map each, and whoever learns the
// addresses on the device makes it there. The copy engine reads maps through a proxy with a cache, so a
// change is handed over: the copy in shared memory is changed, the whole warp copies it to global memory,
// which releases it, and a thread of each CTA that uses it acquires it. Until the copies that use a map are
// complete, it must not change. So a CTA has slots for the maps of a group, a ring like that of the k-tiles:
// while the copies of one group are in flight, the next group's maps are made.
template <int kSlots>
struct MapRing {
  alignas(128) GroupMaps copy;
  std::uint64_t full[kSlots];   // the slot has a group's maps, released; count 1, the warp that changes them
  std::uint64_t empty[kSlots];  // every copy has read its map; count T::kWarpgroups
};

/// Acquires the map for all threads of the CTA that are ordered after the fence.
template <bool kOfHost>
__device__ __forceinline__ void acquire(const ptx::TensorMap& map) {
  kOfHost ? ptx::fence_proxy_tensormap_acquire_sys(&map) : ptx::fence_proxy_tensormap_acquire_gpu(&map);
}

/// Makes the map that of another matrix. If kColumns is false, the number of columns stays as it is.
template <bool kColumns>
__device__ __forceinline__ void replace(ptx::TensorMap& map, const bf16* base, int rows, int columns,
                                        int pitch) {
  ptx::tensormap_replace_global_address_shared(&map, base);
  // ANCHOR: own_columns
  if constexpr (kColumns)
    ptx::tensormap_replace_global_dim_shared<0>(&map, static_cast<std::uint32_t>(columns));
  // ANCHOR_END: own_columns
  ptx::tensormap_replace_global_dim_shared<1>(&map, static_cast<std::uint32_t>(rows));
  ptx::tensormap_replace_global_stride_shared<0>(&map, sizeof(bf16) * static_cast<std::uint64_t>(pitch));
}

template <int kMaps>
inline constexpr int kSlots = std::max(1, kMaps);

template <typename T, int kStages, int kMaps>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
  MapRing<kSlots<kMaps>> maps;
};

// With kMaps == 0 there is no ring of maps, because the host has made the maps of all groups.
template <typename T, int kStages, int kMaps, typename Groups>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    placed_kernel(Shape shape, Raster raster, Groups groups, GroupMaps* maps,
                  const __grid_constant__ GroupMaps pattern) {
  constexpr bool kOwn = kOwnSizes<Groups>;
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kMaps>>();
  auto& ring = shared.ring;
  const int step = static_cast<int>(gridDim.x);
  const int warp = warp_index();
  int index = static_cast<int>(blockIdx.x);
  GroupSearch<T, Groups> search{shape.n, raster, groups};
  // Lesson: a group may have a K of its own. What a role knows of the ring, its stage and its phase, goes on
  // from one group to the next, however many k-tiles each has.
  // ANCHOR: own_k_tiles
  const auto k_tiles_of_group = [&] { return ceil_div(kOwn ? search.at.own.k : shape.k, T::kK); };
  // ANCHOR_END: own_k_tiles
  GroupSlots<kSlots<kMaps>> slot;
  const unsigned first_map = blockIdx.x * kMaps;
  GroupMaps* const own = maps + first_map;  // [slot]; if the host made them: [group]
  GroupTile tile;

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    for (int i = 0; i < kMaps; ++i) {
      ptx::mbarrier_init(&shared.maps.full[i], 1);
      ptx::mbarrier_init(&shared.maps.empty[i], T::kWarpgroups);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp) {
      const bool issues = ptx::elect_sync();
      PipelineState<kStages> fill{0, 1};
      for (; search.find(index, tile); index += step) {
        // ANCHOR: acquire_maps
        const bool another = slot.enter(search.at.group);
        const GroupMaps& of_group = own[kMaps == 0 ? slot.group : slot.at.stage];
        if (kMaps > 0 && another && issues)
          ptx::mbarrier_wait_parity(&shared.maps.full[slot.at.stage], slot.at.phase,
                                    {"producer", "maps", slot.at.stage, slot.group});
        if (another && issues) {
          acquire<kMaps == 0>(of_group.a);
          acquire<kMaps == 0>(of_group.b);
        }
        const int k_tiles = k_tiles_of_group();
        for (int i = 0; issues && i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          // The consumers store with this map after the last k-tile. While the ring is full, the fence delays
          // no role, and the copy engine fetches the map now, before the tile's first store needs it.
          if (another && i == std::min(kStages, k_tiles - 1)) {
            acquire<kMaps == 0>(of_group.d);
            ptx::prefetch_tensormap(&of_group.d);
          }
          // ANCHOR_END: acquire_maps
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &of_group.a, &of_group.b, tile.row,
                        tile.column, i * T::kK);
          fill.advance();
        }
        __syncwarp();
      }
    } else if (kMaps > 0 && warp == Roles<T>::kProducerWarp + 1) {  // changes the maps, ahead of the others
      const bool changes = ptx::elect_sync();
      GroupMaps& copy = shared.maps.copy;
      const int lane = static_cast<int>(threadIdx.x) % 32;
      if (lane < static_cast<int>(sizeof copy / sizeof(uint4)))
        ptx::st_shared(reinterpret_cast<uint4*>(&copy) + lane,
                       reinterpret_cast<const uint4*>(&pattern)[lane]);
      for (; search.find(index, tile); index += step) {
        // ANCHOR: change_map
        if (!slot.enter(search.at.group)) continue;
        __syncwarp();  // every lane has written the copy, or read it for the previous group
        if (changes) {
          const PlacedGroup* const group = &groups.groups[search.at.group];
          const auto [n, k] = search.at.own;
          const int rows = search.at.rows.end;
          replace<kOwn>(copy.a, ptx::ld_global(&group->a), rows, k, ptx::ld_global(&group->a_pitch));
          replace<kOwn>(copy.b, ptx::ld_global(&group->b), kOwn ? n : shape.n, k,
                        ptx::ld_global(&group->b_pitch));
          replace<kOwn>(copy.d, ptx::ld_global(&group->d), rows, n, ptx::ld_global(&group->d_pitch));
          ptx::mbarrier_wait_parity(&shared.maps.empty[slot.at.stage], slot.at.phase ^ 1,
                                    {"map warp", "empty", slot.at.stage, slot.group});
        }
        __syncwarp();
        GroupMaps& of_group = own[slot.at.stage];
        ptx::tensormap_cp_fenceproxy_release_gpu(&of_group.a, &copy.a);
        ptx::tensormap_cp_fenceproxy_release_gpu(&of_group.b, &copy.b);
        ptx::tensormap_cp_fenceproxy_release_gpu(&of_group.d, &copy.d);
        if (changes) ptx::mbarrier_arrive(&shared.maps.full[slot.at.stage]);
        // ANCHOR_END: change_map
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    WarpgroupTile<T> warpgroup;
    RingReader<T, kStages> reader{ring};
    // The k-tiles of the group before have all arrived, and when its stores have read their map, no copy
    // needs it any more. store_tile waits for that, so the maps are given back after it. With fewer slots
    // than three, the next group's maps would then come too late, or never, so a thread waits before the
    // tile.
    constexpr bool kEarly = kMaps < 3;
    GroupTile next;
    for (bool more = search.find(index, next); more;) {
      tile = next;
      const bool gives_back = slot.enter(search.at.group) && kMaps > 0 && slot.before >= 0 && stores_tile();
      if (kEarly && gives_back) {
        ptx::cp_async_bulk_wait_group_read<0>();
        ptx::mbarrier_arrive(&shared.maps.empty[slot.stage_before()]);
      }
      reader.multiply(warpgroup, k_tiles_of_group());  // the last k-tile is loaded after all three acquires
      more = search.find(index += step, next);
      reader.finish(warpgroup);
      // ANCHOR: give_back
      store_tile<T>(warpgroup, shared.d[warp / 4], &own[kMaps == 0 ? slot.group : slot.at.stage].d, tile.row,
                    tile.column);
      if (!kEarly && gives_back) ptx::mbarrier_arrive(&shared.maps.empty[slot.stage_before()]);
      // ANCHOR_END: give_back
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename T, int kStages, int kMaps, typename Groups = PlacedGroups>
Variant variant(const char* name, const char* summary) {
  using Grid = GroupedCtas<T, Shared<T, kStages, kMaps>, Roles<T>::kThreads>;
  return variant_of<placed_kernel<T, kStages, kMaps, Groups>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .groups = kMaps == 0          ? GroupForm::kPlacedKnown
                 : kOwnSizes<Groups> ? GroupForm::kPlacedSizes
                                     : GroupForm::kPlaced},
      [](const Problem& problem, const LaunchPlan& plan) {
        const auto table = table_of<Groups>(problem);
        const auto maps = maps_of_ctas<T, kMaps>(problem, plan.launch);
        return std::tuple(problem.shape, Raster{RasterOrder::kGrouped, 16}, table, maps,
                          pattern_of<T>(problem.shape, table(nullptr).groups));
      });
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;

inline const Step kStep{
    .name = "54_map_updates",
    .title = "groups anywhere in memory: a warp changes tensor maps on the device, three in turn",
    .builds_on = "52_grouped",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<Tile128x256, 4, 3>("three_maps", "given back after the next group's first tile"),
                 variant<Tile128x256, 4, 2>("two_maps", "given back before the next group's first tile"),
                 variant<Tile128x256, 4, 1>("one_map", "made when the group before has no copy in flight"),
                 variant<Tile128x256, 4, 0>("host_maps", "the host makes the maps of all groups"),
                 variant<Tile128x256, 4, 3, SizedGroups>("own_sizes", "each group has an N and a K")}};

}  // namespace gemm::step_54
