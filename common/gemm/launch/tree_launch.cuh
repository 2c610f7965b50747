// How the host starts a persistent kernel whose epilogue has a tensor of its own.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/source_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/launch/visitor_launch.cuh"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// What the nodes of a tree read and write without TMA.
struct TreeArguments : VisitorArguments {
  std::uint32_t* mask;  // [m][mask_words]
  int mask_words;
};

/// The map of a D of half as many columns as the product: boxes of 64 x 32, 64-byte rows, 64-byte swizzle.
inline ptx::TensorMap gated_map(const Problem& problem) {
  return ptx::make_tensor_map(
      ptx::matrix_spec(problem.d, problem.shape.m, problem.shape.n / 2, 64, 32, ptx::Swizzle::k64B));
}

/// How the host starts kKernel(shape, arguments, a_map, b_map, tensor_map, d_map), persistent. The bias, the
/// activation and the auxiliary are compiled in; a kernel with an auxiliary scales, too.
template <auto kKernel, typename T, typename Shared, int kThreads, Bias kBias, Activation kActivation,
          Auxiliary kAuxiliary>
struct TreeLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>},
                                      ceil_div(shape.m, T::kM) * ceil_div(shape.n, T::kN));
  }
  static Launcher prepare_problem(const Problem& problem) {
    check_bias_alignment(problem);
    const auto [m, n, k] = problem.shape;
    TreeArguments arguments{{problem.epilogue.alpha, problem.bias}, nullptr, 0};
    TileMaps maps{.a = operand_map<T>(problem.a, m, k, T::kM),
                  .b = operand_map<T>(problem.b, n, k, T::kN),
                  .d = kAuxiliary == Auxiliary::kGate ? gated_map(problem) : store_map(problem.d, m, n)};
    ptx::TensorMap tensor_map = maps.d;  // where there is no other: a kernel has one nevertheless
    if constexpr (is_mask(kAuxiliary)) {
      arguments.mask = static_cast<std::uint32_t*>(problem.auxiliary);
      arguments.mask_words = static_cast<int>(problem.auxiliary_pitch / kMaskWordBits);
    } else if constexpr (is_read(kAuxiliary) || is_written(kAuxiliary)) {
      tensor_map = ptx::make_tensor_map(
          source_spec(static_cast<const bf16*>(problem.auxiliary), m, n, problem.auxiliary_pitch));
    }
    return [shape = problem.shape, arguments, maps, tensor_map,
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, arguments, maps.a, maps.b, tensor_map, maps.d);
    };
  }
  static Launcher prepare(const Gemm& gemm) {
    if constexpr (kAuxiliary != Auxiliary::kNone)
      throw std::invalid_argument(
          "this kernel has a tensor of its own or a gate compiled in: prepare it for a problem that has it");
    return prepare_problem(gemm);
  }
  static Variant variant(Variant given) {
    given.epilogues = only({.bias = kBias, .activation = kActivation, .auxiliary = kAuxiliary},
                           kAuxiliary != Auxiliary::kNone);
    given.prepare_problem = prepare_problem;
    return complete_variant<kKernel, T, TreeLaunch>(given);
  }
};

}  // namespace gemm
