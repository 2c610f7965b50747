// Step 51: a chain of layers whose launches overlap: weights before the wait, activations after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/row_lane.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/graph.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/memory.cuh"
#include "ptx/workspace.h"

namespace gemm::step_51 {

// Lesson: the chain stands for the layers of a model. Layer i multiplies its activations by its own weights,
// a sixteenth of the rows of B, and hands the activations on to layer i + 1. To make stale ones show, each
// layer doubles them; D is divided by the same power of two, which is exact.
inline constexpr int kLayers = 16;

struct Layer {
  const bf16* a;  // [m][k]: activations, written by the launch before
  bf16* next;     // [m][k]: for the launch behind, or nullptr
  int begin;      // columns of D, rows of B
  int end;
  float scale;  // of this layer's sums
};

enum class Trigger { kAtOnce, kBehindLoop, kAtExit };

/// A share of the activations, doubled.
template <typename T>
__device__ __forceinline__ void hand_on(const Layer& layer, std::int64_t vectors) {
  const auto all = static_cast<std::int64_t>(gridDim.x) * T::kThreads;
  for (auto i = static_cast<std::int64_t>(blockIdx.x) * T::kThreads + threadIdx.x; i < vectors; i += all) {
    const uint4 from = ptx::ld_global(reinterpret_cast<const uint4*>(layer.a) + i);
    const std::uint32_t words[4] = {from.x, from.y, from.z, from.w};
    std::uint32_t doubled[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      doubled[j] = ptx::cvt_rn_bf16x2_f32(2 * std::bit_cast<float>(words[j] << 16),
                                          2 * std::bit_cast<float>(words[j] & 0xffff0000u));
    ptx::st_global(reinterpret_cast<uint4*>(layer.next) + i,
                   uint4{doubled[0], doubled[1], doubled[2], doubled[3]});
  }
}

template <typename T, bool kPrefetch, Trigger kTrigger>
__global__ void __launch_bounds__(T::kThreads, T::kCtas) layer_kernel(Gemm gemm, Layer layer) {
  const auto [m, n, k] = gemm.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rows_of_tiles = ceil_div(m, T::kM);
  const int tile_row = static_cast<int>(blockIdx.x) % rows_of_tiles * T::kM;
  const int column = layer.begin + static_cast<int>(blockIdx.x) / rows_of_tiles * T::kN + warp * T::kRows;

  if constexpr (kTrigger == Trigger::kAtOnce) ptx::griddepcontrol_launch_dependents();
  RowLane<T> mine;
#pragma unroll
  for (int r = 0; r < T::kRows; ++r) mine.b[r] = gemm.b + offset(std::min(column + r, n - 1), 0, k);
  int k0 = column < layer.end ? lane * 8 : k;  // a warp without columns only hands on
  // Weights: no launch writes them.
  if constexpr (kPrefetch) mine.load(k0, k);
  ptx::griddepcontrol_wait();
  if constexpr (!kPrefetch) mine.load(k0, k);

  // Activations were written while this grid was perhaps already running: no ld.global.nc.
  const bf16* const a = layer.a + offset(tile_row, 0, k);
#pragma unroll 1
  while (k0 < k) {
    mine.multiply(a, m - tile_row, k0, k);
    k0 += T::kK;
    mine.load(k0, k);
  }
  if constexpr (kTrigger == Trigger::kBehindLoop) ptx::griddepcontrol_launch_dependents();
  if (layer.next != nullptr) hand_on<T>(layer, offset(m, 0, k) / 8);

#pragma unroll
  for (int i = 0; i < T::kM; ++i) {
#pragma unroll
    for (int r = 0; r < T::kRows; ++r) {
      const float sum = mine.sum(i, r) * layer.scale;
      if (lane == 0 && tile_row + i < m && column + r < layer.end)
        ptx::st_global(gemm.d + offset(tile_row + i, column + r, n), ptx::cvt_rn_bf16_f32(sum));
    }
  }
}

/// How the host starts the chain: as launches or as a graph, dependent or each behind the one before.
template <bool kGraph, bool kDependent, bool kPrefetch, Trigger kTrigger>
struct Chain {
  using One = RowTile<1, 2, 4>;
  using Eight = RowTile<8, 4, 1>;

  static int columns(const Shape& shape) {  // of a layer
    return ceil_div(ceil_div(shape.n, kLayers), Eight::kN) * Eight::kN;
  }
  template <typename T>
  static ptx::LaunchShape layer_shape(int m, int n) {
    const int ctas = n > 0 ? ceil_div(m, T::kM) * ceil_div(n, T::kN) : 1;  // without columns: hands on
    return {.grid = {static_cast<unsigned>(ctas)}, .block = {T::kThreads}};
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // of all layers together
    return layer_shape<One>(shape.m, kLayers * columns(shape));
  }

  template <typename T>
  static void launch_layers(const Gemm& gemm, bf16* activations, ptx::Stream stream) {
    const auto [m, n, k] = gemm.shape;
    Layer layer{.a = gemm.a, .scale = 1};
    for (int i = 0; i < kLayers; ++i) {
      layer.next = i + 1 < kLayers ? activations + offset(i % 2 * m, 0, k) : nullptr;
      layer.begin = i * columns(gemm.shape);
      layer.end = std::min(n, layer.begin + columns(gemm.shape));
      ptx::LaunchShape shape = layer_shape<T>(m, layer.end - layer.begin);
      shape.dependent = kDependent && i > 0;  // the first one waits for whatever came before
      ptx::launch(layer_kernel<T, kPrefetch, kTrigger>, shape, stream, gemm, layer);
      layer.a = layer.next;
      layer.scale /= 2;
    }
  }
  static Launcher prepare(const Gemm& gemm) {
    const auto bytes = static_cast<std::size_t>(2 * offset(gemm.shape.m, 0, gemm.shape.k)) * sizeof(bf16);
    return [gemm, workspace = std::make_shared<ptx::Workspace>(bytes),
            graph = std::make_shared<ptx::Graph>()](ptx::Stream stream) {
      const auto chain = [&gemm, memory = static_cast<bf16*>(workspace->of(stream))](ptx::Stream on) {
        gemm.shape.m == 1 ? launch_layers<One>(gemm, memory, on) : launch_layers<Eight>(gemm, memory, on);
      };
      kGraph ? graph->launch(stream, chain) : chain(stream);
    };
  }
};

template <bool kGraph, bool kDependent, bool kPrefetch, Trigger kTrigger>
Variant variant(const char* name, const char* summary) {
  using C = Chain<kGraph, kDependent, kPrefetch, kTrigger>;
  using T = typename C::One;
  return complete_variant<layer_kernel<T, kPrefetch, kTrigger>, T, C>(
      {.name = name,
       .summary = summary,
       .traffic = {.lsu_instructions_per_fma = (1 + 1.0 / T::kRows) / 8, .global_bytes_per_fma = 2}});
}

inline const Step kStep{
    .name = "51_dependent_launch",
    .title = "launches that overlap: weights before the wait, activations after it",
    .builds_on = "50_matrix_vector",
    .architecture = Architecture::kSm90a,
    .contract = {.k_multiple = 8},
    .variants = {
        variant<true, true, true, Trigger::kAtOnce>("pdl_prefetch", "a graph; weights before the wait"),
        variant<true, true, false, Trigger::kAtOnce>("pdl_wait_first", "a graph; nothing before the wait"),
        variant<true, true, true, Trigger::kBehindLoop>("trigger_late",
                                                        "dependents start behind the main loop"),
        variant<true, true, true, Trigger::kAtExit>("trigger_at_exit", "dependents start when CTAs exit"),
        variant<true, false, true, Trigger::kAtOnce>("graph",
                                                     "a graph in which each launch waits for the last"),
        variant<false, true, true, Trigger::kAtOnce>("stream_pdl", "launches into a stream that overlap"),
        variant<false, false, true, Trigger::kAtOnce>("stream",
                                                      "launches into a stream, one behind the other")}};

}  // namespace gemm::step_51
