#include "harness/verify/reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gemm/problem/types.h"

#include "harness/base/parallel.h"

// One function, compiled for several vector units; the loader picks. GCC and Clang on x86-64 Linux.
#if !defined(__x86_64__) || !defined(__linux__) || defined(__SANITIZE_ADDRESS__)
#define HARNESS_VECTOR_CLONES
#elif defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)  // AVX2 with fused multiply-add
#define HARNESS_VECTOR_CLONES __attribute__((target_clones("avx512f", "arch=x86-64-v3", "default")))
#else
#define HARNESS_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

namespace harness {
namespace {

constexpr int kLanes =
    4;  // columns of D that one vector holds: as many as AVX2 has, for longer ones spill there
constexpr int kRows = 4;     // rows of D that the innermost loop keeps in registers
constexpr int kTile = 64;    // rows and columns of D that one task computes
constexpr int kDepth = 256;  // elements of K that are unpacked at a time: 2 x 128 KB, fits the L2 cache
static_assert(kTile % kLanes == 0 && kTile % kRows == 0, "a tile is made of whole register blocks");

typedef double Vector __attribute__((vector_size(kLanes * sizeof(double)), may_alias));

struct Tile {
  alignas(64) double a[kTile][kDepth];          // [m][k]
  alignas(64) double b[kDepth][kTile];          // [k][n]
  alignas(64) double value[kTile][kTile];       // [m][n]
  alignas(64) double square_sum[kTile][kTile];  // [m][n]
};

// a[row][k] * b[k][column .. column + 7] for kRows rows, accumulated over `depth`.
HARNESS_VECTOR_CLONES void multiply_block(Tile& tile, int row, int column, int depth, bool with_norm) {
  Vector value[kRows];
  Vector square_sum[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    value[i] = *reinterpret_cast<const Vector*>(&tile.value[row + i][column]);
    square_sum[i] = *reinterpret_cast<const Vector*>(&tile.square_sum[row + i][column]);
  }
  if (with_norm) {
    for (int k = 0; k < depth; ++k) {
      const Vector b = *reinterpret_cast<const Vector*>(&tile.b[k][column]);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        const Vector product = tile.a[row + i][k] * b;
        value[i] += product;
        square_sum[i] += product * product;
      }
    }
  } else {
    for (int k = 0; k < depth; ++k) {
      const Vector b = *reinterpret_cast<const Vector*>(&tile.b[k][column]);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) value[i] += tile.a[row + i][k] * b;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    *reinterpret_cast<Vector*>(&tile.value[row + i][column]) = value[i];
    *reinterpret_cast<Vector*>(&tile.square_sum[row + i][column]) = square_sum[i];
  }
}

// Elements [row][first_k + k] of a K-major matrix to [row][k] in binary64. Rows beyond `count` are left
// alone: whatever they hold, their results are not copied out.
template <typename Element>
void unpack_a(const Element* matrix, int columns, int first, int count, int first_k, int depth, Tile& tile) {
  for (int i = 0; i < count; ++i) {
    const Element* row = matrix + gemm::offset(first + i, first_k, columns);
    for (int k = 0; k < depth; ++k) tile.a[i][k] = static_cast<double>(gemm::to_float(row[k]));
  }
}

// The same, transposed to [k][row]; kLanes rows at a time, so that whole cache lines are written.
template <typename Element>
void unpack_b(const Element* matrix, int columns, int first, int count, int first_k, int depth, Tile& tile) {
  for (int lane = 0; lane < count; lane += kLanes) {
    const Element* row[kLanes];
    for (int i = 0; i < kLanes; ++i)
      row[i] = matrix + gemm::offset(first + std::min(lane + i, count - 1), first_k, columns);
    for (int k = 0; k < depth; ++k) {
#pragma GCC unroll 8
      for (int i = 0; i < kLanes; ++i) tile.b[k][lane + i] = static_cast<double>(gemm::to_float(row[i][k]));
    }
  }
}

template <typename Element>
void reference_of(const gemm::Shape& shape, const Element* a, const Element* b, double* value, float* norm) {
  const int tiles_n = gemm::ceil_div(shape.n, kTile);
  const std::int64_t tiles = static_cast<std::int64_t>(gemm::ceil_div(shape.m, kTile)) * tiles_n;
  parallel_for(tiles, 1, [&](std::int64_t index, std::int64_t) {
    thread_local std::vector<Tile> storage(1);
    Tile& tile = storage.front();
    const int first_row = static_cast<int>(index / tiles_n) * kTile;
    const int first_column = static_cast<int>(index % tiles_n) * kTile;
    const int rows = std::min(kTile, shape.m - first_row);
    const int columns = std::min(kTile, shape.n - first_column);
    for (int i = 0; i < kTile; ++i) {
      std::fill_n(tile.value[i], kTile, 0.0);
      std::fill_n(tile.square_sum[i], kTile, 0.0);
    }
    for (int first_k = 0; first_k < shape.k; first_k += kDepth) {
      const int depth = std::min(kDepth, shape.k - first_k);
      unpack_a(a, shape.k, first_row, rows, first_k, depth, tile);
      unpack_b(b, shape.k, first_column, columns, first_k, depth, tile);
      for (int column = 0; column < columns; column += kLanes)
        for (int row = 0; row < rows; row += kRows) multiply_block(tile, row, column, depth, norm != nullptr);
    }
    for (int i = 0; i < rows; ++i) {
      const std::int64_t to = gemm::offset(first_row + i, first_column, shape.n);
      std::copy_n(tile.value[i], columns, value + to);
      if (norm == nullptr) continue;
      for (int j = 0; j < columns; ++j) norm[to + j] = static_cast<float>(std::sqrt(tile.square_sum[i][j]));
    }
  });
}

}  // namespace

void host_reference(const gemm::Gemm& problem, double* value, float* norm) {
  reference_of(problem.shape, problem.a, problem.b, value, norm);
}

void host_reference(const gemm::Shape& shape, const float* a, const float* b, double* value, float* norm) {
  reference_of(shape, a, b, value, norm);
}

}  // namespace harness
