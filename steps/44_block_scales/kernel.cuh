// Step 44: blocks of 128 elements of K have scales of their own. A's come through the ring, B's through the
// lanes of a warp, and the addition of the promotion becomes a multiply-add.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/epilogue/typed_store.cuh"
#include "gemm/launch/block_scaled_launch.cuh"
#include "gemm/launch/typed_launch.cuh"
#include "gemm/pipeline/issue_order.cuh"
#include "gemm/pipeline/lane_scales.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/typed_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/typed_slab.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "load_scales.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/trace.cuh"
#include "ptx/wgmma.cuh"

namespace gemm::step_44 {

/// kColumns: of one multiplication. kDeep: elements of K from one promotion to the next.
template <typename T, int kStages, int kColumns, int kDeep, OfB kOfB, Phase kPhase, typename D>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    block_scale_kernel(Shape shape, BlockScales scales, const __grid_constant__ ptx::TensorMap scale_map,
                       const __grid_constant__ ptx::TensorMap a_map,
                       const __grid_constant__ ptx::TensorMap b_map,
                       const __grid_constant__ ptx::TensorMap d_map,
                       const __grid_constant__ ptx::TensorMap edge_map) {
  using OfColumns = LaneScales<T::kN>;
  static_assert(kScaleBlock % kDeep == 0 && kColumns % OfColumns::kColumns == 0, "parts are of whole blocks");
  constexpr int kTimes = kRowBytes / kDeep;  // promotions of a part's k-tile
  constexpr int kParts = T::kN / kColumns * kTimes;
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kOfB>>();
  auto& ring = shared.ring;
  const int warp = warp_index();
  constexpr Raster kRaster{RasterOrder::kGrouped, 16};  // here, and so known to the compiler
  if (threadIdx.x == 0) {
    ring.init(4 * T::kWarpgroups);  // warps: each has read scales
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync())
      produce_typed_tiles<T, e4m3>(ring, shape, kRaster, &a_map, &b_map,
                                   LoadScales<T, kStages, kOfB>{shared, scales, &scale_map});
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const TileGrid tiles = tile_grid<T>(shape);
    const int k_tiles = ceil_div(shape.k, kScaleBlock);
    const int row = warp / 4 * 64;
    const int row_of_thread = row + warp % 4 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;  // and 8 below
    const IssueOrder<kPhase> order;
    float sums[T::kN / 2];             // binary32: 64 rows x kN
    float accumulators[kColumns / 2];  // the tensor cores', 14 bits: 64 rows x kColumns
    OfColumns of_b;
    float of_a[2];  // the scales of this thread's two rows
    PipelineState<kStages> read{0, 0};
    const auto wait_for = [&](int k_tile) {
      ring.consumer_wait(read, k_tile);
      const float* const of_rows = &shared.scales_a[read.stage][row_of_thread];
      of_a[0] = ptx::ld_shared(of_rows);
      of_a[1] = ptx::ld_shared(of_rows + 8);
    };
    int index = static_cast<int>(blockIdx.x);
    TilePosition tile = tile_at(index, tiles, kRaster);
    if (kOfB == OfB::kLanes) of_b.load(scales, tile.n * T::kN, 0, k_tiles);
    order.begin();
    for (; index < tiles.count(); index += static_cast<int>(gridDim.x)) {
      const int first = tile.n * T::kN % kScaleBlock;  // column of a block of B
#pragma unroll
      for (float& sum : sums) sum = 0;
      wait_for(0);
      for (int i = 0; i < k_tiles; ++i) {
        const PipelineState<kStages> at = read;
        const auto& stage = ring.stage[at.stage];
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const int column = part / kTimes * kColumns;
          const int deep = part % kTimes * kDeep;
          order.wait();
          ptx::wgmma_fence_operand(accumulators);
          ptx::wgmma_fence();
          const std::uint64_t a = tile_descriptor<64>(stage.a[0][row]);
          const std::uint64_t b = tile_descriptor<64>(stage.b[0][column]);
#pragma unroll
          for (int byte = deep; byte < deep + kDeep; byte += 32)
            multiply_slab<e4m3, e4m3, kColumns>(accumulators, ptx::advanced(a, byte), ptx::advanced(b, byte),
                                                byte > deep);
          ptx::wgmma_commit_group();
          order.pass();
          // Lesson: two rows, two scales. The promotion costs what it did: a multiply-add is one instruction.
          float scale[OfColumns::kBlocks][2];  // [block of B][row]
#pragma unroll
          for (int block = column / kScaleBlock; block <= OfColumns::last(column + kColumns); ++block) {
            float of_block = 0;  // of B
            if constexpr (kOfB == OfB::kLanes) of_block = of_b.at(block, i);
            if constexpr (kOfB == OfB::kRing) of_block = ptx::ld_shared(&shared.scales_b[at.stage][i % 4]);
            scale[block][0] = of_a[0] * of_block;
            scale[block][1] = of_a[1] * of_block;
          }
          // Lesson: step 43 waits for the next k-tile while it multiplies the last part of this one. A's
          // scales of the next one are read there, too, so that nothing stands between its turn and its first
          // part.
          if (part + 1 == kParts) {
            ptx::fence_proxy_async_shared_cta();  // scales were read; the next copy overwrites them
            if (kOfB == OfB::kLanes && i % 32 == 31) of_b.load(scales, tile.n * T::kN, i + 1, k_tiles);
            read.advance();
            if (i + 1 < k_tiles) wait_for(i + 1);
          }
          ptx::wgmma_wait_group<0>();
          ptx::wgmma_fence_operand(accumulators);
          if (part + 1 == kParts) {
            __syncwarp();  // every lane has its scales
            if (threadIdx.x % 32 == 0) ring.consumer_release(at);
          }
          ptx::trace_arithmetic(kColumns / 2);
#pragma unroll
          for (int j = 0; j < kColumns / 2; ++j) {
            const int block = OfColumns::block_of(column + j / 4 * 8, first);
            const int of_row = j / 2 % 2;
            sums[column / 2 + j] +=
                (block == 0 ? scale[0][of_row] : scale[OfColumns::kBlocks - 1][of_row]) * accumulators[j];
          }
        }
      }
      const int next = std::min(index + static_cast<int>(gridDim.x), tiles.count() - 1);
      const TilePosition stored = tile;
      tile = tile_at(next, tiles, kRaster);
      if (kOfB == OfB::kLanes) of_b.load(scales, tile.n * T::kN, 0, k_tiles);  // in flight while it stores
      store_fitted_tile<D>(sums, 1.0f, shared.d[warp / 4], &d_map, &edge_map, shape.n, stored.m * T::kM + row,
                           stored.n);
    }
    order.end();
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <int kM, int kN, int kStages, int kDeep, OfB kOfB, Phase kPhase, typename D = bf16>
Variant variant(const char* name, const char* summary) {
  using T = ByteTiling<kM, kN, kM / 64>;
  using Launch = BlockScaledLaunch<block_scale_kernel<T, kStages, part_columns(kN), kDeep, kOfB, kPhase, D>,
                                   T, e4m3, e4m3, D, Shared<T, kStages, kOfB>, Roles<T>::kThreads>;
  return Launch::variant(
      {.name = name, .summary = summary, .stages = kStages, .types = {.promotion = kDeep}});
}

inline const Step kStep{
    .name = "44_block_scales",
    .title = "scales of 1 x 128 and 128 x 128 blocks: A's through the ring, applied where sums are promoted",
    .builds_on = "43_promotion",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 16},
    .variants = {
        variant<128, 256, 4, 128, OfB::kLanes, Phase::kAny>("128x256", "B's scales in lanes"),
        variant<128, 256, 4, 128, OfB::kLanes, Phase::kOut>("128x256_turns", "warpgroups take turns"),
        variant<128, 128, 5, 128, OfB::kLanes, Phase::kOut>("128x128", "a smaller tile"),
        variant<128, 128, 5, 128, OfB::kRing, Phase::kOut>("128x128_b_in_ring", "B's scales in the ring"),
        variant<128, 128, 5, 64, OfB::kLanes, Phase::kOut>("128x128_every64", "two promotions a block"),
        variant<128, 128, 5, 128, OfB::kLanes, Phase::kOut, float>("128x128_fp32", "D in binary32"),
        variant<128, 192, 4, 128, OfB::kLanes, Phase::kOut>("128x192", "in one part, of two blocks of B"),
        variant<64, 64, 12, 128, OfB::kLanes, Phase::kAny>("64x64", "few rows, one warpgroup"),
        variant<64, 56, 13, 128, OfB::kLanes, Phase::kAny>("64x56", "of one or two blocks of B")}};

}  // namespace gemm::step_44
