// How the host starts a persistent kernel whose operands may be of any type: a stage is a number of bytes,
// and the tensor maps know what they are.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// A tile of kM x kN whose k-tile is 128 bytes of K, whatever they are: where tiles in shared memory are
/// counted in bf16, 64 of them are a row.
template <int kTileM, int kTileN, int kGroups>
using ByteTiling = WgmmaTiling<kTileM, kTileN, 64, kGroups>;
inline constexpr int kRowBytes = 128;

/// What TMA is told of a type. 8 bits are 8 bits; a tf32 comes as the binary32 that it is in memory.
constexpr ptx::TensorElement tensor_element(Type type) {
  switch (type) {
    case Type::kBf16:
      return ptx::TensorElement::kBf16;
    case Type::kFp16:
      return ptx::TensorElement::kFloat16;
    case Type::kTf32:
    case Type::kFp32:
      return ptx::TensorElement::kFloat32;
    default:
      return ptx::TensorElement::kUint8;
  }
}

/// The map of a dense matrix, read or written in boxes of box_rows rows of 128 bytes, swizzled.
inline ptx::TensorMap typed_map(const void* matrix, Type type, int rows, int columns, int box_rows) {
  const int size = bytes_of(type);
  auto spec = ptx::matrix_spec(matrix, rows, columns, box_rows, kRowBytes / size, ptx::Swizzle::k128B);
  spec.element = tensor_element(type);
  spec.stride_bytes[1] = static_cast<std::uint64_t>(columns) * static_cast<std::uint64_t>(size);
  return ptx::make_tensor_map(spec);
}

/// How the host starts kKernel(shape, raster, scales, a_map, b_map, d_map), persistent, with tiles of T and
/// elements A, B and D.
template <auto kKernel, typename T, typename A, typename B, typename D, typename Shared, int kThreads,
          RasterOrder kOrder, int kGroup>
struct TypedLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>},
                                      ceil_div(shape.m, T::kM) * ceil_div(shape.n, T::kN));
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    return [shape = problem.shape, scales = problem.scales,
            a_map = typed_map(problem.a, kTypeOf<A>, m, k, T::kM),
            b_map = typed_map(problem.b, kTypeOf<B>, n, k, T::kN),
            d_map = typed_map(problem.d, kTypeOf<D>, m, n, 64),
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, Raster{kOrder, kGroup}, scales, a_map, b_map, d_map);
    };
  }
  static Launcher prepare(const Gemm& gemm) {
    if (!Types{kTypeOf<A>, kTypeOf<B>, kTypeOf<D>}.are_bf16())
      throw std::invalid_argument("this variant does not multiply bf16: it takes a Problem of its own types");
    return prepare_problem(gemm);
  }
  static Variant variant(Variant given) {
    given.types.a = kTypeOf<A>;
    given.types.b = kTypeOf<B>;
    given.types.d = kTypeOf<D>;
    given.prepare_problem = prepare_problem;
    given.traffic = wgmma_tile_traffic<T>();
    given.traffic.shared_bytes_per_fma *= sizeof(A) / 2.0;
    given.traffic.global_bytes_per_fma *= sizeof(A) / 2.0;
    given = complete_variant<kKernel, T, TypedLaunch>(given);
    given.tile.k = kRowBytes / static_cast<int>(sizeof(A));
    return given;
  }
};

}  // namespace gemm
