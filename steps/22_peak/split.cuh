// For few tiles: K is cut inside a cluster. Its CTAs multiply the same tile over parts of K, and add what
// they have through distributed shared memory. Tiles beside each other may be in one cluster: then CTAs with
// the same part of K share loads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gemm/fitted/fitted_cluster.cuh"
#include "gemm/fitted/fitted_launch.cuh"
#include "gemm/fitted/fitted_plan.h"
#include "gemm/launch/grids.cuh"
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
#include "tiles.h"

namespace gemm::step_22 {

inline constexpr std::uint32_t kEndBarrier = 1;  // only the consumers use it

/// Four accumulators of a thread, in 8 columns of the 64 rows of its warpgroup.
template <typename T>
inline constexpr int kUnits = T::kN / 8;

/// Each CTA of a cluster of `parts` finishes so many units of each thread, the last ones fewer or none.
template <typename T>
constexpr int units_per_cta(int parts) {
  return (kUnits<T> + parts - 1) / parts;
}

template <typename T>
inline constexpr int kMostParts = most_parts(T::kM, T::kN, T::kK, T::kWarpgroups);

/// The partials that arrive at a CTA, at most.
template <typename T>
constexpr int most_units() {
  int most = 0;
  for (int parts = 2; parts <= kMostParts<T>; ++parts)
    most = std::max(most, (parts - 1) * units_per_cta<T>(parts));
  return most;
}

/// What a thread has of a tile, four accumulators of each unit.
template <typename T>
using Units = float4[kUnits<T>][T::kThreads];

template <typename T, int kStages>
struct SplitShared {
  Ring<T, kStages> ring;
  float4 partials[most_units<T>()][T::kThreads];  // [CTA, unit][thread], of the other CTAs
  std::uint64_t arrived;                          // all of them

  /// This CTA's own. They lie where the k-tiles were, when all of those are multiplied.
  __device__ __forceinline__ Units<T>& own() { return reinterpret_cast<Units<T>&>(ring.stage); }
  static_assert(T::kBlocks == 1, "a unit is 8 columns of the tile");
  static_assert(sizeof(Units<T>) <= sizeof(Ring<T, kStages>::stage), "the ring's barriers lie after");
};

/// What the host decides.
struct SplitWork {
  int rows = 0;  // the size of the tiles' matrix: D, or D transposed
  int columns = 0;
  FittedCluster cluster;  // the CTAs that share loads: those of one part
  int parts = 1;          // into which K is cut. The hardware's cluster holds so many of `cluster`
  int k_tiles = 0;        // that each CTA multiplies, at least
  int longer = 0;         // so many CTAs, the first ones, have one more
  int units = 0;          // that each CTA finishes, the last ones fewer or none
  bool along_n = false;   // the next CTA has the next tile beside this one; otherwise the one below
};

/// Sends every unit that another CTA finishes to the thread there that has the same place in the tile. The
/// next CTA is the first, so that no CTA gets everything at once.
template <typename T, int kStages>
__device__ __forceinline__ void send_partials(SplitShared<T, kStages>& shared, const SplitWork& given,
                                              const FittedCluster& cluster, int part) {
  constexpr std::uint32_t kUnitBytes = T::kThreads * sizeof(float4);
  const std::uint32_t partials = ptx::shared_address(&shared.partials[0][threadIdx.x]);
  const std::uint32_t arrived = ptx::shared_address(&shared.arrived);
  // ANCHOR: add_parts
#pragma unroll 1
  for (int i = 1; i < given.parts; ++i) {
    const int owner = part + i < given.parts ? part + i : part + i - given.parts;
    const int source = part < owner ? part : part - 1;  // among the owner's sources
    const auto peer = static_cast<std::uint32_t>(owner * cluster.shape.ctas() + cluster.rank);
    std::uint32_t to =
        ptx::mapa(partials + static_cast<std::uint32_t>(source * given.units) * kUnitBytes, peer);
    const std::uint32_t barrier = ptx::mapa(arrived, peer);
    const int end = min((owner + 1) * given.units, kUnits<T>);
#pragma unroll 2
    for (int unit = owner * given.units; unit < end; ++unit) {
      ptx::st_async(to, ptx::ld_shared(&shared.own()[unit][threadIdx.x]), barrier);
      to += kUnitBytes;
      // ANCHOR_END: add_parts
    }
  }
}

/// The CTA's share of the tile: what all CTAs of the cluster have of it is added, rounded and stored. `row`,
/// `column`: the tile's first.
template <bool kTransposed, typename T, int kStages>
__device__ __forceinline__ void finish_share(SplitShared<T, kStages>& shared, const SplitWork& given, bf16* d,
                                             int row, int column, int part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int begin = part * given.units;
  const int end = min(begin + given.units, kUnits<T>);
  if (begin >= end) return;
  const int m = row + static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
  int n = column + begin * 8 + lane % 4 * 2;
  // Elements from one unit to the next, and from a row to the one eight below.
  const auto next_unit = kTransposed ? offset(8, 0, given.rows) : 8;
  const auto next_half = kTransposed ? 8 : offset(8, 0, given.columns);
  bf16* to = d + (kTransposed ? offset(n, m, given.rows) : offset(m, n, given.columns));
  const float4* own = &shared.own()[begin][threadIdx.x];
  const float4* others = &shared.partials[0][threadIdx.x];
  // Lesson: at most one other warp of this scheduler has work while a load is under way. So units are loaded
  // together.
  constexpr int kAtOnce = 4;
#pragma unroll 1
  for (int left = end - begin; left > 0; left -= kAtOnce) {
    float4 sum[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < left) sum[i] = ptx::ld_shared(own + i * T::kThreads);
    }
    const float4* more = others;
#pragma unroll 1
    for (int source = 1; source < given.parts; ++source) {  // always in this order
      float4 four[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (i < left) four[i] = ptx::ld_shared(more + i * T::kThreads);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (i >= left) break;
        sum[i].x += four[i].x;
        sum[i].y += four[i].y;
        sum[i].z += four[i].z;
        sum[i].w += four[i].w;
      }
      more += given.units * T::kThreads;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i >= left || n >= given.columns) return;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (m + 8 * half >= given.rows) continue;
        bf16* const pair = to + half * next_half;
        const float even = half == 0 ? sum[i].x : sum[i].z;
        const float odd = half == 0 ? sum[i].y : sum[i].w;
        if constexpr (kTransposed) {
          ptx::st_global(pair, ptx::cvt_rn_bf16_f32(even));
          if (n + 1 < given.columns) ptx::st_global(pair + given.rows, ptx::cvt_rn_bf16_f32(odd));
        } else {
          ptx::st_global(reinterpret_cast<std::uint32_t*>(pair), ptx::cvt_rn_bf16x2_f32(even, odd));
        }
      }
      n += 8;
      to += next_unit;
    }
    own += kAtOnce * T::kThreads;
    others += kAtOnce * T::kThreads;
  }
}

/// kShares: the CTAs of a part share loads.
template <typename T, int kStages, bool kTransposed, bool kShares>
__global__ void __launch_bounds__(T::kThreads + 32, 1)
    split_kernel(SplitWork given, bf16* d, const __grid_constant__ OperandMaps maps) {
  auto& shared = ptx::dynamic_shared<SplitShared<T, kStages>>();
  auto& ring = shared.ring;
  const int rank = static_cast<int>(ptx::cluster_ctarank());
  const int part = kShares ? rank / given.cluster.shape.ctas() : rank;
  FittedCluster cluster = kShares ? given.cluster.number(part) : FittedCluster(ClusterShape{});
  if constexpr (kShares) cluster.rank = rank - part * cluster.shape.ctas();
  const bool in_cluster = kShares || given.parts > 1;
  // Lesson: CTAs that read the same rows of the larger operand start beside each other
  // (SplitLaunch::along_n).
  const int y = static_cast<int>(blockIdx.y);
  const int z = static_cast<int>(blockIdx.z);
  const TilePosition tile = cluster.tile(given.along_n ? TilePosition{z, y} : TilePosition{y, z});
  const int row = tile.m * T::kM;
  const int column = tile.n * T::kN;
  const int first = part * given.k_tiles + min(part, given.longer);
  const int count = given.k_tiles + (part < given.longer ? 1 : 0);

  if (warp_index() == T::kThreads / 32) {
    if (ptx::elect_sync()) {
      ring.init(T::kWarpgroups * cluster.peers());
      ptx::mbarrier_init(&shared.arrived, 1);
      ptx::fence_mbarrier_init_release_cluster();
      const int units = min(max(kUnits<T> - part * given.units, 0), given.units);  // that this CTA finishes
      const auto bytes = (given.parts - 1) * units * T::kThreads * static_cast<int>(sizeof(float4));
      ptx::mbarrier_arrive_expect_tx(&shared.arrived, static_cast<std::uint32_t>(bytes));
    }
    __syncwarp();
    ptx::bar_arrive(kStartBarrier, T::kThreads + 32);
    if (in_cluster) ptx::barrier_cluster_arrive_relaxed();
    // Only what is loaded for others waits for them: otherwise the ring is the CTA's own.
    if constexpr (kShares) ptx::barrier_cluster_wait();
    if (ptx::elect_sync()) {
      const TileRows<T::kM> rows({.first = row,
                                  .all = given.rows,
                                  .share = cluster.row_share(),
                                  .maps = {&maps.rows, &maps.row_edge}});
      const TileRows<T::kN> columns({.first = column,
                                     .all = given.columns,
                                     .share = cluster.column_share(),
                                     .maps = {&maps.columns, &maps.column_edge}});
      Lockstep never(LockstepPlan{});
      PipelineState<kStages> fill{0, 1};
      load_work_tile<kShares ? BuiltFor::kClusters : BuiltFor::kWholeTiles>(
          ring, fill, never, WorkTile{0, first, first + count, first}, rows, columns, cluster);
    }
    __syncwarp();
    if (!kShares && in_cluster) ptx::barrier_cluster_wait();
    return;
  }
  if (threadIdx.x == 0) {
    for (const ptx::TensorMap* map : {&maps.rows, &maps.columns, &maps.row_edge, &maps.column_edge})
      ptx::prefetch_tensormap(map);
  }
  __syncwarp();
  ptx::bar_sync(kStartBarrier, T::kThreads + 32);
  if (in_cluster) ptx::barrier_cluster_arrive_relaxed();
  if constexpr (kShares) ptx::barrier_cluster_wait();  // before it arrives at a peer's barriers

  WarpgroupTile<T> warpgroup;
  PipelineState<kStages> read{0, 0};
  PipelineState<kStages> release{0, 0};
  const bool releases = cluster.is_peer(static_cast<int>(threadIdx.x) % 128);
  for (int i = 0; i < count; ++i) {
    ring.consumer_wait(read, i);
    warpgroup.issue(ring.stage[read.stage], i == 0);
    read.advance();
    warpgroup.template wait<1>();
    if (i == 0) continue;
    // Lesson: only what is filled again is released. The writer waits for it and cannot have left.
    if (i + kStages <= count)
      release_to_writers(&ring.empty[release.stage], cluster, releases, part * cluster.shape.ctas());
    release.advance();
  }
  warpgroup.template wait<0>();

  // Lesson: accumulators are written to shared memory with one instruction for each unit, and all that
  // follows is a short loop. Which units a CTA finishes is known at run time only: to pick them out of
  // registers takes a comparison for every unit that there is, in code that no cache has seen.
  ptx::bar_sync(kEndBarrier, T::kThreads);  // no warp reads a stage any more
#pragma unroll
  for (int i = 0; i < kUnits<T>; ++i) {
    const float* const four = &warpgroup.accumulators[0][i * 4];
    ptx::st_shared(&shared.own()[i][threadIdx.x], make_float4(four[0], four[1], four[2], four[3]));
  }
  if (!kShares && in_cluster) ptx::barrier_cluster_wait();  // the others have initialised their barriers

  // Lesson: no CTA waits until the others are ready to receive: where their partials go is written by nobody
  // else, and the bytes count themselves on the receiver's barrier.
  if (given.parts > 1) {
    send_partials(shared, given, cluster, part);
    ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, count});
  }
  finish_share<kTransposed>(shared, given, d, row, column, part);
}

/// How the host starts it, for tiles as high and wide as T's.
template <typename T>
struct SplitLaunch {
  static constexpr int kStages =
      std::min(12, (225 * 1024 - static_cast<int>(sizeof(float4)) * most_units<T>() * T::kThreads) /
                       WgmmaTiles<T>::kBytes);
  template <bool kTransposed, bool kShares>
  static constexpr auto* kKernel = split_kernel<T, kStages, kTransposed, kShares>;

  /// In clusters neither order is faster in the mean; alone the other takes up to 20 % longer.
  static bool along_n(const Shape& shape, const FittedPlan& plan) {
    return plan.cluster.ctas() * plan.parts == 1 && plan.transposed == (shape.n > shape.m);
  }
  static ptx::LaunchShape launch_shape(const Shape& shape, const FittedPlan& plan) {
    const auto ctas = static_cast<unsigned>(plan.cluster.ctas() * plan.parts);
    const int rows = plan.transposed ? shape.n : shape.m;
    const int columns = plan.transposed ? shape.m : shape.n;
    unsigned y = static_cast<unsigned>(ceil_div(rows, T::kM * plan.cluster.m));
    unsigned z = static_cast<unsigned>(ceil_div(columns, T::kN * plan.cluster.n));
    if (along_n(shape, plan)) std::swap(y, z);
    return {.grid = {ctas, y, z},
            .block = {T::kThreads + 32},
            .cluster = {ctas},
            .shared_bytes = kSharedBytes<SplitShared<T, kStages>>};
  }
  /// As many CTAs as the GPU holds.
  static ptx::LaunchShape full_launch(const ClusterShape& cluster) {
    return persistent_launch(ptx::kernel_handle(kKernel<false, false>),
                             {.block = {T::kThreads + 32},
                              .cluster = {static_cast<unsigned>(cluster.ctas())},
                              .shared_bytes = kSharedBytes<SplitShared<T, kStages>>});
  }
  static Launcher prepare(const Gemm& gemm, const FittedPlan& plan) {
    const auto [m, n, k] = gemm.shape;
    const int rows = plan.transposed ? n : m;
    const int columns = plan.transposed ? m : n;
    const int k_tiles = ceil_div(k, T::kK);
    FittedCluster cluster(plan.cluster);
    cluster.set_edges(rows, T::kM / plan.cluster.n, columns, T::kN / plan.cluster.m);
    const SplitWork work{.rows = rows,
                         .columns = columns,
                         .cluster = cluster,
                         .parts = plan.parts,
                         .k_tiles = k_tiles / plan.parts,
                         .longer = k_tiles % plan.parts,
                         .units = units_per_cta<T>(plan.parts),
                         .along_n = along_n(gemm.shape, plan)};
    return [work, d = gemm.d, maps = operand_maps<T>(gemm, plan, cluster),
            launch = launch_shape(gemm.shape, plan),
            kernel = plan.cluster.ctas() > 1 ? plan.transposed ? kKernel<true, true> : kKernel<false, true>
                     : plan.transposed ? kKernel<true, false>
                                             : kKernel<false, false>](ptx::Stream stream) {
      ptx::launch(kernel, launch, stream, work, d, maps);
    };
  }
};

}  // namespace gemm::step_22
