// The tasks of a chain of layers, the counters by which they wait for each other, and the host's part.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/schedule/layer_chain.cuh"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_57 {

inline constexpr int kLayers = 16;

/// In sectors of its own, so that threads that poll one counter do not delay another.
struct alignas(64) Counter {
  std::uint32_t value;
};
/// In global memory; all are zero between launches.
struct Counters {
  Counter tickets;           // tasks that CTAs have taken
  Counter arrived[kLayers];  // parts of the layer's tasks that are complete: two for each task
  Counter left;              // CTAs that need no counter any more
};

/// A tile of the columns of D that one layer computes, and a share of the activations that it hands on.
struct Task {
  int layer;
  int index;  // in the layer
  int row;    // in D
  int column;
  int k_tiles;  // 0: it only hands on
};

/// Each of kLayers layers computes as many columns of D, in whole tiles. Tasks are numbered layer after
/// layer.
template <typename T>
struct Chain {
  Gemm gemm;
  int columns;        // per layer
  bf16* activations;  // [2][padded_rows()][k]
  Counters* counters;

  static int columns_of(const Shape& shape) { return ceil_div(ceil_div(shape.n, kLayers), T::kN) * T::kN; }
  /// TMA must not read rows of the other buffer: the last tile of each ends with rows of its own.
  __host__ __device__ static int padded_rows(int m) { return ceil_div(m, T::kM) * T::kM; }
  __host__ __device__ static int tasks_per_layer(int m, int columns) {
    return ceil_div(m, T::kM) * (columns / T::kN);
  }

  __device__ __forceinline__ int tasks_per_layer() const { return tasks_per_layer(gemm.shape.m, columns); }
  __device__ __forceinline__ int tasks() const { return kLayers * tasks_per_layer(); }

  __device__ __forceinline__ Task task(int number) const {
    const int tiles_m = ceil_div(gemm.shape.m, T::kM);
    const int layer = number / tasks_per_layer();
    const int index = number - layer * tasks_per_layer();
    const int column = layer * columns + index / tiles_m * T::kN;
    const int k_tiles = column < end_of(layer) ? ceil_div(gemm.shape.k, T::kK) : 0;
    return {layer, index, index % tiles_m * T::kM, column, k_tiles};
  }
  __device__ __forceinline__ int end_of(int layer) const {
    return std::min(gemm.shape.n, (layer + 1) * columns);
  }
  /// The row of the first activations of a layer, other than the first, in the map of both buffers.
  __device__ __forceinline__ int first_row(int layer) const {
    return (layer - 1) % 2 * padded_rows(gemm.shape.m);
  }
  __device__ __forceinline__ bf16* input_of(int layer) const {
    return activations + offset(first_row(layer), 0, gemm.shape.k);
  }
  __device__ __forceinline__ Layer layer(int number) const {
    return {.a = number == 0 ? gemm.a : input_of(number),
            .next = number + 1 < kLayers ? input_of(number + 1) : nullptr,
            .begin = number * columns,
            .end = end_of(number),
            .scale = std::bit_cast<float>((127 - number) << 23)};  // 2 to the power of -number
  }

  // ANCHOR: counters
  /// Waits until the layer before `layer` is complete. What other threads do afterwards needs a barrier.
  __device__ __forceinline__ void wait_before(int layer) const {
    if (layer == 0) return;
    const auto all = static_cast<std::uint32_t>(2 * tasks_per_layer());
    while (ptx::ld_acquire_gpu(&counters->arrived[layer - 1].value) < all) {
    }
  }
  /// One of the two parts of a task is complete. A barrier of all its threads comes before.
  __device__ __forceinline__ void arrive(int layer) const {
    ptx::red_add_release_gpu(&counters->arrived[layer].value, 1);
  }
  /// One thread of each CTA calls it at the end. The last one makes the counters ready for the next launch.
  __device__ __forceinline__ void leave() const {
    if (ptx::atom_add_acq_rel_gpu(&counters->left.value, 1) + 1 < gridDim.x) return;
    for (Counter& layer : counters->arrived) ptx::st_relaxed_gpu(&layer.value, 0);
    ptx::st_relaxed_gpu(&counters->tickets.value, 0);
    ptx::st_relaxed_gpu(&counters->left.value, 0);
  }
  // ANCHOR_END: counters
};

// ANCHOR: launch
/// As many CTAs as the GPU holds at once, but no more than there are tasks.
template <typename T, typename Shared, bool kCoResident>
struct ChainCtas {
  using Tile = T;
  static WorkspacePlan plan(const void* kernel, const Shape& shape) {
    return {{persistent_launch(kernel,
                               {.block = {T::kThreads},
                                .shared_bytes = kSharedBytes<Shared>,
                                .co_resident = kCoResident,
                                .ctas_per_sm = T::kCtasPerSm},
                               kLayers * Chain<T>::tasks_per_layer(shape.m, Chain<T>::columns_of(shape)))},
            sizeof(Counters)};
  }
};
// ANCHOR_END: launch

/// Returns what the kernel takes. Each stream has counters and buffers of its own.
template <typename T>
inline constexpr auto kChainArguments = [](const Problem& problem, const WorkspacePlan& plan) {
  const auto [m, n, k] = problem.shape;
  const int rows = 2 * Chain<T>::padded_rows(m);
  const StreamMemory counters(plan.workspace_bytes);
  const StreamMemory activations(offset(rows, 0, k) * std::int64_t{sizeof(bf16)});
  const auto chain = [=, gemm = Gemm(problem)](ptx::Stream stream) {
    return Chain<T>{gemm, Chain<T>::columns_of(gemm.shape), static_cast<bf16*>(activations(stream)),
                    static_cast<Counters*>(counters(stream))};
  };
  const auto map_of_activations = [=, k = k](ptx::Stream stream) {
    return operand_map<T>(static_cast<bf16*>(activations(stream)), rows, k, T::kM);
  };
  return std::tuple{chain, operand_map<T>(problem.a, m, k, T::kM), map_of_activations,
                    operand_map<T>(problem.b, n, k, T::kN)};
};

}  // namespace gemm::step_57
