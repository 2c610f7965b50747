// What step 31 taught: nodes of an epilogue, which write only the hooks that they need of a tile's lifecycle.
#pragma once

#include <cstdint>

#include "gemm/epilogue/epilogue_place.cuh"
#include "gemm/epilogue/source_fragment.cuh"
#include "gemm/problem/bf16.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"

namespace gemm {

/// A node that does nothing, and what a kernel must have for it.
struct Node {
  static constexpr int kShared = 0;                    // elements of EpiloguePlace::shared, for each consumer
  static constexpr bool kLoads = false;                // a ring of subtiles that a warp of its own loads
  static constexpr bool kStores = false;               // two buffers for subtiles that leave with those of D
  static constexpr bool kGates = false;                // D takes the first of two neighbours only
  static constexpr bool kNarrows = false;              // it writes the buffer itself: D's elements are bytes
  __device__ void begin(const EpiloguePlace&) {}       // before the tile is multiplied
  __device__ void begin_loop(const EpiloguePlace&) {}  // a subtile begins; its buffer is not free yet
  __device__ void previsit(const EpiloguePlace&) {}    // behind a barrier: begin's writes are visible
  __device__ void visit(float (&)[2], int, int) {}     // a fragment: two neighbours, [unit][half]
  __device__ void reduce(bf16 (*)[64]) {}              // this thread's fragments are in the buffer
  __device__ void postreduce(const EpiloguePlace&) {}  // last chance to write what a TMA store takes
  __device__ void tma_store(const EpiloguePlace&) {}   // one thread, with D's store
  __device__ void end_loop(const EpiloguePlace&) {}
  __device__ void end(const EpiloguePlace&) {}  // all stores of the tile are issued
};

/// alpha.
struct Scale : Node {
  float alpha;
  __device__ __forceinline__ void begin(const EpiloguePlace& at) { alpha = at.given.alpha; }
  __device__ __forceinline__ void visit(float (&x)[2], int, int) {
    for (float& one : x) one *= alpha;
  }
};

template <float (*kFunction)(float)>
struct Activate : Node {
  __device__ __forceinline__ void visit(float (&x)[2], int, int) {
    for (float& one : x) one = kFunction(one);
  }
};

/// A bias for each column, loaded once a tile and kept in shared memory. The store loop's barriers stand
/// between begin and the visits, and between the last visit and the next begin.
template <int kN>
struct SharedColumnBias : Node {
  static constexpr int kShared = kN;
  std::uint32_t pairs[8];  // [unit]

  __device__ __forceinline__ void begin(const EpiloguePlace& at) {
    const int in_tile = at.thread() * 2;
    if (in_tile >= kN) return;
    const int column = at.corner.n + in_tile;  // N is even
    std::uint32_t biases = 0;
    if (column < at.shape.n)
      biases = ptx::ld_global(reinterpret_cast<const std::uint32_t*>(at.given.bias + column));
    ptx::st_shared(at.shared_pair(in_tile), biases);
  }
  __device__ __forceinline__ void previsit(const EpiloguePlace& at) {
    for (int unit = 0; unit < 8; ++unit) pairs[unit] = ptx::ld_shared(at.shared_pair(at.column_of(unit)));
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int) {
    const FloatPair bias = unpacked(pairs[unit]);
    x[0] += bias.first;
    x[1] += bias.second;
  }
};

}  // namespace gemm
