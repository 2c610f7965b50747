// Step 72: CTAs that stay; the phases of the ring and of the accumulator go on from tile to tile.
#pragma once

#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tensor_tile.cuh"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_72 {

inline constexpr int kLoaderWarp = 4;  // after the four that read tensor memory, one of which issues
inline constexpr int kThreads = 160;
inline constexpr std::uint32_t kReadBarrier = 1;  // at which those four warps meet

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  std::uint64_t done;  // mbarrier: all multiplications of a tile are done; a phase is a tile
  std::uint32_t tensor_memory;
};

template <typename T, int kStages>
__global__ void __launch_bounds__(kThreads, T::kCtasPerSm)
    tensor_memory_persistent_kernel(Gemm gemm, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                                    const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  Ring<T, kStages>& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>(gemm.shape);
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(1);  // one arrival releases a stage: that of tcgen05.commit
    ptx::mbarrier_init(&shared.done, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (warp == 0) {
    __syncwarp();
    ptx::tcgen05_alloc(&shared.tensor_memory, T::kColumns);  // once, for all tiles
    ptx::tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);

  // Lesson: the loader is a warp that reads no tensor memory. So nothing keeps it from the next tile while
  // the other four store this one: the ring is full when they have finished.
  if (warp == kLoaderWarp && ptx::elect_sync()) {
    PipelineState<kStages> fill{0, 1};
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = tile_at(index, tiles, raster);
      for (int i = 0; i < k_tiles; ++i) {
        ring.producer_acquire(fill, i);
        load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.m * T::kM,
                      tile.n * T::kN, i * T::kK);
        fill.advance();
      }
    }
    ring.producer_tail(fill, k_tiles);  // the last commits' arrivals must find this CTA
  } else if (warp < kLoaderWarp) {
    // ANCHOR: tile_loop
    // ANCHOR: issuer
    PipelineState<kStages> read{0, 0};  // the issuer's: elect.sync chooses the same lane every time
    std::uint32_t parity = 0;           // parity of the `done` phase that this tile completes
    for (int index = first; index < tiles.count(); index += step) {
      if (warp == 0 && ptx::elect_sync()) {
        for (int i = 0; i < k_tiles; ++i) {
          ring.consumer_wait(read, i);
          ptx::tcgen05_fence_after_thread_sync();
          multiply<T>(ring.stage[read.stage], d, i == 0);
          ptx::tcgen05_commit(&ring.empty[read.stage]);
          read.advance();
        }
        ptx::tcgen05_commit(&shared.done);
        // ANCHOR_END: issuer
      }
      ptx::mbarrier_wait_parity(&shared.done, parity, {"epilogue", "done", 0, k_tiles - 1});
      parity ^= 1;
      ptx::tcgen05_fence_after_thread_sync();
      __syncwarp();  // one lane of a warp was busy elsewhere
      const TilePosition tile = tile_at(index, tiles, raster);
      store<T>(gemm, d, tile.m * T::kM, tile.n * T::kN);
      // Lesson: there is one accumulator, and the next tile overwrites it. So its first multiplication comes
      // after the last load of every warp: wait::ld inside store, this fence, this barrier, and the
      // issuer's fence after its next wait. Meanwhile the tensor cores are idle.
      ptx::tcgen05_fence_before_thread_sync();
      ptx::bar_sync(kReadBarrier, T::kThreads);
      // ANCHOR_END: tile_loop
    }
  }
  if (warp == 0) ptx::tcgen05_dealloc(d, T::kColumns);
}

template <int kTileN, int kStages, int kCtas, RasterOrder kOrder, int kGroup = 1>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, 64, kCtas>;
  using Grid = PersistentCtas<T, Shared<T, kStages>, kThreads, OneCta, T::kCtasPerSm>;
  return variant_of<tensor_memory_persistent_kernel<T, kStages>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = tensor_tile_traffic<T>()},
      [](const Gemm& gemm) {
        return with_operand_maps<T>(gemm, gemm, Raster{kOrder, kGroup});
      });
}

using enum RasterOrder;

inline const Step kStep{
    .name = "72_tensor_memory_persistent",
    .title = "a CTA that stays, with its columns, for one tile after the other",
    .builds_on = "71_tensor_memory_ring",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<256, 4, 1, kGrouped, 16>("128x256_group16", "raster groups of 16 tiles of M"),
                 variant<256, 4, 1, kAlongN>("128x256_along_n", "row by row"),
                 variant<256, 2, 2, kGrouped, 16>("128x256_two_ctas",
                                                  "two CTAs per SM: one multiplies while the other stores"),
                 variant<128, 6, 1, kGrouped, 16>("128x128_group16", "6 stages, 128 columns")}};

}  // namespace gemm::step_72
