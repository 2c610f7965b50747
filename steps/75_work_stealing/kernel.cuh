// Step 75: the grid has a pair for every tile of D. The pairs that run cancel pairs that have not started,
// and do their work.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "gemm/epilogue/tensor_store.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/pair_accumulators.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/cluster_tile.cuh"
#include "gemm/tile/pair_tile.cuh"
#include "gemm/tile/tensor_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/clusterlaunchcontrol.cuh"
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
#include "ptx/tma.cuh"

namespace gemm::step_75 {

inline constexpr int kEpilogueWarps = 4;  // the first four: warp w reaches lanes 32 w to 32 w + 31
inline constexpr int kIssuerWarp = 4;     // in the leader only
inline constexpr int kLoaderWarp = 5;
inline constexpr int kSchedulerWarp = 6;
inline constexpr int kThreads = 224;
inline constexpr int kNoTile = -1;
// The readers of a response: each CTA's epilogue, loader and scheduler, and the leader's issuer.
inline constexpr int kReaders = 2 * (kEpilogueWarps + 2) + 1;

// Lesson: a ring like any other. Its producer is the hardware that launches CTAs. It answers in both
// CTAs of the pair, and each CTA's mbarrier counts the 16 bytes of its copy. Its consumers are all roles.
template <int kResponses>
struct Requests {
  using State = PipelineState<kResponses>;

  uint4 response[kResponses];          // opaque
  std::uint64_t answered[kResponses];  // count 1: this CTA's scheduler, and 16 bytes
  std::uint64_t taken[kResponses];     // used in the leader; count kReaders, in both CTAs

  __device__ __forceinline__ void init() {
    for (int i = 0; i < kResponses; ++i) {
      ptx::mbarrier_init(&answered[i], 1);
      ptx::mbarrier_init(&taken[i], kReaders);
    }
  }

  // ANCHOR: ask
  /// Both CTAs' schedulers call it. The leader's requests a tile when the slot's last response has been read.
  __device__ __forceinline__ void request(State at, const Pair& pair) {
    if (pair.rank == kLeader)
      ptx::mbarrier_wait_parity_cluster(&taken[at.stage], at.phase ^ 1, {"scheduler", "taken", at.stage, 0});
    ptx::mbarrier_arrive_expect_tx(&answered[at.stage], sizeof(uint4));
    if (pair.rank == kLeader)
      ptx::clusterlaunchcontrol_try_cancel_multicast(&response[at.stage], &answered[at.stage]);
    // ANCHOR_END: ask
  }

  /// The tile of the pair that was cancelled, or kNoTile. One thread calls it for all that need to know.
  __device__ __forceinline__ int next(State& at) {
    // ANCHOR: read_answer
    ptx::mbarrier_wait_parity_cluster(&answered[at.stage], at.phase, {"reader", "answered", at.stage, 0});
    const uint4 answer = ptx::ld_shared(&response[at.stage]);
    int tile = kNoTile;
    if (ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer)) {
      const std::uint32_t cta = ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x(answer);
      tile = static_cast<int>(cta) / Pair::kCtas;
    }
    // Lesson: this read uses the generic proxy, and the next response comes through the async proxy.
    ptx::fence_proxy_async_shared_cta();
    ptx::mbarrier_arrive_release_cluster(ptx::mapa(ptx::shared_address(&taken[at.stage]), kLeader));
    at.advance();
    return tile;
    // ANCHOR_END: read_answer
  }
};

template <typename T, int kStages, int kAccumulators, int kResponses>
struct Shared {
  Ring<PairHalf<T>, kStages>
      ring;  // `full` of the leader counts for both; each CTA has an `empty` of its own
  PairAccumulators<T, kAccumulators> accumulators;
  Requests<kResponses> requests;
};

/// With room for D on its way out, after step 76.
template <typename T, int kStages, int kAccumulators, int kResponses>
struct StoringShared : Shared<T, kStages, kAccumulators, kResponses> {
  TensorStoreBuffers<T> d;
};

template <typename T, int kStages, int kAccumulators, int kResponses, bool kStores>
using SharedOf = std::conditional_t<kStores, StoringShared<T, kStages, kAccumulators, kResponses>,
                                    Shared<T, kStages, kAccumulators, kResponses>>;

template <typename T, int kStages, int kAccumulators, int kResponses, bool kStores>
__global__ void __launch_bounds__(kThreads, T::kCtasPerSm)
    work_stealing_kernel(Gemm gemm, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                         const __grid_constant__ ptx::TensorMap b_map,
                         const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<SharedOf<T, kStages, kAccumulators, kResponses, kStores>>();
  auto& ring = shared.ring;
  auto& accumulators = shared.accumulators;
  auto& requests = shared.requests;
  const Pair pair;
  const TileGrid tiles = cluster_grid<T, Pair>(gemm.shape);      // in pairs; the lower tile may lie outside D
  const int first = static_cast<int>(blockIdx.x) / Pair::kCtas;  // the grid has a pair for every tile
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(1);
    accumulators.init(2 * kEpilogueWarps);  // the epilogues of both CTAs
    requests.init();
    ptx::fence_mbarrier_init_release_cluster();
  }
  sync_cluster();  // the peer is there, and so are its barriers
  if (warp == 0) {
    ptx::tcgen05_alloc<2>(&accumulators.base, accumulators.kColumns);
    ptx::tcgen05_relinquish_alloc_permit<2>();
  }
  sync_cluster();  // both have their columns
  const std::uint32_t base = ptx::ld_shared(&accumulators.base);

  typename Requests<kResponses>::State asked{0, 0};  // every role walks through the responses
  if (warp == kSchedulerWarp && ptx::elect_sync()) {
    // Lesson: a tile is requested while the one before is multiplied. A request may fail although tiles are
    // left; the hardware launches their pairs. After a failure the CTA requests nothing more.
    do {
      requests.request(asked, pair);
    } while (requests.next(asked) != kNoTile);
  } else if (warp == kLoaderWarp && ptx::elect_sync()) {
    // ANCHOR: producer
    PipelineState<kStages> fill{0, 1};
    for (int index = first; index != kNoTile; index = requests.next(asked)) {
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
    PipelineState<kStages> read{0, 0};
    PipelineState<kAccumulators> fill{0, 1};
    for (int index = first; index != kNoTile; index = requests.next(asked)) {
      accumulators.acquire(fill);
      const std::uint32_t d = base + static_cast<std::uint32_t>(fill.stage) * T::kColumns;
      for (int i = 0; i < k_tiles; ++i) {
        ptx::mbarrier_wait_parity_cluster(&ring.full[read.stage], read.phase,
                                          {"consumer", "full", read.stage, i});
        ptx::tcgen05_fence_after_thread_sync();
        multiply<PairHalf<T>, 2>(ring.stage[read.stage], d, i == 0);
        ptx::tcgen05_commit_multicast<2>(&ring.empty[read.stage], kBoth);
        read.advance();
      }
      ptx::tcgen05_commit_multicast<2>(&accumulators.full[fill.stage], kBoth);
      fill.advance();
    }
  } else if (warp < kEpilogueWarps) {
    PipelineState<kAccumulators> read{0, 0};
    int index = first;
    while (index != kNoTile) {
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
      if (threadIdx.x % 32 == 0) index = requests.next(asked);
      index = warp_uniform(index);
    }
    if (kStores && threadIdx.x == 0) ptx::cp_async_bulk_wait_group<0>();  // the buffers outlive the stores
  }
  __syncwarp();
  sync_cluster();  // no CTA gives up, by leaving or by deallocating, what its peer may still use
  if (warp == 0) ptx::tcgen05_dealloc<2>(base, accumulators.kColumns);
}

template <int kTileN, int kStages, int kAccumulators, int kResponses, bool kStores = false>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, 64, 1>;
  using Grid = TileClusters<T, SharedOf<T, kStages, kAccumulators, kResponses, kStores>, kThreads, Pair>;
  return variant_of<work_stealing_kernel<T, kStages, kAccumulators, kResponses, kStores>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = tensor_tile_traffic<T>(Pair::kM)},
      [](const Gemm& gemm) {
        return std::tuple_cat(with_operand_maps<T, Pair>(gemm, gemm, Raster{RasterOrder::kGrouped, 8}),
                              std::tuple(TensorStoreBuffers<T>::map_of(gemm)));
      });
}

inline const Step kStep{
    .name = "75_work_stealing",
    .title = "a pair that has finished takes over the tile of one that has not started",
    .builds_on = "74_cta_pair",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<256, 6, 2, 3>("256x256", "256 x 256 per pair, three responses ahead"),
        variant<256, 6, 2, 1>("256x256_1_response", "requests the next tile when all have taken this one"),
        variant<128, 8, 2, 3>("256x128", "8 stages of 24 KB"),
        variant<256, 6, 2, 3, true>("256x256_store", "D leaves through shared memory, as in step 76")}};

}  // namespace gemm::step_75
