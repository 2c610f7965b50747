// What step 31 taught: nodes of an epilogue, which write only the hooks that they need of a tile's lifecycle.
#pragma once

#include <concepts>
#include <cstdint>

#include "gemm/epilogue/epilogue_place.cuh"
#include "gemm/epilogue/source_fragment.cuh"
#include "gemm/problem/bf16.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"

namespace gemm {

/// A node that needs nothing and does nothing. Every node derives from it, and writes only what differs.
struct EmptyNode {
  static constexpr int kShared = 0;         // elements of EpiloguePlace::shared, for each consumer
  static constexpr bool kLoads = false;     // a ring of subtiles that a warp of its own loads
  static constexpr bool kReleases = false;  // it releases what is loaded
  static constexpr bool kSource = false;    // what is loaded is C
  static constexpr bool kStores = false;    // two buffers for subtiles that leave with those of D
  static constexpr bool kGates = false;     // D takes the first of two neighbours only
  static constexpr bool kNarrows = false;   // it writes the buffer itself: D's elements are bytes
  static constexpr int kMasks = 0;  // nodes that read or write the bit mask: it, or those of its branch
  template <typename Hook>
  __device__ void each_of_branch(const Hook&) {}
  __device__ void begin(const EpiloguePlace&) {}
  template <int kCount>
  __device__ void first_visit(const EpiloguePlace&, float (&)[kCount]) {}
  __device__ void begin_loop(const EpiloguePlace&) {}
  __device__ void previsit(const EpiloguePlace&) {}
  __device__ void visit(float (&)[2], int, int) {}
  __device__ void reduce(bf16 (*)[64]) {}
  __device__ void postreduce(const EpiloguePlace&) {}
  __device__ void tma_store(const EpiloguePlace&) {}
  __device__ void end_loop(const EpiloguePlace&) {}
  __device__ void end(const EpiloguePlace&) {}
};

/// A node of an epilogue at a `Place`: constants that say what a kernel must have for it, and hooks. The
/// store loop calls the hooks of all nodes in this order, and within a hook the nodes of a branch
/// (each_of_branch) before the node that has it:
///
///   begin(at)                 before the tile is multiplied
///     first_visit(at, rows)   64 rows begin; all their accumulators. Step 33's loop calls it
///       begin_loop(at)        a subtile of them begins; its buffer is not free yet
///       previsit(at)          after a barrier: begin's writes are visible
///       visit(x, unit, half)  16 times: a fragment, two neighbours. A branch calls it for its own nodes
///       reduce(buffer)        this thread's fragments are in the buffer
///       postreduce(at)        last chance to write what a TMA store takes
///       tma_store(at)         one thread, with D's store
///       end_loop(at)          the subtile's store is issued
///   end(at)                   all stores of the tile are issued
template <typename N, typename Place = EpiloguePlace>
concept Node = std::derived_from<N, EmptyNode> && std::derived_from<Place, EpiloguePlace> &&
    requires(N node, const Place& at, float (&x)[2], bf16 (*buffer)[64]) {
  node.begin(at);
  node.first_visit(at, x);
  node.begin_loop(at);
  node.previsit(at);
  node.visit(x, 0, 0);
  node.reduce(buffer);
  node.postreduce(at);
  node.tma_store(at);
  node.end_loop(at);
  node.end(at);
};

/// alpha.
struct Scale : EmptyNode {
  float alpha;
  __device__ __forceinline__ void begin(const EpiloguePlace& at) { alpha = at.given.alpha; }
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

/// A bias for each column, loaded once a tile and kept in shared memory. The store loop's barriers stand
/// between begin and the visits, and between the last visit and the next begin.
template <int kN>
struct SharedColumnBias : EmptyNode {
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
