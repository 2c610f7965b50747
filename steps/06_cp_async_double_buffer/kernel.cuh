// Step 06: cp.async copies the next k-tile straight from global to shared memory while the threads multiply.
#pragma once

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tile_source.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/core.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/shared.cuh"

namespace gemm::step_06 {

/// Issues the copies of this thread's vectors of the k-tile at column k0.
// Lesson: cp.async reads `source_bytes` bytes and fills the rest of the 16 with zeros. So a vector outside
// the matrix is a copy of 0 bytes, and needs no branch and no register.
template <typename T, int kRows>
__device__ __forceinline__ void copy_async(SwizzledTile<T, kRows>& tile, const TileSource<T, kRows>& source,
                                           int k0) {
  // ANCHOR: copy_vector
  const int count = source.count(k0);
  bf16* destination = source.in_tile(tile);
#pragma unroll
  for (int i = 0; i < source.kVectors; ++i) {
    ptx::cp_async_cg_16(destination + i * source.kTileStep, source.address(i, k0), i < count ? 16 : 0);
    // ANCHOR_END: copy_vector
  }
}

template <typename T>
struct Shared {
  OperandTiles<T> buffer[2];
};

template <typename T>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm) cp_async_double_buffer_kernel(Gemm gemm) {
  auto& shared = ptx::dynamic_shared<Shared<T>>();
  const auto [m, n, k] = gemm.shape;
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const TileSource<T, T::kM> a(gemm.a, tile_row, m, k);
  const TileSource<T, T::kN> b(gemm.b, tile_column, n, k);
  WarpTile<T> warp;

  // Prologue: the first k-tile has nothing to hide behind.
  // ANCHOR: pipeline
  // ANCHOR: first_copy
  copy_async(shared.buffer[0].a, a, 0);
  copy_async(shared.buffer[0].b, b, 0);
  ptx::cp_async_commit_group();
  // ANCHOR_END: first_copy

  int buffer = 0;
  for (int k0 = 0; k0 < k; k0 += T::kK) {
    // Lesson: wait_group waits for this thread's own copies only. The barrier after it makes the others'
    // copies visible too, and says that all threads have finished reading the buffer that is filled next.
    // ANCHOR: wait_and_copy
    ptx::cp_async_wait_group<0>();
    __syncthreads();
    if (k0 + T::kK < k) {
      copy_async(shared.buffer[1 - buffer].a, a, k0 + T::kK);
      copy_async(shared.buffer[1 - buffer].b, b, k0 + T::kK);
      ptx::cp_async_commit_group();
    }
    warp.multiply(shared.buffer[buffer]);
    // ANCHOR_END: wait_and_copy
    buffer = 1 - buffer;
    // ANCHOR_END: pipeline
  }
  warp.store(gemm, tile_row, tile_column);
}

template <typename T>
Variant variant(const char* name, const char* summary) {
  return variant_of<cp_async_double_buffer_kernel<T>, TileCtas<T, Shared<T>>>(
      {.name = name, .summary = summary, .stages = 2, .traffic = mma_tile_traffic<T>(1)});  // LDGSTS
}

using Tile128x128 = Tiling<128, 128, 64, 2, 2, 2>;

inline const Step kStep{
    .name = "06_cp_async_double_buffer",
    .title = "copy the next tile with cp.async",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm80,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x128>("128x128x64", "64 KB of shared memory, four warps of 64x64, two CTAs per SM"),
        variant<Tiling<128, 128, 32, 2, 2, 2>>("128x128x32", "32 KB, half the work between two barriers"),
        variant<Tiling<128, 128, 64, 2, 4, 2>>("eight_warps", "128x128x64, eight warps of 64x32"),
        variant<Tiling<128, 256, 64, 2, 4>>("128x256x64", "96 KB, eight warps of 64x64, one CTA per SM")}};

}  // namespace gemm::step_06
