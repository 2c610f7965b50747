// Step 53: groups whose sizes only the device knows; a tile loads and multiplies only the warpgroups' rows
// that its group has.
#pragma once

#include <algorithm>
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
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_53 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
};

/// Group g has room for `capacity` rows, from row g * capacity on; its first counts[g] rows belong to it.
struct MaskedGroups {
  const int* counts;  // [count], in device memory
  int count;
  int capacity;
};

// Lesson: the host launches this kernel before anybody knows how many rows a group has, because the kernel
// before it in the stream counts them. So nothing that the host decides may depend on a count: not the grid,
// not the height of a tile, not a tensor map. Each warp reads the counts, and a graph that was captured once
// is right for all of them. Nobody has checked a count that the device has written. So the kernel takes one
// below 0 for 0, and one above the capacity for the capacity: it may lose rows, and it never touches the
// rows of another group.
struct CountsOnDevice {
  int count;
  MaskedGroups groups;

  __device__ __forceinline__ GroupRows rows(int group) const {
    // ANCHOR: count
    const int wanted = ptx::ld_global(&groups.counts[group]);
    const int begin = group * groups.capacity;
    return {begin, begin + std::min(std::max(wanted, 0), groups.capacity)};
    // ANCHOR_END: count
  }
};

/// How many of the tile's warpgroups have rows of the group.
template <typename T, bool kSkip>
__device__ __forceinline__ int parts_of(const GroupTile& tile) {
  const int parts = ceil_div(tile.end - tile.row, T::kWarpgroupM);
  return kSkip && parts < T::kWarpgroups ? parts : T::kWarpgroups;
}

// Lesson: whoever does not know the counts cannot choose a tile that fits them. The tile is as high as many
// rows need, and few rows leave a part of it out: A is loaded in boxes as high as a warpgroup's part, and
// only those that have rows. The full barrier expects the bytes of this tile, so its number is part of the
// tile, and both come from the same variable.
template <typename T>
__device__ __forceinline__ void load_parts(WgmmaTiles<T>& tiles, std::uint64_t* full,
                                           const ptx::TensorMap* a_map, const ptx::TensorMap* b_map,
                                           const GroupTile& tile, int k0, int parts) {
  static_assert(T::kPanels == 1, "a box is one swizzle span wide, and so is the k-tile");
  constexpr std::uint32_t kRowBytes = T::kK * sizeof(bf16);
  // ANCHOR: expect_bytes
  const auto rows = static_cast<std::uint32_t>(T::kN + parts * T::kWarpgroupM);
  ptx::mbarrier_arrive_expect_tx(full, rows * kRowBytes);
  ptx::cp_async_bulk_tensor_2d(tiles.b[0], b_map, k0, tile.b_row, full);
#pragma unroll
  for (int part = 0; part < T::kWarpgroups; ++part) {
    if (part >= parts) break;
    const int row = part * T::kWarpgroupM;
    ptx::cp_async_bulk_tensor_2d(tiles.a[0][row], a_map, k0, tile.row + row, full);
    // ANCHOR_END: expect_bytes
  }
}

template <typename T, int kStages, bool kSkip>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    masked_kernel(Gemm gemm, Raster raster, MaskedGroups groups, const __grid_constant__ ptx::TensorMap a_map,
                  const __grid_constant__ ptx::TensorMap b_map,
                  const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();
  int index = static_cast<int>(blockIdx.x);
  GroupSearch<T, CountsOnDevice> search{gemm.shape.n, raster, {groups.count, groups}};
  GroupTile tile;

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    // ANCHOR: producer
    if (warp == Roles<T>::kProducerWarp) {
      const bool issues = ptx::elect_sync();
      PipelineState<kStages> fill{0, 1};
      for (; search.find(index, tile); index += step) {
        const int parts = parts_of<T, kSkip>(tile);
        for (int i = 0; issues && i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          load_parts<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile, i * T::kK,
                        parts);
          fill.advance();
          // ANCHOR_END: producer
        }
        __syncwarp();
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    WarpgroupTile<T> warpgroup;
    RingReader<T, kStages> reader{ring};
    for (; search.find(index, tile); index += step) {
      if (warpgroup.row >= parts_of<T, kSkip>(tile) * T::kWarpgroupM) {
        // This warpgroup has no rows in the tile, and still it is a reader of every stage. One thread waits
        // for each k-tile, because an early release would count for the k-tile before, and releases it, or
        // the stage would never be empty. The others do not wait: no wgmma keeps the warps together, so the
        // ring could turn twice before a slow one looks. The barrier brings them together again.
        // ANCHOR: main_loop
        for (int i = 0; i < k_tiles; ++i) {
          if (reader.releases) ring.consumer_wait(reader.read, i);
          reader.read.advance();
          reader.release_stage();
        }
        ptx::bar_sync(static_cast<std::uint32_t>(1 + warp / 4), 128);
        continue;
        // ANCHOR_END: main_loop
      }
      reader.multiply(warpgroup, k_tiles);
      reader.finish(warpgroup);
      if (tile.row + warpgroup.row + T::kWarpgroupM <= tile.end) {
        store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, tile.row, tile.column);
      } else {
        const Gemm group{{tile.end, gemm.shape.n, gemm.shape.k}, gemm.a, gemm.b, gemm.d};
        warpgroup.store(group, tile.row, tile.column);
      }
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename T, int kStages, bool kSkip>
Variant variant(const char* name, const char* summary) {
  using Grid = GroupedCtas<T, Shared<T, kStages>, Roles<T>::kThreads>;
  return variant_of<masked_kernel<T, kStages, kSkip>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .groups = GroupForm::kMasked},
      [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        const bool is_one = problem.capacity == 0;  // group, which has all rows
        const MaskedGroups given{problem.counts, is_one ? 1 : m / problem.capacity,
                                 is_one ? m : problem.capacity};
        const auto groups = [given, one = device_copy(std::vector<int>(is_one ? 1 : 0, m))](ptx::Stream) {
          return MaskedGroups{one != nullptr ? one.get() : given.counts, given.count, given.capacity};
        };
        return std::tuple(static_cast<const Gemm&>(problem), Raster{RasterOrder::kGrouped, 16}, groups,
                          operand_map<T>(problem.a, m, k, T::kWarpgroupM),
                          operand_map<T>(problem.b, given.count * n, k, T::kN, ptx::L2Promotion::k256B),
                          store_map(problem.d, m, n));
      });
}

inline const Step kStep{
    .name = "53_masked",
    .title = "counts that only the device knows, and tiles that leave out the rows that a group lacks",
    .builds_on = "52_grouped",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<WgmmaTiling<128, 256, 64, 2>, 4, true>(
                     "halves", "128 rows, and a warpgroup without rows is left out"),
                 variant<WgmmaTiling<128, 256, 64, 2>, 4, false>("whole_tiles", "128 rows, all multiplied"),
                 variant<WgmmaTiling<64, 256, 64, 1>, 5, true>("rows_64", "tiles of 64 rows")}};

}  // namespace gemm::step_53
