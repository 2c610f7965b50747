// Step 57: a chain of layers in one launch: a queue in place of grids, counters in place of their boundaries.
#pragma once

#include "chain.cuh"
#include "gemm/epilogue/warp_sums.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/pipeline/panel_tile.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
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

// Lesson: the next layer needs no CTA of its own here, because a CTA that has loaded the weights of one task
// goes on with those of the next. So one CTA has an SM's shared memory, and its ring is as deep as that of
// two.
struct Panel : Tiling<16, 32, 64, 1, 1> {};  // what one warp multiplies: a swizzle span deep
template <int kDepth, int kCtas>
struct Tile {
  static constexpr int kM = Panel::kM;
  static constexpr int kN = Panel::kN;
  static constexpr int kPanels = 2;
  static constexpr int kPanelK = Panel::kK;
  static constexpr int kK = kPanels * kPanelK;
  static constexpr int kConsumers = 4;  // warps; they take k-tiles in turn
  static constexpr int kReaders = kConsumers + 2;
  static constexpr int kThreads = 32 * (kConsumers + 3);
  static constexpr int kStages = kDepth;
  static constexpr int kTasks = 2;  // that the loader of weights is ahead of the others, at most
  static constexpr int kCtasPerSm = kCtas;
};

template <typename T>
struct Shared {
  Ring<T, T::kStages, PanelTile<Panel, T::kPanels, T::kN>> weights;
  Ring<T, T::kStages, PanelTile<Panel, T::kPanels, T::kM>> activations;
  Ring<T, T::kTasks, int> tasks;  // their numbers, on the way to the other roles
  WarpSums<Panel, T::kConsumers> sums;
};

/// What a variant does in the kernel.
template <bool kDrawn = true, int kWeightTiles = -1>
struct Order {
  static constexpr bool kTickets = kDrawn;     // or each CTA has its tasks by its number
  static constexpr int kEarly = kWeightTiles;  // k-tiles of weights that are loaded before the wait; -1: all
};

// ANCHOR: weights
/// Takes the CTA's tasks, passes them on to the other roles and loads their weights.
template <typename T, typename How>
__device__ __forceinline__ void load_weights(Shared<T>& shared, const Chain<T>& chain,
                                             const ptx::TensorMap* map) {
  PipelineState<T::kStages> fill{0, 1};
  PipelineState<T::kTasks> entry{0, 1};
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
template <typename T, bool kWhole>
struct TaskReader {
  PipelineState<T::kTasks> at{0, 0};

  /// The number of the next task; if it is no task's, there are no more.
  __device__ __forceinline__ int next(Shared<T>& shared) {
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
template <typename T>
__device__ __forceinline__ void load_activations(Shared<T>& shared, const Chain<T>& chain,
                                                 const ptx::TensorMap* first_map, const ptx::TensorMap* map) {
  PipelineState<T::kStages> fill{0, 1};
  TaskReader<T, false> reader;
  for (int number; (number = reader.next(shared)) < chain.tasks();) {
    const Task task = chain.task(number);
    chain.wait_before(task.layer);
    const auto* from = task.layer == 0 ? first_map : map;
    const int row = task.row + (task.layer == 0 ? 0 : chain.first_row(task.layer));
    for (int i = 0; i < task.k_tiles; ++i) load_next(shared.activations, fill, from, i, row);
  }
}

/// A warp hands on the tasks' shares of the activations.
template <typename T>
__device__ __forceinline__ void hand_on_tasks(Shared<T>& shared, const Chain<T>& chain) {
  const bool first_lane = threadIdx.x % 32 == 0;
  TaskReader<T, true> reader;
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

template <typename T, typename How>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm)
    chain_kernel(Chain<T> chain, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap activations_map,
                 const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T>>();
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    shared.weights.init(1);
    shared.activations.init(1);
    shared.tasks.init(T::kReaders);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp == T::kConsumers) {
    if (ptx::elect_sync()) load_weights<T, How>(shared, chain, &b_map);
  } else if (warp == T::kConsumers + 1) {
    if (ptx::elect_sync()) load_activations(shared, chain, &a_map, &activations_map);
  } else if (warp > T::kConsumers) {
    hand_on_tasks(shared, chain);
  } else {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    TaskReader<T, true> reader;
    PipelineState<T::kStages> read{0, 0};  // in both rings
    read.advance(warp);
    int i = warp;  // this warp's next k-tile, counted from the first one of the task
    for (int number; (number = reader.next(shared)) < chain.tasks();) {
      const Task task = chain.task(number);
      WarpTile<Panel> mine;
      mine.row = 0;
      for (; i < task.k_tiles; i += T::kConsumers) {
        shared.weights.consumer_wait(read, i);
        shared.activations.consumer_wait(read, i);
#pragma unroll
        for (int panel = 0; panel < T::kPanels; ++panel)
          mine.multiply(shared.activations.stage[read.stage].panel[panel],
                        shared.weights.stage[read.stage].panel[panel]);
        ptx::fence_proxy_async_shared_cta();
        __syncwarp();  // all lanes have read the stages
        if (lane == 0) {
          shared.weights.consumer_release(read);
          shared.activations.consumer_release(read);
        }
        read.advance(T::kConsumers);
      }
      // ANCHOR: end_of_task
      i -= task.k_tiles;  // the rings go on where this task has ended
      const Layer layer = chain.layer(task.layer);
      shared.sums.store(mine, chain.gemm, task.row, task.column, layer.end, layer.scale);
      // Lesson: the next layer overwrites the activations that this task has read. So its own loads are part
      // of the layer, and it arrives as the last of them have been multiplied.
      ptx::bar_sync(1, 32 * T::kConsumers);
      if (threadIdx.x == 0) chain.arrive(task.layer);
      // ANCHOR_END: end_of_task
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) chain.leave();
}

using DeepRing = Tile<16, 1>;
using TwoRings = Tile<8, 2>;

template <typename T = DeepRing, typename How = Order<>, bool kCoResident = false>
Variant variant(const char* name, const char* summary) {
  return variant_of<chain_kernel<T, How>, ChainCtas<T, Shared<T>, kCoResident>>(
      {.name = name,
       .summary = summary,
       .stages = T::kStages,
       .traffic = mma_tile_traffic<Panel>(0),
       .layers = kLayers},
      kChainArguments<T>);
}

inline const Step kStep{
    .name = "57_megakernel",
    .title =
        "a chain of layers in one launch: a queue in place of grids, counters in place of their boundaries",
    .builds_on = "51_dependent_launch",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm90a,
    .contract = {.k_multiple = 8},
    .variants = {variant("queue", "tasks by ticket; weights fill the ring before the wait"),
                 variant<DeepRing, Order<>, true>("queue_resident", "the same, in a cooperative launch"),
                 variant<DeepRing, Order<false>, true>("fixed", "tasks by the CTA's number, cooperative"),
                 variant<DeepRing, Order<true, 0>>("wait_first", "tasks by ticket; nothing before the wait"),
                 variant<TwoRings>("two_ctas", "two CTAs for each SM, with half of the ring each")}};

}  // namespace gemm::step_57
