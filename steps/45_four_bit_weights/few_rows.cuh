// For few rows of activations: K is cut inside a cluster and inside a CTA, between two pairs of warpgroups.
#pragma once

#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/weight_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/tile/weight_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/descriptor.h"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "widen.cuh"

namespace gemm::step_45 {

/// A tile is two blocks of 64 rows. Each CTA of a cluster of two multiplies one half of K, and each of two
/// pairs of warpgroups takes every other group of its CTA.
inline constexpr int kParts = 2, kPairs = 2;

template <typename T, int kStages>
struct FewRowsShared {
  Ring<T, kStages> ring;
  float4 partials[kParts * kPairs - 1][T::kN / 8][128];  // [sender][four sums][thread]: for block b of CTA b
  std::uint64_t arrived;                                 // all of them; count 1, the producer
};

template <typename T, int kStages>
__global__ void __launch_bounds__(Roles<T, kPairs * T::kWarpgroups>::kThreads, 1)
    few_rows_kernel(Shape shape, typename T::Activation* d, const __grid_constant__ ptx::TensorMap w_map,
                    const __grid_constant__ ptx::TensorMap x_map,
                    const __grid_constant__ ptx::TensorMap s_map) {
  using R = Roles<T, kPairs * T::kWarpgroups>;
  using W = typename T::Weight;
  using X = typename T::Activation;
  constexpr std::uint32_t kStart = 1;  // a named barrier: the mbarriers are initialised
  constexpr std::uint32_t kAll = kPairs * T::kThreads + 32;
  auto& shared = ptx::dynamic_shared<FewRowsShared<T, kStages>>();
  auto& ring = shared.ring;
  static_assert(T::kWarpgroups == kParts, "each CTA of a cluster finishes one block");
  // Otherwise the pairs would use a stage in turn. A wait for its second phase passes at once while the first
  // is not complete, and the pair that waits for the second has not waited for the first.
  static_assert(kStages % kPairs == 0, "each pair has stages of its own");
  const int rank = static_cast<int>(ptx::cluster_ctarank());
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.z) * T::kN;
  const int first = shape.k / T::kK * rank / kParts;  // the first group of this CTA
  const int count = shape.k / T::kK * (rank + 1) / kParts - first;
  const int warp = warp_index();

  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    const bool produces = warp == R::kProducerWarp && ptx::elect_sync();
    if (produces) {
      ring.init(4 * T::kWarpgroups);
      ptx::mbarrier_init(&shared.arrived, 1);
      ptx::fence_mbarrier_init_release_cluster();
      ptx::mbarrier_arrive_expect_tx(&shared.arrived, sizeof shared.partials);
    }
    __syncwarp();
    if (warp == R::kProducerWarp) ptx::bar_arrive(kStart, kAll);
    ptx::barrier_cluster_arrive();
    if (produces) produce_groups<T>(ring, tile_row, tile_column, first, count, &w_map, &x_map, &s_map);
    __syncwarp();
    ptx::barrier_cluster_wait();
    return;
  }
  ptx::setmaxnreg_inc<R::kConsumerRegisters>();
  if (threadIdx.x == 0) {
    for (const ptx::TensorMap* map : {&w_map, &x_map, &s_map}) ptx::prefetch_tensormap(map);
  }
  __syncwarp();
  ptx::bar_sync(kStart, kAll);
  ptx::barrier_cluster_arrive();

  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int pair = warp / 4 / T::kWarpgroups;
  const int block = warp / 4 % T::kWarpgroups;  // a block of 64 rows
  const int row =
      block * 64 + warp % 4 * 16 + thread % 32 / 4;  // this thread has weights of this row and of row + 8
  float sums[T::kN / 2] = {};
  PipelineState<kStages> read{0, 0};
  read.advance(pair);
  for (int i = pair; i < count; i += kPairs) {
    ring.consumer_wait(read, i);
    const auto& stage = ring.stage[read.stage];
    const float scales[2] = {to_float(ptx::ld_shared(&stage.scales[0][row])),
                             to_float(ptx::ld_shared(&stage.scales[0][row + 8]))};
    std::uint32_t minus[2] = {kMinus8<X>, kMinus8<X>};
    if constexpr (kScaleLines<W> == 2) load_zero_points<X>(minus, stage.scales[1], row);
    // ANCHOR: widen_and_multiply
    float products[T::kN / 2];          // those of this group
    Fragment fragments[T::kPanels][4];  // [panel][slab]
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel)
      widen_panel<T>(fragments[panel], stage.weights[panel][block], minus);
    ptx::wgmma_fence_operand(products);
    for (auto& panel : fragments)
      for (auto& fragment : panel) ptx::wgmma_fence_operand(fragment);
    ptx::wgmma_fence();
#pragma unroll
    for (int slab = 0; slab < 4 * T::kPanels; ++slab)
      multiply_weights<T>(products, fragments[slab / 4][slab % 4],
                          ptx::advanced(tile_descriptor<64>(stage.activations[slab / 4][0]), slab % 4 * 32),
                          slab > 0);
    ptx::wgmma_commit_group();
    // ANCHOR_END: widen_and_multiply
    // Lesson: after this wait the warpgroup has nothing in flight, and its products may be read. The tensor
    // cores are not idle: three other warpgroups multiply.
    // ANCHOR: scale_sums
    ptx::wgmma_wait_group<0>();
    ptx::wgmma_fence_operand(products);
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (thread % 32 == 0) ring.consumer_release(read);
    read.advance(kPairs);
#pragma unroll
    for (int j = 0; j < T::kN / 2; ++j) sums[j] += products[j] * scales[j / 2 % 2];
    // ANCHOR_END: scale_sums
  }
  ptx::barrier_cluster_wait();  // the other CTAs have initialised their barriers

  // Lesson: a block of 64 rows has four sums, from two pairs of two CTAs. CTA b finishes block b, so each
  // sends as much as it receives, and nothing goes through global memory: the bytes count themselves on the
  // receiver's barrier.
  const int sender = rank * kPairs + pair;
  const int owner = block * kPairs;  // among the senders: the first pair of CTA `block`
  // ANCHOR: exchange
  if (sender != owner) {
    const auto peer = static_cast<std::uint32_t>(block);
    const std::uint32_t arrived = ptx::mapa(ptx::shared_address(&shared.arrived), peer);
    auto& partials = shared.partials[sender < owner ? sender : sender - 1];
#pragma unroll
    for (int i = 0; i < T::kN / 8; ++i)
      ptx::st_async(ptx::mapa(ptx::shared_address(&partials[i][thread]), peer),
                    make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]), arrived);
    return;
  }
  ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, count});
  // ANCHOR_END: exchange
  for (int source = 0; source < kParts * kPairs - 1; ++source) {  // always in this order
#pragma unroll
    for (int i = 0; i < T::kN / 8; ++i) {
      const float4 more = ptx::ld_shared(&shared.partials[source][i][thread]);
      sums[4 * i] += more.x;
      sums[4 * i + 1] += more.y;
      sums[4 * i + 2] += more.z;
      sums[4 * i + 3] += more.w;
    }
  }
#pragma unroll
  for (int j = 0; j < T::kN / 2; ++j) {
    const int m = tile_column + j / 4 * 8 + thread % 4 * 2 + j % 2;
    const int n = tile_row + row + j / 2 % 2 * 8;
    if (m < shape.n && n < shape.m)
      ptx::st_global(d + offset(m, n, shape.m), narrowed<X>(sums[j] * kUnit<W, X>));
  }
}

/// A cluster of kParts CTAs for each tile.
template <typename T, typename Shared, int kThreads>
struct FewRowsCtas {
  using Tile = T;
  struct Plan : LaunchPlan {
    double busiest_tiles = 0;
  };
  static Plan plan(const void* kernel, const Shape& shape) {
    const ptx::LaunchShape launch{.grid = {kParts, static_cast<unsigned>(ceil_div(shape.n, T::kM)),
                                           static_cast<unsigned>(ceil_div(shape.m, T::kN))},
                                  .block = {kThreads},
                                  .cluster = {kParts},
                                  .shared_bytes = sizeof(Shared)};
    // In waves of as many clusters as the GPU holds at once.
    const auto at_once = static_cast<int>(ptx::resident_ctas(kernel, launch));
    const int waves = ceil_div(static_cast<int>(launch.grid.count()), at_once);
    return {{launch}, static_cast<double>(waves) / kParts};
  }
};

/// The shape with the operands exchanged: rows of weights first.
constexpr Shape exchanged(const Shape& shape) {
  return {shape.n, shape.m, shape.k};
}

/// What all variants say that have tiles of T and a scale for each `group` elements of K.
template <typename T>
Variant with_weights(Variant given, int stages, int group) {
  constexpr Type kWeight = kTypeOf<typename T::Weight>;
  given.tile = {T::kN, T::kM, group};
  given.stages = stages;
  given.types.a = given.types.d = kTypeOf<typename T::Activation>;
  given.types.b = kWeight;
  given.types.group = group;
  constexpr int kLines = kScaleLines<typename T::Weight>;
  given.types.zero_points = kLines == 2;
  const double weight_bytes = bits_of(kWeight) / 8.0 + 2.0 * kLines / group;
  const double bytes = weight_bytes / T::kN + 2.0 / T::kM;
  // Weights are read from shared memory once, activations once for every 64 rows of weights.
  given.traffic = {.shared_bytes_per_fma = bytes + weight_bytes / T::kN + 2.0 / 64,
                   .global_bytes_per_fma = bytes};
  return given;
}

/// As many stages as fit, of a group each, but a whole number for each pair: a stage is always the same
/// pair's.
template <typename W, int kColumns, typename X>
Variant few_rows(Variant given) {
  using T = GroupTiling<W, 128, kColumns, X>;
  constexpr int kFit = (226 * 1024 - static_cast<int>(sizeof FewRowsShared<T, 1>::partials)) /
                       static_cast<int>(sizeof(WgmmaTiles<T>));
  constexpr int kStages = kFit / kPairs * kPairs;
  using Grid = FewRowsCtas<T, FewRowsShared<T, kStages>, Roles<T, kPairs * T::kWarpgroups>::kThreads>;
  return variant_of<few_rows_kernel<T, kStages>, Grid>(
      with_weights<T>(given, kStages, T::kK), [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        return std::tuple(exchanged(problem.shape), reinterpret_cast<X*>(problem.d),
                          weight_group_map(problem.b, kTypeOf<W>, n, k, T::kM, T::kPanels),
                          panel_map(problem.a, m, k, T::kN, T::kPanels, kTypeOf<X>),
                          weight_scale_map(problem.group_scales, n, k / T::kK, T::kM, kScaleLines<W>));
      });
}

}  // namespace gemm::step_45
