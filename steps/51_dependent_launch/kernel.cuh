// Step 51: a chain of layers whose launches overlap: weights before the wait, activations after it.
#pragma once

#include <algorithm>

#include "chain.cuh"
#include "gemm/epilogue/warp_sums.cuh"
#include "gemm/pipeline/panel_tile.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/layer_chain.cuh"
#include "gemm/schedule/tile_corner.cuh"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/launch.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_51 {

// Lesson: a CTA takes less than half of an SM's shared memory. So each SM has room for one CTA of a layer and
// one of the next layer, and the second one has a ring of its own to fill while the first one multiplies.
struct Panel : Tiling<16, 32, 64, 1, 1, 2> {};  // what one warp multiplies: a swizzle span deep
struct Tile {
  static constexpr int kM = Panel::kM;
  static constexpr int kN = Panel::kN;
  static constexpr int kPanels = 2;
  static constexpr int kPanelK = Panel::kK;
  static constexpr int kK = kPanels * kPanelK;
  static constexpr int kConsumers = 4;  // warps; they take k-tiles in turn
  static constexpr int kThreads = 32 * (kConsumers + 3);
  static constexpr int kStages = 8;
};

struct Shared {
  Ring<Tile, Tile::kStages, PanelTile<Panel, Tile::kPanels, Tile::kN>> weights;
  Ring<Tile, Tile::kStages, PanelTile<Panel, Tile::kPanels, Tile::kM>> activations;
  WarpSums<Panel, Tile::kConsumers> sums;
};

/// When a CTA lets the next layer start.
enum class Trigger { kAtOnce, kAhead, kAtExit };

/// What a variant does in the kernel.
template <int kWeightTiles = 4, Trigger kWhen = Trigger::kAhead>
struct Order {
  static constexpr int kEarly = kWeightTiles;  // k-tiles of weights that are loaded before the wait
  static constexpr Trigger kTrigger = kWhen;
  static constexpr int kAhead = 4;  // k-tiles of weights that are not loaded yet at the trigger
};

// ANCHOR: loads
/// Loads the CTA's weights. No launch writes them, so the first ones need not wait for the previous layer.
template <typename How>
__device__ __forceinline__ void load_weights(Shared& shared, const ptx::TensorMap* map, int column,
                                             int k_tiles) {
  PipelineState<Tile::kStages> fill{0, 1};
  if constexpr (How::kTrigger == Trigger::kAtOnce) ptx::griddepcontrol_launch_dependents();
  for (int i = 0; i < k_tiles; ++i) {
    if (How::kTrigger == Trigger::kAhead && i == std::max(0, k_tiles - How::kAhead))
      ptx::griddepcontrol_launch_dependents();
    // Lesson: a full ring in flight is a long queue for memory. The last stores of the previous layer, its
    // completion and the first activations have to wait in that queue as well.
    if (i == How::kEarly) ptx::griddepcontrol_wait();
    load_next(shared.weights, fill, map, i, column);
  }
}

/// Loads the activations, which the previous layer has written.
__device__ __forceinline__ void load_activations(Shared& shared, const ptx::TensorMap* map, int row,
                                                 int k_tiles) {
  PipelineState<Tile::kStages> fill{0, 1};
  ptx::griddepcontrol_wait();
  for (int i = 0; i < k_tiles; ++i) load_next(shared.activations, fill, map, i, row);
  // ANCHOR_END: loads
}

template <typename How>
__global__ void __launch_bounds__(Tile::kThreads, Panel::kCtasPerSm)
    layer_kernel(Gemm gemm, Layer layer, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const auto [m, n, k] = gemm.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = warp_index();
  const auto [row, first_column] = tile_along_m<Tile>(m);
  const int column = layer.begin + first_column;
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
    PipelineState<Tile::kStages> read{0, 0};  // in both rings
    read.advance(warp);
    for (int i = warp; i < k_tiles; i += Tile::kConsumers) {
      shared.weights.consumer_wait(read, i);
      shared.activations.consumer_wait(read, i);
#pragma unroll
      for (int panel = 0; panel < Tile::kPanels; ++panel)
        mine.multiply(shared.activations.stage[read.stage].panel[panel],
                      shared.weights.stage[read.stage].panel[panel]);
      // Lesson: the arrival may overtake a load that is under way; the next copy overwrites what it reads.
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();  // all lanes have read the stages
      if (lane == 0) {
        shared.weights.consumer_release(read);
        shared.activations.consumer_release(read);
      }
      read.advance(Tile::kConsumers);
    }
    shared.sums.store(mine, gemm, row, column, layer.end, layer.scale);
  }
}

template <bool kGraph, bool kDependent, typename How = Order<>>
Variant variant(const char* name, const char* summary) {
  using Layers = Chain<layer_kernel<How>, Tile, Shared, kGraph, kDependent>;
  return {.name = name,
          .summary = summary,
          .tile = {Tile::kM, Tile::kN, Tile::kK},
          .stages = Tile::kStages,
          .traffic = mma_tile_traffic<Panel>(0),
          .kernel = ptx::kernel_handle(layer_kernel<How>),
          .launch_shape = Layers::launch_shape,
          .prepare = Layers::prepare,
          .layers = kLayers};
}

inline const Step kStep{
    .name = "51_dependent_launch",
    .title = "launches that overlap: weights before the wait, activations after it",
    .builds_on = "50_matrix_vector",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm90a,
    .contract = {.k_multiple = 8},
    .variants = {
        variant<true, true>("pdl_prefetch", "a graph; weights before the wait"),
        variant<true, true, Order<0>>("pdl_wait_first", "a graph; nothing before the wait"),
        variant<true, true, Order<4, Trigger::kAtOnce>>("trigger_at_once", "dependents start with the layer"),
        variant<true, true, Order<4, Trigger::kAtExit>>("trigger_at_exit", "dependents start when CTAs exit"),
        variant<true, true, Order<Tile::kStages>>("full_ring", "a whole ring of weights before the wait"),
        variant<true, false>("graph", "a graph in which each launch waits for the last"),
        variant<false, true>("stream_pdl", "launches into a stream that overlap"),
        variant<false, false>("stream", "launches into a stream, one after the other")}};

}  // namespace gemm::step_51
