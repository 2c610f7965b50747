// The nodes of step 31's visitors: what changes from epilogue to epilogue.
#pragma once

#include <cstdint>

#include "gemm/epilogue/epilogue_place.cuh"
#include "gemm/epilogue/source_fragment.cuh"
#include "gemm/problem/bf16.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm::step_31 {

using Place = EpiloguePlace;

// Lesson: there is a hook for each moment at which the store loop could need a node. A node writes the hooks
// that it needs. The others are these, which leave no instruction behind.
// ANCHOR: empty_node
struct EmptyNode {
  static constexpr int kShared = 0;                 // elements of shared memory per consumer
  __device__ void begin(const Place&) {}            // before the tile is multiplied
  __device__ void begin_loop(const Place&) {}       // a subtile begins; its buffer is not yet free
  __device__ void previsit(const Place&) {}         // after a barrier: begin's writes are visible
  __device__ void visit(float (&)[2], int, int) {}  // a fragment: two neighbours, [unit][half]
  __device__ void reduce(bf16 (*)[64]) {}           // this thread's fragments are in the buffer
  __device__ void postreduce(const Place&) {}       // the last chance to write data for a TMA store
  __device__ void tma_store(const Place&) {}        // in one thread, with D's store
  __device__ void end_loop(const Place&) {}
  __device__ void end(const Place&) {}  // all of the tile's stores have been issued
};
// ANCHOR_END: empty_node

/// Nodes, the first one first.
template <typename... Nodes>
struct Chain : Nodes... {
  static constexpr int kShared = (0 + ... + Nodes::kShared);
  static_assert((0 + ... + (Nodes::kShared > 0)) <= 1, "Place::shared is not divided among nodes");

  template <typename Hook>
  __device__ __forceinline__ void each(const Hook& hook) {
    (hook(static_cast<Nodes&>(*this)), ...);
  }
};

struct Scale : EmptyNode {
  float alpha;
  __device__ __forceinline__ void begin(const Place& at) { alpha = at.given.alpha; }
  __device__ __forceinline__ void visit(float (&x)[2], int, int) {
    for (float& one : x) one *= alpha;
  }
};

template <float (*kFunction)(float)>
struct Activate : EmptyNode {
  __device__ __forceinline__ void visit(float (&x)[2], int, int) {
    for (float& one : x) one = kFunction(one);
  }
};

/// The biases at two neighbouring columns of the tile; 0 outside of D. N is even.
__device__ __forceinline__ std::uint32_t column_biases(const Place& at, int in_tile) {
  const int column = at.corner.n + in_tile;
  if (column >= at.shape.n) return 0;
  return ptx::ld_global(reinterpret_cast<const std::uint32_t*>(at.given.bias + column));
}

__device__ __forceinline__ float row_bias(const Place& at, int in_tile) {
  const int row = at.corner.m + in_tile;
  if (row >= at.shape.m) return 0;
  return to_float(ptx::ld_global(at.given.bias + row));
}

struct RowBias : EmptyNode {
  float bias[2];  // [half]
  __device__ __forceinline__ void begin_loop(const Place& at) {
    for (int half = 0; half < 2; ++half) bias[half] = row_bias(at, at.row_of(half));
  }
  __device__ __forceinline__ void visit(float (&x)[2], int, int half) {
    for (float& one : x) one += bias[half];
  }
};

/// Each thread loads the biases of its own columns, for every subtile.
// ANCHOR: column_bias
struct ColumnBias : EmptyNode {
  std::uint32_t pairs[8];  // [unit]
  __device__ __forceinline__ void begin_loop(const Place& at) {
    for (int unit = 0; unit < 8; ++unit) pairs[unit] = column_biases(at, at.column_of(unit));
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int) {
    const FloatPair bias = unpacked(pairs[unit]);
    x[0] += bias.first;
    x[1] += bias.second;
  }
};
// ANCHOR_END: column_bias

}  // namespace gemm::step_31
