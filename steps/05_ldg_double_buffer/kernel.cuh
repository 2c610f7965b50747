// Step 05: while the tensor cores work on one k-tile, the next one is already on its way, through registers.
#pragma once

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tile_source.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"

namespace gemm::step_05 {

/// This thread's vectors of a k-tile, on their way from global to shared memory.
template <typename T, int kRows>
struct VectorsInFlight {
  static constexpr int kVectors = TileSource<T, kRows>::kVectors;

  TileSource<T, kRows> source;
  uint4 vector[kVectors];

  __device__ __forceinline__ void load(int k0) {
    const int count = source.count(k0);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      vector[i] = uint4{0, 0, 0, 0};
      if (i < count) vector[i] = ptx::ld_global(reinterpret_cast<const uint4*>(source.address(i, k0)));
    }
  }

  __device__ __forceinline__ void store(SwizzledTile<T, kRows>& tile) const {
    bf16* destination = source.in_tile(tile);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      ptx::st_shared(reinterpret_cast<uint4*>(destination + i * source.kTileStep), vector[i]);
    }
  }
};

template <typename T, int kBuffers>
struct Shared {
  OperandTiles<T> buffer[kBuffers];
};

// Lesson: a load instruction does not wait; the first instruction that uses its result does. So the loads of
// k-tile i + 1 are issued before the multiplications of k-tile i, and the stores that need their results come
// after. The price is registers: the vectors in flight occupy them during the whole multiplication.
//
// With two buffers the stores go where no thread reads, and one barrier per k-tile is enough: it says both
// "buffer 1 - b is complete" and "all threads have finished reading buffer b". With one buffer (the variant
// one_buffer) there are two barriers.
template <typename T, int kBuffers>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm) ldg_double_buffer_kernel(Gemm gemm) {
  auto& shared = ptx::dynamic_shared<Shared<T, kBuffers>>();
  const auto [m, n, k] = gemm.shape;
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  VectorsInFlight<T, T::kM> a{{gemm.a, tile_row, m, k}, {}};
  VectorsInFlight<T, T::kN> b{{gemm.b, tile_column, n, k}, {}};
  WarpTile<T> warp;

  // Prologue: the first k-tile has nothing to hide behind.
  // ANCHOR: prefetch_loop
  a.load(0);
  b.load(0);
  a.store(shared.buffer[0].a);
  b.store(shared.buffer[0].b);
  __syncthreads();

  // Main loop: k-tile i is in shared memory, k-tile i + 1 in flight.
  const int k_tiles = ceil_div(k, T::kK);
  for (int i = 0; i + 1 < k_tiles; ++i) {
    OperandTiles<T>& current = shared.buffer[i % kBuffers];
    OperandTiles<T>& next = shared.buffer[(i + 1) % kBuffers];
    a.load((i + 1) * T::kK);
    b.load((i + 1) * T::kK);
    warp.multiply(current);
    if constexpr (kBuffers == 1) __syncthreads();  // all threads have finished reading the only buffer
    a.store(next.a);
    b.store(next.b);
    __syncthreads();
  }

  // Epilogue: the last k-tile, with nothing left to fetch.
  warp.multiply(shared.buffer[(k_tiles - 1) % kBuffers]);
  // ANCHOR_END: prefetch_loop
  warp.store(gemm, tile_row, tile_column);
}

template <typename T, int kBuffers>
Variant variant(const char* name, const char* summary) {
  return variant_of<ldg_double_buffer_kernel<T, kBuffers>, TileCtas<T, Shared<T, kBuffers>>>(
      {.name = name,
       .summary = summary,
       .stages = kBuffers,
       .traffic = mma_tile_traffic<T>(2)});  // LDG and STS
}

using Tile128x128 = Tiling<128, 128, 64, 2, 2, 2>;

inline const Step kStep{
    .name = "05_ldg_double_buffer",
    .title = "prefetch the next tile through registers",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm80,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<Tile128x128, 2>("two_buffers",
                                         "128x128x64, 64 registers of prefetch, one barrier per k-tile"),
                 variant<Tile128x128, 1>("one_buffer", "128x128x64, two barriers per k-tile"),
                 variant<Tiling<128, 128, 32, 2, 2, 2>, 2>(
                     "128x128x32", "32 registers of prefetch, half the work between two barriers"),
                 variant<Tiling<128, 128, 64, 2, 4, 2>, 2>(
                     "eight_warps", "128x128x64, eight warps of 64x32, 32 registers of prefetch"),
                 variant<Tiling<128, 256, 64, 2, 4>, 2>(
                     "128x256x64", "eight warps of 64x64, 48 registers of prefetch, one CTA per SM")}};

}  // namespace gemm::step_05
