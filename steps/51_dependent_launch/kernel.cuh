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
#include "large_layers.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/graph.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/prefetch.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/workspace.h"

namespace gemm::step_51 {

inline constexpr int kLayers = 16;

// Lesson: a CTA takes less than half of an SM's shared memory. So each SM has room for one CTA of a layer and
// one of the next layer, and the second one has a ring of its own to fill while the first one multiplies.
struct Panel : Tiling<16, 32, 64, 1, 1, 2> {};  // what one warp multiplies: a swizzle span deep
template <int kW, int kA, int kCtas = 2>
struct TileOf {
  static constexpr int kM = Panel::kM;
  static constexpr int kN = Panel::kN;
  static constexpr int kPanels = 2;
  static constexpr int kK = kPanels * Panel::kK;
  static constexpr int kConsumers = 4;  // warps; they take k-tiles in turn
  static constexpr int kThreads = 32 * (kConsumers + 3);
  static constexpr int kWeightStages = kW;
  static constexpr int kActivationStages = kA;
  static constexpr int kCtasPerSm = kCtas;
};
template <int kRows>
struct alignas(1024) KTile {
  SwizzledTile<Panel, kRows> panel[2];  // [panel][row][k]
};

template <typename Tile>
struct Shared {
  Ring<Tile, Tile::kWeightStages, KTile<Tile::kN>> weights;
  Ring<Tile, Tile::kActivationStages, KTile<Tile::kM>> activations;
};

/// When a CTA lets the next layer start.
enum class Trigger { kAtOnce, kAhead, kAtExit };

/// What a variant does in the kernel.
template <typename T, int kLead = 4, int kWeightTiles = 6, bool kMapsEarly = true, int kL2 = 0,
          bool kWide = false, bool kWeightsEarly = true, Trigger kWhen = Trigger::kAhead>
struct Order {
  using Tile = T;
  static constexpr bool kMaps = kMapsEarly;
  static constexpr int kIntoL2 = kL2;
  static constexpr bool kPromote = kWide;
  static constexpr bool kPrefetch = kWeightsEarly;  // weights before the wait
  static constexpr Trigger kTrigger = kWhen;
  static constexpr int kAhead = kLead;            // k-tiles of weights that are not loaded yet at the trigger
  static constexpr int kInFlight = kWeightTiles;  // k-tiles of weights
};

/// The next k-tile of an operand, into the next stage of its ring.
template <typename Tile, typename Ring, typename State>
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
__device__ __forceinline__ void load_weights(Shared<typename How::Tile>& shared, const ptx::TensorMap* map,
                                             int column, int k_tiles) {
  using Tile = typename How::Tile;
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
    if (How::kIntoL2 > 0 && i == Tile::kWeightStages) {
      for (int j = i; j < std::min(k_tiles, i + How::kIntoL2); ++j) {
        const int tile = j - How::kInFlight;
        ptx::mbarrier_wait_parity(&ring.full[tile % Tile::kWeightStages], 0,
                                  {"producer", "full", tile % Tile::kWeightStages, tile});
        for (int panel = 0; panel < Tile::kPanels; ++panel)
          ptx::cp_async_bulk_prefetch_tensor_2d_l2(map, j * Tile::kK + panel * Panel::kK, column);
      }
    }
    load<Tile>(ring, fill, map, i, column);
  }
}

/// Loads the activations, which the layer before has written.
template <typename Tile>
__device__ __forceinline__ void load_activations(Shared<Tile>& shared, const ptx::TensorMap* map, int row,
                                                 int k_tiles) {
  PipelineState<Tile::kActivationStages> fill{0, 1};
  ptx::griddepcontrol_wait();
  for (int i = 0; i < k_tiles; ++i) load<Tile>(shared.activations, fill, map, i, row);
}

template <typename How>
__global__ void __launch_bounds__(How::Tile::kThreads, How::Tile::kCtasPerSm)
    layer_kernel(Gemm gemm, Layer layer, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap b_map) {
  using Tile = typename How::Tile;
  auto& shared = ptx::dynamic_shared<Shared<Tile>>();
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
    if constexpr (How::kMaps) {
      ptx::prefetch_tensormap(&b_map);
      ptx::prefetch_tensormap(&a_map);
    }
  }
  __syncthreads();

  if (warp == Tile::kConsumers) {
    if (ptx::elect_sync()) load_weights<How>(shared, &b_map, column, k_tiles);
  } else if (warp == Tile::kConsumers + 1) {
    if (ptx::elect_sync()) load_activations<Tile>(shared, &a_map, row, k_tiles);
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
    ptx::bar_sync(1, 32 * Tile::kConsumers);
    auto& sums = reinterpret_cast<WarpSums<Panel, Tile::kConsumers>&>(shared.weights.stage);
    static_assert(sizeof sums <= sizeof shared.weights.stage);
    sums.store(mine, gemm, row, column, layer.end, layer.scale);
  }
}

/// How the host starts the chain: as launches or as a graph, dependent or each behind the one before.
template <bool kGraph, bool kDependent, typename How>
struct Chain {
  using Tile = typename How::Tile;
  static int columns(const Shape& shape) {  // of a layer
    return ceil_div(ceil_div(shape.n, kLayers), Tile::kN) * Tile::kN;
  }
  static ptx::LaunchShape layer_shape(int m, int n) {
    const int ctas = n > 0 ? ceil_div(m, Tile::kM) * ceil_div(n, Tile::kN) : 1;  // without columns: hands on
    return {.grid = {static_cast<unsigned>(ctas)},
            .block = {Tile::kThreads},
            .shared_bytes = sizeof(Shared<Tile>)};
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // of all layers together
    return layer_shape(shape.m, kLayers * columns(shape));
  }
  static ptx::TensorMap map(const bf16* matrix, int rows, int k, int box_rows) {
    auto spec = ptx::matrix_spec(matrix, rows, k, box_rows, Panel::kK, ptx::Swizzle::k128B);
    if (How::kPromote) spec.l2_promotion = ptx::L2Promotion::k256B;
    return ptx::make_tensor_map(spec);
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

template <bool kGraph, bool kDependent, typename How>
Variant variant(const char* name, const char* summary) {
  using C = Chain<kGraph, kDependent, How>;
  using Tile = typename How::Tile;
  return complete_variant<layer_kernel<How>, Tile, C>({.name = name,
                                                       .summary = summary,
                                                       .stages = Tile::kWeightStages,
                                                       .traffic = mma_tile_traffic<Panel>(0),
                                                       .layers = kLayers});
}

using T104 = TileOf<10, 4>;
using T108 = TileOf<10, 8>;
using T124 = TileOf<12, 4>;
using T812 = TileOf<8, 12>;
using Big = TileOf<20, 8, 1>;
using Big16 = TileOf<16, 16, 1>;
using enum Trigger;

inline const Step kStep{
    .name = "51_dependent_launch",
    .title = "trial",
    .builds_on = "50_matrix_vector",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<true, true, Order<T104, 4, 6, false>>("pdl_prefetch", "as it is"),
                 variant<true, true, Order<T104>>("m_10_4", "maps"),
                 variant<true, true, Order<T108>>("m_10_8", "maps"),
                 variant<true, true, Order<T812, 4, 8>>("m_8_12_f8", ""),
                 variant<true, true, Order<T108, 8>>("m_10_8_t8", ""),
                 variant<true, true, Order<T108, 4, 6, true, 4>>("m_10_8_l4", "4 into the L2"),
                 variant<true, true, Order<T108, 6, 6, true, 6>>("m_10_8_t6_l6", "6 into the L2"),
                 variant<true, true, Order<T108, 4, 6, true, 0, true>>("m_10_8_w", "256 bytes"),
                 variant<true, true, Order<Big, 4, 12, true, 0, false, true, kAtOnce>>("one_20_8_f12",
                                                                                       "one CTA an SM"),
                 variant<true, true, Order<T104, 4, 6, false, 0, false, false>>("pdl_wait_first", "as it is"),
                 variant<true, true, Order<T108, 4, 6, true, 0, false, false>>("wait_first_m_10_8", ""),
                 variant<true, true, Order<T812, 4, 8, true, 0, false, false>>("wait_first_m_8_12_f8", ""),
                 variant<true, false, Order<T104, 4, 6, false>>("graph", "as it is"),
                 variant<true, false, Order<T108>>("graph_m_10_8", ""),
                 LargeChain<true, true, true>::variant("large_pdl", "a graph"),
                 LargeChain<true, true, false>::variant("large_pdl_exit", "a graph, trigger at exit"),
                 LargeChain<true, false, true>::variant("large_graph", "a graph")}};

}  // namespace gemm::step_51
