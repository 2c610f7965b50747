// Step 74: two CTAs are a pair. Each loads its rows of A and half of B; one thread multiplies for both.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "gemm/epilogue/tensor_store.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/accumulators.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/cluster_tile.cuh"
#include "gemm/tile/tensor_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_74 {

inline constexpr int kEpilogueWarps = 4;  // the first four: warp w reaches lanes 32 w to 32 w + 31
inline constexpr int kIssuerWarp = 4;     // in the leader only
inline constexpr int kLoaderWarp = 5;
inline constexpr int kThreads = 192;

using Pair = Cluster<2, 1>;  // one tile above the other: the same columns of B
inline constexpr std::uint32_t kLeader = 0;
inline constexpr std::uint16_t kBoth = 0b11;

// Lesson: the pair multiplies 256 rows by kN columns. Each CTA gets 128 x kN of D, T. But it holds only half
// of the columns of B: the tensor cores of each SM read the other half in the other SM's shared memory.
template <typename T>
struct Half {
  static constexpr int kM = T::kM;
  static constexpr int kN = T::kN / 2;
  static constexpr int kK = T::kK;
  static constexpr int kPanelK = T::kPanelK;
  static constexpr int kPanels = T::kPanels;
  static constexpr std::uint32_t kInstruction =
      ptx::encode(ptx::InstructionDescriptor{.m = 2 * kM, .n = T::kN});  // for both halves
  static_assert(ptx::instruction_descriptor_fault(kInstruction, 2) == nullptr, "a shape that a pair has");
};

/// Both CTAs call it, each for its half of the k-tile.
template <typename T>
__device__ __forceinline__ void load_half(WgmmaTiles<Half<T>>& tiles, std::uint64_t* full,
                                          const ptx::TensorMap* a_map, const ptx::TensorMap* b_map,
                                          TilePosition tile, int k0, const Pair& pair) {
  // ANCHOR: load_for_pair
  // Lesson: the bytes land in this CTA, and the leader's mbarrier counts them. It expects both CTAs' bytes.
  const std::uint32_t leader_full = ptx::mapa(ptx::shared_address(full), kLeader);
  if (pair.rank == kLeader) ptx::mbarrier_arrive_expect_tx(full, 2 * WgmmaTiles<Half<T>>::kBytes);
#pragma unroll
  for (int panel = 0; panel < T::kPanels; ++panel) {
    const int k = k0 + panel * T::kPanelK;
    ptx::cp_async_bulk_tensor_2d_cta_group_2(tiles.a[panel], a_map, k, tile.m * T::kM, leader_full);
    ptx::cp_async_bulk_tensor_2d_cta_group_2(tiles.b[panel], b_map, k,
                                             tile.n * T::kN + pair.rank * Half<T>::kN, leader_full);
    // ANCHOR_END: load_for_pair
  }
}

/// Step 73's accumulators, between two CTAs: `full` is in both CTAs, and `empty` is in the leader.
template <typename T, int kAccumulators>
struct PairAccumulators : Accumulators<T, kAccumulators> {
  using State = PipelineState<kAccumulators>;

  /// The leader's commit arrives in this CTA, too. What it says about the other is acquired at cluster scope.
  __device__ __forceinline__ void wait(State at, int k_tile) {
    ptx::mbarrier_wait_parity_cluster(&this->full[at.stage], at.phase,
                                      {"epilogue", "accumulator_full", at.stage, k_tile});
    ptx::tcgen05_fence_after_thread_sync();
  }

  /// Only tensor memory is handed back: relaxed, between the two fences of tcgen05.
  __device__ __forceinline__ void release(State at) {
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      ptx::mbarrier_arrive_relaxed_cluster(ptx::mapa(ptx::shared_address(&this->empty[at.stage]), kLeader));
  }
  __device__ __forceinline__ void acquire(State at) {
    ptx::mbarrier_wait_parity_relaxed_cluster(&this->empty[at.stage], at.phase,
                                              {"issuer", "accumulator_empty", at.stage, 0});
    ptx::tcgen05_fence_after_thread_sync();
  }
};

template <typename T, int kStages, int kAccumulators>
struct Shared {
  Ring<Half<T>, kStages> ring;  // `full` of the leader counts for both; each CTA has an `empty` of its own
  PairAccumulators<T, kAccumulators> accumulators;
};

/// With room for D on its way out, after step 76.
template <typename T, int kStages, int kAccumulators>
struct StoringShared : Shared<T, kStages, kAccumulators> {
  TensorStoreBuffers<T> d;
};

template <typename T, int kStages, int kAccumulators, bool kStores>
using SharedOf =
    std::conditional_t<kStores, StoringShared<T, kStages, kAccumulators>, Shared<T, kStages, kAccumulators>>;

template <typename T, int kStages, int kAccumulators, bool kStores>
__global__ void __launch_bounds__(kThreads, T::kCtasPerSm)
    cta_pair_kernel(Gemm gemm, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                    const __grid_constant__ ptx::TensorMap b_map,
                    const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<SharedOf<T, kStages, kAccumulators, kStores>>();
  auto& ring = shared.ring;
  auto& accumulators = shared.accumulators;
  const Pair pair;
  const TileGrid tiles = cluster_grid<T, Pair>(gemm.shape);  // in pairs; the lower tile may lie outside D
  const int first = static_cast<int>(blockIdx.x) / Pair::kCtas;
  const int step = static_cast<int>(gridDim.x) / Pair::kCtas;
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(1);
    accumulators.init(2 * kEpilogueWarps);  // the epilogues of both CTAs
    ptx::fence_mbarrier_init_release_cluster();
  }
  sync_cluster();  // the peer is there, and so are its barriers
  if (warp == 0) {
    ptx::tcgen05_alloc<2>(&accumulators.base, accumulators.kColumns);
    ptx::tcgen05_relinquish_alloc_permit<2>();
  }
  sync_cluster();  // both have their columns
  const std::uint32_t base = ptx::ld_shared(&accumulators.base);

  if (warp == kLoaderWarp && ptx::elect_sync()) {
    // ANCHOR: producer
    PipelineState<kStages> fill{0, 1};
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = cluster_tile(tile_at(index, tiles, raster), pair);
      for (int i = 0; i < k_tiles; ++i) {
        ring.producer_acquire(fill, i);
        load_half<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile, i * T::kK, pair);
        // ANCHOR_END: producer
        fill.advance();
      }
    }
    ring.producer_tail(fill, k_tiles);  // the last commits' arrivals must find this CTA
  } else if (warp == kIssuerWarp && pair.rank == kLeader && ptx::elect_sync()) {
    // Lesson: one thread issues for two CTAs. Its multiplications read both shared memories and write both
    // tensor memories; its commits tell both CTAs.
    // ANCHOR: issuer
    PipelineState<kStages> read{0, 0};
    PipelineState<kAccumulators> fill{0, 1};
    for (int index = first; index < tiles.count(); index += step) {
      accumulators.acquire(fill);
      const std::uint32_t d = base + static_cast<std::uint32_t>(fill.stage) * T::kColumns;
      for (int i = 0; i < k_tiles; ++i) {
        ptx::mbarrier_wait_parity_cluster(&ring.full[read.stage], read.phase,
                                          {"consumer", "full", read.stage, i});
        ptx::tcgen05_fence_after_thread_sync();
        multiply<Half<T>, 2>(ring.stage[read.stage], d, i == 0);
        ptx::tcgen05_commit_multicast<2>(&ring.empty[read.stage], kBoth);
        read.advance();
      }
      ptx::tcgen05_commit_multicast<2>(&accumulators.full[fill.stage], kBoth);
      fill.advance();
      // ANCHOR_END: issuer
    }
  } else if (warp < kEpilogueWarps) {
    PipelineState<kAccumulators> read{0, 0};
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = cluster_tile(tile_at(index, tiles, raster), pair);
      accumulators.wait(read, k_tiles - 1);
      const std::uint32_t d = base + static_cast<std::uint32_t>(read.stage) * T::kColumns;
      const auto hand_back = [&] { accumulators.release(read); };
      if constexpr (kStores) {
        store_through_shared(shared.d, &d_map, d, tile.m * T::kM, tile.n * T::kN, hand_back);
      } else {
        store<T>(gemm, d, tile.m * T::kM, tile.n * T::kN);
        hand_back();
      }
      read.advance();
    }
    if (kStores && threadIdx.x == 0) ptx::cp_async_bulk_wait_group<0>();  // the buffers outlive the stores
  }
  __syncwarp();
  sync_cluster();  // no CTA gives up, by leaving or by deallocating, what its peer may still use
  if (warp == 0) ptx::tcgen05_dealloc<2>(base, accumulators.kColumns);
}

template <int kTileN, int kStages, int kAccumulators, bool kStores = false>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, 64, 1>;
  using Grid = PersistentCtas<T, SharedOf<T, kStages, kAccumulators, kStores>, kThreads, Pair>;
  return variant_of<cta_pair_kernel<T, kStages, kAccumulators, kStores>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = tensor_tile_traffic<T>(Pair::kM)},
      [](const Gemm& gemm) {
        return std::tuple_cat(with_operand_maps<T, Pair>(gemm, gemm, Raster{RasterOrder::kGrouped, 8}),
                              std::tuple(TensorStoreBuffers<T>::map_of(gemm)));
      });
}

inline const Step kStep{
    .name = "74_cta_pair",
    .title = "a pair of CTAs multiplies one tile, and each holds half of B",
    .builds_on = "73_roles_two_accumulators",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<256, 6, 2>("256x256", "256 x 256 per pair, 6 stages of 32 KB in each CTA"),
                 variant<256, 4, 2>("256x256_4_stages", "as many stages as step 73"),
                 variant<128, 8, 2>("256x128", "8 stages of 24 KB"),
                 variant<256, 6, 2, true>("256x256_store", "D leaves through shared memory, as in step 76")}};

}  // namespace gemm::step_74
