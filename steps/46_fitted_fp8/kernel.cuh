// Step 46: step 44's product with tiles that fit the shape. The loop is rotated, so that a part is issued
// directly after a promotion.
#pragma once

#include <tuple>
#include <vector>

#include "built.cuh"
#include "choice.h"
#include "few_rows.cuh"
#include "gemm/epilogue/typed_store.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/issue_order.cuh"
#include "gemm/pipeline/lane_scales.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/scaled_parts.cuh"
#include "gemm/pipeline/typed_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "whole_store.cuh"

namespace gemm::step_46 {

template <typename V, typename T = typename V::T>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    fitted_kernel(Shape shape, BlockScales given, const __grid_constant__ ptx::TensorMap scale_map,
                  const __grid_constant__ ptx::TensorMap a_map, const __grid_constant__ ptx::TensorMap b_map,
                  const __grid_constant__ ptx::TensorMap d_map,
                  const __grid_constant__ ptx::TensorMap edge_map) {
  using Blocks = LaneScales<T::kN>;
  constexpr int kColumns = part_columns(T::kN);  // columns of a part
  constexpr int kParts = T::kN / kColumns;       // parts of a warpgroup in a k-tile
  auto& shared = ptx::dynamic_shared<Shared<V>>();
  auto& ring = shared.ring;
  const int warp = warp_index();
  constexpr Raster kRaster{RasterOrder::kGrouped, 2048 / T::kM};  // a constant, so the compiler knows it
  if (threadIdx.x == 0) {
    ring.init(4 * T::kWarpgroups);  // one arrival per warp: each has read scales
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync())
      produce_typed_tiles<T, e4m3, V::kBackAndForth>(ring, shape, kRaster, &a_map, &b_map,
                                                     LoadScales<V>{shared, &scale_map});
    return;
  }
  ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
  const TileGrid grid = tile_grid<T>(shape);
  const int k_tiles = ceil_div(shape.k, kScaleBlock);
  const int row = warp / 4 * 64;
  const int thread_row = row + warp % 4 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;  // and 8 below
  const IssueOrder<V::kPhase> order;
  float sums[T::kN / 2];             // binary32: 64 rows x kN
  float accumulators[kColumns / 2];  // the tensor cores', 14 bits: 64 rows x kColumns
  float scales_a[2];                 // those of this thread's two rows
  Blocks scales_b;
  PipelineState<V::kStages> read{0, 0};
  const auto wait_for = [&](int k_tile) {
    ring.consumer_wait(read, k_tile);
    read_row_scales(scales_a, &shared.scales_a[read.stage][thread_row]);
  };
  const auto issue = [&](int part, int stage) {
    order.wait();
    issue_part(accumulators, ring.stage[stage], row, part * kColumns);
    order.pass();
  };
  const auto issue_next = [&] { issue(0, read.stage); };

  // Lesson: the loop begins in the middle of a k-tile's work, when its first part is being multiplied. Each
  // promotion is followed by the next part, whose addresses and scales are known by then. `meanwhile`: what a
  // thread does while the last part is multiplied; `next`: what follows the last promotion. Both are known
  // where this is called, so that no wgmma is behind a condition, where ptxas would wait for it.

  // ANCHOR: finish_k_tile
  const auto finish_k_tile = [&](int k_tile, int first, const auto& meanwhile, const auto& next) {
    const PipelineState<V::kStages> at = read;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int column = part * kColumns;
      float scales[Blocks::kBlocks][2];
      scale_part<kColumns>(scales, scales_a, column, scales_b, k_tile);
      if (part + 1 == kParts) {
        ptx::fence_proxy_async_shared_cta();  // scales were read; the next copy overwrites them
        meanwhile();
      }
      ptx::wgmma_wait_group<0>();
      ptx::wgmma_fence_operand(accumulators);
      if (part + 1 == kParts) {
        __syncwarp();  // every lane has its scales
        if (threadIdx.x % 32 == 0) ring.consumer_release(at);
      }
      // ANCHOR: issue
      promote<Blocks>(sums, accumulators, scales, column, first);
      if (part + 1 < kParts)
        issue(part + 1, at.stage);
      else
        next();
      // ANCHOR_END: issue
    }
  };
  // ANCHOR_END: finish_k_tile
  int index = static_cast<int>(blockIdx.x);
  const auto step = static_cast<int>(gridDim.x);
  TilePosition tile = tile_at(index, grid, kRaster);
  bool backwards = false;  // the direction along K of the tile whose scales are loaded
  const auto load_scales_b = [&](const TilePosition& of, int k_tile) {
    scales_b.load(given, of.n * T::kN, k_tile, k_tiles, backwards);
  };
  const auto store = [&] {
    const int row_of_d = tile.m * T::kM + row;
    if constexpr (V::kStore == Store::kWhole)
      store_whole_tile(sums, shared.d[warp / 4], &edge_map, row_of_d, tile.n * T::kN);
    else
      store_fitted_tile<bf16>(sums, 1.0f, shared.d[warp / 4], &d_map, &edge_map, shape.n, row_of_d, tile.n);
  };

  load_scales_b(tile, 0);
  wait_for(0);
  order.begin();
  issue_next();
  for (;;) {
    const int first = tile.n * T::kN % kScaleBlock;  // the column of a block of B at which the tile begins
#pragma unroll
    for (float& sum : sums) sum = 0;
    for (int i = 0; i + 1 < k_tiles; ++i) {
      const auto meanwhile = [&] {
        if (i % 32 == 31) load_scales_b(tile, i + 1);
        read.advance();
        wait_for(i + 1);
      };
      finish_k_tile(i, first, meanwhile, issue_next);
    }
    index += step;
    if (index >= grid.count()) break;
    const TilePosition following = tile_at(index, grid, kRaster);
    if constexpr (V::kBackAndForth) backwards = !backwards;
    // ANCHOR: early
    if constexpr (V::kStore == Store::kWhole) {  // the next tile's first part is multiplied meanwhile
      const auto meanwhile = [&] {
        load_scales_b(following, 0);
        read.advance();
        wait_for(0);
      };
      finish_k_tile(k_tiles - 1, first, meanwhile, issue_next);
      store();
      __syncwarp();  // without it, ptxas takes the stage's number for one that differs from lane to lane
    } else {
      const auto meanwhile = [&] {
        load_scales_b(following, 0);
        read.advance();
      };
      finish_k_tile(k_tiles - 1, first, meanwhile, [] {});
      store();
      wait_for(0);
      issue_next();
    }
    // ANCHOR_END: early
    tile = following;
  }
  finish_k_tile(
      k_tiles - 1, tile.n * T::kN % kScaleBlock, [] {}, [] {});
  order.end();
  store();
  if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
}

template <typename V>
Variant many_rows(const char* name, const char* summary) {
  using T = typename V::T;
  using Grid = PersistentCtas<T, Shared<V>, Roles<T>::kThreads>;
  return variant_of<fitted_kernel<V>, Grid>(
      with_block_scales<T>(name, summary, V::kStages), [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        return std::tuple(problem.shape, BlockScales{problem.scales_b, problem.scales_b_pitch, n},
                          block_scale_map(problem, T::kM), typed_map(problem.a, Type::kE4m3, m, k, T::kM),
                          typed_map(problem.b, Type::kE4m3, n, k, T::kN),
                          typed_tile_map<bf16, T::kN>(problem.d, m, n),
                          typed_map(problem.d, Type::kBf16, m, n, 64));
      });
}

template <typename V>
Variant variant(const char* name, const char* summary) {
  if constexpr (requires { V::kParts; })
    return few_rows<V>(name, summary);
  else
    return many_rows<V>(name, summary);
}

using enum Store;

inline const std::vector<Variant>& tiles() {
  static const std::vector<Variant> all{
      variant<Built<128, 256, 3, kWhole>>("128x256_whole", "D leaves at once, three stages"),
      variant<Built<128, 256, 4, kTwoBuffers>>("128x256", "D leaves through two buffers, four stages"),
      variant<Built<128, 192, 4, kWhole, Phase::kOut>>("128x192", "one part in a k-tile, in turns"),
      variant<Built<128, 192, 4, kWhole>>("128x192_any", "the same without turns"),
      variant<Built<128, 128, 5, kWhole, Phase::kOut>>("128x128", "one part in a k-tile, in turns"),
      variant<FewRows<128, 112, 2, 6>>("128x112_k2", "few rows, K is cut in a cluster"),
      variant<FewRows<64, 112, 1, 9>>("64x112", "64 rows, all of K"),
      variant<FewRows<64, 112, 2, 9>>("64x112_k2", "64 rows, K is cut in a cluster"),
      variant<FewRows<64, 64, 2, 12>>("64x64_k2", "the same for narrower D"),
      variant<FewRows<64, 48, 2, 12>>("64x48_k2", "the same for narrower D"),
      variant<FewRows<64, 32, 2, 12>>("64x32_k2", "the same for narrower D")};
  return all;
}

inline const Step kStep{.name = "46_fitted_fp8",
                        .title = "block scales with tiles that fit the shape, and the bill of the promotion",
                        .builds_on = "44_block_scales",
                        .unit = MathUnit::kWgmma,
                        .architecture = Architecture::kSm90a,
                        .contract = {.n_multiple = 8, .k_multiple = 16},
                        .variants = with_choice<tiles>()};

}  // namespace gemm::step_46
