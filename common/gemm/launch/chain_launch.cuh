// How the host starts a chain of layers: as launches or as a graph, dependent or each behind the one before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/layer_chain.cuh"
#include "ptx/graph.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"
#include "ptx/workspace.h"

namespace gemm {

/// How the host starts kKernel(gemm, layer, a_map, b_map) for each of kLayers layers. Each computes as many
/// columns of D, in whole tiles of T, and has a CTA for each tile. The maps' boxes are panels of T.
template <auto kKernel, typename T, typename Shared, int kLayers, bool kGraph, bool kDependent>
struct ChainLaunch {
  static int columns(const Shape& shape) {  // of a layer
    return ceil_div(ceil_div(shape.n, kLayers), T::kN) * T::kN;
  }
  static ptx::LaunchShape layer_shape(int m, int n) {
    return {.grid = tile_ctas_along_m<T>({m, std::max(n, 1), 1}),  // without columns: hands on
            .block = {T::kThreads},
            .shared_bytes = kSharedBytes<Shared>};
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // of all layers together
    return layer_shape(shape.m, kLayers * columns(shape));
  }
  static ptx::TensorMap map(const bf16* matrix, int rows, int k, int box_rows) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, rows, k, box_rows, T::kPanelK, ptx::Swizzle::k128B));
  }

  static void launch_layers(const Gemm& gemm, bf16* activations, ptx::Stream stream) {
    const auto [m, n, k] = gemm.shape;
    const ptx::TensorMap b_map = map(gemm.b, n, k, T::kN);
    Layer layer{.a = gemm.a, .scale = 1};
    for (int i = 0; i < kLayers; ++i) {
      layer.next = i + 1 < kLayers ? activations + offset(i % 2 * m, 0, k) : nullptr;
      layer.begin = i * columns(gemm.shape);
      layer.end = std::min(n, layer.begin + columns(gemm.shape));
      ptx::LaunchShape shape = layer_shape(m, layer.end - layer.begin);
      shape.dependent = kDependent && i > 0;  // the first one waits for whatever came before
      ptx::launch(kKernel, shape, stream, gemm, layer, map(layer.a, m, k, T::kM), b_map);
      layer.a = layer.next;
      layer.scale /= 2;
    }
  }
  static Launcher prepare(const Gemm& gemm) {
    const auto bytes = static_cast<std::size_t>(2 * offset(gemm.shape.m, 0, gemm.shape.k)) * sizeof(bf16);
    return [gemm, workspace = std::make_shared<ptx::Workspace>(bytes),
            graph = std::make_shared<ptx::Graph>()](ptx::Stream stream) {
      const auto chain = [&gemm, memory = static_cast<bf16*>(workspace->of(stream))](ptx::Stream on) {
        launch_layers(gemm, memory, on);
      };
      kGraph ? graph->launch(stream, chain) : chain(stream);
    };
  }
  static Variant variant(Variant given) {
    given.layers = kLayers;
    return complete_variant<kKernel, T, ChainLaunch>(given);
  }
};

}  // namespace gemm
