// Starting a persistent kernel whose producer alone knows the plan: which CTA multiplies what, and in which
// order the tiles come, prepared so that nothing is left to divide.
#pragma once

#include <cstdint>
#include <memory>

#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/raster.h"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/workspace.h"

namespace gemm {

/// Rows of tiles in a raster group.
inline constexpr int kQueueRasterGroup = 16;

/// How the host starts kKernel(decomposition, raster, workspace, a_map, b_map, d_map): as many CTAs as the
/// GPU holds, and co-resident where a CTA waits for partials. Tiles are divided as kSplit says; a slot of the
/// workspace takes Partials::kBytesPerSlot.
template <auto kKernel, typename T, typename Shared, int kThreads, typename Partials, Split kSplit>
struct QueueLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    auto launch = persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>});
    launch.co_resident = plan(shape, launch).slots() > 0;
    return launch;
  }
  static Decomposition plan(const Shape& shape, const ptx::LaunchShape& launch) {
    const auto workers = static_cast<int>(launch.grid.x);
    return decompose(kSplit, tile_grid<T>(shape).count(), ceil_div(shape.k, T::kK), workers);
  }
  static Decomposition plan(const Shape& shape) { return plan(shape, launch_shape(shape)); }
  static std::int64_t workspace_bytes(const Shape& shape) {
    return static_cast<std::int64_t>(plan(shape).slots()) * Partials::kBytesPerSlot;
  }
  static double busiest_tiles(const Shape& shape) {
    return busiest_k_tiles(plan(shape)) / ceil_div(shape.k, T::kK);
  }
  static Launcher prepare(const Gemm& gemm) {
    return [maps = tile_maps<T>(gemm), launch = launch_shape(gemm.shape), decomposition = plan(gemm.shape),
            raster = GroupedRaster(tile_grid<T>(gemm.shape), kQueueRasterGroup),
            workspace = std::make_shared<ptx::Workspace>(workspace_bytes(gemm.shape))](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, decomposition, raster, workspace->of(stream), maps.a, maps.b,
                  maps.d);
    };
  }
  static Variant variant(Variant given) {
    given.workspace_bytes = workspace_bytes;
    given.busiest_tiles = busiest_tiles;
    return complete_variant<kKernel, T, QueueLaunch>(given);
  }
};

}  // namespace gemm
