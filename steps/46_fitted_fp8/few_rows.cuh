// For few rows: B's bytes decide, so K is cut in a cluster, and all SMs load B at once.
#pragma once

#include <cstdint>
#include <tuple>

#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/lane_scales.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/scaled_parts.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace gemm::step_46 {

/// A tile for few rows, all of K or, with kParts = 2, cut in a cluster of two CTAs: each multiplies one half
/// of K and finishes one half of the tile's units, which are 8 columns each.
template <int kRows, int kColumns, int kCutK, int kRingStages>
struct FewRows {
  using T = ByteTiling<kRows, kColumns, kRows / 64>;
  static constexpr int kParts = kCutK;
  static constexpr int kStages = kRingStages;
  static constexpr int kThreads = T::kThreads + 32;
  static constexpr int kUnits = kColumns / 8;
  static constexpr int kShare = kUnits / kParts;              // units that each CTA finishes
  static constexpr int kReceived = kParts == 1 ? 1 : kShare;  // partials of so many
  static_assert(kParts <= 2 && kUnits % kParts == 0, "each CTA receives as much as it sends");
};

template <typename V, typename T = typename V::T>
struct FewRowsShared {
  Ring<T, V::kStages> ring;
  alignas(128) float scales_a[V::kStages][T::kM];  // [stage][m]
  float4 partials[V::kReceived][T::kThreads];      // [unit][thread], the other CTA's
  alignas(128) bf16 d[T::kM][V::kShare * 8];       // [m][n], not swizzled
  std::uint64_t arrived;  // all partials are here; count 1, the thread that initialises it
};

/// Adds the other CTA's partials to a thread's share of sums, where there are any, and writes it in bf16 to
/// its warp's 16 rows of the buffer. `part`: which share.
template <typename V, int kSums>
__device__ __forceinline__ void store_share(const float (&sums)[kSums], int part, FewRowsShared<V>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp_index() * 16 + lane % 16;
  std::uint32_t pairs[V::kShare][2];  // [unit][half]: two neighbours of the thread's upper and lower row
#pragma unroll
  for (int unit = 0; unit < V::kShare; ++unit) {
    float4 more = make_float4(0, 0, 0, 0);
    if constexpr (V::kParts > 1) more = ptx::ld_shared(&shared.partials[unit][threadIdx.x]);
    const int first = (part * V::kShare + unit) * 4;
    pairs[unit][0] = ptx::cvt_rn_bf16x2_f32(sums[first] + more.x, sums[first + 1] + more.y);
    pairs[unit][1] = ptx::cvt_rn_bf16x2_f32(sums[first + 2] + more.z, sums[first + 3] + more.w);
  }
#pragma unroll
  for (int unit = 0; unit + 1 < V::kShare; unit += 2) {
    const std::uint32_t two[4] = {pairs[unit][0], pairs[unit][1], pairs[unit + 1][0], pairs[unit + 1][1]};
    ptx::stmatrix_x4(&shared.d[row][(unit + lane / 16) * 8], two);
  }
  if constexpr (V::kShare % 2 == 1)
    ptx::stmatrix_x2(&shared.d[row][(V::kShare - 1) * 8], pairs[V::kShare - 1]);
}

template <typename V, typename T = typename V::T>
__global__ void __launch_bounds__(V::kThreads, T::kCtasPerSm)
    few_rows_kernel(Shape shape, BlockScales given, const __grid_constant__ ptx::TensorMap scale_map,
                    const __grid_constant__ ptx::TensorMap a_map,
                    const __grid_constant__ ptx::TensorMap b_map,
                    const __grid_constant__ ptx::TensorMap d_map) {
  using Blocks = LaneScales<T::kN>;
  auto& shared = ptx::dynamic_shared<FewRowsShared<V>>();
  auto& ring = shared.ring;
  const int rank = V::kParts == 1 ? 0 : static_cast<int>(ptx::cluster_ctarank());
  const int tile_row = static_cast<int>(blockIdx.z) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.y) * T::kN;
  const int k_tiles = ceil_div(shape.k, kScaleBlock);
  const int begin = k_tiles * rank / V::kParts;  // the first k-tile of this CTA
  const int end = k_tiles * (rank + 1) / V::kParts;
  const int warp = warp_index();

  // The first use of a map waits until it has been read from memory, so all are read at once, and before
  // barriers are initialised.
  if (threadIdx.x == 0) {
    for (const ptx::TensorMap* map : {&b_map, &a_map, &scale_map, &d_map}) ptx::prefetch_tensormap(map);
  }
  if (threadIdx.x == T::kThreads) {
    ring.init(4 * T::kWarpgroups);  // one arrival per warp: each has read scales
    ptx::mbarrier_init(&shared.arrived, 1);
    ptx::fence_mbarrier_init_release_cluster();
    if constexpr (V::kParts > 1) ptx::mbarrier_arrive_expect_tx(&shared.arrived, sizeof shared.partials);
  }
  __syncthreads();
  if constexpr (V::kParts > 1) ptx::barrier_cluster_arrive();  // this CTA's barriers are initialised
  if (warp == T::kThreads / 32) {
    if (ptx::elect_sync()) {
      PipelineState<V::kStages> fill{0, 1};
      for (int i = begin; i < end; ++i) {
        ring.producer_acquire(fill, i - begin);
        auto& stage = ring.stage[fill.stage];
        auto* const full = &ring.full[fill.stage];
        ptx::mbarrier_arrive_expect_tx(full, kRowBytes * (T::kM + T::kN) + 4 * T::kM);
        ptx::cp_async_bulk_tensor_2d(stage.b, &b_map, i * kRowBytes, tile_column, full);
        ptx::cp_async_bulk_tensor_2d(stage.a, &a_map, i * kRowBytes, tile_row, full);
        ptx::cp_async_bulk_tensor_2d(shared.scales_a[fill.stage], &scale_map, tile_row, i, full);
        fill.advance();
      }
    }
    __syncwarp();
    if constexpr (V::kParts > 1) ptx::barrier_cluster_wait();
    return;
  }

  const int thread = static_cast<int>(threadIdx.x);
  const int row = warp / 4 * 64;
  const int thread_row = row + warp % 4 * 16 + thread % 32 / 4;  // and 8 below
  const int first = tile_column % kScaleBlock;
  float sums[T::kN / 2] = {};
  float accumulators[T::kN / 2];
  Blocks scales_b;
  PipelineState<V::kStages> read{0, 0};
  for (int i = 0; i < end - begin; ++i) {
    if (i % 32 == 0) scales_b.load(given, tile_column, begin + i, k_tiles);
    ring.consumer_wait(read, i);
    issue_part(accumulators, ring.stage[read.stage], row, 0);
    float scales_a[2];
    float scales[Blocks::kBlocks][2];
    read_row_scales(scales_a, &shared.scales_a[read.stage][thread_row]);
    scale_part<T::kN>(scales, scales_a, 0, scales_b, i);
    ptx::fence_proxy_async_shared_cta();  // scales were read; the next copy overwrites them
    ptx::wgmma_wait_group<0>();
    ptx::wgmma_fence_operand(accumulators);
    __syncwarp();  // every lane has its scales
    if (thread % 32 == 0) ring.consumer_release(read);
    read.advance();
    promote<Blocks>(sums, accumulators, scales, 0, first);
  }

  // Lesson: each CTA of the cluster has sums of the whole tile over its half of K. It sends the other one's
  // units, and the bytes count themselves on the receiver's barrier.
  if constexpr (V::kParts > 1) {
    // ANCHOR: exchange
    ptx::barrier_cluster_wait();  // the other CTA has initialised its barriers
    const auto peer = static_cast<std::uint32_t>(1 - rank);
    const std::uint32_t arrived = ptx::mapa(ptx::shared_address(&shared.arrived), peer);
#pragma unroll
    for (int unit = 0; unit < V::kUnits; ++unit) {
      if (unit / V::kShare == rank) continue;
      ptx::st_async(ptx::mapa(ptx::shared_address(&shared.partials[unit % V::kShare][thread]), peer),
                    make_float4(sums[4 * unit], sums[4 * unit + 1], sums[4 * unit + 2], sums[4 * unit + 3]),
                    arrived);
    }
    ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, end - begin});
    // ANCHOR_END: exchange
  }
#pragma unroll
  for (int part = 0; part < V::kParts; ++part) {
    if (part == rank) store_share<V>(sums, part, shared);
  }
  ptx::fence_proxy_async_shared_cta();
  __syncwarp();  // the warp has written its 16 rows
  if (thread % 32 == 0) {
    const int rows = warp * 16;
    ptx::cp_async_bulk_tensor_2d_store(&d_map, tile_column + rank * V::kShare * 8, tile_row + rows,
                                       shared.d[rows]);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read<0>();
  }
}

/// The fields that all variants of this step share.
template <typename T>
Variant with_block_scales(const char* name, const char* summary, int stages) {
  return {.name = name,
          .summary = summary,
          .tile = kByteTile<T, e4m3>,
          .stages = stages,
          .traffic = byte_tile_traffic<T, e4m3>(),
          .types = {.a = Type::kE4m3,
                    .b = Type::kE4m3,
                    .d = Type::kBf16,
                    .promotion = kScaleBlock,
                    .scaling = Scaling::kBlocks}};
}

/// A cluster of V::kParts CTAs for each tile.
template <typename V>
struct FewRowsCtas {
  using Tile = typename V::T;
  struct Plan : LaunchPlan {
    double busiest_tiles = 0;
  };
  static Plan plan(const void* kernel, const Shape& shape) {
    const ptx::LaunchShape launch{.grid = {V::kParts, static_cast<unsigned>(ceil_div(shape.n, Tile::kN)),
                                           static_cast<unsigned>(ceil_div(shape.m, Tile::kM))},
                                  .block = {V::kThreads},
                                  .cluster = {V::kParts},
                                  .shared_bytes = sizeof(FewRowsShared<V>)};
    // In waves of as many clusters as the GPU holds at once.
    const auto at_once = static_cast<int>(ptx::resident_ctas(kernel, launch));
    const int waves = ceil_div(static_cast<int>(launch.grid.count()), at_once);
    return {{launch}, static_cast<double>(waves) / V::kParts};
  }
};

template <typename V>
Variant few_rows(const char* name, const char* summary) {
  using T = typename V::T;
  return variant_of<few_rows_kernel<V>, FewRowsCtas<V>>(
      with_block_scales<T>(name, summary, V::kStages), [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        return std::tuple(problem.shape, BlockScales{problem.scales_b, problem.scales_b_pitch, n},
                          block_scale_map(problem, T::kM), typed_map(problem.a, Type::kE4m3, m, k, T::kM),
                          typed_map(problem.b, Type::kE4m3, n, k, T::kN),
                          ptx::make_tensor_map(ptx::matrix_spec(static_cast<const bf16*>(problem.d), m, n, 16,
                                                                V::kShare * 8, ptx::Swizzle::kNone)));
      });
}

}  // namespace gemm::step_46
