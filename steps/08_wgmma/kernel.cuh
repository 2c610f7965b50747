// Step 08: a warpgroup multiplies straight from shared memory.
#pragma once

#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/cp_async_tile.cuh"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/descriptor.h"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/wgmma.cuh"

namespace gemm::step_08 {

/// The CTA multiplies a kM x kN tile with kWarpgroups warpgroups of 128 threads; each owns kM / kWarpgroups
/// rows, in blocks of 64, over the whole width.
template <int kTileM, int kTileN, int kTileK, int kGroups, int kCtas = 1>
struct WgmmaTiling {
  static constexpr int kM = kTileM;
  static constexpr int kN = kTileN;
  static constexpr int kK = kTileK;
  static constexpr int kCtasPerSm = kCtas;
  static constexpr int kWarpgroups = kGroups;
  static constexpr int kThreads = 128 * kWarpgroups;
  static constexpr int kBlocks = kM / kWarpgroups / 64;  // m64 blocks of a warpgroup
  static constexpr int kVectorsPerRow = kK / 8;
  static_assert(kM % (64 * kWarpgroups) == 0, "a wgmma is 64 rows high");
  static_assert(kN % 8 == 0 && kN <= 256, "a wgmma is 8 to 256 columns wide");
  static_assert(kK == 64, "a row of the tile is 128 bytes, the span of the swizzle");
};

template <typename T, int kStages>
struct Shared {
  OperandTiles<T> stage[kStages];
};

// Lesson: wgmma takes no fragments. It takes a descriptor: where the tile is in shared memory and how it is
// laid out.
//   start address   of the tile, or of the 32 bytes of every row that hold the next 16 elements of K
//   stride          from one group of 8 rows to the next: 8 rows of 128 bytes, 1024
//   leading         ignored for a swizzled K-major tile: a row is one swizzle span long
//   swizzle         128B: what cp.async wrote with swizzle_chunk() is what wgmma reads
// ANCHOR: descriptor
__device__ __forceinline__ std::uint64_t tile_descriptor(const bf16* element) {
  return ptx::encode({.address = ptx::shared_address(element),
                      .leading_bytes = 16,
                      .stride_bytes = 1024,
                      .swizzle = ptx::Swizzle::k128B});
}
// ANCHOR_END: descriptor

template <typename T, int kStages>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm) wgmma_kernel(Gemm gemm) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  const auto [m, n, k] = gemm.shape;
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const int warpgroup_row = warpgroup * T::kBlocks * 64;
  const TileSource<T, T::kM> a(gemm.a, tile_row, m, k);
  const TileSource<T, T::kN> b(gemm.b, tile_column, n, k);
  const auto copy = [&](int stage, int k_tile) {
    copy_async(shared.stage[stage].a, a, k_tile * T::kK);
    copy_async(shared.stage[stage].b, b, k_tile * T::kK);
  };

  const int k_tiles = ceil_div(k, T::kK);
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < k_tiles) copy(i, i);
    ptx::cp_async_commit_group();
  }

  float accumulators[T::kBlocks][T::kN / 2];
  int read = 0;
  int write = kStages - 1;
  for (int i = 0; i < k_tiles; ++i) {
    // ANCHOR: k_tile
    // ANCHOR: wait_and_copy
    // ANCHOR: proxy_fence
    ptx::cp_async_wait_group<kStages - 2>();
    // Lesson: cp.async writes through the generic proxy, wgmma reads through the async proxy. Each thread
    // that wrote fences its own writes; only then does the barrier hand them to the others.
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    // ANCHOR_END: proxy_fence
    if (i + kStages - 1 < k_tiles) copy(write, i + kStages - 1);
    ptx::cp_async_commit_group();
    // ANCHOR_END: wait_and_copy

    // Lesson: wgmma only issues the multiplication. The fence gives it the accumulators, commit_group closes
    // a group, and until wait_group returns no thread touches the accumulators or the stage.
#pragma unroll
    for (int block = 0; block < T::kBlocks; ++block) ptx::wgmma_fence_operand(accumulators[block]);
    ptx::wgmma_fence();
    OperandTiles<T>& tiles = shared.stage[read];
#pragma unroll
    for (int kk = 0; kk < T::kK; kk += 16) {
#pragma unroll
      for (int block = 0; block < T::kBlocks; ++block) {
        // Step 16 along K inside the swizzled row: 32 bytes further, before the swizzle is applied.
        const std::uint64_t a_tile =
            tile_descriptor(tiles.a.element + (warpgroup_row + block * 64) * T::kK + kk);
        const std::uint64_t b_tile = tile_descriptor(tiles.b.element + kk);
        // The first multiplication of the tile overwrites the accumulators: no zeroing.
        ptx::wgmma_m64nNk16_f32_bf16_ss<T::kN>(accumulators[block], a_tile, b_tile, i > 0 || kk > 0);
      }
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
    // ANCHOR_END: k_tile
#pragma unroll
    for (int block = 0; block < T::kBlocks; ++block) ptx::wgmma_fence_operand(accumulators[block]);
    read = read + 1 == kStages ? 0 : read + 1;
    write = write + 1 == kStages ? 0 : write + 1;
  }
  ptx::cp_async_wait_group<0>();

  // An accumulator of m64nN: warp w of the warpgroup holds rows 16 w .. 16 w + 15, laid out like mma.sync's
  // fragments.
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile_row + warpgroup_row + block * 64 + warp * 16 + half * 8 + lane / 4;
      if (row >= m) continue;
#pragma unroll
      for (int j = 0; j < T::kN / 8; ++j) {
        const int column = tile_column + j * 8 + lane % 4 * 2;
        if (column >= n) continue;
        ptx::st_global(reinterpret_cast<std::uint32_t*>(gemm.d + offset(row, column, n)),
                       ptx::cvt_rn_bf16x2_f32(accumulators[block][4 * j + 2 * half],
                                              accumulators[block][4 * j + 2 * half + 1]));
      }
    }
  }
}

template <typename T, int kStages>
Variant variant(const char* name, const char* summary) {
  // wgmma reads A once and B once for every 64 rows.
  constexpr double kCopies = 2.0 * (T::kM + T::kN) / (T::kM * T::kN);
  constexpr double kReads = 2.0 / T::kN + 2.0 / 64;
  return variant_of<wgmma_kernel<T, kStages>, TileCtas<T, Shared<T, kStages>>>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = {.lsu_instructions_per_fma = kCopies / 16,
                   .shared_bytes_per_fma = kCopies + kReads,
                   .global_bytes_per_fma = kCopies}});
}

inline const Step kStep{
    .name = "08_wgmma",
    .title = "the warpgroup multiplies straight from shared memory",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<WgmmaTiling<128, 128, 64, 1, 2>, 3>("128x128", "one warpgroup, 3 stages, two CTAs per SM"),
        variant<WgmmaTiling<128, 256, 64, 2>, 4>("128x256", "two warpgroups, 4 stages, one CTA per SM"),
        variant<WgmmaTiling<128, 256, 64, 2>, 3>("128x256_stages3",
                                                 "two warpgroups, 3 stages, one CTA per SM"),
        variant<WgmmaTiling<128, 192, 64, 2>, 4>("128x192", "two warpgroups, 4 stages"),
        variant<WgmmaTiling<64, 256, 64, 1>, 4>("64x256", "one warpgroup, 4 stages, one CTA per SM")}};

}  // namespace gemm::step_08
