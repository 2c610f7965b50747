// Starting a kernel of fitted tiles: what is decided for a shape, and the maps and the workspace that follow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "gemm/fitted/fitted_cluster.cuh"
#include "gemm/fitted/fitted_plan.h"
#include "gemm/fitted/fitted_store.cuh"
#include "gemm/fitted/reduction.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/pipeline/lockstep.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/raster.h"
#include "gemm/schedule/strip_raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"
#include "ptx/workspace.h"

namespace gemm {

/// What a kernel must know of the work, tensor maps apart.
struct FittedWork {
  Decomposition decomposition;
  StripRaster raster;
  FittedCluster cluster;
  int rows = 0;  // the size of the tiles' matrix: D, or D transposed
  int columns = 0;
  int whole_columns = 0;  // how many tiles along the columns lie inside D
  bool transposed = false;
};

/// The maps of both operands. That of the rows is A; where the tiles are transposed, it is B.
struct OperandMaps {
  ptx::TensorMap rows;      // its boxes are as high as a CTA's share of a tile
  ptx::TensorMap row_edge;  // its boxes are as high as what the matrix's last tile leaves of one
  ptx::TensorMap columns;   // and the same two for the other operand
  ptx::TensorMap column_edge;
};
struct FittedMaps : OperandMaps {
  ptx::TensorMap tiles;  // a tile_map of D, for the tiles that lie inside it
  ptx::TensorMap edge;   // an edge_map of D, for the others
};

// Lesson: what a kernel is not built for is a constant in it, and the compiler leaves out the code that would
// ask. A launch finds its instructions in no cache, and each line of them that it skips over or asks for
// costs time before the first copy and behind the last multiplication.

/// `work` as a kernel sees it that is built for this much.
// ANCHOR: kernel_for_plan
template <bool kTransposed, BuiltFor kBuiltFor>
__device__ __forceinline__ FittedWork narrowed(FittedWork work) {
  work.decomposition.splits = 1;
  if constexpr (kBuiltFor != BuiltFor::kAnyPlan) work.transposed = kTransposed;
  if constexpr (kBuiltFor == BuiltFor::kWholeTiles || kBuiltFor == BuiltFor::kWholeInClusters)
    work.decomposition.stream_k_tiles = 0;
  if constexpr (kBuiltFor < BuiltFor::kWholeInClusters) {
    work.cluster.shape = {1, 1};
    work.cluster.log2_m = work.cluster.log2_n = 0;
    work.cluster.row_mask_0 = work.cluster.column_mask_0 = 1;
    work.cluster.rank = 0;
  }
  return work;
  // ANCHOR_END: kernel_for_plan
}

/// As many stages as fit beside kBuffers chunk buffers of each of kWarpgroups consumer warpgroups, at
/// most 16.
template <typename T, int kWarpgroups, int kBuffers = 2>
inline constexpr int kMostStages =
    std::min(16, (225 * 1024 - kWarpgroups * static_cast<int>(sizeof(SomeChunkBuffers<kBuffers>))) /
                     WgmmaTiles<T>::kBytes);

/// Chunk buffers of a warpgroup: two, or one where that makes room for a fourth stage.
template <typename T, int kWarpgroups>
inline constexpr int kChunkBuffers =
    kMostStages<T, kWarpgroups, 2> < 4 && kMostStages<T, kWarpgroups, 1> >= 4 ? 1 : 2;

/// Rows of the lowest tile: a D with no more of them is one row of tiles.
inline constexpr int kLowestTile = 64;

// Lesson: where a row starts on a line, the L2 reads two lines of it at once, 256 bytes: the second one is
// the next k-tile's. But with few rows the larger operand comes from device memory once, and device memory
// gives less that way: a kernel that only copies takes up to 7 % longer. Where several rows of tiles read a
// line, 256 bytes gain as often as they lose.

/// What the L2 reads of device memory at once for an operand of this product.
inline ptx::L2Promotion operand_promotion(const Shape& shape) {
  const bool read_once = std::min(shape.m, shape.n) <= kLowestTile;
  return shape.k % 64 == 0 && !read_once ? ptx::L2Promotion::k256B : ptx::L2Promotion::k128B;
}

/// The maps for a cluster whose edges are set.
template <typename T>
OperandMaps operand_maps(const Gemm& gemm, const FittedPlan& plan, const FittedCluster& cluster) {
  const auto [m, n, k] = gemm.shape;
  const int rows = plan.transposed ? n : m;
  const int columns = plan.transposed ? m : n;
  const bf16* const row_operand = plan.transposed ? gemm.b : gemm.a;
  const bf16* const column_operand = plan.transposed ? gemm.a : gemm.b;
  const ptx::L2Promotion promotion = operand_promotion(gemm.shape);
  return {.rows = operand_map<T>(row_operand, rows, k, T::kM / plan.cluster.n, promotion),
          .row_edge = operand_map<T>(row_operand, rows, k, cluster.row_edge, promotion),
          .columns = operand_map<T>(column_operand, columns, k, T::kN / plan.cluster.m, promotion),
          .column_edge = operand_map<T>(column_operand, columns, k, cluster.column_edge, promotion)};
}

/// How the host starts kKernel(work, lockstep, workspace, maps). Exchange says how partials get from one
/// worker to another: FixUp<T> or FetchedPartials<T>.
template <auto kKernel, typename T, typename Shared, int kThreads, typename Exchange = FixUp<T>>
struct FittedLaunch {
  /// As many CTAs as the GPU holds.
  static ptx::LaunchShape full_launch(const ClusterShape& cluster) {
    return persistent_launch(ptx::kernel_handle(kKernel), {.block = {kThreads},
                                                           .cluster = {static_cast<unsigned>(cluster.ctas())},
                                                           .shared_bytes = kSharedBytes<Shared>});
  }
  static ptx::LaunchShape launch_shape(const FittedPlan& plan) {
    auto launch = full_launch(plan.cluster);
    launch.grid.x = static_cast<unsigned>(workers(plan) * plan.cluster.ctas());
    launch.co_resident = plan.stream_k_tiles > 0 || plan.lockstep > 0;
    return launch;
  }
  static int workers(const FittedPlan& plan) {
    const int most = static_cast<int>(full_launch(plan.cluster).grid.x) / plan.cluster.ctas();
    return plan.workers == 0 ? most : std::min(plan.workers, most);
  }
  /// In clusters: rows and columns of the tiles' matrix, D or D transposed.
  static TileGrid grid(const Shape& shape, const FittedPlan& plan) {
    return {ceil_div(plan.transposed ? shape.n : shape.m, T::kM * plan.cluster.m),
            ceil_div(plan.transposed ? shape.m : shape.n, T::kN * plan.cluster.n)};
  }
  static Decomposition decomposition(const Shape& shape, const FittedPlan& plan) {
    const int tiles = grid(shape, plan).count();
    return {tiles, ceil_div(shape.k, T::kK), workers(plan), plan.stream_k_tiles, 1};
  }
  static std::int64_t workspace_bytes(const Shape& shape, const FittedPlan& plan) {
    const std::size_t bytes = Exchange::bytes(decomposition(shape, plan), plan.cluster.ctas());
    return static_cast<std::int64_t>(plan.lockstep > 0 ? std::max(bytes, Exchange::kCounterBytes) : bytes);
  }
  static Launcher prepare(const Gemm& gemm, const FittedPlan& plan) {
    if (plan.lockstep > 0 && plan.stream_k_tiles > 0 && Exchange::kWaitsInside)
      throw std::invalid_argument(
          "this kernel has stream-K tiles or a lockstep: a CTA that waits for partials comes to no barrier");
    const auto [m, n, k] = gemm.shape;
    const int rows = plan.transposed ? n : m;
    const int columns = plan.transposed ? m : n;
    FittedCluster cluster(plan.cluster);
    cluster.set_edges(rows, T::kM / plan.cluster.n, columns, T::kN / plan.cluster.m);
    const Decomposition all = decomposition(gemm.shape, plan);
    const FittedWork work{
        .decomposition = all,
        .raster = {grid(gemm.shape, plan), plan.raster_group, plan.strips()},
        .cluster = cluster,
        .rows = rows,
        .columns = columns,
        .whole_columns = columns / T::kN,
        .transposed = plan.transposed,
    };
    const LockstepPlan barriers{nullptr, plan.lockstep, lockstep_barriers(all, plan.lockstep)};
    const FittedMaps maps{operand_maps<T>(gemm, plan, cluster),
                          tile_map<T::kN>(gemm.d, m, n, plan.transposed), edge_map(gemm.d, m, n)};
    return [work, barriers, maps, launch = launch_shape(plan),
            workspace =
                std::make_shared<ptx::Workspace>(workspace_bytes(gemm.shape, plan))](ptx::Stream stream) {
      void* const memory = workspace->of(stream);
      LockstepPlan lockstep = barriers;
      lockstep.counters = static_cast<std::uint32_t*>(memory);
      ptx::launch(kKernel, launch, stream, work, lockstep, memory, maps);
    };
  }
};

}  // namespace gemm
