// For few tiles: K is cut inside a cluster. Its CTAs multiply the same tile over parts of K, and add what
// they have through distributed shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gemm/fitted/fitted_cluster.cuh"
#include "gemm/fitted/fitted_plan.h"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/pipeline/lockstep.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/tile/tma_tile.cuh"
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
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_22 {

inline constexpr int kMostParts = 8;  // CTAs of a cluster: as many as every GPU allows

/// Four accumulators of a thread, in 8 columns of a block of 64 rows: what is sent at once.
template <typename T>
inline constexpr int kUnits = T::kBlocks* T::kN / 8;

/// Each CTA of a cluster of `parts` finishes so many units of each thread, the last ones maybe fewer.
template <typename T>
constexpr int units_of_one(int parts) {
  return (kUnits<T> + parts - 1) / parts;
}

/// The partials that arrive at a CTA, at most.
template <typename T>
constexpr int most_units() {
  int most = 0;
  for (int parts = 2; parts <= kMostParts; ++parts)
    most = std::max(most, (parts - 1) * units_of_one<T>(parts));
  return most;
}

template <typename T, int kStages>
struct SplitShared {
  Ring<T, kStages> ring;
  float4 partials[most_units<T>()][T::kThreads];  // [CTA, unit][thread], of the other CTAs
  std::uint64_t arrived;                          // all of them
};

/// What the host decides.
struct SplitWork {
  int rows = 0;  // of the tiles' matrix: D, or D transposed
  int columns = 0;
  int parts = 1;    // CTAs of a cluster
  int k_tiles = 0;  // of each CTA, at least
  int longer = 0;   // so many CTAs, the first ones, have one more
  int units = 0;    // that each CTA finishes, the last ones maybe fewer
};

/// Sends every unit that another CTA finishes to the thread there that has the same place in the tile.
template <typename T, int kStages>
__device__ __forceinline__ void send_partials(const WarpgroupTile<T>& warpgroup,
                                              SplitShared<T, kStages>& shared, const SplitWork& given,
                                              int rank) {
  constexpr std::uint32_t kUnitBytes = T::kThreads * sizeof(float4);
  const std::uint32_t partials = ptx::shared_address(&shared.partials[0][threadIdx.x]);
  const std::uint32_t arrived = ptx::shared_address(&shared.arrived);
  int owner = -1;
  int left = 0;  // units of this owner
  std::uint32_t to = 0;
  std::uint32_t barrier = 0;
#pragma unroll
  for (int i = 0; i < kUnits<T>; ++i) {
    if (left == 0) {
      ++owner;
      left = given.units;
      const int source = rank < owner ? rank : rank - 1;  // among the owner's sources
      const auto peer = static_cast<std::uint32_t>(owner);
      to = ptx::mapa(partials + static_cast<std::uint32_t>(source * given.units) * kUnitBytes, peer);
      barrier = ptx::mapa(arrived, peer);
    }
    --left;
    const float* const four = &warpgroup.accumulators[i / (T::kN / 8)][i % (T::kN / 8) * 4];
    if (owner != rank) ptx::st_async(to, make_float4(four[0], four[1], four[2], four[3]), barrier);
    to += kUnitBytes;
  }
}

template <typename T, int kStages, bool kTransposed>
__global__ void __launch_bounds__(T::kThreads + 32, 1)
    split_kernel(SplitWork given, bf16* d, const __grid_constant__ ptx::TensorMap row_map,
                 const __grid_constant__ ptx::TensorMap row_edge_map,
                 const __grid_constant__ ptx::TensorMap column_map,
                 const __grid_constant__ ptx::TensorMap column_edge_map) {
  auto& shared = ptx::dynamic_shared<SplitShared<T, kStages>>();
  auto& ring = shared.ring;
  const int rank = static_cast<int>(ptx::cluster_ctarank());
  const int row = static_cast<int>(blockIdx.y) * T::kM;
  const int column = static_cast<int>(blockIdx.z) * T::kN;
  const int first = rank * given.k_tiles + min(rank, given.longer);
  const int count = given.k_tiles + (rank < given.longer ? 1 : 0);
  const int begin = rank * given.units;  // what this CTA finishes
  const int units = min(max(kUnits<T> - begin, 0), given.units);

  if (warp_index() == T::kThreads / 32) {
    if (ptx::elect_sync()) {
      ring.init(T::kWarpgroups);
      ptx::mbarrier_init(&shared.arrived, 1);
      ptx::fence_mbarrier_init_release_cluster();
      const auto bytes = (given.parts - 1) * units * T::kThreads * static_cast<int>(sizeof(float4));
      ptx::mbarrier_arrive_expect_tx(&shared.arrived, static_cast<std::uint32_t>(bytes));
    }
    __syncwarp();
    ptx::bar_arrive(kStartBarrier,
                    T::kThreads + 32);  // this warp waits for nobody: the ring is the CTA's own
    ptx::barrier_cluster_arrive();
    if (ptx::elect_sync()) {
      const TileRows<T::kM> rows(row, given.rows, 0, 0, &row_map, &row_edge_map);
      const TileRows<T::kN> columns(column, given.columns, 0, 0, &column_map, &column_edge_map);
      Lockstep never(LockstepPlan{});
      PipelineState<kStages> fill{0, 1};
      load_work_tile<false>(ring, fill, never, WorkTile{0, first, first + count, first}, rows, columns,
                            FittedCluster(ClusterShape{}));
    }
    __syncwarp();
    ptx::barrier_cluster_wait();
    return;
  }
  if (threadIdx.x == 0) {
    for (const ptx::TensorMap* map : {&row_map, &column_map, &row_edge_map, &column_edge_map})
      ptx::prefetch_tensormap(map);
  }
  __syncwarp();
  ptx::bar_sync(kStartBarrier, T::kThreads + 32);
  ptx::barrier_cluster_arrive();

  WarpgroupTile<T> warpgroup;
  PipelineState<kStages> read{0, 0};
  PipelineState<kStages> release{0, 0};
  const bool releases = threadIdx.x % 128 == 0;
  for (int i = 0; i < count; ++i) {
    ring.consumer_wait(read, i);
    warpgroup.issue(ring.stage[read.stage], i == 0);
    read.advance();
    warpgroup.template wait<1>();
    if (i > 0) {
      if (releases) ring.consumer_release(release);
      release.advance();
    }
  }
  warpgroup.template wait<0>();
  ptx::barrier_cluster_wait();  // the other CTAs have initialised their barriers

  // Lesson: no CTA waits until the others are ready to receive: where their partials go is written by nobody
  // else, and the bytes count themselves on the receiver's barrier.
  if (given.parts > 1) {
    send_partials(warpgroup, shared, given, rank);
    ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, count});
  }
  for (int source = 0; source < given.parts - 1; ++source) {  // always in this order
#pragma unroll
    for (int i = 0; i < kUnits<T>; ++i) {
      if (i < begin || i >= begin + units) continue;
      const float4 more = ptx::ld_shared(&shared.partials[source * given.units + i - begin][threadIdx.x]);
      float* const own = &warpgroup.accumulators[i / (T::kN / 8)][i % (T::kN / 8) * 4];
      own[0] += more.x;
      own[1] += more.y;
      own[2] += more.z;
      own[3] += more.w;
    }
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kUnits<T>; ++i) {
    if (i < begin || i >= begin + units) continue;
    const int block = i / (T::kN / 8);
    const float* const four = &warpgroup.accumulators[block][i % (T::kN / 8) * 4];
    const int tile_row = row + warpgroup.row + block * 64 + warp_index() % 4 * 16 + lane / 4;
    const int tile_column = column + i % (T::kN / 8) * 8 + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int m = tile_row + 8 * half;
      if (m >= given.rows || tile_column >= given.columns) continue;
      if constexpr (kTransposed) {
        ptx::st_global(d + offset(tile_column, m, given.rows), ptx::cvt_rn_bf16_f32(four[2 * half]));
        if (tile_column + 1 == given.columns) continue;
        ptx::st_global(d + offset(tile_column + 1, m, given.rows), ptx::cvt_rn_bf16_f32(four[2 * half + 1]));
      } else {
        ptx::st_global(reinterpret_cast<std::uint32_t*>(d + offset(m, tile_column, given.columns)),
                       ptx::cvt_rn_bf16x2_f32(four[2 * half], four[2 * half + 1]));
      }
    }
  }
}

/// How the host starts it, for tiles as high and wide as T's.
template <typename T>
struct SplitLaunch {
  static constexpr int kStages =
      std::min(12, (225 * 1024 - static_cast<int>(sizeof(float4)) * most_units<T>() * T::kThreads) /
                       WgmmaTiles<T>::kBytes);
  static constexpr auto* kKernel = split_kernel<T, kStages, false>;
  static constexpr auto* kTransposedKernel = split_kernel<T, kStages, true>;

  static ptx::LaunchShape launch_shape(const Shape& shape, const FittedPlan& plan) {
    const auto parts = static_cast<unsigned>(plan.parts);
    return {.grid = {parts, static_cast<unsigned>(ceil_div(plan.transposed ? shape.n : shape.m, T::kM)),
                     static_cast<unsigned>(ceil_div(plan.transposed ? shape.m : shape.n, T::kN))},
            .block = {T::kThreads + 32},
            .cluster = {parts},
            .shared_bytes = kSharedBytes<SplitShared<T, kStages>>};
  }
  static Launcher prepare(const Gemm& gemm, const FittedPlan& plan) {
    const auto [m, n, k] = gemm.shape;
    const int rows = plan.transposed ? n : m;
    const int columns = plan.transposed ? m : n;
    const int k_tiles = ceil_div(k, T::kK);
    const SplitWork work{.rows = rows,
                         .columns = columns,
                         .parts = plan.parts,
                         .k_tiles = k_tiles / plan.parts,
                         .longer = k_tiles % plan.parts,
                         .units = units_of_one<T>(plan.parts)};
    const bf16* const row_operand = plan.transposed ? gemm.b : gemm.a;
    const bf16* const column_operand = plan.transposed ? gemm.a : gemm.b;
    const auto promotion = k % 64 == 0 ? ptx::L2Promotion::k256B : ptx::L2Promotion::k128B;
    return [work, d = gemm.d, launch = launch_shape(gemm.shape, plan),
            kernel = plan.transposed ? kTransposedKernel : kKernel,
            row = operand_map<T>(row_operand, rows, k, T::kM, promotion),
            row_edge = operand_map<T>(row_operand, rows, k, edge_of(rows, T::kM), promotion),
            column = operand_map<T>(column_operand, columns, k, T::kN, promotion),
            column_edge = operand_map<T>(column_operand, columns, k, edge_of(columns, T::kN), promotion)](
               ptx::Stream stream) {
      ptx::launch(kernel, launch, stream, work, d, row, row_edge, column, column_edge);
    };
  }
};

}  // namespace gemm::step_22
