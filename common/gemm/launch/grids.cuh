// The grids of the steps: a CTA for every tile, persistent CTAs, alone or in clusters, and CTAs that share
// tiles or wait for each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/raster.h"
#include "ptx/launch.cuh"

namespace gemm {

/// Where a cluster could stand (cluster_tile.cuh).
struct OneCta {
  static constexpr int kM = 1;
  static constexpr int kN = 1;
  static constexpr int kCtas = 1;
};

/// Bytes of dynamic shared memory for a struct; void: none.
template <typename Shared>
inline constexpr int kSharedBytes = sizeof(Shared);
template <>
inline constexpr int kSharedBytes<void> = 0;

/// What step 01 taught: a CTA for every tile of D; blockIdx.x counts tiles along N, blockIdx.y along M.
/// kCtasPerSm: of a kernel that moves registers between its warps.
template <typename T, typename Shared, int kThreads = T::kThreads, int kCtasPerSm = 1, int kThreadRows = 1>
struct TileCtas {
  using Tile = T;
  static LaunchPlan plan(const void*, const Shape& shape) {
    return {{.grid = {static_cast<unsigned>(ceil_div(shape.n, T::kN)),
                      static_cast<unsigned>(ceil_div(shape.m, T::kM))},
             .block = {kThreads, kThreadRows},
             .shared_bytes = kSharedBytes<Shared>,
             .ctas_per_sm = kCtasPerSm}};
  }
};

/// The same with blockIdx.x alone, along M first: CTAs that read the same rows of B are neighbours
/// (tile_along_m). kBytes: of shared memory; they keep other CTAs from the SM, also where a kernel uses none.
template <typename T, int kBytes = 0>
struct TileCtasAlongM {
  using Tile = T;
  static LaunchPlan plan(const void*, const Shape& shape) {
    const int tiles = ceil_div(shape.m, T::kM) * ceil_div(shape.n, T::kN);
    return {{.grid = {static_cast<unsigned>(tiles)}, .block = {T::kThreads}, .shared_bytes = kBytes}};
  }
};

/// What step 14 taught: the launch with as many CTAs as the GPU holds at once, but at most `ctas`.
inline ptx::LaunchShape persistent_launch(const void* kernel, ptx::LaunchShape launch,
                                          int ctas = std::numeric_limits<int>::max()) {
  launch.grid.x = std::min(static_cast<unsigned>(ctas), ptx::resident_ctas(kernel, launch));
  return launch;
}

/// The CTAs of whole clusters C, one for every C::kM x C::kN tiles.
template <typename T, typename C = OneCta>
int clustered_ctas(const Shape& shape) {
  return ceil_div(shape.m, T::kM * C::kM) * ceil_div(shape.n, T::kN * C::kN) * C::kCtas;
}

/// Persistent CTAs, in clusters C: each takes tile after tile.
template <typename T, typename Shared, int kThreads, typename C = OneCta, int kCtasPerSm = 1>
struct PersistentCtas {
  using Tile = T;
  static LaunchPlan plan(const void* kernel, const Shape& shape) {
    return {persistent_launch(kernel,
                              {.block = {kThreads},
                               .cluster = {C::kCtas},
                               .shared_bytes = kSharedBytes<Shared>,
                               .ctas_per_sm = kCtasPerSm},
                              clustered_ctas<T, C>(shape))};
  }
};

/// A cluster C for every tile that it multiplies, whether the GPU holds them at once or not (step 75).
template <typename T, typename Shared, int kThreads, typename C>
struct TileClusters {
  using Tile = T;
  static LaunchPlan plan(const void*, const Shape& shape) {
    return {{.grid = {static_cast<unsigned>(clustered_ctas<T, C>(shape))},
             .block = {kThreads},
             .cluster = {C::kCtas},
             .shared_bytes = kSharedBytes<Shared>}};
  }
};

/// With a workspace: device memory that every stream has its own of (StreamMemory).
struct WorkspacePlan : LaunchPlan {
  std::int64_t workspace_bytes = 0;
};

/// As many CTAs as the GPU holds, whatever the shape. kWaits: they wait for each other, so all must be on an
/// SM at the same time.
template <typename T, typename Shared, int kThreads, bool kWaits, int kWorkspaceBytes>
struct ResidentCtas {
  using Tile = T;
  static WorkspacePlan plan(const void* kernel, const Shape&) {
    return {{persistent_launch(
                kernel, {.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>, .co_resident = kWaits})},
            kWorkspaceBytes};
  }
};

/// What step 18 taught: tiles are cut along K, and CTAs hand on partials in the slots of a workspace.
struct SharedTilesPlan : WorkspacePlan {
  Decomposition decomposition;
  double busiest_tiles = 0;  // of one CTA
};

/// A slot takes Partials::kBytesPerSlot.
template <typename Partials>
SharedTilesPlan shared_tiles_plan(const ptx::LaunchShape& launch, const Decomposition& all) {
  const std::int64_t bytes = std::int64_t{all.slots()} * static_cast<std::int64_t>(Partials::kBytesPerSlot);
  return {{{launch}, bytes}, all, busiest_k_tiles(all) / all.k_tiles};
}

/// As many CTAs as the GPU holds, which share tiles as kSplit says; co-resident where one waits for partials.
template <typename T, typename Shared, int kThreads, typename Partials, Split kSplit>
struct SharedTileCtas {
  using Tile = T;
  static SharedTilesPlan plan(const void* kernel, const Shape& shape) {
    auto launch = persistent_launch(kernel, {.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>});
    const auto all = decompose(kSplit, tile_grid<T>(shape).count(), ceil_div(shape.k, T::kK),
                               static_cast<int>(launch.grid.x));
    launch.co_resident = all.slots() > 0;
    return shared_tiles_plan<Partials>(launch, all);
  }
};

}  // namespace gemm
