// Step 51: a chain of layers whose launches overlap: weights before the wait, activations after it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "gemm/launch/tile_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/graph.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
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

// Lesson: a CTA takes less than half of the SM's shared memory. So beside each CTA of a layer there is room
// for one of the next layer, with a ring of its own that it fills with weights.
template <int kInFlightTiles, int kLeadTiles, int kStagesW = 20>
struct Tile : Tiling<16, 32, 64, 1, 1, 2> {  // of one warp; the consumers take k-tiles in turn
  static constexpr int kConsumers = 4;
  static constexpr int kThreads = 32 * (kConsumers + 3);
  static constexpr int kWeightStages = kStagesW;
  static constexpr int kActivationStages = 8;
  static constexpr int kInFlight = kInFlightTiles;  // k-tiles of weights that are on their way
  static constexpr int kLead = kLeadTiles;          // k-tiles of weights behind the trigger
};

template <typename T>
struct alignas(1024) Weights : SwizzledTile<T, T::kN> {};
template <typename T>
struct alignas(1024) Activations : SwizzledTile<T, T::kM> {};

template <typename T>
struct Shared {
  Ring<T, T::kWeightStages, Weights<T>> weights;
  Ring<T, T::kActivationStages, Activations<T>> activations;
  float partials[T::kConsumers][T::kM][T::kN];  // [warp][m][n]
};

/// Loads this CTA's weights. They do not depend on the layer before, so this thread does not wait for it.
template <typename T, bool kPrefetch>
__device__ __forceinline__ void load_weights(Shared<T>& shared, const ptx::TensorMap* map, int column,
                                             int k_tiles) {
  auto& ring = shared.weights;
  PipelineState<T::kWeightStages> fill{0, 1};
  PipelineState<T::kWeightStages> landed{0, 0};
  if constexpr (!kPrefetch) ptx::griddepcontrol_wait();
  for (int i = 0; i < k_tiles; ++i) {
    ring.producer_acquire(fill, i);
    if (i >= T::kInFlight) {
      ptx::mbarrier_wait_parity(&ring.full[landed.stage], landed.phase,
                                {"producer", "full", landed.stage, i - T::kInFlight});
      landed.advance();
    }
    ptx::mbarrier_arrive_expect_tx(&ring.full[fill.stage], sizeof ring.stage[0]);
    ptx::cp_async_bulk_tensor_2d(ring.stage[fill.stage].element, map, i * T::kK, column,
                                 &ring.full[fill.stage]);
    fill.advance();
    if (i == std::max(0, k_tiles - 1 - T::kLead) && T::kLead >= 0) ptx::griddepcontrol_launch_dependents();
  }
}

/// Loads the activations, which the layer before has written.
template <typename T>
__device__ __forceinline__ void load_activations(Shared<T>& shared, const ptx::TensorMap* map, int row,
                                                 int k_tiles) {
  auto& ring = shared.activations;
  PipelineState<T::kActivationStages> fill{0, 1};
  ptx::griddepcontrol_wait();
  for (int i = 0; i < k_tiles; ++i) {
    ring.producer_acquire(fill, i);
    ptx::mbarrier_arrive_expect_tx(&ring.full[fill.stage], sizeof ring.stage[0]);
    ptx::cp_async_bulk_tensor_2d(ring.stage[fill.stage].element, map, i * T::kK, row, &ring.full[fill.stage]);
    fill.advance();
  }
}

/// The CTA's share of the activations, doubled, by one warp.
__device__ __forceinline__ void hand_on(const Layer& layer, std::int64_t vectors) {
  for (auto i = std::int64_t{blockIdx.x} * 32 + threadIdx.x % 32; i < vectors;
       i += std::int64_t{gridDim.x} * 32) {
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

template <typename T, bool kPrefetch>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm)
    layer_kernel(Gemm gemm, Layer layer, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T>>();
  const auto [m, n, k] = gemm.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = warp_index();
  const int rows_of_tiles = ceil_div(m, T::kM);
  const int row = static_cast<int>(blockIdx.x) % rows_of_tiles * T::kM;
  const int column = layer.begin + static_cast<int>(blockIdx.x) / rows_of_tiles * T::kN;
  const int k_tiles = column < layer.end ? ceil_div(k, T::kK) : 0;  // a CTA without columns only hands on

  if (threadIdx.x == 0) {
    shared.weights.init(1);
    shared.activations.init(1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp == T::kConsumers) {
    if (ptx::elect_sync()) load_weights<T, kPrefetch>(shared, &b_map, column, k_tiles);
  } else if (warp == T::kConsumers + 1) {
    if (ptx::elect_sync()) load_activations<T>(shared, &a_map, row, k_tiles);
  } else if (warp > T::kConsumers) {
    ptx::griddepcontrol_wait();  // what it overwrites was read by the layer before
    if (layer.next != nullptr) hand_on(layer, offset(m, 0, k) / 8);
  } else {
    WarpTile<T> mine;
    mine.row = 0;
    PipelineState<T::kWeightStages> weights{0, 0};
    PipelineState<T::kActivationStages> activations{0, 0};
    weights.advance(warp);
    activations.advance(warp);
    for (int i = warp; i < k_tiles; i += T::kConsumers) {
      shared.weights.consumer_wait(weights, i);
      shared.activations.consumer_wait(activations, i);
      mine.multiply(shared.activations.stage[activations.stage], shared.weights.stage[weights.stage]);
      __syncwarp();  // all lanes have read the stages
      if (lane == 0) {
        shared.weights.consumer_release(weights);
        shared.activations.consumer_release(activations);
      }
      weights.advance(T::kConsumers);
      activations.advance(T::kConsumers);
    }
#pragma unroll
    for (int f = 0; f < T::kFragmentsN; ++f) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        ptx::st_shared(
            reinterpret_cast<float2*>(&shared.partials[warp][half * 8 + lane / 4][f * 8 + lane % 4 * 2]),
            float2{mine.accumulators[0][f][2 * half], mine.accumulators[0][f][2 * half + 1]});
    }
    ptx::bar_sync(1, 32 * T::kConsumers);
    for (int i = static_cast<int>(threadIdx.x); i < T::kM * T::kN; i += 32 * T::kConsumers) {
      float sum = 0;
#pragma unroll
      for (auto& part : shared.partials) sum += ptx::ld_shared(&part[i / T::kN][i % T::kN]);
      const int d_row = row + i / T::kN;
      const int d_column = column + i % T::kN;
      if (d_row < m && d_column < layer.end)
        ptx::st_global(gemm.d + offset(d_row, d_column, n), ptx::cvt_rn_bf16_f32(sum * layer.scale));
    }
  }
}

/// How the host starts the chain: as launches or as a graph, dependent or each behind the one before.
template <typename T, bool kGraph, bool kDependent, bool kPrefetch>
struct Chain {
  static int columns(const Shape& shape) {  // of a layer
    return ceil_div(ceil_div(shape.n, kLayers), T::kN) * T::kN;
  }
  static ptx::LaunchShape layer_shape(int m, int n) {
    const int ctas = n > 0 ? ceil_div(m, T::kM) * ceil_div(n, T::kN) : 1;  // without columns: hands on
    return {.grid = {static_cast<unsigned>(ctas)}, .block = {T::kThreads}, .shared_bytes = sizeof(Shared<T>)};
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // of all layers together
    return layer_shape(shape.m, kLayers * columns(shape));
  }
  static ptx::TensorMap map(const bf16* matrix, int rows, int k, int box_rows) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, rows, k, box_rows, T::kK, ptx::Swizzle::k128B));
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
      ptx::launch(layer_kernel<T, kPrefetch>, shape, stream, gemm, layer, map(layer.a, m, k, T::kM),
                  b_map);
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
};

template <typename T, bool kGraph, bool kDependent, bool kPrefetch>
Variant variant(const char* name, const char* summary) {
  using C = Chain<T, kGraph, kDependent, kPrefetch>;
  return complete_variant<layer_kernel<T, kPrefetch>, T, C>(
      {.name = name, .summary = summary, .stages = T::kWeightStages, .traffic = mma_tile_traffic<T>(0)});
}

inline const Step kStep{
    .name = "51_dependent_launch",
    .title = "launches that overlap: weights before the wait, activations after it",
    .builds_on = "50_matrix_vector",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm90a,
    .contract = {.k_multiple = 8},
    .variants = {
        variant<Tile<12, 8>, true, true, true>("pdl_prefetch", "12, 8"),
        variant<Tile<12, 4>, true, true, true>("f12_4", "12 4"),
        variant<Tile<12, 16>, true, true, true>("f12_16", "12 16"),
        variant<Tile<12, 24>, true, true, true>("f12_24", "12 24"),
        variant<Tile<8, 8>, true, true, true>("f8_8", ""),
        variant<Tile<8, 16>, true, true, true>("f8_16", ""),
        variant<Tile<20, 8>, true, true, true>("f20_8", ""),
        variant<Tile<20, 0>, true, true, true>("f20_0", ""),
        variant<Tile<20, 16>, true, true, true>("f20_16", ""),
        variant<Tile<12, 1000>, true, true, true>("f12_at_once", ""),
        variant<Tile<12, 8>, true, true, false>("pdl_wait_first", "a graph; nothing before the wait"),
        variant<Tile<12, -1>, true, true, true>("trigger_at_exit", "dependents start when CTAs exit"),
        variant<Tile<12, 8>, true, false, true>("graph", "a graph in which each launch waits for the last"),
        variant<Tile<20, 8>, true, false, true>("graph_20", ""),
        variant<Tile<12, 8>, false, true, true>("stream_pdl", "launches into a stream that overlap"),
        variant<Tile<12, 8>, false, false, true>("stream", "launches into a stream, one behind the other")}};

}  // namespace gemm::step_51
