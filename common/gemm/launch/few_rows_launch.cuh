// How the host starts a kernel that multiplies packed weights by few rows of activations, in clusters along
// K.
#pragma once

#include <stdexcept>

#include "gemm/launch/tile_launch.cuh"
#include "gemm/launch/weight_launch.cuh"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "ptx/launch.cuh"

namespace gemm {

/// How the host starts kKernel(shape, d, w_map, x_map, s_map), where the shape is exchanged(): a cluster of
/// kParts CTAs for each tile.
template <auto kKernel, typename T, typename Shared, int kThreads, int kParts>
struct FewRowsLaunch {
  static constexpr Type kWeight = kTypeOf<typename T::Weight>;
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return {.grid = {kParts, static_cast<unsigned>(ceil_div(shape.n, T::kM)),
                     static_cast<unsigned>(ceil_div(shape.m, T::kN))},
            .block = {kThreads},
            .cluster = {kParts},
            .shared_bytes = kSharedBytes<Shared>};
  }
  /// In waves of as many clusters as the GPU holds at once.
  static double busiest_tiles(const Shape& shape) {
    const ptx::LaunchShape launch = launch_shape(shape);
    const auto at_once = static_cast<int>(ptx::resident_ctas(ptx::kernel_handle(kKernel), launch));
    return static_cast<double>(ceil_div(static_cast<int>(launch.grid.count()), at_once)) / kParts;
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    return [shape = exchanged(problem.shape), d = static_cast<bf16*>(problem.d),
            w_map = weight_group_map(problem.b, kWeight, n, k, T::kM, T::kPanels),
            x_map = panel_map(problem.a, m, k, T::kN, T::kPanels),
            s_map = scale_map(problem.group_scales, n, k / T::kK, T::kM),
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, d, w_map, x_map, s_map);
    };
  }
  static Launcher prepare(const Gemm& gemm) { return prepare_weights(gemm); }
  static Variant variant(Variant given) {
    given.prepare_problem = prepare_problem;
    given.busiest_tiles = busiest_tiles;
    return complete_weight_variant<kKernel, T, FewRowsLaunch>(given, T::kK);
  }
};

}  // namespace gemm
