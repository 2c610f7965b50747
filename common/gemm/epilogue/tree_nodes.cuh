// What step 32 taught: an epilogue as a tree of nodes, of which one may read a tensor of its own.
#pragma once

#include <cstdint>

#include "gemm/epilogue/epilogue_nodes.cuh"
#include "gemm/epilogue/epilogue_place.cuh"
#include "gemm/epilogue/source_fragment.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/subtile_loader.cuh"
#include "gemm/problem/bf16.h"
#include "gemm/problem/problem.h"
#include "ptx/core.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

inline constexpr int kLoadBuffers = 3;

/// The place in D, and where the tensor that is read is.
struct TreePlace : EpiloguePlace {
  const TreeArguments& tensors;
  LoadedSubtiles<kLoadBuffers>* loaded;  // where a node loads
  PipelineState<kLoadBuffers> read{};    // in `loaded`
  int subtile = 0;                       // of the tile, counted as they are stored

  /// The buffer of the subtile before the one in `read`.
  __device__ __forceinline__ int before() const {
    return read.stage == 0 ? kLoadBuffers - 1 : read.stage - 1;
  }
};

/// A trunk of nodes, which hand on one fragment; a node of the trunk may have a branch, with a fragment of
/// its own. All hooks but `visit` are called for every node of the tree.
template <typename Place, Node<Place>... Nodes>
struct TreeAt : Nodes... {
  static constexpr int kShared = (0 + ... + Nodes::kShared);
  static constexpr bool kLoads = (false || ... || Nodes::kLoads);
  static constexpr bool kNarrows = (false || ... || Nodes::kNarrows);
  static constexpr int kMasks = (0 + ... + Nodes::kMasks);
  static constexpr bool kSource = (false || ... || Nodes::kSource);
  static_assert((0 + ... + Nodes::kLoads) <= 1, "the loader has one map");
  static_assert((0 + ... + Nodes::kLoads) == (0 + ... + Nodes::kReleases), "what is loaded is released once");
  static_assert(kMasks <= 1, "there is one mask");

  template <typename Hook>
  __device__ __forceinline__ void each(const Hook& hook) {
    (each_of(static_cast<Nodes&>(*this), hook), ...);
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    (static_cast<Nodes&>(*this).visit(x, unit, half), ...);
  }

 private:
  template <typename AnyNode, typename Hook>
  static __device__ __forceinline__ void each_of(AnyNode& node, const Hook& hook) {
    node.each_of_branch(hook);
    hook(node);
  }
};

__device__ __forceinline__ float times(float a, float b) {
  return a * b;
}

/// Joins what its nodes make of a tensor to the fragment of the trunk.
template <float (*kJoin)(float, float), Node<TreePlace>... Nodes>
struct Branch : EmptyNode {
  using Own = TreeAt<TreePlace, Nodes...>;
  static_assert(Own::kShared == 0, "a branch loads or computes: it has no shared memory");
  static constexpr bool kLoads = Own::kLoads;
  static constexpr bool kReleases = kLoads;
  static constexpr int kMasks = Own::kMasks;
  Own branch;
  template <typename Hook>
  __device__ __forceinline__ void each_of_branch(const Hook& hook) {
    branch.each(hook);
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    float y[2];
    branch.visit(y, unit, half);
    for (int i = 0; i < 2; ++i) x[i] = kJoin(x[i], y[i]);
  }
};

/// The elements of a bf16 tensor at this place of D. A copy of the loader brings them.
struct LoadTensor : EmptyNode {
  static constexpr bool kLoads = true;
  static constexpr bool kReleases = true;
  bf16 (*subtile)[64];
  std::uint32_t pairs[2][4];  // of two units, [unit][half], and of the next two

  __device__ __forceinline__ void previsit(const TreePlace& at) {
    at.loaded->consumer_wait(at.read, at.subtile);
    subtile = at.loaded->buffer[at.read.stage].element;
    ptx::ldmatrix_x4(pairs[0], TreePlace::fragments(subtile, 0));
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    if (unit % 2 == 0 && half == 0 && unit < 6)  // while two units are visited, the next two are on their way
      ptx::ldmatrix_x4(pairs[unit / 2 % 2 ^ 1], TreePlace::fragments(subtile, unit + 2));
    const FloatPair pair = unpacked(pairs[unit / 2 % 2][unit % 2 * 2 + half]);
    x[0] = pair.first;
    x[1] = pair.second;
  }
  __device__ __forceinline__ void tma_store(const TreePlace& at) { at.loaded->consumer_release(at.read); }
};

// Step 32's node keeps its four words as they come, in four registers. Here, beside sums, a thread picks out
// its own bits, and one register does.

/// x where the bit of the mask is 1, and 0 elsewhere, also for NaN. A thread has 32 elements of a subtile: of
/// two words of each of its two rows the bits column_of(0), one behind it, and the same in every eighth
/// column.
struct KeepMasked : EmptyNode {
  static constexpr int kMasks = 1;
  std::uint32_t own;  // eight bits of each word, its pairs between those of the others

  __device__ __forceinline__ void begin_loop(const TreePlace& at) {
    constexpr std::uint32_t kPairs = 0x03030303;
    const int shift = TreePlace::thread() % 4 * 2;
    const int column = at.corner.n + at.column;
    own = 0;
    for (int half = 0; half < 2; ++half) {
      const int row = at.corner.m + at.row_of(half);
      if (row >= at.shape.m || column >= at.shape.n) continue;
      const uint2 words = ptx::ld_global(reinterpret_cast<const uint2*>(
          at.tensors.mask + offset(row, column / kMaskWordBits, at.tensors.mask_words)));
      own |= (words.x >> shift & kPairs) << (4 * half);
      own |= (words.y >> shift & kPairs) << (4 * half + 2);
    }
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    for (int i = 0; i < 2; ++i) {
      if ((own >> (unit % 4 * 8 + half * 4 + unit / 4 * 2 + i) & 1) == 0) x[i] = 0;
    }
  }
};

}  // namespace gemm
