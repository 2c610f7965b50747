// Step 57: a chain of layers in one launch: a queue in place of grids, counters in place of their boundaries.
#pragma once

#include "chain.cuh"
#include "gemm/epilogue/warp_sums.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/pipeline/panel_tile.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/layer_chain.cuh"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_57 {

// The tile, the rings and the roles are those of step 51.
struct Panel : Tiling<16, 32, 64, 1, 1, 2> {};  // what one warp multiplies: a swizzle span deep
struct Tile {
  static constexpr int kM = Panel::kM;
  static constexpr int kN = Panel::kN;
  static constexpr int kPanels = 2;
  static constexpr int kPanelK = Panel::kK;
  static constexpr int kK = kPanels * kPanelK;
  static constexpr int kConsumers = 4;  // warps; they take k-tiles in turn
  static constexpr int kReaders = kConsumers + 2;
  static constexpr int kThreads = 32 * (kConsumers + 3);
  static constexpr int kStages = 8;
  static constexpr int kTasks = 2;  // that the loader of weights is ahead of the others, at most
};

struct Shared {
  Ring<Tile, Tile::kStages, PanelTile<Panel, Tile::kPanels, Tile::kN>> weights;
  Ring<Tile, Tile::kStages, PanelTile<Panel, Tile::kPanels, Tile::kM>> activations;
  Ring<Tile, Tile::kTasks, int> tasks;  // their numbers, on the way to the other roles
  WarpSums<Panel, Tile::kConsumers> sums;
};

/// What a variant does in the kernel.
template <bool kDrawn = true, int kWeightTiles = -1>
struct Order {
  static constexpr bool kTickets = kDrawn;     // or each CTA has its tasks by its number
  static constexpr int kEarly = kWeightTiles;  // k-tiles of weights that are loaded before the wait; -1: all
};

// ANCHOR: weights
/// Takes the CTA's tasks, passes them on to the other roles and loads their weights.
template <typename How>
__device__ __forceinline__ void load_weights(Shared& shared, const Chain<Tile>& chain,
                                             const ptx::TensorMap* map) {
  PipelineState<Tile::kStages> fill{0, 1};
  PipelineState<Tile::kTasks> entry{0, 1};
  const auto take = [&](int turn) {
    if constexpr (How::kTickets) {
      return static_cast<int>(ptx::atom_add_relaxed_gpu(&chain.counters->tickets.value, 1));
    } else {
      return static_cast<int>(blockIdx.x + static_cast<unsigned>(turn) * gridDim.x);
    }
  };
  int next = take(0);
  for (int turn = 1;; ++turn) {
    const int number = next;
    shared.tasks.producer_acquire(entry, turn);
    ptx::st_shared(&shared.tasks.stage[entry.stage], number);
    ptx::mbarrier_arrive(&shared.tasks.full[entry.stage]);
    entry.advance();
    if (number >= chain.tasks()) return;
    next = take(turn);  // its latency passes while the weights of this task are loaded
    const Task task = chain.task(number);
    // Lesson: no task writes weights. So they fill the ring while other CTAs still compute the layer before.
    for (int i = 0; i < task.k_tiles; ++i) {
      if (i == How::kEarly) chain.wait_before(task.layer);
      load_next(shared.weights, fill, map, i, task.column);
    }
  }
}
// ANCHOR_END: weights

/// A role's place in the sequence of the CTA's tasks. kWhole: all lanes of a warp call it together.
template <bool kWhole>
struct TaskReader {
  PipelineState<Tile::kTasks> at{0, 0};

  /// The number of the next task; if it is no task's, there are no more.
  __device__ __forceinline__ int next(Shared& shared) {
    shared.tasks.consumer_wait(at, 0);
    const int number = ptx::ld_shared(&shared.tasks.stage[at.stage]);
    if constexpr (kWhole) __syncwarp();  // all lanes have read it
    if (!kWhole || threadIdx.x % 32 == 0) shared.tasks.consumer_release(at);
    at.advance();
    return number;
  }
};

// ANCHOR: activations
/// Loads the activations of the CTA's tasks, which other CTAs have written.
__device__ __forceinline__ void load_activations(Shared& shared, const Chain<Tile>& chain,
                                                 const ptx::TensorMap* first_map, const ptx::TensorMap* map) {
  PipelineState<Tile::kStages> fill{0, 1};
  TaskReader<false> reader;
  for (int number; (number = reader.next(shared)) < chain.tasks();) {
    const Task task = chain.task(number);
    chain.wait_before(task.layer);
    const auto* from = task.layer == 0 ? first_map : map;
    const int row = task.row + (task.layer == 0 ? 0 : chain.first_row(task.layer));
    for (int i = 0; i < task.k_tiles; ++i) load_next(shared.activations, fill, from, i, row);
  }
}

/// A warp hands on the tasks' shares of the activations.
__device__ __forceinline__ void hand_on_tasks(Shared& shared, const Chain<Tile>& chain) {
  const bool first_lane = threadIdx.x % 32 == 0;
  TaskReader<true> reader;
  for (int number; (number = reader.next(shared)) < chain.tasks();) {
    const Task task = chain.task(number);
    if (first_lane) chain.wait_before(task.layer);
    __syncwarp();
    hand_on(chain.layer(task.layer), offset(chain.gemm.shape.m, 0, chain.gemm.shape.k),
            static_cast<unsigned>(task.index), static_cast<unsigned>(chain.tasks_per_layer()));
    // Lesson: these are ordinary stores, and TMA will read what they wrote, for another CTA. A grid boundary
    // would take care of that; here each lane fences its stores, and one lane releases them.
    ptx::fence_proxy_async_global();
    __syncwarp();
    if (first_lane) chain.arrive(task.layer);
  }
}
// ANCHOR_END: activations

template <typename How>
__global__ void __launch_bounds__(Tile::kThreads, Panel::kCtasPerSm)
    chain_kernel(Chain<Tile> chain, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap activations_map,
                 const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    shared.weights.init(1);
    shared.activations.init(1);
    shared.tasks.init(Tile::kReaders);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp == Tile::kConsumers) {
    if (ptx::elect_sync()) load_weights<How>(shared, chain, &b_map);
  } else if (warp == Tile::kConsumers + 1) {
    if (ptx::elect_sync()) load_activations(shared, chain, &a_map, &activations_map);
  } else if (warp > Tile::kConsumers) {
    hand_on_tasks(shared, chain);
  } else {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    TaskReader<true> reader;
    PipelineState<Tile::kStages> read{0, 0};  // in both rings
    read.advance(warp);
    int i = warp;  // this warp's next k-tile, counted from the first one of the task
    // ANCHOR: consume
    for (int number; (number = reader.next(shared)) < chain.tasks();) {
      const Task task = chain.task(number);
      WarpTile<Panel> mine;
      mine.row = 0;
      for (; i < task.k_tiles; i += Tile::kConsumers) {
        shared.weights.consumer_wait(read, i);
        shared.activations.consumer_wait(read, i);
#pragma unroll
        for (int panel = 0; panel < Tile::kPanels; ++panel)
          mine.multiply(shared.activations.stage[read.stage].panel[panel],
                        shared.weights.stage[read.stage].panel[panel]);
        ptx::fence_proxy_async_shared_cta();
        __syncwarp();  // all lanes have read the stages
        if (lane == 0) {
          shared.weights.consumer_release(read);
          shared.activations.consumer_release(read);
        }
        read.advance(Tile::kConsumers);
      }
      i -= task.k_tiles;  // the rings go on where this task has ended
      const Layer layer = chain.layer(task.layer);
      shared.sums.store(mine, chain.gemm, task.row, task.column, layer.end, layer.scale);
      // Lesson: the next layer overwrites the activations that this task has read. So its own loads are part
      // of the layer, and it arrives as the last of them have been multiplied.
      ptx::bar_sync(1, 32 * Tile::kConsumers);
      if (threadIdx.x == 0) chain.arrive(task.layer);
    }
    // ANCHOR_END: consume
  }
  __syncthreads();
  if (threadIdx.x == 0) chain.leave();
}

template <typename How = Order<>, bool kCoResident = false>
Variant variant(const char* name, const char* summary) {
  return variant_of<chain_kernel<How>,
                    ChainCtas<Tile, Tile::kThreads, Shared, Panel::kCtasPerSm, kCoResident>>(
      {.name = name,
       .summary = summary,
       .stages = Tile::kStages,
       .traffic = mma_tile_traffic<Panel>(0),
       .layers = kLayers},
      chain_arguments<Tile>);
}

inline const Step kStep{
    .name = "57_megakernel",
    .title =
        "a chain of layers in one launch: a queue in place of grids, counters in place of their boundaries",
    .builds_on = "51_dependent_launch",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm90a,
    .contract = {.k_multiple = 8},
    .variants = {
        variant("queue", "tasks by ticket; weights fill the ring before the wait"),
        variant<Order<>, true>("queue_resident", "the same, in a cooperative launch"),
        variant<Order<false>, true>("fixed", "tasks by the CTA's number, in a cooperative launch"),
        variant<Order<true, 4>>("early_4", "tasks by ticket; four k-tiles of weights before the wait"),
        variant<Order<true, 0>>("wait_first", "tasks by ticket; nothing before the wait")}};

}  // namespace gemm::step_57
