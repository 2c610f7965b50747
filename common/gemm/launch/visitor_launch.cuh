// How the host starts a persistent kernel whose epilogue is a visitor.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "ptx/launch.cuh"

namespace gemm {

/// What the nodes of a visitor read.
struct VisitorArguments {
  float alpha;
  const bf16* bias;  // [n] or [m]
};

/// The columns' biases are read two at a time.
inline void check_bias_alignment(const Problem& problem) {
  if (problem.epilogue.bias == Bias::kColumn && reinterpret_cast<std::uintptr_t>(problem.bias) % 4 != 0)
    throw std::invalid_argument(
        "the bias begins 2 bytes behind a multiple of 4: its address must be a multiple of 4");
}

/// How the host starts kKernel(shape, arguments, a_map, b_map, d_map), persistent. The bias and the
/// activation are compiled in; a kernel with a bias scales, too.
template <auto kKernel, typename T, typename Shared, int kThreads, Bias kBias, Activation kActivation>
struct VisitorLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>},
                                      ceil_div(shape.m, T::kM) * ceil_div(shape.n, T::kN));
  }
  static Launcher prepare_problem(const Problem& problem) {
    check_bias_alignment(problem);
    const VisitorArguments arguments{problem.epilogue.alpha, problem.bias};
    return [shape = problem.shape, arguments, maps = tile_maps<T>(problem),
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, arguments, maps.a, maps.b, maps.d);
    };
  }
  static Launcher prepare(const Gemm& gemm) {
    if constexpr (kBias != Bias::kNone || kActivation != Activation::kNone)
      throw std::invalid_argument(
          "this kernel has a bias or an activation compiled in: prepare it for a problem that has them");
    return prepare_problem(gemm);
  }
  static Variant variant(Variant given) {
    given.epilogues = only({.bias = kBias, .activation = kActivation}, kBias != Bias::kNone);
    given.prepare_problem = prepare_problem;
    return complete_variant<kKernel, T, VisitorLaunch>(given);
  }
};

}  // namespace gemm
