// Step 45: weights of 4 bits times activations in bf16. The weights are wgmma's A, which comes from
// registers: there they are widened to bf16, with tricks on their bits, while the k-tile before is
// multiplied.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/epilogue/transposed_store.cuh"
#include "gemm/launch/weight_launch.cuh"
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
#include "few_rows.cuh"
#include "widen.cuh"

namespace gemm::step_45 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  TransposedBuffers<T> d[T::kWarpgroups];
};

template <typename T, int kStages, Scale kScale>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    weights_kernel(Shape shape, Raster raster, Decomposition decomposition, void* workspace,
                   const __grid_constant__ ptx::TensorMap w_map, const __grid_constant__ ptx::TensorMap x_map,
                   const __grid_constant__ ptx::TensorMap s_map,
                   const __grid_constant__ ptx::TensorMap d_map) {
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
    const int row = warp * 16 + thread % 32 / 4;  // of the tile, and 8 more: of this thread's weights
    const Partials<T> partials(workspace, decomposition.slots());
    WarpgroupTile<T> warpgroup;
    auto& sums = warpgroup.accumulators[0];  // of all groups; with kWeights wgmma adds to them
    float products[2][kScale == Scale::kSums ? T::kN / 2 : 1];  // of a group, and of the next one
    bf16 scales[2][2];                                          // [set][row]: of the same groups
    Fragment fragments[T::kHalves][4];  // [half][slab]: of a k-tile that is multiplied, and of the next one
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (thread % 32 == 0) ring.consumer_release(release);
      release.advance();
    };
    const auto accumulators_of = [&](int set) -> float(&)[T::kN / 2] {
      if constexpr (kScale == Scale::kSums)
        return products[set];
      else
        return sums;
    };
    /// `count` groups, the first of which is number `first`. kSums: nothing is in flight before or behind.
    const auto multiply = [&](int first, auto count) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        auto& accumulators = accumulators_of(i % 2);
#pragma unroll
        for (int half = 0; half < T::kHalves; ++half) {
          ring.consumer_wait(read, first + i);
          const auto& stage = ring.stage[read.stage];
          if (half == 0) {
            scales[i % 2][0] = ptx::ld_shared(&stage.scales[row]);
            scales[i % 2][1] = ptx::ld_shared(&stage.scales[row + 8]);
          }
          widen_tile<T, kScale>(fragments[half], stage.weights[warp / 4], scales[i % 2]);
          const std::uint64_t b = tile_descriptor<64>(stage.activations[0]);
          ptx::wgmma_fence_operand(accumulators);
          for (auto& fragment : fragments[half]) ptx::wgmma_fence_operand(fragment);
          ptx::wgmma_fence();
#pragma unroll
          for (int slab = 0; slab < 4; ++slab)
            ptx::wgmma_m64nNk16_f32_bf16_rs<T::kN, 0>(
                accumulators, fragments[half][slab], ptx::advanced(b, 32 * slab),
                (kScale == Scale::kWeights && first > 0) || half > 0 || slab > 0);
          ptx::wgmma_commit_group();
          read.advance();
          warpgroup.template wait<1>();  // the k-tile before: its fragments and its stage are free
          if (half > 0 || i > 0 || (kScale == Scale::kWeights && first > 0)) release_stage();
          if (kScale == Scale::kSums && half == 0 && i > 0)
            add_scaled(sums, accumulators_of((i - 1) % 2), scales[(i - 1) % 2]);
        }
      }
      if constexpr (kScale == Scale::kSums) {
        warpgroup.template wait<0>();
        release_stage();
        add_scaled(sums, accumulators_of((count - 1) % 2), scales[(count - 1) % 2]);
      }
    };
    for (WorkTile work; scheduler.next(work);) {
      if constexpr (kScale == Scale::kSums) {
#pragma unroll
        for (float& sum : sums) sum = 0;
      }
      int group = 0;
      if constexpr (kScale == Scale::kSums)
        for (; group + 4 <= work.count(); group += 4) multiply(group, std::integral_constant<int, 4>());
      for (; group < work.count(); ++group) multiply(group, std::integral_constant<int, 1>());
      if constexpr (kScale == Scale::kWeights) {
        warpgroup.template wait<0>();
        release_stage();
      }
#pragma unroll
      for (float& sum : sums) sum *= kUnit<typename T::Weight>;
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

/// Stages hold half a group each; what the harness calls a k-tile is a whole one.
template <typename W, int kColumns, int kStages, Scale kScale, Split kSplit>
Variant variant(const char* name, const char* summary) {
  using T = WeightTiling<W, 128, kColumns, kColumns <= 16 ? 2 : 1>;
  using Launch =
      WeightLaunch<weights_kernel<T, kStages, kScale>, T, Shared<T, kStages>, Roles<T>::kThreads, kSplit>;
  return Launch::variant({.name = name,
                          .summary = summary,
                          .stages = kStages / T::kHalves,
                          .types = {.rounds_weights = kScale == Scale::kWeights}});
}

using enum Scale;
using enum Split;

inline const Step kStep{
    .name = "45_four_bit_weights",
    .title = "4-bit weights, packed for the fragment and widened in registers",
    .builds_on = "41_operand_in_registers",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = kWeightRows, .k_multiple = 128},
    .variants = {
        FewRowsLaunch<GroupTiling<int4x2, 256, 16, 1>, false>::variant({.name = "int4_16_cluster", .summary = "x"}),
        FewRowsLaunch<GroupTiling<int4x2, 256, 16, 1>, true>::variant({.name = "int4_16_ahead", .summary = "x"}),
        FewRowsLaunch<GroupTiling<int4x2, 128, 16, 2>, false>::variant({.name = "int4_16_two", .summary = "x"}),
        FewRowsLaunch<GroupTiling<int4x2, 128, 16, 2>, true>::variant({.name = "int4_16_two_ahead", .summary = "x"}),
        FewRowsLaunch<GroupTiling<int4x2, 256, 64, 1>, false>::variant({.name = "int4_64_cluster", .summary = "x"}),
        FewRowsLaunch<GroupTiling<int4x2, 256, 64, 1>, true>::variant({.name = "int4_64_ahead", .summary = "x"}),
        FewRowsLaunch<GroupTiling<int8, 256, 16, 1>, false>::variant({.name = "int8_16_cluster", .summary = "x"}),
        FewRowsLaunch<GroupTiling<e4m3, 256, 16, 1>, false>::variant({.name = "e4m3_16_cluster", .summary = "x"}),
        variant<int4x2, 16, 12, kSums, kStreamK>("int4_16", "for M up to 16, all tiles stream-K"),
        variant<int4x2, 16, 12, kSums, kDataParallel>("int4_16_whole", "whole tiles"),
        variant<int4x2, 16, 12, kSums, kSplitK>("int4_16_split", "the same, each tile in equal parts"),
        variant<int4x2, 16, 12, kWeights, kStreamK>("int4_16_weights", "the weights are scaled"),
        variant<int4x2, 64, 12, kSums, kStreamK>("int4_64", "for M up to 64"),
        variant<int4x2, 64, 12, kSums, kSplitK>("int4_64_split", "the same, each tile in equal parts"),
        variant<int4x2, 128, 8, kWeights, kHybrid>("int4_128", "128 rows, the weights are scaled"),
        variant<int4x2, 256, 4, kWeights, kHybrid>("int4_256", "256 rows, the weights are scaled"),
        variant<int8, 16, 8, kSums, kStreamK>("int8_16", "weights of 8 bits"),
        variant<int8, 256, 4, kWeights, kHybrid>("int8_256", "the same, for many rows"),
        variant<e4m3, 16, 8, kSums, kStreamK>("e4m3_16", "weights in e4m3"),
        variant<e4m3, 256, 4, kWeights, kHybrid>("e4m3_256", "the same, for many rows")}};

}  // namespace gemm::step_45
