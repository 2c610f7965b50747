// Step 07: a ring of stages, so that several k-tiles are in flight at once.
#pragma once

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/cp_async_tile.cuh"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/core.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/shared.cuh"

namespace gemm::step_07 {

template <typename T, int kStages>
struct Shared {
  OperandTiles<T> stage[kStages];
};

// Lesson: with two buffers a copy has the time of one k-tile's multiplication to arrive. With kStages stages
// it has that of kStages - 1, less the last 16 of K, and a late copy no longer stops the tensor cores.
//
// Groups are counted, not named: wait_group<n> returns when at most n of this thread's newest groups are
// unfinished. So every iteration commits exactly one group, an empty one when there is nothing left to copy.
template <typename T, int kStages>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm) cp_async_multistage_kernel(Gemm gemm) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const auto [m, n, k] = gemm.shape;
  const TileSource<T, T::kM> a(gemm.a, tile_row, m, k);
  const TileSource<T, T::kN> b(gemm.b, tile_column, n, k);
  WarpTile<T> warp;

  const auto copy = [&](int stage, int k_tile) {
    copy_async(shared.stage[stage].a, a, k_tile * T::kK);
    copy_async(shared.stage[stage].b, b, k_tile * T::kK);
  };

  // Prologue: fill all stages but one.
  const int k_tiles = ceil_div(k, T::kK);
  // ANCHOR: fill_ring
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < k_tiles) copy(i, i);
    ptx::cp_async_commit_group();
  }
  // ANCHOR_END: fill_ring

  // Main loop, 16 of K at a time. Lesson: the fragments are a ring of two. While the tensor cores work on
  // one, ldmatrix fills the other, across the border of the k-tile too: the barrier comes between the last
  // load from k-tile i and its last multiplication, which hides the first load from k-tile i + 1.
  int read = 0;             // the stage of the k-tile whose fragments are loaded next
  int write = kStages - 1;  // the stage that is filled next, with k-tile i + kStages - 1
  typename WarpTile<T>::Fragments fragments[2];
  ptx::cp_async_wait_group<kStages - 2>();  // so many newer groups may be in flight: k-tile 0 has arrived
  __syncthreads();
  warp.load(fragments[0], shared.stage[0], 0);
  for (int i = 0; i < k_tiles; ++i) {
#pragma unroll
    for (int k = 0; k < T::kK; k += 16) {
      // ANCHOR: fragments_ahead
      const bool last = k + 16 == T::kK;
      if (last) {
        ptx::cp_async_wait_group<kStages - 2>();  // k-tile i + 1 has arrived
        __syncthreads();  // all threads' copies have arrived, and all threads have read k-tile i
        read = read + 1 == kStages ? 0 : read + 1;
      }
      // ANCHOR: multiply_fragments
      if (!last || i + 1 < k_tiles) {
        warp.load(fragments[(k / 16 + 1) % 2], shared.stage[read], (k + 16) % T::kK);
      }
      if (k == 0) {  // after the first fragment loads, because the next multiplication needs these
        const int ahead = i + kStages - 1;
        if (ahead < k_tiles) copy(write, ahead);
        ptx::cp_async_commit_group();
        write = write + 1 == kStages ? 0 : write + 1;
      }
      warp.multiply(fragments[k / 16 % 2]);
      // ANCHOR_END: multiply_fragments
      // ANCHOR_END: fragments_ahead
    }
  }
  ptx::cp_async_wait_group<0>();  // the last groups are empty, but a thread ends with nothing in flight
  warp.store(gemm, tile_row, tile_column);
}

template <typename T, int kStages>
Variant variant(const char* name, const char* summary) {
  return variant_of<cp_async_multistage_kernel<T, kStages>, TileCtas<T, Shared<T, kStages>>>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = mma_tile_traffic<T>(1)});  // LDGSTS
}

using Tile128x128 = Tiling<128, 128, 64, 2, 2, 2>;
using Tile128x128k32 = Tiling<128, 128, 32, 2, 2, 2>;
using Tile128x256 = Tiling<128, 256, 64, 2, 4>;

inline const Step kStep{
    .name = "07_cp_async_multistage",
    .title = "a ring of N stages",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm80,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x128, 3>("128x128x64_stages3", "96 KB, four warps of 64x64, two CTAs per SM"),
        variant<Tile128x128, 2>("128x128x64_stages2", "64 KB"),
        variant<Tiling<128, 128, 64, 2, 2>, 4>("128x128x64_stages4", "128 KB: one CTA per SM instead of two"),
        variant<Tile128x128k32, 2>("128x128x32_stages2", "32 KB, half the work between two barriers"),
        variant<Tile128x128k32, 3>("128x128x32_stages3", "48 KB"),
        variant<Tile128x128k32, 4>("128x128x32_stages4", "64 KB"),
        variant<Tile128x128k32, 5>("128x128x32_stages5", "80 KB"),
        variant<Tile128x128k32, 6>("128x128x32_stages6", "96 KB"),
        variant<Tile128x256, 2>("128x256x64_stages2", "96 KB, eight warps of 64x64, one CTA per SM"),
        variant<Tile128x256, 3>("128x256x64_stages3", "144 KB"),
        variant<Tile128x256, 4>("128x256x64_stages4", "192 KB"),
        variant<Tiling<256, 128, 64, 4, 2>, 3>("256x128x64_stages3", "144 KB"),
        variant<Tiling<128, 256, 32, 2, 4>, 5>("128x256x32_stages5", "120 KB")}};

}  // namespace gemm::step_07
