// How the host starts a persistent kernel whose epilogue reads C.
#pragma once

#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// alpha, beta and C for threads that load it themselves.
struct SourceArguments {
  float alpha;
  float beta;
  const bf16* c;         // [m][pitch]
  std::int64_t c_pitch;  // elements
};

/// What the map of C is to be: an [m][n] bf16 matrix whose rows lie `pitch` elements apart, read in boxes of
/// 64 x 64.
inline ptx::TensorMapSpec source_spec(const bf16* c, int m, int n, std::int64_t pitch) {
  auto spec = ptx::matrix_spec(c, m, n, 64, 64, ptx::Swizzle::k128B);
  spec.stride_bytes[1] = static_cast<std::uint64_t>(pitch) * sizeof(bf16);
  return spec;
}

/// How the host starts kKernel(shape, raster, source, a_map, b_map, c_map, d_map), persistent.
template <auto kKernel, typename T, typename Shared, int kThreads, RasterOrder kOrder, int kGroup>
struct SourceLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>},
                                      ceil_div(shape.m, T::kM) * ceil_div(shape.n, T::kN));
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    const Epilogue& epilogue = problem.epilogue;
    const SourceArguments source{epilogue.alpha, epilogue.beta, problem.c, problem.c_pitch};
    const TileMaps maps = tile_maps<T>(problem);
    // Where C is not read it may be anything, also no matrix that has a map; the kernel has one nevertheless.
    const ptx::TensorMapSpec c_spec = source_spec(problem.c, m, n, problem.c_pitch);
    const bool has_map = epilogue.beta != 0 || (problem.c != nullptr && ptx::violated_rule(c_spec).empty());
    const ptx::TensorMap c_map = has_map ? ptx::make_tensor_map(c_spec) : maps.d;
    return [shape = problem.shape, source, maps, c_map,
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, Raster{kOrder, kGroup}, source, maps.a, maps.b, c_map,
                  maps.d);
    };
  }
  static Launcher prepare(const Gemm& gemm) { return prepare_problem(gemm); }
  static Variant variant(Variant given, bool has_source) {
    given.epilogues = {.alpha = has_source, .source = has_source, .biases = {}, .activations = {}};
    given.prepare_problem = prepare_problem;
    return complete_variant<kKernel, T, SourceLaunch>(given);
  }
};

}  // namespace gemm
