// Step 51: a chain of layers whose launches overlap: weights before the wait, activations after it.
#pragma once

#include <algorithm>
#include <memory>

#include "gemm/epilogue/warp_sums.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/layer_chain.cuh"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/graph.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/workspace.h"

namespace gemm::step_51 {

inline constexpr int kLayers = 16;

// Lesson: a CTA takes less than half of an SM's shared memory. So each SM has room for one CTA of a layer and
// one of the next layer, and the second one has a ring of its own to fill while the first one multiplies.
struct Panel : Tiling<16, 32, 64, 1, 1, 2> {};  // what one warp multiplies: a swizzle span deep
struct Tile {
  static constexpr int kM = Panel::kM;
  static constexpr int kN = Panel::kN;
  static constexpr int kPanels = 2;
  static constexpr int kK = kPanels * Panel::kK;
  static constexpr int kConsumers = 4;  // warps; they take k-tiles in turn
  static constexpr int kThreads = 32 * (kConsumers + 3);
  static constexpr int kWeightStages = 10;
  static constexpr int kActivationStages = 4;
};
template <int kRows>
struct alignas(1024) KTile {
  SwizzledTile<Panel, kRows> panel[Tile::kPanels];  // [panel][row][k]
};

struct Shared {
  Ring<Tile, Tile::kWeightStages, KTile<Tile::kN>> weights;
  Ring<Tile, Tile::kActivationStages, KTile<Tile::kM>> activations;
  WarpSums<Panel, Tile::kConsumers> sums;
};

/// When a CTA lets the next layer start.
enum class Trigger { kAtOnce, kAhead, kAtExit };

/// What a variant does in the kernel.
template <bool kWeightsEarly = true, Trigger kWhen = Trigger::kAhead, int kWeightTiles = 6>
struct Order {
  static constexpr bool kPrefetch = kWeightsEarly;  // weights before the wait
  static constexpr Trigger kTrigger = kWhen;
  static constexpr int kAhead = 4;                // k-tiles of weights that are not loaded yet at the trigger
  static constexpr int kInFlight = kWeightTiles;  // k-tiles of weights
};

/// The next k-tile of an operand, into the next stage of its ring.
template <typename Ring, typename State>
__device__ __forceinline__ void load(Ring& ring, State& fill, const ptx::TensorMap* map, int i, int row) {
  ring.producer_acquire(fill, i);
  auto& tile = ring.stage[fill.stage];
  ptx::mbarrier_arrive_expect_tx(&ring.full[fill.stage], sizeof tile);
#pragma unroll
  for (int panel = 0; panel < Tile::kPanels; ++panel)
    ptx::cp_async_bulk_tensor_2d(tile.panel[panel].element, map, i * Tile::kK + panel * Panel::kK, row,
                                 &ring.full[fill.stage]);
  fill.advance();
}

/// Loads the CTA's weights. No launch writes them, so this thread does not wait for the layer before.
template <typename How>
__device__ __forceinline__ void load_weights(Shared& shared, const ptx::TensorMap* map, int column,
                                             int k_tiles) {
  auto& ring = shared.weights;
  PipelineState<Tile::kWeightStages> fill{0, 1};
  PipelineState<Tile::kWeightStages> landed{0, 0};
  if constexpr (!How::kPrefetch) ptx::griddepcontrol_wait();
  if constexpr (How::kTrigger == Trigger::kAtOnce) ptx::griddepcontrol_launch_dependents();
  for (int i = 0; i < k_tiles; ++i) {
    if (How::kTrigger == Trigger::kAhead && i == std::max(0, k_tiles - How::kAhead))
      ptx::griddepcontrol_launch_dependents();
    // Lesson: a full ring in flight is a long queue in front of the memory, and the last stores of the layer
    // before, its completion and the first activations stand in that queue, too.
    if (i >= How::kInFlight) {
      ring.consumer_wait(landed, i - How::kInFlight);
      landed.advance();
    }
    load(ring, fill, map, i, column);
  }
}

/// Loads the activations, which the layer before has written.
__device__ __forceinline__ void load_activations(Shared& shared, const ptx::TensorMap* map, int row,
                                                 int k_tiles) {
  PipelineState<Tile::kActivationStages> fill{0, 1};
  ptx::griddepcontrol_wait();
  for (int i = 0; i < k_tiles; ++i) load(shared.activations, fill, map, i, row);
}

template <typename How>
__global__ void __launch_bounds__(Tile::kThreads, Panel::kCtasPerSm)
    layer_kernel(Gemm gemm, Layer layer, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const auto [m, n, k] = gemm.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = warp_index();
  const int rows_of_tiles = ceil_div(m, Tile::kM);
  const int row = static_cast<int>(blockIdx.x) % rows_of_tiles * Tile::kM;
  const int column = layer.begin + static_cast<int>(blockIdx.x) / rows_of_tiles * Tile::kN;
  const int k_tiles = column < layer.end ? ceil_div(k, Tile::kK) : 0;  // a CTA without columns only hands on

  if (threadIdx.x == 0) {
    shared.weights.init(1);
    shared.activations.init(1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp == Tile::kConsumers) {
    if (ptx::elect_sync()) load_weights<How>(shared, &b_map, column, k_tiles);
  } else if (warp == Tile::kConsumers + 1) {
    if (ptx::elect_sync()) load_activations(shared, &a_map, row, k_tiles);
  } else if (warp > Tile::kConsumers) {
    ptx::griddepcontrol_wait();  // what it overwrites was read by the layer before
    hand_on(layer, offset(m, 0, k));
  } else {
    WarpTile<Panel> mine;
    mine.row = 0;
    PipelineState<Tile::kWeightStages> weights{0, 0};
    PipelineState<Tile::kActivationStages> activations{0, 0};
    weights.advance(warp);
    activations.advance(warp);
    for (int i = warp; i < k_tiles; i += Tile::kConsumers) {
      shared.weights.consumer_wait(weights, i);
      shared.activations.consumer_wait(activations, i);
#pragma unroll
      for (int panel = 0; panel < Tile::kPanels; ++panel)
        mine.multiply(shared.activations.stage[activations.stage].panel[panel],
                      shared.weights.stage[weights.stage].panel[panel]);
      __syncwarp();  // all lanes have read the stages
      if (lane == 0) {
        shared.weights.consumer_release(weights);
        shared.activations.consumer_release(activations);
      }
      weights.advance(Tile::kConsumers);
      activations.advance(Tile::kConsumers);
    }
    shared.sums.store(mine, gemm, row, column, layer.end, layer.scale);
  }
}

/// How the host starts the chain: as launches or as a graph, dependent or each behind the one before.
template <bool kGraph, bool kDependent, typename How>
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
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, rows, k, box_rows, Panel::kK, ptx::Swizzle::k128B));
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
      ptx::launch(layer_kernel<How>, shape, stream, gemm, layer, map(layer.a, m, k, Tile::kM), b_map);
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

template <bool kGraph, bool kDependent, typename How = Order<>>
Variant variant(const char* name, const char* summary) {
  using C = Chain<kGraph, kDependent, How>;
  return complete_variant<layer_kernel<How>, Tile, C>({.name = name,
                                                       .summary = summary,
                                                       .stages = Tile::kWeightStages,
                                                       .traffic = mma_tile_traffic<Panel>(0)});
}

inline const Step kStep{
    .name = "51_dependent_launch",
    .title = "launches that overlap: weights before the wait, activations after it",
    .builds_on = "50_matrix_vector",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm90a,
    .contract = {.k_multiple = 8},
    .variants = {variant<true, true>("pdl_prefetch", "a graph; weights before the wait"),
                 variant<true, true, Order<false>>("pdl_wait_first", "a graph; nothing before the wait"),
                 variant<true, true, Order<true, Trigger::kAtOnce>>("trigger_at_once",
                                                                    "dependents start with the layer"),
                 variant<true, true, Order<true, Trigger::kAtExit>>("trigger_at_exit",
                                                                    "dependents start when CTAs exit"),
                 variant<true, true, Order<true, Trigger::kAhead, Tile::kWeightStages>>(
                     "full_ring", "a whole ring of weights in flight"),
                 variant<true, false>("graph", "a graph in which each launch waits for the last"),
                 variant<false, true>("stream_pdl", "launches into a stream that overlap"),
                 variant<false, false>("stream", "launches into a stream, one behind the other")}};

}  // namespace gemm::step_51
