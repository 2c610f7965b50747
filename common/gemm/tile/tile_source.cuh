// Which 16-byte vectors of an operand one thread copies. Plain index arithmetic, shared by steps 04-07.
#pragma once

#include "gemm/problem/gemm.h"
#include "gemm/tile/tiling.h"
#include "ptx/core.cuh"
#include "ptx/trace.cuh"

namespace gemm {

/// The threads of a CTA share a k-tile of kRows rows: this one copies column `column` (8 elements wide) of
/// rows row, row + kRowStep, row + 2 * kRowStep, ...
template <typename T, int kRows>
struct TileSource {
  static constexpr int kRowStep = T::kThreads / T::kVectorsPerRow;
  static constexpr int kVectors = kRows / kRowStep;
  static_assert(T::kThreads % T::kVectorsPerRow == 0 && kRows % kRowStep == 0,
                "every thread copies the same number of vectors, all from one column");

  static constexpr int kTileStep = kRowStep * T::kK;  // elements of the shared tile between two vectors
  static_assert(kRowStep % 8 == 0,
                "rows a multiple of 8 apart have the same swizzle, so the step is a constant");

  int row;             // in the tile, of the first vector
  int column;          // in the tile
  const bf16* first;   // the first vector of k-tile 0; may lie outside the matrix
  int vectors_inside;  // the vectors that lie in rows of the matrix
  int k;               // row length of the matrix

  /// `matrix` is [rows][k]; the tile starts at row `first_row`.
  __device__ TileSource(const bf16* matrix, int first_row, int rows, int k)
      : row(static_cast<int>(threadIdx.x) / T::kVectorsPerRow),
        column(static_cast<int>(threadIdx.x) % T::kVectorsPerRow * 8),
        first(matrix + offset(first_row + row, column, k)),
        vectors_inside(ceil_div(max(rows - first_row - row, 0), kRowStep)),
        k(k) {}

  /// Vector i of the k-tile that starts at column k0.
  __device__ const bf16* address(int i, int k0) const { return first + k0 + offset(i * kRowStep, 0, k); }

  /// Where vector 0 goes; vector i goes i * kTileStep elements further.
  template <typename Tile>
  __device__ bf16* in_tile(Tile& tile) const {
    if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kFill);
    return tile.at(row, column);
  }

  /// How many of this thread's vectors exist in the k-tile that starts at column k0: the first ones. K is a
  /// multiple of 8, so a vector is inside or outside as a whole.
  __device__ int count(int k0) const {
    if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kIssue);
    return k0 + column < k ? vectors_inside : 0;
  }
};

}  // namespace gemm
