// What steps 30 and 32 taught together: C as a node of a tree, and a tensor that leaves from where C was.
#pragma once

#include <cstdint>

#include "gemm/epilogue/epilogue_nodes.cuh"
#include "gemm/epilogue/epilogue_place.cuh"
#include "gemm/epilogue/source_fragment.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/problem/bf16.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tma.cuh"

namespace gemm {

/// x + beta * C, rounded once. A NaN of C makes x NaN, and so does an infinity of C where x is the other one;
/// otherwise an infinity stays one. Where beta is 0 nothing of C is read, so nothing of it matters.
struct AddSource : EmptyNode {
  static constexpr bool kLoads = true;
  static constexpr bool kSource = true;
  float beta;
  bf16 (*subtile)[64];
  std::uint32_t pairs[2][4];  // [unit][half], two units and the next two

  template <typename Place>
  __device__ __forceinline__ void begin(const Place& at) {
    beta = at.tensors.beta;
  }
  template <typename Place>
  __device__ __forceinline__ void previsit(const Place& at) {
    at.loaded->consumer_wait(at.read, at.subtile);
    subtile = at.loaded->buffer[at.read.stage].element;
    for (auto& of_two : pairs) of_two[0] = of_two[1] = of_two[2] = of_two[3] = 0;
    if (beta != 0) ptx::ldmatrix_x4(pairs[0], EpiloguePlace::fragments(subtile, 0));
  }
  // ANCHOR: add_source
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    if (beta != 0 && unit % 2 == 1 && half == 0 && unit < 7)  // half of these two are done with
      ptx::ldmatrix_x4(pairs[unit / 2 % 2 ^ 1], EpiloguePlace::fragments(subtile, unit + 1));
    const FloatPair c = unpacked(pairs[unit / 2 % 2][unit % 2 * 2 + half]);
    x[0] = fmaf(beta, c.first, x[0]);
    x[1] = fmaf(beta, c.second, x[1]);
  }
  // ANCHOR_END: add_source
};

// Lesson: C, what is stored of x, and D need three subtiles, and there is room for two. A warp has read its
// 16 x 16 elements of C before it writes these of x, so x takes the place of C. The buffer is free when the
// copy engine has read x: one store later, while the next subtile is on its way. Behind the last one the
// thread waits, because the other consumer's C comes through the same ring.

/// Writes x, rounded to bf16 (ties to even; NaN and infinities stay what they are), to the subtile of C that
/// AddSource has read, from where it leaves with D; x itself goes on unrounded.
struct StoreOverSource : EmptyNode {
  static constexpr bool kReleases = true;
  bf16 (*subtile)[64];
  std::uint32_t pairs[4];  // [unit][half], two units

  template <typename Place>
  __device__ __forceinline__ void previsit(const Place& at) {
    subtile = at.loaded->buffer[at.read.stage].element;
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    pairs[unit % 2 * 2 + half] = ptx::cvt_rn_bf16x2_f32(x[0], x[1]);
    if (unit % 2 == 1 && half == 1) ptx::stmatrix_x4(EpiloguePlace::fragments(subtile, unit - 1), pairs);
  }
  template <typename Place>
  __device__ __forceinline__ void tma_store(const Place& at) {
    ptx::cp_async_bulk_tensor_2d_store(at.map, at.corner.n + at.column, at.corner.m + at.row, subtile);
  }
  // ANCHOR: release_source
  template <typename Place>
  __device__ __forceinline__ void end_loop(const Place& at) {
    if (!stores_tile() || at.subtile == 0) return;
    ptx::cp_async_bulk_wait_group_read<1>();  // all but the group that was just committed
    at.loaded->consumer_release({at.before()});
  }
  template <typename Place>
  __device__ __forceinline__ void end(const Place& at) {
    if (!stores_tile()) return;
    ptx::cp_async_bulk_wait_group_read<0>();
    at.loaded->consumer_release({at.before()});
  }
  // ANCHOR_END: release_source
};

}  // namespace gemm
