// Step 73: a warp loads, a warp issues, four warps store; two accumulators in tensor memory let the epilogue
// of one tile run during the multiplications of the next.
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
#include "ptx/shared.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_73 {

inline constexpr int kEpilogueWarps = 4;  // the first four: warp w reaches lanes 32 w to 32 w + 31
inline constexpr int kIssuerWarp = 4;
inline constexpr int kLoaderWarp = 5;
inline constexpr int kThreads = 192;

/// Accumulators in tensor memory, handed back and forth like the stages of a ring: the issuer is the
/// producer, and the epilogue is the consumer. A phase of each barrier lasts for one tile.
template <typename T, int kAccumulators>
struct Accumulators {
  using State = PipelineState<kAccumulators>;
  static constexpr std::uint32_t kColumns = kAccumulators * T::kColumns;
  static_assert(kColumns * T::kCtasPerSm <= 512, "the CTAs of an SM share its 512 columns");

  std::uint64_t full[kAccumulators];   // the tile is multiplied; count 1: tcgen05.commit
  std::uint64_t empty[kAccumulators];  // the tile has been read; count 4: the epilogue's warps
  std::uint32_t base;                  // tcgen05.alloc writes it here

  __device__ __forceinline__ void init() {
    for (int i = 0; i < kAccumulators; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kEpilogueWarps);
    }
  }

  /// The issuer may overwrite the accumulator: every warp of the epilogue has read it.
  // ANCHOR: accumulator_ring
  __device__ __forceinline__ void acquire(State at) {
    ptx::mbarrier_wait_parity(&empty[at.stage], at.phase, {"issuer", "accumulator_empty", at.stage, 0});
    ptx::tcgen05_fence_after_thread_sync();
  }

  /// The epilogue may read the accumulator: every multiplication of the tile is done.
  __device__ __forceinline__ void wait(State at, int k_tile) {
    ptx::mbarrier_wait_parity(&full[at.stage], at.phase, {"epilogue", "accumulator_full", at.stage, k_tile});
    ptx::tcgen05_fence_after_thread_sync();
  }

  // Lesson: tcgen05.wait::ld says that the columns are in this warp's registers, and nothing else does. Only
  // after it may the warp hand the accumulator back. The fence is for the issuer's next multiplication.
  __device__ __forceinline__ void release(State at) {
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();  // lane 0 arrives for its warp
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&empty[at.stage]);
    // ANCHOR_END: accumulator_ring
  }
};

template <typename T, int kStages, int kAccumulators>
struct Shared {
  Ring<T, kStages> ring;
  Accumulators<T, kAccumulators> accumulators;
};

template <typename T, int kStages, int kAccumulators>
__global__ void __launch_bounds__(kThreads, T::kCtasPerSm)
    two_accumulators_kernel(Gemm gemm, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                            const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kAccumulators>>();
  Ring<T, kStages>& ring = shared.ring;
  auto& accumulators = shared.accumulators;
  const TileGrid tiles = tile_grid<T>(gemm.shape);
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(1);  // one arrival releases a stage: that of tcgen05.commit
    accumulators.init();
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
    // Lesson: the issuer is a consumer of one ring and the producer of another. It does not know where a tile
    // is in D, and it stops only where both accumulators wait for the epilogue.
    // ANCHOR: issuer
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
      // ANCHOR_END: issuer
    }
  } else if (warp < kEpilogueWarps) {
    PipelineState<kAccumulators> read{0, 0};
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = tile_at(index, tiles, raster);
      accumulators.wait(read, k_tiles - 1);
      const std::uint32_t d = base + static_cast<std::uint32_t>(read.stage) * T::kColumns;
      // ANCHOR: store_and_release
      store<T>(gemm, d, tile.m * T::kM, tile.n * T::kN);
      accumulators.release(read);
      read.advance();
    }
    // ANCHOR_END: store_and_release
  }
  __syncwarp();     // one lane of two warps was busy elsewhere
  __syncthreads();  // every warp has read its lanes, and nothing is in flight
  if (warp == 0) ptx::tcgen05_dealloc(base, accumulators.kColumns);
}

template <int kTileN, int kStages, int kAccumulators, int kCtas = 1>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, 64, kCtas>;
  using Grid = PersistentCtas<T, Shared<T, kStages, kAccumulators>, kThreads, OneCta, T::kCtasPerSm>;
  return variant_of<two_accumulators_kernel<T, kStages, kAccumulators>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = tensor_tile_traffic<T>()},
      [](const Gemm& gemm) {
        return with_operand_maps<T>(gemm, gemm, Raster{RasterOrder::kGrouped, 16});
      });
}

inline const Step kStep{
    .name = "73_roles_two_accumulators",
    .title = "three roles and two accumulators: the epilogue runs under the next tile",
    .builds_on = "72_tensor_memory_persistent",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<256, 4, 2>("128x256", "all 512 columns: two accumulators of 256"),
                 variant<256, 4, 1>("128x256_one_accumulator", "the same roles, nothing overlaps"),
                 variant<128, 6, 2>("128x128", "6 stages, 256 columns"),
                 variant<128, 3, 2, 2>("128x128_two_ctas", "two CTAs per SM, two accumulators each")}};

}  // namespace gemm::step_73
