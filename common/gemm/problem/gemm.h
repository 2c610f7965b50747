// The problem every step solves: D = A * B^T.
#pragma once

#include <cstdint>

#include "gemm/problem/bf16.h"

namespace gemm {

/// Sizes in elements. Fits int because the harness refuses any dimension above kMaxDimension.
struct Shape {
  int m = 0;
  int n = 0;
  int k = 0;
  bool operator==(const Shape&) const = default;
};

/// One multiplication on device memory. All three matrices are dense and row-major.
struct Gemm {
  Shape shape;
  const bf16* a = nullptr;  // [m][k]
  const bf16* b = nullptr;  // [n][k]: K-major as well, BLAS calls this "TN"
  bf16* d = nullptr;        // [m][n]
};

/// What one CTA works on: an m x n tile of D, k elements of the K axis per iteration of its main loop.
struct TileShape {
  int m = 0;
  int n = 0;
  int k = 0;
};

constexpr int ceil_div(int value, int divisor) {
  return (value + divisor - 1) / divisor;
}

/// The element at (row, column) of a dense row-major matrix with `columns` columns. 64-bit: 65536 x 65536
/// elements do not fit an int.
constexpr std::int64_t offset(int row, int column, int columns) {
  return static_cast<std::int64_t>(row) * columns + column;
}

}  // namespace gemm
