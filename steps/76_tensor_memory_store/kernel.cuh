// Step 76: the result leaves tensor memory through swizzled shared memory and TMA stores. The accumulator is
// handed back as soon as it is in registers.
#pragma once

#include <cstdint>
#include <tuple>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/accumulators.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tensor_tile.cuh"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_ld.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_76 {

inline constexpr int kEpilogueWarps = 4;  // the first four: warp w reaches lanes 32 w to 32 w + 31
inline constexpr int kEpilogueThreads = 32 * kEpilogueWarps;
inline constexpr int kIssuerWarp = 4;
inline constexpr int kLoaderWarp = 5;
inline constexpr int kThreads = 192;
inline constexpr std::uint32_t kStoreBarrier = 1;  // at which the epilogue's warps meet; 0 is the CTA's
inline constexpr int kSubtileN = 64;               // 128 bytes of D: the widest box with a 128-byte swizzle

/// When a warp hands its accumulator back: as soon as the last columns are in its registers, or when it has
/// written them to shared memory.
enum class Release { kLoaded, kWritten };

template <typename T, int kStages, int kAccumulators>
struct Shared {
  Ring<T, kStages> ring;
  bf16 d[2][T::kM][kSubtileN];  // [buffer][m][n], 128-byte rows, swizzled
  Accumulators<T, kAccumulators> accumulators;
};

// Lesson: a tile leaves in subtiles of 128 x 64, through two buffers. A thread has a row of the subtile, and
// eight threads write a unit of 16 bytes each in eight groups of banks, because the swizzle shifts every row.
// Each thread fences what it wrote (TMA reads through the async proxy), all meet, and one issues the store.
template <typename T, Release kRelease, typename Handback>
__device__ __forceinline__ void store_tile(bf16 (&buffers)[2][T::kM][kSubtileN], const ptx::TensorMap* d_map,
                                           std::uint32_t d, int tile_row, int tile_column,
                                           const Handback& hand_back) {
  const int row = static_cast<int>(threadIdx.x);  // in the tile, and the lane of tensor memory
  const std::uint32_t lanes = ptx::tensor_memory_address(d, static_cast<std::uint32_t>(row) / 32 * 32, 0);
  const bool stores = threadIdx.x == 0;
  static_assert(T::kN / kSubtileN % 2 == 0, "a tile begins with the buffer that was stored longer ago");
  int buffer = 0;
#pragma unroll 1
  // ANCHOR: store_tile
  for (int column = 0; column < T::kN; column += kSubtileN) {
    float values[2][32];
    ptx::tcgen05_ld_32x32b_x32(values[0], lanes + static_cast<std::uint32_t>(column));
    ptx::tcgen05_ld_32x32b_x32(values[1], lanes + static_cast<std::uint32_t>(column) + 32);
    ptx::tcgen05_wait_ld();
    // Lesson: the accumulator ends here, in registers. What follows needs shared memory and may wait for it.
    if (kRelease == Release::kLoaded && column + kSubtileN == T::kN) hand_back();

    if (stores) ptx::cp_async_bulk_wait_group_read<1>();
    ptx::bar_sync(kStoreBarrier, kEpilogueThreads);  // the buffer is free
#pragma unroll
    for (int unit = 0; unit < 8; ++unit) {  // a unit is 8 columns wide
      const float* from = &values[unit / 4][unit % 4 << 3];
      const uint4 eight = {ptx::cvt_rn_bf16x2_f32(from[0], from[1]), ptx::cvt_rn_bf16x2_f32(from[2], from[3]),
                           ptx::cvt_rn_bf16x2_f32(from[4], from[5]),
                           ptx::cvt_rn_bf16x2_f32(from[6], from[7])};
      const int place = (unit ^ row % 8) * 8;
      ptx::st_shared(reinterpret_cast<uint4*>(&buffers[buffer][row][place]), eight);
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync(kStoreBarrier, kEpilogueThreads);  // the subtile is written
    if (stores) {
      ptx::cp_async_bulk_tensor_2d_store(d_map, tile_column + column, tile_row, buffers[buffer]);
      ptx::cp_async_bulk_commit_group();
    }
    buffer ^= 1;
    // ANCHOR_END: store_tile
  }
  if (kRelease == Release::kWritten) hand_back();
}

template <typename T, int kStages, int kAccumulators, Release kRelease>
__global__ void __launch_bounds__(kThreads, T::kCtasPerSm)
    tensor_memory_store_kernel(Shape shape, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                               const __grid_constant__ ptx::TensorMap b_map,
                               const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kAccumulators>>();
  Ring<T, kStages>& ring = shared.ring;
  auto& accumulators = shared.accumulators;
  const TileGrid tiles = tile_grid<T>(shape);
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(1);  // one arrival releases a stage: that of tcgen05.commit
    accumulators.init(kEpilogueWarps);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (warp == 0) {
    __syncwarp();
    ptx::tcgen05_alloc(&accumulators.base, accumulators.kColumns);
    ptx::tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();
  const std::uint32_t base = ptx::ld_shared(&accumulators.base);

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
  } else if (warp == kIssuerWarp && ptx::elect_sync()) {
    PipelineState<kStages> read{0, 0};
    PipelineState<kAccumulators> fill{0, 1};
    for (int index = first; index < tiles.count(); index += step) {
      accumulators.acquire(fill);
      const std::uint32_t d = base + static_cast<std::uint32_t>(fill.stage) * T::kColumns;
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        ptx::tcgen05_fence_after_thread_sync();
        multiply<T>(ring.stage[read.stage], d, i == 0);
        ptx::tcgen05_commit(&ring.empty[read.stage]);
        read.advance();
      }
      ptx::tcgen05_commit(&accumulators.full[fill.stage]);
      fill.advance();
    }
  } else if (warp < kEpilogueWarps) {
    PipelineState<kAccumulators> read{0, 0};
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = tile_at(index, tiles, raster);
      accumulators.wait(read, k_tiles - 1);
      const std::uint32_t d = base + static_cast<std::uint32_t>(read.stage) * T::kColumns;
      // ANCHOR: store_and_wait
      store_tile<T, kRelease>(shared.d, &d_map, d, tile.m * T::kM, tile.n * T::kN,
                              [&] { accumulators.release(read); });
      read.advance();
    }
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group<0>();  // the buffers must outlive the stores
    // ANCHOR_END: store_and_wait
  }
  __syncwarp();     // one lane of three warps was busy elsewhere
  __syncthreads();  // every warp has read its lanes, and nothing is in flight
  if (warp == 0) ptx::tcgen05_dealloc(base, accumulators.kColumns);
}

template <int kTileN, int kStages, int kAccumulators, Release kRelease = Release::kLoaded>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, 64, 1>;
  using Grid = PersistentCtas<T, Shared<T, kStages, kAccumulators>, kThreads>;
  return variant_of<tensor_memory_store_kernel<T, kStages, kAccumulators, kRelease>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = tensor_tile_traffic<T>()},
      [](const Gemm& gemm) {
        const auto d_map = ptx::make_tensor_map(
            ptx::matrix_spec(gemm.d, gemm.shape.m, gemm.shape.n, T::kM, kSubtileN, ptx::Swizzle::k128B));
        return std::tuple_cat(with_operand_maps<T>(gemm, gemm.shape, Raster{RasterOrder::kGrouped, 16}),
                              std::tuple(d_map));
      });
}

inline const Step kStep{
    .name = "76_tensor_memory_store",
    .title = "tensor memory, swizzled shared memory, TMA store: the epilogue writes whole lines",
    .builds_on = "73_roles_two_accumulators",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<256, 4, 2>("128x256", "two accumulators, handed back when they are in registers"),
                 variant<256, 4, 1>("128x256_one_accumulator", "half of tensor memory is free"),
                 variant<256, 4, 1, Release::kWritten>("128x256_one_accumulator_late",
                                                       "handed back when it is in shared memory"),
                 variant<128, 6, 2>("128x128", "6 stages, 256 columns")}};

}  // namespace gemm::step_76
