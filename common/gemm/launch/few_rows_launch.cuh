// How the host starts a kernel that multiplies packed weights by few rows of activations, in clusters along K.
#pragma once

#include <stdexcept>

#include "gemm/launch/tile_launch.cuh"
#include "gemm/launch/typed_launch.cuh"
#include "gemm/launch/weight_launch.cuh"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "ptx/launch.cuh"

namespace gemm {

/// How the host starts kKernel(shape, d, w_map, x_map, s_map), where the shape is exchanged(): a cluster for
/// each tile, of kMostParts CTAs at most, which is a power of two.
template <auto kKernel, typename T, typename Shared, int kThreads, int kMostParts>
struct FewRowsLaunch {
  static constexpr Type kWeight = kTypeOf<typename T::Weight>;
  static_assert(T::kWarpgroups % kMostParts == 0, "each CTA of a cluster finishes the same number of warpgroups");

  /// As many parts of K as there may be with all CTAs of the grid at work at the same time.
  static int parts_of(const Shape& shape) {
    const int tiles = tile_grid<T>(exchanged(shape)).count();
    int parts = kMostParts;
    while (parts > 1 && (parts > shape.k / T::kK || tiles * parts > ptx::this_card().sms)) parts /= 2;
    return parts;
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    const auto parts = static_cast<unsigned>(parts_of(shape));
    return {.grid = {parts, static_cast<unsigned>(ceil_div(shape.n, T::kM)),
                     static_cast<unsigned>(ceil_div(shape.m, T::kN))},
            .block = {kThreads},
            .cluster = {parts},
            .shared_bytes = kSharedBytes<Shared>};
  }
  static double busiest_tiles(const Shape& shape) { return 1.0 / parts_of(shape); }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    return [shape = exchanged(problem.shape), d = static_cast<bf16*>(problem.d),
            w_map = weight_map(problem.b, kWeight, n, k, T::kM),
            x_map = typed_map(problem.a, Type::kBf16, m, k, T::kN),
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
