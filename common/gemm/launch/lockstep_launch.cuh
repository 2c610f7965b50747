// Starting a persistent kernel whose CTAs keep to the same k: with every launch go the counters of a
// grid-wide barrier.
#pragma once

#include <cstdint>
#include <memory>

#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/queue_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/workspace.h"

namespace gemm {

/// How the host starts kKernel(tiles, k_tiles, raster, lockstep, a_map, b_map, d_map): co-resident, for the
/// CTAs wait for each other every kPeriod k-tiles. LockstepPlan: counters, period, barriers. kPeriod 0: no
/// CTA waits for another.
template <auto kKernel, typename T, typename Shared, int kThreads, typename LockstepPlan, int kPeriod>
struct LockstepLaunch {
  static ptx::LaunchShape launch_shape(const Shape&) {
    return persistent_launch<kKernel>(
        {.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>, .co_resident = kPeriod > 0});
  }
  static std::int64_t workspace_bytes(const Shape&) {
    return kPeriod > 0 ? 2 * sizeof(*LockstepPlan::counters) : 0;
  }
  /// Barriers of the CTA with the most k-tiles, which is the first one.
  static int barriers(int tiles, int k_tiles, int ctas) {
    if constexpr (kPeriod == 0) return 0;
    return ceil_div(ceil_div(tiles, ctas) * k_tiles, kPeriod);
  }
  static Launcher prepare(const Gemm& gemm) {
    const TileGrid tiles = tile_grid<T>(gemm.shape);
    return [maps = tile_maps<T>(gemm), launch = launch_shape(gemm.shape), tiles,
            k_tiles = ceil_div(gemm.shape.k, T::kK), raster = GroupedRaster(tiles, kQueueRasterGroup),
            workspace = std::make_shared<ptx::Workspace>(workspace_bytes(gemm.shape))](ptx::Stream stream) {
      const auto ctas = static_cast<int>(launch.grid.x);
      const LockstepPlan lockstep{static_cast<std::uint32_t*>(workspace->of(stream)), kPeriod,
                                  barriers(tiles.count(), k_tiles, ctas)};
      ptx::launch(kKernel, launch, stream, tiles.count(), k_tiles, raster, lockstep, maps.a, maps.b, maps.d);
    };
  }
  static Variant variant(Variant given) {
    given.workspace_bytes = workspace_bytes;
    return complete_variant<kKernel, T, LockstepLaunch>(given);
  }
};

}  // namespace gemm
