// How the host starts a kernel that multiplies packed weights by activations, with the operands exchanged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/typed_launch.cuh"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/weights.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/partials.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/weight_tile.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"
#include "ptx/workspace.h"

namespace gemm {

/// Rows of 256 bytes, of which packed weights are made where TMA is concerned.
inline constexpr int kWeightLine = 256;

/// The map of packed weights [n][k]: a box is what a tile of `rows` rows has of 64 of K.
inline ptx::TensorMap weight_map(const void* weights, Type type, int n, int k, int rows) {
  const int lines = weight_block_bytes(type) / kWeightLine;
  auto spec = ptx::matrix_spec(weights, n / kWeightRows * (k / kWeightK) * lines, kWeightLine,
                               rows / kWeightRows * lines, kWeightLine, ptx::Swizzle::kNone);
  spec.element = ptx::TensorElement::kUint8;
  spec.stride_bytes[1] = kWeightLine;
  return ptx::make_tensor_map(spec);
}

/// The same for boxes of a group: `panels` times 64 of K.
inline ptx::TensorMap weight_group_map(const void* weights, Type type, int n, int k, int rows, int panels) {
  const auto lines = static_cast<unsigned>(weight_block_bytes(type) / kWeightLine);
  const unsigned all_lines = static_cast<unsigned>(n / kWeightRows) * lines;
  return ptx::make_tensor_map(
      {.base = weights,
       .element = ptx::TensorElement::kUint8,
       .rank = 3,
       .extent = {kWeightLine, all_lines, static_cast<unsigned>(k / kWeightK)},
       .stride_bytes = {0, kWeightLine, std::uint64_t{all_lines} * kWeightLine},
       .box = {kWeightLine, static_cast<unsigned>(rows / kWeightRows) * lines, static_cast<unsigned>(panels)},
       .l2_promotion = ptx::L2Promotion::k256B});
}

/// The map of activations [m][k] in boxes of `rows` rows and `panels` times 64 of K, each a swizzled tile.
inline ptx::TensorMap panel_map(const void* activations, int m, int k, int rows, int panels) {
  constexpr unsigned kPanelK = 64;
  return ptx::make_tensor_map(
      {.base = activations,
       .element = ptx::TensorElement::kBf16,
       .rank = 3,
       .extent = {kPanelK, static_cast<unsigned>(m), static_cast<unsigned>(k) / kPanelK},
       .stride_bytes = {0, std::uint64_t{2} * static_cast<unsigned>(k), 2 * kPanelK},
       .box = {kPanelK, static_cast<unsigned>(rows), static_cast<unsigned>(panels)},
       .swizzle = ptx::Swizzle::k128B});
}

/// The map of scales [k / group][n], read in boxes of a group and `rows` rows.
inline ptx::TensorMap scale_map(const bf16* scales, int n, int groups, int rows) {
  return ptx::make_tensor_map(ptx::matrix_spec(scales, groups, n, 1, rows, ptx::Swizzle::kNone));
}

/// The shape with the operands exchanged: rows of weights first.
constexpr Shape exchanged(const Shape& shape) {
  return {shape.n, shape.m, shape.k};
}

/// What a Launch of packed weights answers to a problem that has none.
inline Launcher prepare_weights(const Gemm&) {
  throw std::invalid_argument("this variant multiplies packed weights: it takes a Problem with their scales");
}

/// A variant of kKernel with tiles of T and a scale for each `group` elements of K, started by Launch.
template <auto kKernel, typename T, typename Launch>
Variant complete_weight_variant(Variant given, int group) {
  constexpr Type kWeight = kTypeOf<typename T::Weight>;
  given.types.b = kWeight;
  given.types.group = group;
  const double weight_bytes = bits_of(kWeight) / 8.0 + 2.0 / group;
  const double bytes = weight_bytes / T::kN + 2.0 / T::kM;
  // Weights are read from shared memory once, activations once for every 64 rows of weights.
  given.traffic = {.shared_bytes_per_fma = bytes + weight_bytes / T::kN + 2.0 / 64,
                   .global_bytes_per_fma = bytes};
  given = complete_variant<kKernel, T, Launch>(given);
  given.tile = {T::kN, T::kM, group};
  return given;
}

/// How the host starts kKernel(shape, raster, decomposition, workspace, w_map, x_map, s_map, d_map), where
/// the shape is exchanged() and a k-tile of the decomposition is a group.
template <auto kKernel, typename T, typename Shared, int kThreads, Split kSplit>
struct WeightLaunch {
  static constexpr Type kWeight = kTypeOf<typename T::Weight>;

  static ptx::LaunchShape launch_shape(const Shape& shape) {
    const int tiles = tile_grid<T>(exchanged(shape)).count();
    return persistent_launch<kKernel>(
        {.block = {kThreads},
         .shared_bytes = kSharedBytes<Shared>,
         .co_resident = true,
         .ctas_per_sm = T::kCtasPerSm},
        kSplit == Split::kDataParallel ? tiles : tiles * (shape.k / T::kScaleGroup));
  }
  static Decomposition plan(const Shape& shape) {
    const auto workers = static_cast<int>(launch_shape(shape).grid.x);
    const int tiles = tile_grid<T>(exchanged(shape)).count();
    // Of kSplitK: as many parts of each tile as make one wave, all of them at work at the same time.
    return decompose(kSplit, tiles, shape.k / T::kScaleGroup, workers, std::max(1, workers / tiles));
  }
  static std::int64_t workspace_bytes(const Shape& shape) {
    return static_cast<std::int64_t>(plan(shape).slots()) *
           static_cast<std::int64_t>(Partials<T>::kBytesPerSlot);
  }
  static double busiest_tiles(const Shape& shape) {
    return busiest_k_tiles(plan(shape)) / ceil_div(shape.k, T::kScaleGroup);
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    return
        [shape = exchanged(problem.shape), w_map = weight_map(problem.b, kWeight, n, k, T::kM),
         x_map = typed_map(problem.a, Type::kBf16, m, k, T::kN),
         s_map = scale_map(problem.group_scales, n, k / T::kScaleGroup, T::kM),
         d_map = typed_map(problem.d, Type::kBf16, m, n, std::min(T::kN, 64)),
         launch = launch_shape(problem.shape), decomposition = plan(problem.shape),
         workspace = std::make_shared<ptx::Workspace>(workspace_bytes(problem.shape))](ptx::Stream stream) {
          ptx::launch(kKernel, launch, stream, shape, Raster{RasterOrder::kGrouped, 16}, decomposition,
                      workspace->of(stream), w_map, x_map, s_map, d_map);
        };
  }
  static Launcher prepare(const Gemm& gemm) { return prepare_weights(gemm); }
  static Variant variant(Variant given) {
    given.prepare_problem = prepare_problem;
    given.workspace_bytes = workspace_bytes;
    given.busiest_tiles = busiest_tiles;
    return complete_weight_variant<kKernel, T, WeightLaunch>(given, T::kScaleGroup);
  }
};

}  // namespace gemm
