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

enum class Trigger { kAtOnce, kBehindLoads, kAtExit };

// Lesson: a CTA takes less than half of the SM's shared memory. So beside each CTA of a layer there is room
// for one of the next layer, with a ring of its own that it fills with weights.
struct Tile : Tiling<16, 32, 64, 1, 1, 2> {  // of one warp; the consumers take k-tiles in turn
  static constexpr int kStages = 16;
  static constexpr int kConsumers = 4;
  static constexpr int kThreads = 32 * (kConsumers + 2);  // the producer, and the warp that hands on
};
struct alignas(1024) Stage : OperandTiles<Tile> {};

struct Shared {
  Ring<Tile, Tile::kStages, Stage> ring;
  float partials[Tile::kConsumers][Tile::kM][Tile::kN];  // [warp][m][n]
};

/// Weights of the first k-tiles before the wait, activations after it; then both.
template <bool kPrefetch, Trigger kTrigger>
__device__ __forceinline__ void produce(Shared& shared, const ptx::TensorMap* a_map,
                                        const ptx::TensorMap* b_map, int row, int column, int k_tiles) {
  auto& ring = shared.ring;
  const auto load_weights = [&](int stage, int i) {
    ptx::mbarrier_arrive_expect_tx(&ring.full[stage], sizeof(Stage));
    ptx::cp_async_bulk_tensor_2d(ring.stage[stage].b.element, b_map, i * Tile::kK, column, &ring.full[stage]);
  };
  const auto load_activations = [&](int stage, int i) {
    ptx::cp_async_bulk_tensor_2d(ring.stage[stage].a.element, a_map, i * Tile::kK, row, &ring.full[stage]);
  };
  const int early = kPrefetch ? std::min(int{Tile::kStages}, k_tiles) : 0;
  for (int i = 0; i < early; ++i) load_weights(i, i);
  ptx::griddepcontrol_wait();
  for (int i = 0; i < early; ++i) load_activations(i, i);
  PipelineState<Tile::kStages> fill{0, 1};
  fill.advance(early);
  for (int i = early; i < k_tiles; ++i) {
    ring.producer_acquire(fill, i);
    load_weights(fill.stage, i);
    load_activations(fill.stage, i);
    fill.advance();
  }
  // Lesson: the next layer's first loads queue behind this layer's last ones, and keep the memory busy where
  // one layer ends and the other begins.
  if constexpr (kTrigger == Trigger::kBehindLoads) ptx::griddepcontrol_launch_dependents();
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

template <bool kPrefetch, Trigger kTrigger>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kCtasPerSm)
    layer_kernel(Gemm gemm, Layer layer, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared>();
  auto& ring = shared.ring;
  const auto [m, n, k] = gemm.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = warp_index();
  const int rows_of_tiles = ceil_div(m, Tile::kM);
  const int row = static_cast<int>(blockIdx.x) % rows_of_tiles * Tile::kM;
  const int column = layer.begin + static_cast<int>(blockIdx.x) / rows_of_tiles * Tile::kN;
  const int k_tiles = column < layer.end ? ceil_div(k, Tile::kK) : 0;  // a CTA without columns only hands on

  if constexpr (kTrigger == Trigger::kAtOnce) ptx::griddepcontrol_launch_dependents();
  if (threadIdx.x == 0) {
    ring.init(1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp == Tile::kConsumers) {
    if (ptx::elect_sync()) produce<kPrefetch, kTrigger>(shared, &a_map, &b_map, row, column, k_tiles);
  } else if (warp > Tile::kConsumers) {
    ptx::griddepcontrol_wait();  // what it overwrites was read by the layer before
    if (layer.next != nullptr) hand_on(layer, offset(m, 0, k) / 8);
  } else {
    WarpTile<Tile> mine;
    mine.row = 0;
    PipelineState<Tile::kStages> read{0, 0};
    read.advance(warp);
    for (int i = warp; i < k_tiles; i += Tile::kConsumers) {
      ring.consumer_wait(read, i);
      mine.multiply(ring.stage[read.stage]);
      __syncwarp();  // all lanes have read the stage
      if (lane == 0) ring.consumer_release(read);
      read.advance(Tile::kConsumers);
    }
#pragma unroll
    for (int f = 0; f < Tile::kFragmentsN; ++f) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        ptx::st_shared(
            reinterpret_cast<float2*>(&shared.partials[warp][half * 8 + lane / 4][f * 8 + lane % 4 * 2]),
            float2{mine.accumulators[0][f][2 * half], mine.accumulators[0][f][2 * half + 1]});
    }
    ptx::bar_sync(1, 32 * Tile::kConsumers);
    for (int i = static_cast<int>(threadIdx.x); i < Tile::kM * Tile::kN; i += 32 * Tile::kConsumers) {
      float sum = 0;
#pragma unroll
      for (auto& part : shared.partials) sum += ptx::ld_shared(&part[i / Tile::kN][i % Tile::kN]);
      const int d_row = row + i / Tile::kN;
      const int d_column = column + i % Tile::kN;
      if (d_row < m && d_column < layer.end)
        ptx::st_global(gemm.d + offset(d_row, d_column, n), ptx::cvt_rn_bf16_f32(sum * layer.scale));
    }
  }
}

/// How the host starts the chain: as launches or as a graph, dependent or each behind the one before.
template <bool kGraph, bool kDependent, bool kPrefetch, Trigger kTrigger>
struct Chain {
  static int columns(const Shape& shape) {  // of a layer
    return ceil_div(ceil_div(shape.n, kLayers), Tile::kN) * Tile::kN;
  }
  static ptx::LaunchShape layer_shape(int m, int n) {
    const int ctas = n > 0 ? ceil_div(m, Tile::kM) * ceil_div(n, Tile::kN) : 1;  // without columns: hands on
    return {.grid = {static_cast<unsigned>(ctas)}, .block = {Tile::kThreads}, .shared_bytes = sizeof(Shared)};
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // of all layers together
    return layer_shape(shape.m, kLayers * columns(shape));
  }
  static ptx::TensorMap map(const bf16* matrix, int rows, int k, int box_rows) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, rows, k, box_rows, Tile::kK, ptx::Swizzle::k128B));
  }

  static void launch_layers(const Gemm& gemm, bf16* activations, ptx::Stream stream) {
    const auto [m, n, k] = gemm.shape;
    const ptx::TensorMap b_map = map(gemm.b, n, k, Tile::kN);
    Layer layer{.a = gemm.a, .scale = 1};
    for (int i = 0; i < kLayers; ++i) {
      layer.next = i + 1 < kLayers ? activations + offset(i % 2 * m, 0, k) : nullptr;
      layer.begin = i * columns(gemm.shape);
      layer.end = std::min(n, layer.begin + columns(gemm.shape));
      ptx::LaunchShape shape = layer_shape(m, layer.end - layer.begin);
      shape.dependent = kDependent && i > 0;  // the first one waits for whatever came before
      ptx::launch(layer_kernel<kPrefetch, kTrigger>, shape, stream, gemm, layer, map(layer.a, m, k, Tile::kM),
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

template <bool kGraph, bool kDependent, bool kPrefetch, Trigger kTrigger>
Variant variant(const char* name, const char* summary) {
  using C = Chain<kGraph, kDependent, kPrefetch, kTrigger>;
  return complete_variant<layer_kernel<kPrefetch, kTrigger>, Tile, C>(
      {.name = name, .summary = summary, .stages = Tile::kStages, .traffic = mma_tile_traffic<Tile>(0)});
}

inline const Step kStep{
    .name = "51_dependent_launch",
    .title = "launches that overlap: weights before the wait, activations after it",
    .builds_on = "50_matrix_vector",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm90a,
    .contract = {.k_multiple = 8},
    .variants = {
        variant<true, true, true, Trigger::kBehindLoads>("pdl_prefetch", "a graph; weights before the wait"),
        variant<true, true, false, Trigger::kBehindLoads>("pdl_wait_first",
                                                          "a graph; nothing before the wait"),
        variant<true, true, true, Trigger::kAtOnce>("trigger_at_once", "dependents start with the layer"),
        variant<true, true, true, Trigger::kAtExit>("trigger_at_exit", "dependents start when CTAs exit"),
        variant<true, false, true, Trigger::kBehindLoads>("graph",
                                                          "a graph in which each launch waits for the last"),
        variant<false, true, true, Trigger::kBehindLoads>("stream_pdl",
                                                          "launches into a stream that overlap"),
        variant<false, false, true, Trigger::kBehindLoads>("stream",
                                                           "launches into a stream, one behind the other")}};

}  // namespace gemm::step_51
