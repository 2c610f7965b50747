// Step 45: weights of 4 bits times activations in bf16. The weights are wgmma's A, which comes from
// registers: there they are widened to bf16, with tricks on their bits, while the k-tile before is
// multiplied.
#pragma once

#include <algorithm>
#include <cstdint>

#include "few_rows.cuh"
#include "gemm/epilogue/transposed_store.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/weight_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/partials.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/weight_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/descriptor.h"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_transposed.cuh"
#include "widen.cuh"

namespace gemm::step_45 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  TransposedBuffers<T> d[T::kWarpgroups];
};

template <typename T, int kStages>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    weights_kernel(Shape shape, Raster raster, Decomposition decomposition, void* workspace,
                   const __grid_constant__ ptx::TensorMap w_map, const __grid_constant__ ptx::TensorMap x_map,
                   const __grid_constant__ ptx::TensorMap s_map,
                   const __grid_constant__ ptx::TensorMap d_map) {
  using W = typename T::Weight;
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>(shape);
  const int worker = static_cast<int>(blockIdx.x);
  TileScheduler scheduler(decomposition, worker);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(4 * T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync())
      produce_weight_tiles<T>(ring, shape, raster, scheduler, &w_map, &x_map, &s_map);
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const int row = warp * 16 + thread % 32 / 4;  // this thread has weights of this row and of row + 8
    const Partials<T> partials(workspace, decomposition.slots());
    WarpgroupTile<T> warpgroup;
    auto& sums = warpgroup.accumulators[0];
    bf16 scales[2];  // those of the two rows in a group
    std::uint32_t minus[2] = {kMinus8<bf16>, kMinus8<bf16>};
    Fragment fragments[T::kHalves][4];  // [half][slab]: while one half is multiplied, the other is widened
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (thread % 32 == 0) ring.consumer_release(release);
      release.advance();
    };
    for (WorkTile work; scheduler.next(work);) {
      for (int group = 0; group < work.count(); ++group) {
#pragma unroll
        for (int half = 0; half < T::kHalves; ++half) {
          ring.consumer_wait(read, group);
          const auto& stage = ring.stage[read.stage];
          if (half == 0) {
            scales[0] = ptx::ld_shared(&stage.scales[0][row]);
            scales[1] = ptx::ld_shared(&stage.scales[0][row + 8]);
            if constexpr (kScaleLines<W> == 2) load_zero_points<bf16>(minus, stage.scales[1], row);
          }
          widen_panel<T>(fragments[half], stage.weights[warp / 4], minus);
          scale_weights(fragments[half], scales);
          const std::uint64_t b = tile_descriptor<64>(stage.activations[0]);
          ptx::wgmma_fence_operand(sums);
          for (auto& fragment : fragments[half]) ptx::wgmma_fence_operand(fragment);
          ptx::wgmma_fence();
#pragma unroll
          for (int slab = 0; slab < 4; ++slab)
            ptx::wgmma_m64nNk16_f32_bf16_rs<T::kN, 0>(
                sums, fragments[half][slab], ptx::advanced(b, 32 * slab), group > 0 || half > 0 || slab > 0);
          // ANCHOR: release_previous_half
          ptx::wgmma_commit_group();
          read.advance();
          warpgroup.template wait<1>();  // the previous k-tile: its fragments and its stage are free
          if (half > 0 || group > 0) release_stage();
          // ANCHOR_END: release_previous_half
        }
      }
      warpgroup.template wait<0>();
      release_stage();
#pragma unroll
      for (float& sum : sums) sum *= kUnit<W, bf16>;
      if (work.slot >= 0) {
        partials.store_partials(warpgroup, work.slot, warp / 4);
        continue;
      }
      partials.fixup(warpgroup, peers_of(decomposition, work, worker), warp / 4);
      const TilePosition tile = tile_at(work.tile, tiles, raster);
      store_transposed<T>(warpgroup, shared.d[warp / 4], &d_map, tile.n * T::kN,
                          tile.m * T::kM + warp / 4 * 64);
    }
    if (thread == 0) ptx::cp_async_bulk_wait_group<0>();
  }
}

/// Tiles of weights' rows by activations' rows, of which CTAs share those that do not fill a wave.
template <typename T, typename Shared>
struct ManyRowsCtas {
  using Tile = T;
  static SharedTilesPlan plan(const void* kernel, const Shape& shape) {
    const int tiles = tile_grid<T>(exchanged(shape)).count();
    const int groups = shape.k / T::kScaleGroup;  // the k-tiles of the decomposition
    const auto launch = persistent_launch(kernel,
                                          {.block = {Roles<T>::kThreads},
                                           .shared_bytes = sizeof(Shared),
                                           .co_resident = true,
                                           .ctas_per_sm = T::kCtasPerSm},
                                          tiles * groups);
    return shared_tiles_plan<Partials<T>>(
        launch, decompose(Split::kHybrid, tiles, groups, static_cast<int>(launch.grid.x)));
  }
};

/// A stage holds half a group; what the harness calls a k-tile is a whole one.
template <typename W, int kColumns>
Variant many_rows(Variant given) {
  constexpr int kStages = kColumns == 128 ? 8 : 4;
  using T = WeightTiling<W, 128, kColumns, 1>;
  given.types.rounds_weights = true;
  return variant_of<weights_kernel<T, kStages>, ManyRowsCtas<T, Shared<T, kStages>>>(
      with_weights<T>(given, kStages / T::kHalves, T::kScaleGroup),
      [](const Problem& problem, const SharedTilesPlan& plan) {
        const auto [m, n, k] = problem.shape;
        return std::tuple(
            exchanged(problem.shape), Raster{RasterOrder::kGrouped, 16}, plan.decomposition,
            StreamMemory(plan.workspace_bytes), weight_map(problem.b, kTypeOf<W>, n, k, T::kM),
            typed_map(problem.a, Type::kBf16, m, k, T::kN),
            weight_scale_map(problem.group_scales, n, k / T::kScaleGroup, T::kM, kScaleLines<W>),
            typed_map(problem.d, Type::kBf16, m, n, std::min(T::kN, 64)));
      });
}

template <typename W, int kColumns, typename X = bf16>
Variant variant(const char* name, const char* summary) {
  if constexpr (kColumns > 64)
    return many_rows<W, kColumns>({.name = name, .summary = summary});
  else
    return few_rows<W, kColumns, X>({.name = name, .summary = summary});
}

inline const Step kStep{
    .name = "45_four_bit_weights",
    .title = "4-bit weights, packed for the fragment and widened in registers",
    .builds_on = "41_operand_in_registers",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = kWeightRows, .k_multiple = 128},
    .variants = {variant<int4x2, 16>("int4_16_cluster", "for M up to 16, K is cut in a cluster"),
                 variant<int4x2, 64>("int4_64_cluster", "for M up to 64, K is cut in a cluster"),
                 variant<int4x2, 128>("int4_128", "128 rows, the weights are scaled"),
                 variant<int4x2, 256>("int4_256", "256 rows, the weights are scaled"),
                 variant<asymmetric_int4x2, 16>("int4_zeros_16_cluster", "with a zero point for each scale"),
                 variant<asymmetric_int4x2, 16, fp16>("int4_zeros_fp16_cluster", "the same, fp16 for bf16"),
                 variant<asymmetric_int4x2, 128>("int4_zeros_128", "zero points, 128 rows"),
                 variant<int8, 16>("int8_16_cluster", "weights of 8 bits"),
                 variant<int8, 256>("int8_256", "the same, for many rows"),
                 variant<e4m3, 16>("e4m3_16_cluster", "weights in e4m3"),
                 variant<e4m3, 256>("e4m3_256", "the same, for many rows")}};

}  // namespace gemm::step_45
