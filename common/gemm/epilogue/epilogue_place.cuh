// Where a consumer's thread is in D while it walks through the accumulators of its tile, and the biases
// there.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/schedule/raster.h"
#include "ptx/core.cuh"

namespace gemm {

/// What the nodes of a visitor read.
struct VisitorArguments {
  float alpha;
  const bf16* bias;  // [n] or [m]
};

/// What the nodes of a tree read and write without TMA.
struct TreeArguments : VisitorArguments {
  std::uint32_t* mask;  // [m][mask_words]
  int mask_words;
  float beta = 0;  // 0: C is not read
};

inline TreeArguments tree_arguments(const Problem& problem) {
  TreeArguments arguments{{problem.epilogue.alpha, problem.bias}, nullptr, 0, problem.epilogue.beta};
  if (is_mask(problem.epilogue.auxiliary)) {
    arguments.mask = static_cast<std::uint32_t*>(problem.auxiliary);
    arguments.mask_words = static_cast<int>(problem.auxiliary_pitch / kMaskWordBits);
  }
  return arguments;
}

/// In a subtile of 64 x 64 a thread has fragments of two neighbouring elements of D: in `unit` 0 to 7 of
/// eight columns, and in `half` 0 and 1 of the 16 rows of its warp. Rows and columns may lie outside of D.
struct EpiloguePlace {
  const VisitorArguments& given;
  const Shape& shape;
  bf16* shared;           // the consumer's own, for the visitor
  TilePosition corner{};  // of the tile, in D
  int row = 0;            // of the subtile, in the tile
  int column = 0;

  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x) % 128; }
  static __device__ __forceinline__ int lane() { return thread() % 32; }
  /// Where this thread writes or reads a matrix of a subtile, 128-byte swizzle: stmatrix and ldmatrix.
  static __device__ __forceinline__ bf16* fragments(bf16 (*subtile)[64], int unit) {
    const int matrix_row = thread() / 32 * 16 + lane() % 16;
    const int place = ((unit + lane() / 16) ^ matrix_row % 8) * 8;
    return &subtile[matrix_row][place];
  }
  __device__ __forceinline__ int row_of(int half) const {
    return row + thread() / 32 * 16 + thread() % 32 / 4 + half * 8;
  }
  __device__ __forceinline__ int column_of(int unit) const { return column + unit * 8 + thread() % 4 * 2; }

  /// Two elements of `shared`; in_tile is even.
  __device__ __forceinline__ std::uint32_t* shared_pair(int in_tile) const {
    return reinterpret_cast<std::uint32_t*>(shared + in_tile);
  }
};

}  // namespace gemm
