// Starting a kernel of fitted tiles: what is decided for a shape, and the maps and the workspace that follow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gemm/cluster_tile.cuh"
#include "gemm/decomposition.h"
#include "gemm/fitted_store.cuh"
#include "gemm/gemm.h"
#include "gemm/lockstep.cuh"
#include "gemm/persistent_launch.cuh"
#include "gemm/raster.h"
#include "gemm/reduction.cuh"
#include "gemm/step.h"
#include "gemm/tma_tile.cuh"
#include "gemm/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"
#include "ptx/workspace.h"

namespace gemm {

/// What the host decides about a kernel with fitted tiles, beside the kernel.
struct FittedPlan {
  bool transposed = false;  // rows of the tiles are rows of B, and columns of D
  int stream_k_tiles = 0;
  int workers = 0;        // at most the GPU's; 0: all of them
  int raster_group = 16;  // tiles, or clusters of tiles below each other
  int lockstep = 0;       // k-tiles between two barriers of all producers; 0: none
};

/// What goes with every launch.
struct FittedWork {
  Decomposition decomposition;
  GroupedRaster raster;
  bool transposed = false;
  bool streams = false;  // every row of the row operand is read once
};

/// As many stages as fit beside the buffers of kWarpgroups consumer warpgroups, at most 12.
template <typename T, int kWarpgroups>
inline constexpr int kMostStages =
    std::min(12, (226 * 1024 - kWarpgroups * static_cast<int>(sizeof(ChunkBuffers))) / WgmmaTiles<T>::kBytes);

/// How the host starts kKernel(work, lockstep, workspace, row_map, column_map, d_map) in clusters C, which
/// are as high as they have CTAs.
template <auto kKernel, typename T, typename Shared, int kThreads, typename C>
struct FittedLaunch {
  static ptx::LaunchShape launch_shape() {
    return persistent_launch<kKernel>(
        {.block = {kThreads}, .cluster = {C::kCtas}, .shared_bytes = kSharedBytes<Shared>});
  }
  static int workers() { return static_cast<int>(launch_shape().grid.x) / C::kCtas; }
  static int workers(const FittedPlan& plan) {
    return plan.workers == 0 ? workers() : std::min(plan.workers, workers());
  }
  /// The rows of the tiles' matrix, D or D transposed, and its columns, in clusters and tiles.
  static TileGrid grid(const Shape& shape, bool transposed) {
    return {ceil_div(transposed ? shape.n : shape.m, T::kM * C::kM),
            ceil_div(transposed ? shape.m : shape.n, T::kN)};
  }
  static Decomposition decomposition(const Shape& shape, const FittedPlan& plan) {
    return {grid(shape, plan.transposed).count(), ceil_div(shape.k, T::kK), workers(plan),
            plan.stream_k_tiles, 1};
  }
  static std::int64_t workspace_bytes(const Shape& shape, const FittedPlan& plan) {
    const std::size_t partials = Reduction<T, C::kCtas>::bytes(decomposition(shape, plan));
    return static_cast<std::int64_t>(plan.lockstep > 0 ? std::max(partials, kCounterBytes) : partials);
  }
  static Launcher prepare(const Gemm& gemm, const FittedPlan& plan) {
    const auto [m, n, k] = gemm.shape;
    const TileGrid tiles = grid(gemm.shape, plan.transposed);
    const FittedWork work{.decomposition = decomposition(gemm.shape, plan),
                          .raster = {tiles, plan.raster_group},
                          .transposed = plan.transposed,
                          .streams = tiles.n == 1 && C::kCtas == 1};
    auto launch = launch_shape();
    launch.grid.x = static_cast<unsigned>(workers(plan) * C::kCtas);
    launch.co_resident = plan.stream_k_tiles > 0 || plan.lockstep > 0;
    // 256 bytes at once into the L2, where a row starts on a line.
    const auto promotion = k % 64 == 0 ? ptx::L2Promotion::k256B : ptx::L2Promotion::k128B;
    const int rows = T::kM;
    const int columns = T::kN / C::kM;  // a CTA's share
    const auto a_map = operand_map<T>(gemm.a, m, k, plan.transposed ? columns : rows, promotion);
    const auto b_map = operand_map<T>(gemm.b, n, k, plan.transposed ? rows : columns, promotion);
    return [work, launch,
            barriers =
                LockstepPlan{nullptr, plan.lockstep, lockstep_barriers(work.decomposition, plan.lockstep)},
            row_map = plan.transposed ? b_map : a_map, column_map = plan.transposed ? a_map : b_map,
            d_map = subtile_map<T::kN>(gemm.d, m, n, plan.transposed),
            workspace =
                std::make_shared<ptx::Workspace>(workspace_bytes(gemm.shape, plan))](ptx::Stream stream) {
      void* const memory = workspace->of(stream);
      LockstepPlan lockstep = barriers;
      lockstep.counters = static_cast<std::uint32_t*>(memory);
      ptx::launch(kKernel, launch, stream, work, lockstep, memory, row_map, column_map, d_map);
    };
  }
};

}  // namespace gemm
