// How the host starts a persistent kernel whose epilogue reduces: with zeros where atomics add, or with a
// workspace for the tiles' partials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "gemm/epilogue/narrow_store.cuh"
#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/source_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/launch/tree_launch.cuh"
#include "gemm/launch/visitor_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"
#include "ptx/workspace.h"

namespace gemm {

/// What the nodes of a tree read and write, reductions included.
struct ReductionArguments : TreeArguments {
  float* result;            // [n], [m] or [1]
  float* partials;          // [tiles across the sum][tiles along it][a tile's], of a fixed order
  std::uint32_t* counters;  // [tiles across it]: tiles whose partials are there; zero between launches
  int top_k;
  const float* d_scale;  // of a D that is e4m3
};

/// How the sums of tiles become those of D.
enum class Combine { kAtomic, kOrdered };

/// How the host starts kKernel(shape, arguments, a_map, b_map, tensor_map, d_map), persistent. kEpilogue is
/// compiled in, but for alpha and the k of a top-k. kNarrows: D is e4m3, scaled.
template <auto kKernel, typename T, typename Shared, int kThreads, Epilogue kEpilogue, Combine kCombine,
          bool kNarrows>
struct ReductionLaunch {
  static constexpr Reduction kReduction = kEpilogue.reduction;
  static constexpr bool kColumns = kReduction == Reduction::kColumnSums;
  static constexpr bool kHasWorkspace = is_sum(kReduction) && kCombine == Combine::kOrdered;

  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>},
                                      ceil_div(shape.m, T::kM) * ceil_div(shape.n, T::kN));
  }
  static std::size_t partials_of(const Shape& shape) {
    return static_cast<std::size_t>(ceil_div(shape.m, T::kM)) *
           static_cast<std::size_t>(ceil_div(shape.n, T::kN)) *
           static_cast<std::size_t>(kColumns ? T::kN : T::kM);
  }
  static std::int64_t workspace_bytes(const Shape& shape) {
    if constexpr (!kHasWorkspace) return 0;
    const int counters = kColumns ? ceil_div(shape.n, T::kN) : ceil_div(shape.m, T::kM);
    return static_cast<std::int64_t>(partials_of(shape) * sizeof(float) +
                                     static_cast<std::size_t>(counters) * sizeof(std::uint32_t));
  }
  static Launcher prepare_problem(const Problem& problem) {
    check_bias_alignment(problem);
    const auto [m, n, k] = problem.shape;
    ReductionArguments given{{{problem.epilogue.alpha, problem.bias}, nullptr, 0},
                             problem.reduced,
                             nullptr,
                             nullptr,
                             problem.epilogue.top_k,
                             nullptr};
    TileMaps maps = tile_maps<T>(problem);
    if constexpr (kNarrows) {
      if (problem.scales == nullptr)
        throw std::invalid_argument("D is e4m3 and has a scale, and the address of the scales is null");
      given.d_scale = problem.scales + 2;
      maps.d = narrow_store_map(problem.d, m, n);
    }
    ptx::TensorMap tensor_map = maps.d;  // where there is no other: a kernel has one nevertheless
    if constexpr (is_mask(kEpilogue.auxiliary)) {
      given.mask = static_cast<std::uint32_t*>(problem.auxiliary);
      given.mask_words = static_cast<int>(problem.auxiliary_pitch / kMaskWordBits);
    } else if constexpr (is_read(kEpilogue.auxiliary)) {
      tensor_map = ptx::make_tensor_map(
          source_spec(static_cast<const bf16*>(problem.auxiliary), m, n, problem.auxiliary_pitch));
    }
    const auto bytes = static_cast<std::size_t>(workspace_bytes(problem.shape));
    return [shape = problem.shape, given, maps, tensor_map, launch = launch_shape(problem.shape),
            workspace = std::make_shared<ptx::Workspace>(bytes)](ptx::Stream stream) {
      ReductionArguments arguments = given;
      if constexpr (kHasWorkspace) {
        arguments.partials = static_cast<float*>(workspace->of(stream));
        arguments.counters = reinterpret_cast<std::uint32_t*>(arguments.partials + partials_of(shape));
      } else if constexpr (is_written(kReduction)) {
        const auto elements = static_cast<std::size_t>(reduced_elements(kReduction, shape));
        ptx::set_zero(given.result, elements * sizeof(float), stream);
      }
      ptx::launch(kKernel, launch, stream, shape, arguments, maps.a, maps.b, tensor_map, maps.d);
    };
  }
  static Launcher prepare(const Gemm& gemm) {
    if constexpr (kEpilogue.has_more())
      throw std::invalid_argument(
          "this kernel has a reduction or a tensor of its own compiled in: prepare it for a problem that has "
          "it");
    return prepare_problem(gemm);
  }
  static Variant variant(Variant given) {
    given.epilogues = only(kEpilogue, kEpilogue.has_more());
    given.prepare_problem = prepare_problem;
    if constexpr (kNarrows) given.types.d = Type::kE4m3;
    if constexpr (kHasWorkspace) given.workspace_bytes = workspace_bytes;
    return complete_variant<kKernel, T, ReductionLaunch>(given);
  }
};

}  // namespace gemm
