// Step 15: the result leaves through shared memory: stmatrix, a proxy fence, and a TMA store that no thread
// waits for between tiles.
#pragma once

#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_15 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  bf16 d[T::kWarpgroups][2][64][64];  // [warpgroup][buffer][m][n], 128-byte rows, swizzled
};

// Lesson: a warpgroup's part of D leaves in subtiles of 64 x 64, through two buffers. stmatrix writes 16 x 16
// elements of a warp at a time, into the swizzled layout, so that eight rows lie in eight groups of banks.
// Every thread then fences what it wrote (TMA reads through the async proxy), all meet at a barrier, and one
// issues the store. A buffer is written again when its last store has *read* it; between tiles no thread
// waits until a store has arrived in D.
template <typename T, bool kLate>
__device__ __forceinline__ void store_tile(const WarpgroupTile<T>& warpgroup, bf16 (&buffers)[2][64][64],
                                           const ptx::TensorMap* d_map, int tile_row, int tile_column) {
  const int warp = warp_index();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp % 4 * 16 + lane % 16;  // the row whose address this lane hands to stmatrix
  const auto barrier = static_cast<std::uint32_t>(1 + warp / 4);  // one for each warpgroup; 0 is the CTA's
  const bool stores = threadIdx.x % 128 == 0;
  int buffer = 0;
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
    // ANCHOR: store_tile
    for (int column = 0; column < T::kN; column += 64) {
      if (stores) ptx::cp_async_bulk_wait_group_read<kLate ? 1 : 0>();
      ptx::bar_sync(barrier, 128);
#pragma unroll
      for (int unit = 0; unit < 8; unit += 2) {  // a unit is 8 columns wide; stmatrix.x4 writes two
        const float* accumulators = &warpgroup.accumulators[block][(column / 8 + unit) * 4];
        const std::uint32_t pairs[4] = {ptx::cvt_rn_bf16x2_f32(accumulators[0], accumulators[1]),
                                        ptx::cvt_rn_bf16x2_f32(accumulators[2], accumulators[3]),
                                        ptx::cvt_rn_bf16x2_f32(accumulators[4], accumulators[5]),
                                        ptx::cvt_rn_bf16x2_f32(accumulators[6], accumulators[7])};
        const int place = ((unit + lane / 16) ^ row % 8) * 8;
        ptx::stmatrix_x4(&buffers[buffer][row][place], pairs);
      }
      ptx::fence_proxy_async_shared_cta();
      ptx::bar_sync(barrier, 128);
      if (stores) {
        ptx::cp_async_bulk_tensor_2d_store(d_map, tile_column + column, tile_row + warpgroup.row + block * 64,
                                           buffers[buffer]);
        ptx::cp_async_bulk_commit_group();
      }
      buffer ^= 1;
      // ANCHOR_END: store_tile
    }
  }
}

template <typename T, int kStages, bool kLate>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    tma_store_kernel(Shape shape, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                     const __grid_constant__ ptx::TensorMap b_map,
                     const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>(shape);
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    // ANCHOR: init
    ring.init(T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  // ANCHOR_END: init

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    // ANCHOR: producer
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      PipelineState<kStages> fill{0, 1};
      for (int index = first; index < tiles.count(); index += step) {
        const TilePosition tile = tile_at(index, tiles, raster);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          // ANCHOR_END: producer
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.m * T::kM,
                        tile.n * T::kN, i * T::kK);
          fill.advance();
        }
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    // ANCHOR: release
    const bool releases = threadIdx.x % 128 == 0;
    WarpgroupTile<T> warpgroup;
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      if (releases) ring.consumer_release(release);
      release.advance();
      // ANCHOR_END: release
    };
    for (int index = first; index < tiles.count(); index += step) {
      // ANCHOR: main_loop
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) release_stage();
      }
      // ANCHOR_END: main_loop
      // ANCHOR: tile
      const TilePosition tile = tile_at(index, tiles, raster);
      warpgroup.template wait<0>();
      release_stage();  // the last k-tile's stage must be released now: the next tile will reuse it
      // ANCHOR: store_and_wait
      // ANCHOR: store_call
      store_tile<T, kLate>(warpgroup, shared.d[warp / 4], &d_map, tile.m * T::kM, tile.n * T::kN);
      // ANCHOR_END: store_call
      // ANCHOR_END: tile
    }
    if (releases) ptx::cp_async_bulk_wait_group<0>();  // shared memory must outlive the stores that read it

    // ANCHOR_END: store_and_wait
  }
}

template <typename T, int kStages, RasterOrder kOrder, int kGroup = 1, bool kLate = true>
Variant variant(const char* name, const char* summary) {
  using Grid = PersistentCtas<T, Shared<T, kStages>, Roles<T>::kThreads>;
  return variant_of<tma_store_kernel<T, kStages, kLate>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>()},
      [](const Gemm& gemm) {
        return with_tile_maps<T>(gemm, gemm.shape, Raster{kOrder, kGroup});
      });
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using Tile256x128 = WgmmaTiling<256, 128, 64, 2>;
using enum RasterOrder;

inline const Step kStep{
    .name = "15_tma_store",
    .title = "stmatrix and TMA stores: the epilogue leaves the critical path",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x256, 4, kGrouped, 16>("128x256_group16", "raster groups of 16 tiles of M"),
        variant<Tile128x256, 4, kGrouped, 16, false>("128x256_group16_wait0",
                                                     "every store is awaited before the next"),
        variant<Tile128x256, 4, kHilbert>("128x256_hilbert", "along a Hilbert curve"),
        variant<Tile256x128, 4, kGrouped, 8>("256x128_group8", "256 x 128, raster groups of 8 tiles of M"),
        variant<Tile256x128, 4, kHilbert>("256x128_hilbert", "256 x 128, along a Hilbert curve")}};

}  // namespace gemm::step_15
