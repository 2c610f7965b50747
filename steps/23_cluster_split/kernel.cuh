// Step 23: the K axis is cut inside a cluster. Its CTAs multiply the same tile over parts of K, and add what
// they have through distributed shared memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gemm/fitted_cluster.cuh"
#include "gemm/gemm.h"
#include "gemm/ring.cuh"
#include "gemm/step.h"
#include "gemm/tile_launch.cuh"
#include "gemm/tma_tile.cuh"
#include "gemm/wgmma_tile.cuh"
#include "ptx/card.h"
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
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/unused.cuh"

namespace gemm::step_23 {

inline constexpr int kMostParts = 8;  // CTAs of a cluster: as many as every GPU allows

/// Four accumulators of a thread, in 8 columns of a block of 64 rows: what is sent at once.
template <typename T>
inline constexpr int kUnits = T::kBlocks* T::kN / 8;

/// Each CTA of a cluster of `parts` finishes so many units of each thread, the last one maybe fewer.
template <typename T>
__host__ __device__ constexpr int units_of_one(int parts) {
  return (kUnits<T> + parts - 1) / parts;
}

/// What arrives at a CTA at most: the partials of the others.
template <typename T>
constexpr int most_units() {
  int most = 0;
  for (int parts = 2; parts <= kMostParts; ++parts)
    most = std::max(most, (parts - 1) * units_of_one<T>(parts));
  return most;
}

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  float4 partials[most_units<T>()][T::kThreads];  // [source, unit][thread]
  std::uint64_t arrived;                          // all partials of the others
};

/// What the host decides.
struct Work {
  Shape shape;
  int rows = 0;  // of the tiles' matrix: D, or D transposed
  int columns = 0;
  int row_tiles = 0;
  int parts = 1;  // CTAs of a cluster
  bool transposed = false;
};

template <typename T, int kStages, bool kTransposed>
__global__ void __launch_bounds__(T::kThreads + 32, 1)
    cluster_split_kernel(Work given, bf16* d, const __grid_constant__ ptx::TensorMap row_map,
                         const __grid_constant__ ptx::TensorMap row_edge_map,
                         const __grid_constant__ ptx::TensorMap column_map,
                         const __grid_constant__ ptx::TensorMap column_edge_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const int rank = static_cast<int>(ptx::cluster_ctarank());
  const int tile = static_cast<int>(blockIdx.x) / given.parts;
  const int row = tile % given.row_tiles * T::kM;
  const int column = tile / given.row_tiles * T::kN;
  const int k_tiles = ceil_div(given.shape.k, T::kK);
  const int first = k_tiles * rank / given.parts;
  const int count = k_tiles * (rank + 1) / given.parts - first;
  const int per_cta = units_of_one<T>(given.parts);
  const int units = min(max(kUnits<T> - rank * per_cta, 0), per_cta);  // that this CTA finishes
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    ptx::mbarrier_init(&shared.arrived, 1);
    ptx::fence_mbarrier_init_release_cluster();
    ptx::mbarrier_arrive_expect_tx(&shared.arrived,
                                   static_cast<std::uint32_t>((given.parts - 1) * units * T::kThreads * 16));
  }
  __syncthreads();
  ptx::barrier_cluster_arrive();  // the ring is the CTA's own: no load waits for the other CTAs

  if (warp == T::kThreads / 32) {
    if (ptx::elect_sync()) {
      const TileRows<T::kM> rows(row, given.rows, 0, 0, &row_map, &row_edge_map);
      const TileRows<T::kN> columns(column, given.columns, 0, 0, &column_map, &column_edge_map);
      const auto bytes = static_cast<std::uint32_t>(2 * T::kK * (rows.rows + columns.rows));
      PipelineState<kStages> fill{0, 1};
      for (int i = 0; i < count; ++i) {
        ring.producer_acquire(fill, i);
        WgmmaTiles<T>& tiles = ring.stage[fill.stage];
        std::uint64_t* const full = &ring.full[fill.stage];
#pragma unroll
        for (int panel = 0; panel < T::kPanels; ++panel) {
          rows.fill_others(tiles.a[panel], full, 0, 0);
          columns.fill_others(tiles.b[panel], full, 0, 0);
        }
        ptx::mbarrier_arrive_expect_tx(full, bytes);
#pragma unroll
        for (int panel = 0; panel < T::kPanels; ++panel) {
          const int k = (first + i) * T::kK + panel * T::kPanelK;
          rows.template load<false>(tiles.a[panel], k, full, 0, 0, 0);
          columns.template load<false>(tiles.b[panel], k, full, 0, 0, 0);
        }
        fill.advance();
      }
    }
    __syncwarp();
    ptx::barrier_cluster_wait();
    return;
  }

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
  ptx::barrier_cluster_wait();  // the others have initialised their barriers

  // Lesson: every thread sends what another CTA finishes, unit by unit, to the thread there that has the same
  // place in the tile. Nobody waits until all are ready: the bytes count themselves on the receiver's
  // barrier.
  const std::uint32_t partials = ptx::shared_address(&shared.partials[0][threadIdx.x]);
  const std::uint32_t arrived = ptx::shared_address(&shared.arrived);
#pragma unroll
  for (int i = 0; i < kUnits<T>; ++i) {
    const int owner = i / per_cta;
    if (owner == rank) continue;
    const float* const from = &warpgroup.accumulators[i / (T::kN / 8)][i % (T::kN / 8) * 4];
    const int source = rank < owner ? rank : rank - 1;  // without the owner itself
    const int slot = source * per_cta + i - owner * per_cta;
    ptx::st_async(ptx::mapa(partials + static_cast<std::uint32_t>(slot * T::kThreads * 16),
                            static_cast<std::uint32_t>(owner)),
                  make_float4(from[0], from[1], from[2], from[3]),
                  ptx::mapa(arrived, static_cast<std::uint32_t>(owner)));
  }
  ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, count});

  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kUnits<T>; ++i) {
    if (i / per_cta != rank) continue;
    const int block = i / (T::kN / 8);
    const float* const own = &warpgroup.accumulators[block][i % (T::kN / 8) * 4];
    float sum[4] = {};
    for (int part = 0; part < given.parts; ++part) {  // always in this order
      float4 more{own[0], own[1], own[2], own[3]};
      if (part != rank) {
        const int source = part < rank ? part : part - 1;
        more = ptx::ld_shared(&shared.partials[source * per_cta + i - rank * per_cta][threadIdx.x]);
      }
      sum[0] += more.x;
      sum[1] += more.y;
      sum[2] += more.z;
      sum[3] += more.w;
    }
    const int tile_row = row + warpgroup.row + block * 64 + warp % 4 * 16 + lane / 4;
    const int tile_column = column + i % (T::kN / 8) * 8 + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (tile_row + 8 * half >= given.rows || tile_column >= given.columns) continue;
      if constexpr (kTransposed) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          if (tile_column + j >= given.columns) continue;
          ptx::st_global(d + offset(tile_column + j, tile_row + 8 * half, given.rows),
                         ptx::cvt_rn_bf16_f32(sum[2 * half + j]));
        }
      } else {
        ptx::st_global(
            reinterpret_cast<std::uint32_t*>(d + offset(tile_row + 8 * half, tile_column, given.columns)),
            ptx::cvt_rn_bf16x2_f32(sum[2 * half], sum[2 * half + 1]));
      }
    }
  }
}

/// How a tile is used for a shape.
struct Plan {
  bool transposed = false;
  int parts = 1;
};

template <typename T>
struct ClusterSplit {
  static constexpr int kStages =
      std::min(12, (225 * 1024 - static_cast<int>(sizeof(float4)) * most_units<T>() * T::kThreads) /
                       WgmmaTiles<T>::kBytes);
  using S = Shared<T, kStages>;
  static constexpr auto* kStraight = cluster_split_kernel<T, kStages, false>;
  static constexpr auto* kAcross = cluster_split_kernel<T, kStages, true>;

  static int tiles(const Shape& shape, bool transposed) {
    return ceil_div(transposed ? shape.n : shape.m, T::kM) * ceil_div(transposed ? shape.m : shape.n, T::kN);
  }
  /// The way round and the parts with which the busiest SM loads least.
  static Plan plan(const Shape& shape) {
    Plan best;
    double least = 0;
    const int sms = ptx::this_card().sms;
    const int k_tiles = ceil_div(shape.k, T::kK);
    for (const bool transposed : {false, true}) {
      const int rows = std::min(transposed ? shape.n : shape.m, T::kM);
      const int columns = std::min(transposed ? shape.m : shape.n, T::kN);
      const int count = tiles(shape, transposed);
      const int parts = std::clamp(std::min(sms / count, k_tiles), 1, kMostParts);
      const double bytes =
          static_cast<double>(rows + columns) * ceil_div(k_tiles, parts) * ceil_div(count * parts, sms);
      if (least == 0 || bytes < least) {
        least = bytes;
        best = {transposed, parts};
      }
    }
    return best;
  }
  static ptx::LaunchShape launch_shape(const Shape& shape, const Plan& plan) {
    const auto parts = static_cast<unsigned>(plan.parts);
    return {.grid = {static_cast<unsigned>(tiles(shape, plan.transposed)) * parts},
            .block = {T::kThreads + 32},
            .cluster = {parts},
            .shared_bytes = kSharedBytes<S>};
  }
  static Launcher prepare(const Gemm& gemm, const Plan& plan) {
    const auto [m, n, k] = gemm.shape;
    const int rows = plan.transposed ? n : m;
    const int columns = plan.transposed ? m : n;
    const Work work{gemm.shape, rows, columns, ceil_div(rows, T::kM), plan.parts, plan.transposed};
    const bf16* const row_operand = plan.transposed ? gemm.b : gemm.a;
    const bf16* const column_operand = plan.transposed ? gemm.a : gemm.b;
    const auto edge_of = [](int size, int tile) { return size % tile == 0 ? tile : size % tile; };
    const auto promotion = k % 64 == 0 ? ptx::L2Promotion::k256B : ptx::L2Promotion::k128B;
    return [work, d = gemm.d, launch = launch_shape(gemm.shape, plan),
            kernel = plan.transposed ? kAcross : kStraight,  //
            row = operand_map<T>(row_operand, rows, k, T::kM, promotion),
            row_edge = operand_map<T>(row_operand, rows, k, edge_of(rows, T::kM), promotion),
            column = operand_map<T>(column_operand, columns, k, T::kN, promotion),
            column_edge = operand_map<T>(column_operand, columns, k, edge_of(columns, T::kN), promotion)](
               ptx::Stream stream) {
      ptx::launch(kernel, launch, stream, work, d, row, row_edge, column, column_edge);
    };
  }
  static Variant variant(const char* name) {
    return {.name = name,
            .summary = T::kWarpgroups == 2 ? "two warpgroups" : "one warpgroup",
            .tile = {T::kM, T::kN, T::kK},
            .stages = kStages,
            .traffic = wgmma_tile_traffic<T>(),
            .kernel = ptx::kernel_handle(kStraight),
            .launch_shape = [](const Shape& shape) { return launch_shape(shape, plan(shape)); },
            .prepare = [](const Gemm& gemm) { return prepare(gemm, plan(gemm.shape)); }};
  }
};

inline const Step kStep{
    .name = "23_cluster_split",
    .title = "K is cut inside a cluster, and partials are added through distributed shared memory",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {ClusterSplit<WgmmaTiling<128, 64, 64, 2>>::variant("128x64"),
                 ClusterSplit<WgmmaTiling<64, 64, 64, 1>>::variant("64x64"),
                 ClusterSplit<WgmmaTiling<64, 64, 128, 1>>::variant("64x64x128"),
                 ClusterSplit<WgmmaTiling<64, 96, 64, 1>>::variant("64x96"),
                 ClusterSplit<WgmmaTiling<64, 128, 64, 1>>::variant("64x128"),
                 ClusterSplit<WgmmaTiling<64, 192, 64, 1>>::variant("64x192"),
                 ClusterSplit<WgmmaTiling<128, 48, 64, 2>>::variant("128x48"),
                 ClusterSplit<WgmmaTiling<128, 80, 64, 2>>::variant("128x80"),
                 ClusterSplit<WgmmaTiling<128, 96, 64, 2>>::variant("128x96"),
                 ClusterSplit<WgmmaTiling<128, 128, 64, 2>>::variant("128x128"),
                 ClusterSplit<WgmmaTiling<128, 192, 64, 2>>::variant("128x192")}};

}  // namespace gemm::step_23
