// The nodes of step 32's trees: those that have a tensor of their own, and those that join two branches.
#pragma once

#include <cstdint>

#include "gemm/epilogue/epilogue_nodes.cuh"
#include "gemm/epilogue/epilogue_place.cuh"
#include "gemm/epilogue/source_fragment.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/subtile_loader.cuh"
#include "gemm/problem/bf16.h"
#include "gemm/problem/problem.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_32 {

/// Step 31's place in D, and where the auxiliary tensor is.
template <int kLoadBuffers, int kReaders = 1>
struct PlaceOf : EpiloguePlace {
  const TreeArguments& tensors;
  const ptx::TensorMap* map;             // the auxiliary tensor's
  LoadedSubtiles<kLoadBuffers>* loaded;  // where a node loads
  StoreBuffers* stored;                  // where a node stores: the consumer's own
  PipelineState<kLoadBuffers> read{};    // in `loaded`
  int buffer = 0;                        // in `stored`, and of D
  int subtile = 0;                       // counted in what the consumer has of the tile

  /// The buffer of this consumer's subtile before the one in `read`.
  __device__ __forceinline__ int before() const {
    return read.stage < kReaders ? read.stage + kLoadBuffers - kReaders : read.stage - kReaders;
  }
};
using Place = PlaceOf<4>;

// Lesson: a tree is a trunk of nodes, and a node of the trunk may have a branch. Only `visit` knows: the
// trunk hands one fragment from node to node, and a branch begins with a fragment of its own. All other hooks
// are called for every node of the tree.
template <Node<Place>... Nodes>
struct Tree : Nodes... {
  static constexpr int kShared = (0 + ... + Nodes::kShared);
  static constexpr bool kLoads = (false || ... || Nodes::kLoads);
  static constexpr bool kStores = (false || ... || Nodes::kStores);
  static constexpr bool kGates = (false || ... || Nodes::kGates);
  static constexpr bool kSource = (false || ... || Nodes::kSource);
  static_assert((0 + ... + (Nodes::kLoads || Nodes::kStores)) <= 1,
                "there is one map of an auxiliary tensor");
  static_assert((0 + ... + Nodes::kLoads) == (0 + ... + Nodes::kReleases), "what is loaded is released once");
  static constexpr int kMasks = (0 + ... + Nodes::kMasks);
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

__device__ __forceinline__ float plus(float a, float b) {
  return a + b;
}
__device__ __forceinline__ float times(float a, float b) {
  return a * b;
}

/// What the tree of a branch may be.
template <typename AnyTree>
struct BranchNode : EmptyNode {
  static constexpr int kMasks = AnyTree::kMasks;
  static_assert(!AnyTree::kStores && AnyTree::kShared == 0 && !AnyTree::kGates,
                "a branch loads or computes: it has no buffer, no shared memory and no gate");
};

/// Joins what its nodes make of a tensor to the fragment of the trunk.
template <float (*kJoin)(float, float), Node<Place>... Nodes>
struct Branch : BranchNode<Tree<Nodes...>> {
  static constexpr bool kLoads = Tree<Nodes...>::kLoads;
  static constexpr bool kReleases = kLoads;
  Tree<Nodes...> branch;
  template <typename Hook>
  __device__ __forceinline__ void each_of_branch(const Hook& hook) {
    branch.each(hook);
  }
  // ANCHOR: visit_branch
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    float y[2];
    branch.visit(y, unit, half);
    for (int i = 0; i < 2; ++i) x[i] = kJoin(x[i], y[i]);
  }
  // ANCHOR_END: visit_branch
};

/// The elements of a bf16 tensor at this place of D. A copy of the loader brings them.
// ANCHOR: load_tensor
struct LoadTensor : EmptyNode {
  static constexpr bool kLoads = true;
  static constexpr bool kReleases = true;
  bf16 (*subtile)[64];
  std::uint32_t pairs[2][4];  // [unit][half], two units and the next two

  __device__ __forceinline__ void previsit(const Place& at) {
    at.loaded->consumer_wait(at.read, at.subtile);
    subtile = at.loaded->buffer[at.read.stage].element;
    ptx::ldmatrix_x4(pairs[0], Place::fragments(subtile, 0));
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    if (unit % 2 == 0 && half == 0 && unit < 6)  // while two units are visited, the next two are on their way
      ptx::ldmatrix_x4(pairs[unit / 2 % 2 ^ 1], Place::fragments(subtile, unit + 2));
    const FloatPair pair = unpacked(pairs[unit / 2 % 2][unit % 2 * 2 + half]);
    x[0] = pair.first;
    x[1] = pair.second;
  }
  __device__ __forceinline__ void tma_store(const Place& at) { at.loaded->consumer_release(at.read); }
};
// ANCHOR_END: load_tensor

// Lesson: the tensor leaves with D: from the subtile of the same number, and in the same bulk group. So the
// one wait that frees a buffer of D frees one of these. With a commit of its own a subtile would have two
// groups, and "all but one have been read" would wait for the D that was just stored. After the commit the
// store would be in the next subtile's group, and the wait would come too late.
// ANCHOR: store_tensor
struct StoreTensor : EmptyNode {
  static constexpr bool kStores = true;
  bf16 (*subtile)[64];
  std::uint32_t pairs[4];  // [unit][half], two units

  __device__ __forceinline__ void previsit(const Place& at) { subtile = at.stored->d[at.buffer]; }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    pairs[unit % 2 * 2 + half] = ptx::cvt_rn_bf16x2_f32(x[0], x[1]);  // x itself goes on as it is
    if (unit % 2 == 1 && half == 1) ptx::stmatrix_x4(Place::fragments(subtile, unit - 1), pairs);
  }
  __device__ __forceinline__ void tma_store(const Place& at) {
    ptx::cp_async_bulk_tensor_2d_store(at.map, at.corner.n + at.column, at.corner.m + at.row, subtile);
  }
};
// ANCHOR_END: store_tensor

/// Two words of each of a thread's two rows of a subtile. Its own bits in them are column_of(0), the next
/// one, and the same in every eighth column.
struct MaskNode : EmptyNode {
  static constexpr int kMasks = 1;
  std::uint32_t words[2][2];  // [half][word]

  /// The word in the tensor, or nullptr outside of it.
  static __device__ __forceinline__ std::uint32_t* word_at(const Place& at, int half, int word) {
    const int row = at.corner.m + at.row_of(half);
    const int column = at.corner.n + at.column + word * kMaskWordBits;
    if (row >= at.shape.m || column >= at.shape.n) return nullptr;
    return at.tensors.mask + offset(row, column / kMaskWordBits, at.tensors.mask_words);
  }
  static __device__ __forceinline__ int first_bit() { return Place::thread() % 4 * 2; }
};

/// One bit for each element: whether it is positive. 0 for NaN.
struct StoreMask : MaskNode {
  __device__ __forceinline__ void begin_loop(const Place&) {
    for (auto& row : words) row[0] = row[1] = 0;
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    for (int i = 0; i < 2; ++i) words[half][unit / 4] |= (x[i] > 0 ? 1u : 0u) << (unit % 4 * 8 + i);
  }
  // Lesson: the bits of a word are in the four threads of a row. Each shifts its own to their place, all of
  // them exchange, and then each writes one of the four words of the two rows.
  // ANCHOR: postreduce
  __device__ __forceinline__ void postreduce(const Place& at) {
    const int mine = Place::thread() % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      std::uint32_t word = words[i / 2][i % 2] << first_bit();
      for (int distance = 1; distance < 4; distance *= 2) word |= __shfl_xor_sync(~0u, word, distance);
      if (i != mine) continue;
      if (std::uint32_t* to = word_at(at, i / 2, i % 2)) ptx::st_global(to, word);
    }
  }
  // ANCHOR_END: postreduce
};

/// x where the bit is 1, and 0 elsewhere, also for NaN.
struct KeepMasked : MaskNode {
  __device__ __forceinline__ void begin_loop(const Place& at) {
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t* from = word_at(at, i / 2, i % 2);
      words[i / 2][i % 2] = from == nullptr ? 0 : ptx::ld_global(from) >> first_bit();
    }
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    for (int i = 0; i < 2; ++i) {
      if ((words[half][unit / 4] >> (unit % 4 * 8 + i) & 1) == 0) x[i] = 0;
    }
  }
};

/// The activation of an even column, times the odd one after it: the first of the two is D's.
template <float (*kFunction)(float)>
struct Gate : EmptyNode {
  static constexpr bool kGates = true;
  __device__ __forceinline__ void visit(float (&x)[2], int, int) { x[0] = kFunction(x[0]) * x[1]; }
};

/// Two units of gated elements, [unit][half], go to D's subtile of 64 x 32, 64-byte swizzle. Pairs of threads
/// exchange one element of each half: then the even one has two neighbours of the first unit, and the odd one
/// of the second.
__device__ __forceinline__ void store_gated(bf16* d, const float (&x)[4], int unit) {
  const int lane = Place::lane();
  const bool odd = lane % 2 != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // ANCHOR: exchange
    const float got = __shfl_xor_sync(~0u, odd ? x[half] : x[2 + half], 1);
    const std::uint32_t pair =
        odd ? ptx::cvt_rn_bf16x2_f32(got, x[2 + half]) : ptx::cvt_rn_bf16x2_f32(x[half], got);
    // ANCHOR_END: exchange
    const int row = Place::thread() / 32 * 16 + lane / 4 + half * 8;
    const int column = (unit + (odd ? 1 : 0)) * 4 + lane % 4 / 2 * 2;
    const int swizzled = ((column / 8) ^ (row / 2 % 4)) * 8 + column % 8;
    const int row_begin = row * 32;
    ptx::st_shared(reinterpret_cast<std::uint32_t*>(d + row_begin + swizzled), pair);
  }
}

}  // namespace gemm::step_32
