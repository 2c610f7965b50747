// What steps 14 and 70 taught about starting a kernel: persistent CTAs, whose accumulators are in tensor
// memory and whose threads store D themselves; step 74: in pairs; step 75: a pair for every tile.
#pragma once

#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tensor_tile.cuh"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"

namespace gemm {

/// Of which CTAs a grid is made.
enum class GridOf { kResident, kAllTiles };

/// How the host starts kKernel(gemm, raster, a_map, b_map), persistent, with kThreads threads a CTA, in
/// clusters C.
template <auto kKernel, typename T, typename Shared, int kThreads, RasterOrder kOrder, int kGroup,
          typename C = OneCta, GridOf kGrid = GridOf::kResident>
struct PersistentTensorLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    const int clusters = ceil_div(shape.m, T::kM * C::kM) * ceil_div(shape.n, T::kN * C::kN);
    const ptx::LaunchShape launch{.grid = {static_cast<unsigned>(clusters * C::kCtas)},
                                  .block = {kThreads},
                                  .cluster = {C::kCtas},
                                  .shared_bytes = kSharedBytes<Shared>,
                                  .ctas_per_sm = T::kCtasPerSm};
    if constexpr (kGrid == GridOf::kAllTiles) return launch;
    return persistent_launch<kKernel>(launch, clusters * C::kCtas);
  }
  static Launcher prepare(const Gemm& gemm) {
    const auto [m, n, k] = gemm.shape;
    return [gemm, a_map = operand_map<T>(gemm.a, m, k, T::kM / C::kN),
            b_map = operand_map<T>(gemm.b, n, k, T::kN / C::kM),
            launch = launch_shape(gemm.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, gemm, Raster{kOrder, kGroup}, a_map, b_map);
    };
  }
  static Variant variant(Variant given) {
    given.traffic = tensor_tile_traffic<T>(C::kM);
    return complete_variant<kKernel, T, PersistentTensorLaunch>(given);
  }
};

}  // namespace gemm
