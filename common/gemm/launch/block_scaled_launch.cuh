// How the host starts a persistent kernel whose operands have scales of blocks.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "gemm/epilogue/typed_store.cuh"
#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/launch/typed_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/raster.h"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// Scales of B, one for 128 x 128 elements, in device memory.
struct BlockScales {
  const float* values;  // [n / 128][pitch], k / 128
  std::int64_t pitch;
  int n;

  /// The scales of row `row` of B, [k / 128]. A tile may hang over N, where there are none.
  __device__ __forceinline__ const float* row_scales(int row) const {
    return values + (row < n ? row : n - 1) / kScaleBlock * pitch;
  }
};

/// How the host starts kKernel(shape, scales, scale_map, a_map, b_map, d_map, edge_map), persistent, with
/// tiles of T and elements A, B and D of 8, 8 and any bits.
template <auto kKernel, typename T, typename A, typename B, typename D, typename Shared, int kThreads>
struct BlockScaledLaunch {
  static_assert(sizeof(A) == 1 && sizeof(B) == 1, "a k-tile of 128 bytes is a block of 128 elements");

  /// The map of A's scales, read in boxes of those of a tile's rows and one block of K. What lies behind M is
  /// no part of the tensor, so that TMA fills it with zeros: there it would be multiplied by zeros.
  static ptx::TensorMap scale_map(const Problem& problem) {
    ptx::TensorMapSpec spec;
    spec.base = problem.scales_a;
    spec.element = ptx::TensorElement::kFloat32;
    spec.rank = 2;
    spec.extent = {static_cast<std::uint64_t>(problem.shape.m),
                   static_cast<std::uint64_t>(ceil_div(problem.shape.k, kScaleBlock))};
    spec.stride_bytes = {0, static_cast<std::uint64_t>(problem.scales_a_pitch) * sizeof(float)};
    spec.box = {T::kM, 1};
    return ptx::make_tensor_map(spec);
  }

  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>},
                                      tile_grid<T>(shape).count());
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    return [shape = problem.shape, scales = BlockScales{problem.scales_b, problem.scales_b_pitch, n},
            scales_of_a = scale_map(problem), a_map = typed_map(problem.a, kTypeOf<A>, m, k, T::kM),
            b_map = typed_map(problem.b, kTypeOf<B>, n, k, T::kN),
            d_map = typed_tile_map<D, T::kN>(problem.d, m, n),
            edge_map = typed_map(problem.d, kTypeOf<D>, m, n, 64),
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, scales, scales_of_a, a_map, b_map, d_map, edge_map);
    };
  }
  static Launcher prepare(const Gemm&) {
    throw std::invalid_argument("this variant multiplies blocks with scales: it takes a Problem with them");
  }
  static Variant variant(Variant given) {
    given.types.a = kTypeOf<A>;
    given.types.b = kTypeOf<B>;
    given.types.d = kTypeOf<D>;
    given.types.scaling = Scaling::kBlocks;
    given.prepare_problem = prepare_problem;
    given.traffic = wgmma_tile_traffic<T>();
    given.traffic.shared_bytes_per_fma /= 2;
    given.traffic.global_bytes_per_fma /= 2;
    given = complete_variant<kKernel, T, BlockScaledLaunch>(given);
    given.tile.k = kRowBytes;
    return given;
  }
};

}  // namespace gemm
