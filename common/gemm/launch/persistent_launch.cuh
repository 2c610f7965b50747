// What step 14 taught about starting a kernel: a grid that fills the GPU, and CTAs that take tile after tile.
#pragma once

#include <algorithm>
#include <limits>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// Where a cluster could stand (cluster_tile.cuh).
struct OneCta {
  static constexpr int kM = 1;
  static constexpr int kN = 1;
  static constexpr int kCtas = 1;
};

/// The maps of a kernel with tiles of T that stores D with TMA.
struct TileMaps {
  ptx::TensorMap a;
  ptx::TensorMap b;
  ptx::TensorMap d;
};

/// The CTAs of a cluster C load a share each of what they have in common, so the boxes are shares.
template <typename T, typename C = OneCta>
TileMaps tile_maps(const Gemm& gemm) {
  const auto [m, n, k] = gemm.shape;
  return {.a = operand_map<T>(gemm.a, m, k, T::kM / C::kN),
          .b = operand_map<T>(gemm.b, n, k, T::kN / C::kM),
          .d = store_map(gemm.d, m, n)};
}

/// The launch with as many CTAs as the GPU holds at once, but at most `ctas`.
template <auto kKernel>
ptx::LaunchShape persistent_launch(ptx::LaunchShape launch, int ctas = std::numeric_limits<int>::max()) {
  const unsigned at_once = ptx::resident_ctas(ptx::kernel_handle(kKernel), launch);
  launch.grid.x = std::min(static_cast<unsigned>(ctas), at_once);
  return launch;
}

/// How the host starts kKernel(shape, raster, a_map, b_map, d_map), persistent, in clusters C.
template <auto kKernel, typename T, typename Shared, int kThreads, RasterOrder kOrder, int kGroup,
          typename C = OneCta>
struct PersistentLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    const int clusters = ceil_div(shape.m, T::kM * C::kM) * ceil_div(shape.n, T::kN * C::kN);
    return persistent_launch<kKernel>(
        {.block = {kThreads}, .cluster = {C::kCtas}, .shared_bytes = kSharedBytes<Shared>},
        clusters * C::kCtas);
  }
  static Launcher prepare(const Gemm& gemm) {
    return [shape = gemm.shape, maps = tile_maps<T, C>(gemm),
            launch = launch_shape(gemm.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, Raster{kOrder, kGroup}, maps.a, maps.b, maps.d);
    };
  }
  static Variant variant(const Variant& given) {
    return complete_variant<kKernel, T, PersistentLaunch>(given);
  }
};

}  // namespace gemm
