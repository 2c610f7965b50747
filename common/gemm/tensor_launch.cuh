// What steps 14 and 70 taught about starting a kernel: persistent CTAs, whose accumulators are in tensor
// memory and whose threads store D themselves.
#pragma once

#include "gemm/gemm.h"
#include "gemm/persistent_launch.cuh"
#include "gemm/raster.h"
#include "gemm/step.h"
#include "gemm/tensor_tile.cuh"
#include "gemm/tile_launch.cuh"
#include "gemm/tma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"

namespace gemm {

/// How the host starts kKernel(gemm, raster, a_map, b_map), persistent, with kThreads threads a CTA.
template <auto kKernel, typename T, typename Shared, int kThreads, RasterOrder kOrder, int kGroup>
struct PersistentTensorLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>(
        {.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>, .ctas_per_sm = T::kCtasPerSm},
        tile_grid<T>(shape).count());
  }
  static Launcher prepare(const Gemm& gemm) {
    const auto [m, n, k] = gemm.shape;
    return [gemm, a_map = operand_map<T>(gemm.a, m, k, T::kM), b_map = operand_map<T>(gemm.b, n, k, T::kN),
            launch = launch_shape(gemm.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, gemm, Raster{kOrder, kGroup}, a_map, b_map);
    };
  }
  static Variant variant(Variant given) {
    given.traffic = tensor_tile_traffic<T>();
    return complete_variant<kKernel, T, PersistentTensorLaunch>(given);
  }
};

}  // namespace gemm
