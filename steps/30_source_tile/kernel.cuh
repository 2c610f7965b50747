// Step 30: D = alpha * A * B^T + beta * C. C comes through TMA while the tensor cores work on the tile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/epilogue/source_fragment.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ping_pong.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/subtile_ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_30 {

inline constexpr int kConsumers = 2;

/// Who brings C, and where D is written.
enum class Source { kNone, kThreads, kSeparate, kShared };

constexpr bool is_loaded(Source source) {
  return source == Source::kSeparate || source == Source::kShared;
}

template <typename T, int kStages, Source kSource>
struct Shared {
  static constexpr bool kShares = kSource == Source::kShared;
  static constexpr int kBuffers = !is_loaded(kSource) ? 1 : kShares ? 8 : 4;
  static constexpr int kAcross = T::kN / 64;
  static constexpr int kSubtiles = T::kM / 64 * kAcross;  // per tile
  using State = PipelineState<kBuffers>;

  Ring<T, kStages> ring;
  [[no_unique_address]] std::conditional_t<is_loaded(kSource), SubtileRing<kBuffers>, NoBuffers> source;
  [[no_unique_address]] std::conditional_t<kShares, NoBuffers, StoreBuffers[kConsumers]> d;
  OrderedBarrierStorage<kConsumers> order;
  std::uint64_t main_loads_begun;  // the loads of the first k-tiles are issued; count 1, the producer
};

// Lesson: the C load is a pipeline of its own beside the main loop's and the D store's. What releases a
// buffer depends on who used it last. A buffer of C alone is free when all threads have read it: they meet at
// a barrier anyway, before D is stored. Where D takes C's place, it is free when the copy engine has read D,
// one store later; issuing the store is not enough.
template <typename T, Source kSource, typename S>
__device__ __forceinline__ void store_with_source(const WarpgroupTile<T>& warpgroup, S& shared,
                                                  typename S::State& read, const SourceArguments& source,
                                                  const ptx::TensorMap* d_map, const Shape& shape,
                                                  TilePosition corner) {
  const int warp = warp_index();
  const auto barrier = static_cast<std::uint32_t>(1 + warp / 4);
  typename S::State release = read;
#pragma unroll
  for (int subtile = 0; subtile < S::kSubtiles; ++subtile) {
    const int block = subtile / S::kAcross;
    const int column = subtile % S::kAcross * 64;
    bf16(*d)[64] = nullptr;
    bf16(*c)[64] = nullptr;
    // ANCHOR: wait_for_source
    if constexpr (is_loaded(kSource)) {
      shared.source.consumer_wait(read, subtile);
      d = c = shared.source.buffer[read.stage].element;
    }
    // ANCHOR_END: wait_for_source
    if constexpr (!S::kShares) {
      d = shared.d[warp / 4].d[subtile % 2];
      if (stores_tile()) ptx::cp_async_bulk_wait_group_read<1>();
      ptx::bar_sync(barrier, 128);
    }
    const float* accumulators = &warpgroup.accumulators[block][column / 2];
    if constexpr (is_loaded(kSource))
      combine_subtile(d, accumulators, source, FromShared{c});
    else
      combine_subtile(d, accumulators, source,
                      FromGlobal{source, shape, corner.m + block * 64, corner.n + column});
    // ANCHOR: source_then_store
    ptx::fence_proxy_async_shared_cta();  // C was read and D is written: for the copies that come
    ptx::bar_sync(barrier, 128);
    if (stores_tile()) {
      ptx::cp_async_bulk_tensor_2d_store(d_map, corner.n + column, corner.m + block * 64, d);
      ptx::cp_async_bulk_commit_group();
      if constexpr (kSource == Source::kSeparate) shared.source.consumer_release(read);
      if (S::kShares && subtile > 0) {
        ptx::cp_async_bulk_wait_group_read<1>();  // the store before this one
        release_buffer(shared.source, release);
      }
    }
    // ANCHOR_END: source_then_store
    read.advance();
  }
  if (S::kShares && stores_tile()) {
    ptx::cp_async_bulk_wait_group_read<0>();
    release_buffer(shared.source, release);
  }
}

template <typename T, int kStages, Source kSource, bool kOrdered>
__global__ void __launch_bounds__(Roles<T, kConsumers>::kThreads, 1)
    source_kernel(Shape shape, Raster raster, SourceArguments source,
                  const __grid_constant__ ptx::TensorMap a_map, const __grid_constant__ ptx::TensorMap b_map,
                  const __grid_constant__ ptx::TensorMap c_map,
                  const __grid_constant__ ptx::TensorMap d_map) {
  using S = Shared<T, kStages, kSource>;
  using R = Roles<T, kConsumers>;
  auto& shared = ptx::dynamic_shared<S>();
  const CtaTiles<T> tiles(shape, raster);
  const int k_tiles = ceil_div(shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    shared.ring.init(1);
    if constexpr (is_loaded(kSource)) shared.source.init();
    shared.order.init(4);
    ptx::mbarrier_init(&shared.main_loads_begun, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    if (warp == R::kProducerWarp && ptx::elect_sync()) {
      produce_tiles(shared.ring, tiles, k_tiles, &a_map, &b_map, [&](int issued) {
        if (issued == min(k_tiles, kStages)) ptx::mbarrier_arrive(&shared.main_loads_begun);
      });
    }
    if constexpr (is_loaded(kSource)) {
      // ANCHOR: loader
      if (warp == R::kProducerWarp + 1 && ptx::elect_sync()) {  // the epilogue's loader
        typename S::State fill{0, 1};
        if (kOrdered) ptx::mbarrier_wait_parity(&shared.main_loads_begun, 0, {"loader", "load order", 0, 0});
        for (int index = tiles.first; index < tiles.count(); index += tiles.step) {
          const TilePosition corner = tiles.corner(index);
          for (int i = 0; i < S::kSubtiles; ++i) {
            shared.source.producer_acquire(fill, i);
            shared.source.load(fill, &c_map, source.beta != 0, corner.m + i / S::kAcross * 64,
                               corner.n + i % S::kAcross * 64);
            fill.advance();
          }
        }
      }
      // ANCHOR_END: loader
    }
  } else {
    ptx::setmaxnreg_inc<R::kConsumerRegisters>();
    const int me = warp / 4;
    WarpgroupTile<T> warpgroup;
    PingPongConsumer<T, kStages> consumer(shared.ring, shared.order, me, k_tiles);
    typename S::State read{0, 0};             // in C's ring
    if (me == 1) read.advance(S::kSubtiles);  // the first tile belongs to the other consumer
    for (int index = tiles.first + me * tiles.step; index < tiles.count(); index += kConsumers * tiles.step) {
      consumer.multiply(warpgroup);
      const TilePosition corner = tiles.corner(index);
      consumer.order.wait(kEpilogue, read.stage, k_tiles - 1);
      if constexpr (kSource == Source::kNone)
        store_tile<T>(warpgroup, shared.d[me], &d_map, corner.m, corner.n);
      else
        store_with_source<T, kSource>(warpgroup, shared, read, source, &d_map, shape, corner);
      consumer.order.arrive(kEpilogue);
      read.advance(S::kSubtiles);  // past the other consumer's subtiles
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename T, int kStages, Source kSource, bool kOrdered = true>
Variant variant(const char* name, const char* summary) {
  using Grid = PersistentCtas<T, Shared<T, kStages, kSource>, Roles<T, kConsumers>::kThreads>;
  constexpr bool kHas = kSource != Source::kNone;
  return variant_of<source_kernel<T, kStages, kSource, kOrdered>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .epilogues = {.alpha = kHas, .source = kHas, .biases = {}, .activations = {}}},
      [](const Problem& problem) {
        const Epilogue& epilogue = problem.epilogue;
        const auto [a_map, b_map, d_map] = tile_maps<T>(problem);
        return std::tuple(problem.shape, Raster{RasterOrder::kGrouped, 16},
                          SourceArguments{epilogue.alpha, epilogue.beta, problem.c, problem.c_pitch}, a_map,
                          b_map, source_map(problem, d_map), d_map);
      });
}

using Tile128x192 = WgmmaTiling<128, 192, 64, 1>;
using enum Source;

inline const Step kStep{
    .name = "30_source_tile",
    .title = "C comes through TMA while the tensor cores work, and D may take its place",
    .builds_on = "17_ping_pong",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .epilogue = {.beta = 1},
    .variants = {
        variant<Tile128x192, 4, kShared>("shared_buffers", "eight buffers, in which D takes the place of C"),
        variant<Tile128x192, 4, kSeparate>("separate_buffers",
                                           "four buffers of C, two of D for each consumer"),
        variant<Tile128x192, 4, kShared, false>("unordered", "C may be loaded before the first k-tiles"),
        variant<Tile128x192, 4, kThreads>("threads_load_c", "each thread loads its elements of C itself"),
        variant<Tile128x192, 4, kNone>("no_source", "no C, no alpha: step 17")}};

}  // namespace gemm::step_30
