// How the host starts a persistent kernel whose 16-bit operands lie either way round.
#pragma once

#include <stdexcept>

#include "gemm/launch/typed_launch.cuh"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// The map of an operand of `rows` rows. K-major, [rows][k]: read in boxes of box_rows rows of 64 elements of
/// K. MN-major, [k][rows]: the innermost dimension is that of the rows, and a box of 128 bytes holds 64 of
/// them, for 64 of K.
inline ptx::TensorMap layout_map(const void* matrix, Type type, Major major, int rows, int k, int box_rows) {
  return major == Major::kK ? typed_map(matrix, type, rows, k, box_rows)
                            : typed_map(matrix, type, k, rows, 64);
}

/// How the host starts kKernel(shape, raster, a_map, b_map, d_map), persistent, with tiles of T and operands
/// and D of E, which has 16 bits.
template <auto kKernel, typename T, typename E, Major kMajorA, Major kMajorB, typename Shared, int kThreads,
          RasterOrder kOrder, int kGroup>
struct LayoutLaunch {
  static constexpr Types kTypes{kTypeOf<E>, kTypeOf<E>, kTypeOf<E>, kMajorA, kMajorB};

  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>},
                                      ceil_div(shape.m, T::kM) * ceil_div(shape.n, T::kN));
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    return [shape = problem.shape, a_map = layout_map(problem.a, kTypes.a, kMajorA, m, k, T::kM),
            b_map = layout_map(problem.b, kTypes.b, kMajorB, n, k, T::kN),
            d_map = typed_map(problem.d, kTypes.d, m, n, 64),
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, Raster{kOrder, kGroup}, a_map, b_map, d_map);
    };
  }
  static Launcher prepare(const Gemm& gemm) {
    if (!kTypes.are_bf16())
      throw std::invalid_argument(
          "this variant does not multiply K-major bf16: it takes a Problem of its own types");
    return prepare_problem(gemm);
  }
  static Variant variant(Variant given) {
    given.types = kTypes;
    given.prepare_problem = prepare_problem;
    given.traffic = wgmma_tile_traffic<T>();
    return complete_variant<kKernel, T, LayoutLaunch>(given);
  }
};

}  // namespace gemm
