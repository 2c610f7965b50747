// Where the tile of a CTA begins in a grid of one CTA for every tile, along M first (TileCtasAlongM).
#pragma once

#include "gemm/problem/gemm.h"
#include "ptx/core.cuh"

namespace gemm {

struct TileCorner {
  int row;
  int column;
};
template <typename T>
__device__ __forceinline__ TileCorner tile_along_m(int m) {
  const int rows_of_tiles = ceil_div(m, T::kM);
  return {static_cast<int>(blockIdx.x) % rows_of_tiles * T::kM,
          static_cast<int>(blockIdx.x) / rows_of_tiles * T::kN};
}

}  // namespace gemm
