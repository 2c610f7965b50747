// How the host starts a chain of layers: as launches or as a graph, dependent or each after the one before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/layer_chain.cuh"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/graph.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_51 {

inline constexpr int kLayers = 16;

/// Starts kKernel(gemm, layer, a_map, b_map) for each layer. Each computes as many columns of D, in whole
/// tiles of T, and has a CTA for each tile.
template <auto kKernel, typename T, typename Shared, bool kGraph, bool kDependent>
struct Chain {
  static int columns(const Shape& shape) {  // per layer
    return ceil_div(ceil_div(shape.n, kLayers), T::kN) * T::kN;
  }
  static ptx::LaunchShape layer_shape(int m, int n) {  // a layer without columns hands on
    return TileCtasAlongM<T, sizeof(Shared)>::plan(nullptr, {m, std::max(n, 1), 1}).launch;
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // all layers together
    return layer_shape(shape.m, kLayers * columns(shape));
  }

  static void launch_layers(const Gemm& gemm, bf16* activations, ptx::Stream stream) {
    const auto [m, n, k] = gemm.shape;
    const ptx::TensorMap b_map = operand_map<T>(gemm.b, n, k, T::kN);
    Layer layer{.a = gemm.a, .scale = 1};
    // ANCHOR: launch_layers
    for (int i = 0; i < kLayers; ++i) {
      layer.next = i + 1 < kLayers ? activations + offset(i % 2 * m, 0, k) : nullptr;
      layer.begin = i * columns(gemm.shape);
      layer.end = std::min(n, layer.begin + columns(gemm.shape));
      ptx::LaunchShape shape = layer_shape(m, layer.end - layer.begin);
      shape.dependent = kDependent && i > 0;  // the first launch waits for all earlier work
      ptx::launch(kKernel, shape, stream, gemm, layer, operand_map<T>(layer.a, m, k, T::kM), b_map);
      // ANCHOR_END: launch_layers
      layer.a = layer.next;
      layer.scale /= 2;
    }
  }
  static Launcher prepare(const Gemm& gemm) {
    const std::int64_t bytes = 2 * offset(gemm.shape.m, 0, gemm.shape.k) * std::int64_t{sizeof(bf16)};
    return [gemm, memory = StreamMemory(bytes), graph = std::make_shared<ptx::Graph>()](ptx::Stream stream) {
      const auto chain = [&gemm, activations = static_cast<bf16*>(memory(stream))](ptx::Stream on) {
        launch_layers(gemm, activations, on);
      };
      kGraph ? graph->launch(stream, chain) : chain(stream);
    };
  }
};

}  // namespace gemm::step_51
