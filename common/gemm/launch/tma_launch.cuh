// What step 09 taught about starting a kernel: tensor maps of the operands are made once, and go with every
// launch.
#pragma once

#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"

namespace gemm {

/// How the host starts kKernel(gemm, a_map, b_map), with a CTA of kThreads threads for every tile of T.
/// kCtasPerSm: for a kernel that moves registers between its warps.
template <auto kKernel, typename T, typename Shared, int kThreads = T::kThreads, int kCtasPerSm = 1>
struct TmaLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return {.grid = tile_ctas<T>(shape),
            .block = {kThreads},
            .shared_bytes = kSharedBytes<Shared>,
            .ctas_per_sm = kCtasPerSm};
  }
  static Launcher prepare(const Gemm& gemm) {
    const auto [m, n, k] = gemm.shape;
    return [gemm, a_map = operand_map<T>(gemm.a, m, k, T::kM),
            b_map = operand_map<T>(gemm.b, n, k, T::kN)](ptx::Stream stream) {
      ptx::launch(kKernel, launch_shape(gemm.shape), stream, gemm, a_map, b_map);
    };
  }
  static Variant variant(const Variant& given) { return complete_variant<kKernel, T, TmaLaunch>(given); }
};

}  // namespace gemm
