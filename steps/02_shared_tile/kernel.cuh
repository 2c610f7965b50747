// Step 02: the block copies a tile of each operand into shared memory and reuses it.
#pragma once

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm::step_02 {

// Lesson: kTile x kTile threads share one k-tile of A and one of B. Every thread loads one element of each,
// waits for the others, and then reads kTile elements of each from shared memory: every element that was
// fetched from global memory is used kTile times.
//
// kPad is the number of unused floats at the end of a row. A warp reads b_tile[column][i] down a column; with
// rows of 32 floats all 32 lanes would read from the same bank. One float of padding moves each row one bank
// further.
template <int kTile, int kPad>
__global__ void __launch_bounds__(kTile* kTile) shared_tile_kernel(Gemm gemm) {
  __shared__ float a_tile[kTile][kTile + kPad];  // [m][k]
  __shared__ float b_tile[kTile][kTile + kPad];  // [n][k]

  const auto [m, n, k] = gemm.shape;
  const int tx = static_cast<int>(threadIdx.x);  // column in the tile of D; k when loading
  const int ty = static_cast<int>(threadIdx.y);  // row in the tile of D; row of A and of B when loading
  const int row = static_cast<int>(blockIdx.y) * kTile + ty;
  const int column = static_cast<int>(blockIdx.x) * kTile + tx;
  const int b_row = static_cast<int>(blockIdx.x) * kTile + ty;

  float accumulator = 0;
  // ANCHOR: load_tile
  for (int k0 = 0; k0 < k; k0 += kTile) {
    const bool k_inside = k0 + tx < k;
    float a = 0;  // elements outside the matrices contribute 0
    float b = 0;
    if (k_inside && row < m) a = to_float(ptx::ld_global(gemm.a + offset(row, k0 + tx, k)));
    if (k_inside && b_row < n) b = to_float(ptx::ld_global(gemm.b + offset(b_row, k0 + tx, k)));
    ptx::st_shared(&a_tile[ty][tx], a);
    ptx::st_shared(&b_tile[ty][tx], b);
    __syncthreads();  // the tile is complete before any thread reads it

    // ANCHOR_END: load_tile

#pragma unroll
    // ANCHOR: multiply_tile
    for (int i = 0; i < kTile; ++i) {
      // ANCHOR: one_product
      const float a_value = ptx::ld_shared(&a_tile[ty][i]);  // one address for the whole warp: a broadcast
      const float b_value = ptx::ld_shared(&b_tile[tx][i]);  // 32 rows, one per lane
      accumulator += a_value * b_value;
      // ANCHOR_END: one_product
    }
    __syncthreads();  // all threads have read the tile before any overwrites it
    // ANCHOR_END: multiply_tile
  }
  if (row < m && column < n)
    ptx::st_global(gemm.d + offset(row, column, n), ptx::cvt_rn_bf16_f32(accumulator));
}

/// One k-tile, as the host names it.
template <int kTile>
struct Tile {
  static constexpr int kM = kTile;
  static constexpr int kN = kTile;
  static constexpr int kK = kTile;
};

template <int kTile, int kPad>
Variant variant(const char* name, const char* summary) {
  using Grid = TileCtas<Tile<kTile>, void, kTile, 1, kTile>;
  return variant_of<shared_tile_kernel<kTile, kPad>, Grid>(
      {.name = name,
       .summary = summary,
       // Two shared loads per multiply-add; two global loads and two shared stores for every kTile of them.
       .traffic = {.lsu_instructions_per_fma = 2 + 4.0 / kTile,
                   .shared_bytes_per_fma = 8 + 8.0 / kTile,
                   .global_bytes_per_fma = 4.0 / kTile}});
}

inline const Step kStep{
    .name = "02_shared_tile",
    .title = "a tile in shared memory, reused by the block",
    .architecture = Architecture::kSm80,
    .variants = {
        variant<32, 1>("32", "32x32 tile, rows padded by one float"),
        variant<32, 4>("32_pad4", "rows padded by 16 bytes: no conflict, and four elements per load"),
        variant<32, 0>("32_unpadded", "32x32 tile, every b_tile read a 32-way bank conflict"),
        variant<16, 1>("16", "16x16 tile: half the reuse, more blocks per SM")}};

}  // namespace gemm::step_02
