// What step 01 taught about starting a kernel: a CTA for every tile of D.
#pragma once

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"

namespace gemm {

/// Bytes of dynamic shared memory for a struct; void: none.
template <typename Shared>
inline constexpr int kSharedBytes = sizeof(Shared);
template <>
inline constexpr int kSharedBytes<void> = 0;

/// A CTA for every kM x kN tile of D: blockIdx.x counts tiles along N, blockIdx.y along M.
template <typename T>
ptx::Extent tile_ctas(const Shape& shape) {
  return {static_cast<unsigned>(ceil_div(shape.n, T::kN)), static_cast<unsigned>(ceil_div(shape.m, T::kM))};
}

/// The same with blockIdx.x alone, along M first: CTAs that read the same rows of B are neighbours.
template <typename T>
ptx::Extent tile_ctas_along_m(const Shape& shape) {
  return {static_cast<unsigned>(ceil_div(shape.m, T::kM) * ceil_div(shape.n, T::kN))};
}

/// Where the tile of such a CTA begins.
struct TileCorner {
  int row;
  int column;
};
template <typename T>
__device__ __forceinline__ TileCorner tile_along_m(int m) {
  const int rows_of_tiles = ceil_div(m, T::kM);
  return {static_cast<int>(blockIdx.x) % rows_of_tiles * T::kM,
          static_cast<int>(blockIdx.x) / rows_of_tiles * T::kN};
}

/// A variant of kKernel with tiles of T, started by Launch. Given are its name, summary, stages and traffic.
template <auto kKernel, typename T, typename Launch>
Variant complete_variant(Variant given) {
  given.tile = {T::kM, T::kN, T::kK};
  given.kernel = ptx::kernel_handle(kKernel);
  given.launch_shape = Launch::launch_shape;
  given.prepare = Launch::prepare;
  return given;
}

/// How the host starts kKernel(gemm), with a CTA of kThreads x kThreadRows threads for every tile of T.
template <auto kKernel, typename T, typename Shared, int kThreads = T::kThreads, int kThreadRows = 1>
struct TileLaunch {
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return {
        .grid = tile_ctas<T>(shape), .block = {kThreads, kThreadRows}, .shared_bytes = kSharedBytes<Shared>};
  }
  static Launcher prepare(const Gemm& gemm) {
    return [gemm](ptx::Stream stream) { ptx::launch(kKernel, launch_shape(gemm.shape), stream, gemm); };
  }
  static Variant variant(const Variant& given) { return complete_variant<kKernel, T, TileLaunch>(given); }
};

/// How the host starts kKernel(gemm) with tile_ctas_along_m. kReserved bytes of shared memory are not used:
/// they keep other CTAs from the SM.
template <auto kKernel, typename T, int kReserved>
struct AlongMLaunch {
  using Tile = T;
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return {.grid = tile_ctas_along_m<T>(shape), .block = {T::kThreads}, .shared_bytes = kReserved};
  }
  static Launcher prepare(const Gemm& gemm) {
    return [gemm](ptx::Stream stream) { ptx::launch(kKernel, launch_shape(gemm.shape), stream, gemm); };
  }
};

}  // namespace gemm
