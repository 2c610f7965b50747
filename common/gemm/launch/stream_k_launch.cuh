// Starting a persistent kernel whose CTAs share tiles: with every launch go a plan, which CTA multiplies
// what, and a workspace for the partials.
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

/// How the host starts kKernel(shape, raster, decomposition, workspace, a_map, b_map, d_map): co-resident,
/// for the fix-up waits for other CTAs. Tiles are divided as kSplit says, for kSplitK into kSplits work tiles
/// each; a slot of the workspace takes Partials::kBytesPerSlot.
template <auto kKernel, typename T, typename Shared, int kThreads, typename Partials, Split kSplit,
          int kSplits>
struct StreamKLaunch {
  static ptx::LaunchShape launch_shape(const Shape&) {
    return persistent_launch<kKernel>(
        {.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>, .co_resident = true});
  }
  static Decomposition plan(const Shape& shape) {
    const auto workers = static_cast<int>(launch_shape(shape).grid.x);
    return decompose(kSplit, tile_grid<T>(shape).count(), ceil_div(shape.k, T::kK), workers, kSplits);
  }
  static std::int64_t workspace_bytes(const Shape& shape) {
    return static_cast<std::int64_t>(plan(shape).slots()) * Partials::kBytesPerSlot;
  }
  static double busiest_tiles(const Shape& shape) {
    return busiest_k_tiles(plan(shape)) / ceil_div(shape.k, T::kK);
  }
  static Launcher prepare(const Gemm& gemm) {
    return [shape = gemm.shape, maps = tile_maps<T>(gemm), launch = launch_shape(gemm.shape),
            decomposition = plan(gemm.shape),
            workspace = std::make_shared<ptx::Workspace>(workspace_bytes(gemm.shape))](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, Raster{RasterOrder::kGrouped, 16}, decomposition,
                  workspace->of(stream), maps.a, maps.b, maps.d);
    };
  }
  static Variant variant(Variant given) {
    given.workspace_bytes = workspace_bytes;
    given.busiest_tiles = busiest_tiles;
    return complete_variant<kKernel, T, StreamKLaunch>(given);
  }
};

}  // namespace gemm
