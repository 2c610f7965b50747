// Step 54: groups that lie anywhere in memory; a warp changes tensor maps on the device, two in turn.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/placed_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/group_search.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
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

struct RowsInTable {
  int count;
  const PlacedGroup* groups;

  __device__ __forceinline__ GroupRows rows(int group) const {
    return {0, std::max(ptx::ld_global(&groups[group].rows), 0)};
  }
};

// Lesson: a tensor map holds the address, so groups that lie anywhere need a map each, and whoever learns the
// addresses on the device makes it there. The copy engine reads maps through a proxy with a cache, so a
// change is handed over: the copy in shared memory is changed, the whole warp copies it to global memory,
// which releases it, and a thread that uses it acquires it. Until the copies that use a map are complete it
// must not change. So a CTA has two slots for the maps of a group, a ring like that of the k-tiles: while the
// copies of one group are in flight, the next group's maps are made.
template <int kMaps>
struct MapRing {
  alignas(128) GroupMaps copy;
  std::uint64_t full[kMaps];   // the slot has a group's maps, released; count 1, the warp that changes them
  std::uint64_t empty[kMaps];  // no copy with them is in flight; count T::kWarpgroups
};

/// Where a role is in the ring of maps. kMaps 0: there is no ring, the host has made the maps of all groups.
template <int kMaps>
struct MapsInUse {
  static constexpr int kSlots = std::max(1, kMaps);

  GroupMaps* maps;  // [slot], or of the host [group]
  MapRing<kSlots>& ring;
  int group = -1;                           // of the tile before
  PipelineState<kSlots> at{kSlots - 1, 1};  // of its maps

  /// Whether the tile is in another group than the one before.
  __device__ __forceinline__ bool enter(int next) {
    if (next == group) return false;
    group = next;
    at.advance();
    return true;
  }
  __device__ __forceinline__ GroupMaps& current() const { return maps[kMaps == 0 ? group : at.stage]; }
  __device__ __forceinline__ void wait(const char* role) const {
    if (kMaps > 0) ptx::mbarrier_wait_parity(&ring.full[at.stage], at.phase, {role, "maps", at.stage, group});
  }
  /// Each fence is for one map.
  __device__ __forceinline__ void acquire(const ptx::TensorMap& map) const {
    kMaps == 0 ? ptx::fence_proxy_tensormap_acquire_sys(&map) : ptx::fence_proxy_tensormap_acquire_gpu(&map);
  }
  /// No copy with the maps of the group before is in flight.
  __device__ __forceinline__ void give_back() const {
    if (kMaps > 0) ptx::mbarrier_arrive(&ring.empty[(at.stage + kSlots - 1) % kSlots]);
  }
};

/// The map becomes that of another matrix with as many columns.
__device__ __forceinline__ void replace(ptx::TensorMap& map, const bf16* base, int rows, int pitch) {
  ptx::tensormap_replace_global_address_shared(&map, base);
  ptx::tensormap_replace_global_dim_shared<1>(&map, static_cast<std::uint32_t>(rows));
  ptx::tensormap_replace_global_stride_shared<0>(&map, sizeof(bf16) * static_cast<std::uint64_t>(pitch));
}

template <typename T, int kStages, int kMaps>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
  MapRing<std::max(1, kMaps)> maps;
};

template <typename T, int kStages, int kMaps>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    placed_kernel(Shape shape, Raster raster, PlacedGroups groups, GroupMaps* maps,
                  const __grid_constant__ GroupMaps pattern) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kMaps>>();
  auto& ring = shared.ring;
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(shape.k, T::kK);
  const int warp = warp_index();
  int index = static_cast<int>(blockIdx.x);
  GroupSearch<T, RowsInTable> search{shape.n, raster, {groups.count, groups.groups}};
  MapsInUse<kMaps> in_use{maps + blockIdx.x * kMaps, shared.maps};
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
        const bool another = in_use.enter(search.at.group);
        const GroupMaps& of_group = in_use.current();
        if (another && issues) {
          in_use.wait("producer");
          in_use.acquire(of_group.a);
          in_use.acquire(of_group.b);
        }
        for (int i = 0; issues && i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
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
        if (!in_use.enter(search.at.group)) continue;
        __syncwarp();  // all lanes have made the copy, and read it for the group before
        if (changes) {
          const PlacedGroup* const group = &groups.groups[search.at.group];
          replace(copy.a, ptx::ld_global(&group->a), search.at.rows.end, ptx::ld_global(&group->a_pitch));
          replace(copy.b, ptx::ld_global(&group->b), shape.n, ptx::ld_global(&group->b_pitch));
          replace(copy.d, ptx::ld_global(&group->d), search.at.rows.end, ptx::ld_global(&group->d_pitch));
          ptx::mbarrier_wait_parity(&shared.maps.empty[in_use.at.stage], in_use.at.phase ^ 1,
                                    {"map warp", "empty", in_use.at.stage, in_use.group});
        }
        __syncwarp();
        GroupMaps& slot = in_use.current();
        ptx::tensormap_cp_fenceproxy_release_gpu(&slot.a, &copy.a);
        ptx::tensormap_cp_fenceproxy_release_gpu(&slot.b, &copy.b);
        ptx::tensormap_cp_fenceproxy_release_gpu(&slot.d, &copy.d);
        if (changes) ptx::mbarrier_arrive(&shared.maps.full[in_use.at.stage]);
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const bool releases = threadIdx.x % 128 == 0;
    WarpgroupTile<T> warpgroup;
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      if (releases) ring.consumer_release(release);
      release.advance();
    };
    // The k-tiles of the group before have all arrived. When its stores have read their map, no copy needs
    // it.
    const auto give_back_maps = [&] {
      ptx::cp_async_bulk_wait_group_read<0>();
      if (index >= step) in_use.give_back();
    };
    for (; search.find(index, tile); index += step) {
      const bool turns = in_use.enter(search.at.group) && stores_tile();
      if (kMaps == 1 && turns) give_back_maps();  // or the maps that it waits for would never be there
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) {
          release_stage();
        } else if (turns) {  // while the first k-tile is multiplied
          if (kMaps > 1) give_back_maps();
          in_use.wait("consumer");
          in_use.acquire(in_use.current().d);
        }
      }
      warpgroup.template wait<0>();
      release_stage();
      store_tile<T>(warpgroup, shared.d[warp / 4], &in_use.current().d, tile.row, tile.column);
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename T, int kStages, int kMaps>
Variant variant(const char* name, const char* summary) {
  using Launch = PlacedLaunch<placed_kernel<T, kStages, kMaps>, T, Shared<T, kStages, kMaps>,
                              Roles<T>::kThreads, RasterOrder::kGrouped, 16, kMaps>;
  return Launch::variant(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>()});
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;

inline const Step kStep{
    .name = "54_map_updates",
    .title = "groups anywhere in memory: a warp changes tensor maps on the device, two in turn",
    .builds_on = "52_grouped",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<Tile128x256, 4, 2>("two_maps", "the next group's maps are made meanwhile"),
                 variant<Tile128x256, 4, 1>("one_map", "made when the group before has no copy in flight"),
                 variant<Tile128x256, 4, 0>("host_maps", "the host makes the maps of all groups")}};

}  // namespace gemm::step_54
