// Step 44: blocks of 128 elements of K have scales of their own. A's come through the ring, B's through the
// lanes of a warp, and the addition of the promotion becomes a multiply-add.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/epilogue/typed_store.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/issue_order.cuh"
#include "gemm/pipeline/lane_scales.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/typed_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
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

/// What a variant is built of. Those that differ say in what.
template <int kM, int kN, int kRingStages>
struct Built {
  using T = ByteTiling<kM, kN, kM / 64>;  // a k-tile is 128 bytes of K
  using D = bf16;
  static constexpr int kStages = kRingStages;
  static constexpr int kDepth = kScaleBlock;  // elements of K from one promotion to the next
  static constexpr ScalePlace kScalesB = ScalePlace::kLanes;
  static constexpr Phase kPhase = T::kWarpgroups == 2 ? Phase::kOut : Phase::kAny;
};
struct AnyOrder : Built<128, 256, 4> {
  static constexpr Phase kPhase = Phase::kAny;
};
struct ScalesInRing : Built<128, 128, 5> {
  static constexpr ScalePlace kScalesB = ScalePlace::kRing;
};
struct Every64 : Built<128, 128, 5> {
  static constexpr int kDepth = 64;
};
struct Fp32 : Built<128, 128, 5> {
  using D = float;
};

/// Issues the multiplication of a part as one wgmma group: rows from `row` on, columns from `column` on, and
/// kDepth bytes of K from `begin` on.
template <int kDepth, typename Tiles, int kCount>
__device__ __forceinline__ void issue_part(float (&accumulators)[kCount], const Tiles& stage, int row,
                                           int column, int begin) {
  ptx::wgmma_fence_operand(accumulators);
  ptx::wgmma_fence();
  const std::uint64_t a = tile_descriptor<64>(stage.a[0][row]);
  const std::uint64_t b = tile_descriptor<64>(stage.b[0][column]);
#pragma unroll
  for (int byte = begin; byte < begin + kDepth; byte += 32)
    multiply_slab<e4m3, e4m3, 2 * kCount>(accumulators, ptx::advanced(a, byte), ptx::advanced(b, byte),
                                          byte > begin);
  ptx::wgmma_commit_group();
}

// Lesson: two rows, two scales. The promotion costs what it did: a multiply-add is one instruction.

/// The scales of a thread's accumulators in a part of kColumns columns, [block of B][row]. `scales_a`: those
/// of the thread's two rows; scale_b(block): B's scale of a block.
template <int kColumns, typename Blocks, typename ScaleB>
__device__ __forceinline__ void scale_part(float (&scales)[Blocks::kBlocks][2], const float (&scales_a)[2],
                                           int column, const ScaleB& scale_b) {
#pragma unroll
  for (int block = column / kScaleBlock; block <= Blocks::last(column + kColumns); ++block) {
    // ANCHOR: scale_part
    const float b = scale_b(block);
    scales[block][0] = scales_a[0] * b;
    scales[block][1] = scales_a[1] * b;
    // ANCHOR_END: scale_part
  }
}

/// The promotion: adds the accumulators of a part to its sums, each as often as its scale says. `first`: the
/// column of a block of B in which the tile begins.
template <typename Blocks, int kSums, int kCount>
__device__ __forceinline__ void promote(float (&sums)[kSums], const float (&accumulators)[kCount],
                                        const float (&scales)[Blocks::kBlocks][2], int column, int first) {
  ptx::trace_arithmetic(kCount);
#pragma unroll
  // ANCHOR: promote
  for (int j = 0; j < kCount; ++j) {
    const int block = Blocks::block_of(column + j / 4 * 8, first);
    const int row = j / 2 % 2;
    sums[column / 2 + j] +=
        (block == 0 ? scales[0][row] : scales[Blocks::kBlocks - 1][row]) * accumulators[j];
    // ANCHOR_END: promote
  }
}

template <typename V, typename T = typename V::T>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    block_scale_kernel(Shape shape, BlockScales given, const __grid_constant__ ptx::TensorMap scale_map,
                       const __grid_constant__ ptx::TensorMap a_map,
                       const __grid_constant__ ptx::TensorMap b_map,
                       const __grid_constant__ ptx::TensorMap d_map,
                       const __grid_constant__ ptx::TensorMap edge_map) {
  using Blocks = LaneScales<T::kN>;
  constexpr int kColumns = part_columns(T::kN);  // columns of one multiplication
  static_assert(kScaleBlock % V::kDepth == 0 && kColumns % Blocks::kColumns == 0,
                "parts are of whole blocks");
  constexpr int kTimes = kRowBytes / V::kDepth;  // promotions of a part's k-tile
  constexpr int kParts = T::kN / kColumns * kTimes;
  constexpr bool kInLanes = V::kScalesB == ScalePlace::kLanes;
  auto& shared = ptx::dynamic_shared<Shared<T, V::kStages, V::kScalesB>>();
  auto& ring = shared.ring;
  const int warp = warp_index();
  constexpr Raster kRaster{RasterOrder::kGrouped, 16};  // a constant, so the compiler knows it
  if (threadIdx.x == 0) {
    ring.init(4 * T::kWarpgroups);  // one arrival per warp: each has read scales
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync())
      produce_typed_tiles<T, e4m3>(ring, shape, kRaster, &a_map, &b_map,
                                   LoadScales<T, V::kStages, V::kScalesB>{shared, given, &scale_map});
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const TileGrid tiles = tile_grid<T>(shape);
    const int k_tiles = ceil_div(shape.k, kScaleBlock);
    const int row = warp / 4 * 64;
    const int thread_row = row + warp % 4 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;  // and 8 below
    const IssueOrder<V::kPhase> order;
    float sums[T::kN / 2];             // binary32: 64 rows x kN
    float accumulators[kColumns / 2];  // the tensor cores', 14 bits: 64 rows x kColumns
    float scales_a[2];                 // those of this thread's two rows
    Blocks scales_b;                   // used where they are in lanes
    PipelineState<V::kStages> read{0, 0};
    // ANCHOR: wait_for
    const auto wait_for = [&](int k_tile) {
      ring.consumer_wait(read, k_tile);
      const float* const row_scale = &shared.scales_a[read.stage][thread_row];
      scales_a[0] = ptx::ld_shared(row_scale);
      scales_a[1] = ptx::ld_shared(row_scale + 8);
    };
    // ANCHOR_END: wait_for
    int index = static_cast<int>(blockIdx.x);
    TilePosition tile = tile_at(index, tiles, kRaster);
    if (kInLanes) scales_b.load(given, tile.n * T::kN, 0, k_tiles);
    order.begin();
    for (; index < tiles.count(); index += static_cast<int>(gridDim.x)) {
      const int first = tile.n * T::kN % kScaleBlock;  // the column of a block of B at which the tile begins
#pragma unroll
      for (float& sum : sums) sum = 0;
      wait_for(0);
      for (int i = 0; i < k_tiles; ++i) {
        const PipelineState<V::kStages> at = read;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const int column = part / kTimes * kColumns;
          // ANCHOR: issue
          order.wait();
          issue_part<V::kDepth>(accumulators, ring.stage[at.stage], row, column, part % kTimes * V::kDepth);
          order.pass();
          // ANCHOR_END: issue
          float scales[Blocks::kBlocks][2];
          scale_part<kColumns, Blocks>(scales, scales_a, column, [&](int block) {
            if constexpr (kInLanes)
              return scales_b.at(block, i);
            else
              return ptx::ld_shared(&shared.scales_b[at.stage][i % 4]);
          });
          // Lesson: step 43 waits for the next k-tile while it multiplies the last part of this one. A's
          // scales of the next one are read there, too, so that nothing comes between its turn and its first
          // part.
          if (part + 1 == kParts) {
            ptx::fence_proxy_async_shared_cta();  // scales were read; the next copy overwrites them
            if (kInLanes && i % 32 == 31) scales_b.load(given, tile.n * T::kN, i + 1, k_tiles);
            read.advance();
            if (i + 1 < k_tiles) wait_for(i + 1);
          }
          ptx::wgmma_wait_group<0>();
          ptx::wgmma_fence_operand(accumulators);
          if (part + 1 == kParts) {
            __syncwarp();  // every lane has its scales
            if (threadIdx.x % 32 == 0) ring.consumer_release(at);
          }
          promote<Blocks>(sums, accumulators, scales, column, first);
        }
      }
      const int next = std::min(index + static_cast<int>(gridDim.x), tiles.count() - 1);
      const TilePosition stored = tile;
      tile = tile_at(next, tiles, kRaster);
      if (kInLanes) scales_b.load(given, tile.n * T::kN, 0, k_tiles);  // in flight while it stores
      store_fitted_tile<typename V::D>(sums, 1.0f, shared.d[warp / 4], &d_map, &edge_map, shape.n,
                                       stored.m * T::kM + row, stored.n);
    }
    order.end();
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename V>
Variant variant(const char* name, const char* summary) {
  using T = typename V::T;
  using D = typename V::D;
  using Grid = PersistentCtas<T, Shared<T, V::kStages, V::kScalesB>, Roles<T>::kThreads>;
  return variant_of<block_scale_kernel<V>, Grid>(
      {.name = name,
       .summary = summary,
       .tile = kByteTile<T, e4m3>,
       .stages = V::kStages,
       .traffic = byte_tile_traffic<T, e4m3>(),
       .types = {.a = Type::kE4m3,
                 .b = Type::kE4m3,
                 .d = kTypeOf<D>,
                 .promotion = V::kDepth,
                 .scaling = Scaling::kBlocks}},
      [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        return std::tuple(problem.shape, BlockScales{problem.scales_b, problem.scales_b_pitch, n},
                          block_scale_map(problem, T::kM), typed_map(problem.a, Type::kE4m3, m, k, T::kM),
                          typed_map(problem.b, Type::kE4m3, n, k, T::kN),
                          typed_tile_map<D, T::kN>(problem.d, m, n),
                          typed_map(problem.d, kTypeOf<D>, m, n, 64));
      });
}

inline const Step kStep{
    .name = "44_block_scales",
    .title = "scales of 1 x 128 and 128 x 128 blocks: A's through the ring, applied where sums are promoted",
    .builds_on = "43_promotion",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 16},
    .variants = {variant<AnyOrder>("128x256", "B's scales in lanes"),
                 variant<Built<128, 256, 4>>("128x256_turns", "warpgroups take turns"),
                 variant<Built<128, 128, 5>>("128x128", "a smaller tile"),
                 variant<ScalesInRing>("128x128_b_in_ring", "B's scales in the ring"),
                 variant<Every64>("128x128_every64", "two promotions per block"),
                 variant<Fp32>("128x128_fp32", "D in binary32"),
                 variant<Built<128, 192, 4>>("128x192", "in one part, of two blocks of B"),
                 variant<Built<64, 64, 12>>("64x64", "few rows, one warpgroup"),
                 variant<Built<64, 56, 13>>("64x56", "of one or two blocks of B")}};

}  // namespace gemm::step_44
