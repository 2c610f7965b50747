// A D of e4m3 with a scale, for an epilogue that computes in binary32: subtiles of 64 x 64 bytes.
#pragma once

#include <cstdint>

#include "gemm/epilogue/epilogue_nodes.cuh"
#include "gemm/problem/types.h"
#include "ptx/convert.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// The map of such a D, dense, stored in boxes of 64 rows of 64 bytes, 64-byte swizzle.
inline ptx::TensorMap narrow_store_map(const void* d, int m, int n) {
  auto spec = ptx::matrix_spec(d, m, n, 64, 64, ptx::Swizzle::k64B);
  spec.element = ptx::TensorElement::kUint8;
  spec.stride_bytes[1] = static_cast<std::uint64_t>(n);
  return ptx::make_tensor_map(spec);
}

// Lesson: the last node of a tree. What stands before it sees v; here v is scaled, rounded once to e4m3, and
// what is too large becomes +-448. A thread has two neighbours, which are two bytes now: stmatrix would want
// four. Two rows of 64 bytes pass all 32 banks, so of a warp's eight rows four would meet in the same banks;
// the swizzle, row / 2 % 4 exclusive-or the number of a unit of 16 bytes, gives them banks of their own.
struct StoreE4m3 : Node {
  static constexpr bool kNarrows = true;
  float scale;
  std::uint8_t* row;  // of this thread, in half 0
  int swizzle;        // of that row, and of the one 8 rows below: row / 2 % 4 is the same

  template <typename Place>
  __device__ __forceinline__ void begin(const Place& at) {
    scale = ptx::ld_global(at.reductions.d_scale);
  }
  template <typename Place>
  __device__ __forceinline__ void previsit(const Place& at) {
    const int in_subtile = at.thread() / 32 * 16 + at.thread() % 32 / 4;
    row = reinterpret_cast<std::uint8_t*>(at.d) + in_subtile * 64 + at.thread() % 4 * 2;
    swizzle = in_subtile / 2 % 4;
  }
  __device__ __forceinline__ void visit(float (&x)[2], int unit, int half) {
    const std::uint16_t pair = ptx::cvt_rn_satfinite_e4m3x2_f32(x[0] * scale, x[1] * scale);
    std::uint8_t* const to = row + half * 8 * 64 + (unit / 2 ^ swizzle) * 16 + unit % 2 * 8;
    ptx::st_shared(reinterpret_cast<std::uint16_t*>(to), pair);
  }
};

}  // namespace gemm
