// Step 04: a warp multiplies on the tensor cores, from swizzled shared memory.
#pragma once

#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/swizzle.h"
#include "gemm/tile/tile_source.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sync.cuh"
#include "ptx/shared.cuh"

namespace gemm::step_04 {

enum class SharedLayout { kPlain, kPadded, kSwizzled };

// Lesson: ldmatrix reads eight rows of 16 bytes at once. Rows that lie a multiple of 128 bytes apart start in
// the same bank, so their reads conflict eight-fold. There are two cures: rows are padded by 16 bytes, or the
// 16-byte chunks within a row are permuted, differently in every row (swizzled). The second one costs no
// memory.
template <typename T, SharedLayout kLayout, int kRows>
struct SharedTile {
  static constexpr int kPad = kLayout == SharedLayout::kPadded ? 8 : 0;
  static constexpr int kStride = T::kK + kPad;

  bf16 element[kRows * kStride];

  /// The address of element (row, k); k is a multiple of 8.
  // ANCHOR: swizzle
  __device__ bf16* at(int row, int k) {
    const int chunk = kLayout == SharedLayout::kSwizzled ? swizzle_chunk<2 * T::kK>(row, k / 8) : k / 8;
    return element + row * kStride + chunk * 8;
  }
  // ANCHOR_END: swizzle
};

template <typename T, SharedLayout kLayout>
struct Shared {
  SharedTile<T, kLayout, T::kM> a;  // [m][k]
  SharedTile<T, kLayout, T::kN> b;  // [n][k]
};

/// Copies this thread's vectors of the k-tile at column k0, zeros outside the matrix.
template <typename T, SharedLayout kLayout, int kRows>
__device__ __forceinline__ void copy_tile(SharedTile<T, kLayout, kRows>& tile,
                                          const TileSource<T, kRows>& source, int k0) {
  constexpr int kVectors = TileSource<T, kRows>::kVectors;
  uint4 vector[kVectors];
  const int count = source.count(k0);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    vector[i] = uint4{0, 0, 0, 0};
    if (i < count) vector[i] = ptx::ld_global(reinterpret_cast<const uint4*>(source.address(i, k0)));
  }
  bf16* destination = tile.at(source.row, source.column);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    ptx::st_shared(reinterpret_cast<uint4*>(destination + i * source.kRowStep * tile.kStride), vector[i]);
  }
}

template <typename T, SharedLayout kLayout>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm) mma_sync_kernel(Gemm gemm) {
  auto& tile = ptx::dynamic_shared<Shared<T, kLayout>>();
  const auto [m, n, k] = gemm.shape;
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / T::kWarpsN * T::kWarpM;  // this warp's part of the tile
  const int warp_column = warp % T::kWarpsN * T::kWarpN;
  const TileSource<T, T::kM> a_source(gemm.a, tile_row, m, k);
  const TileSource<T, T::kN> b_source(gemm.b, tile_column, n, k);

  float accumulators[T::kFragmentsM][T::kFragmentsN][4] = {};
  // ANCHOR: load_then_multiply
  for (int k0 = 0; k0 < k; k0 += T::kK) {
    copy_tile(tile.a, a_source, k0);
    copy_tile(tile.b, b_source, k0);
    __syncthreads();
    // ANCHOR_END: load_then_multiply

#pragma unroll
    for (int i = 0; i < T::kK; i += 16) {
      // Lesson: ldmatrix.x4 fetches four 8 x 8 matrices; lane l names one row of matrix l / 8. A 16 x 16
      // block of A is four of them: (rows 0-7, 8-15) x (k 0-7, 8-15). For B the same four are two m16n8k16
      // operands side by side.
      std::uint32_t a[T::kFragmentsM][4];
      std::uint32_t b[T::kFragmentsN][2];
      // Rows a multiple of 8 apart have the same swizzle: the other fragments lie at constant distances.
      // ANCHOR: ldmatrix
      const bf16* a_row = tile.a.at(warp_row + lane % 16, i + lane / 16 * 8);
      const bf16* b_row = tile.b.at(warp_column + lane / 16 * 8 + lane % 8, i + lane / 8 % 2 * 8);
#pragma unroll
      for (int f = 0; f < T::kFragmentsM; ++f) ptx::ldmatrix_x4(a[f], a_row + f * 16 * tile.a.kStride);
#pragma unroll
      for (int f = 0; f < T::kFragmentsN; f += 2) {
        std::uint32_t pair[4];
        ptx::ldmatrix_x4(pair, b_row + f * 8 * tile.b.kStride);
        b[f][0] = pair[0];
        b[f][1] = pair[1];
        b[f + 1][0] = pair[2];
        b[f + 1][1] = pair[3];
        // ANCHOR_END: ldmatrix
      }
#pragma unroll
      // ANCHOR: mma
      for (int fm = 0; fm < T::kFragmentsM; ++fm) {
#pragma unroll
        for (int fn = 0; fn < T::kFragmentsN; ++fn)
          ptx::mma_m16n8k16_bf16(accumulators[fm][fn], a[fm], b[fn]);
        // ANCHOR_END: mma
      }
    }
    __syncthreads();
  }

  // In every 16 x 8 fragment, lane l holds two neighbours of row l / 4 and two neighbours of row l / 4 + 8.
#pragma unroll
  for (int fm = 0; fm < T::kFragmentsM; ++fm) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile_row + warp_row + fm * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int fn = 0; fn < T::kFragmentsN; ++fn) {
        const int column = tile_column + warp_column + fn * 8 + lane % 4 * 2;
        if (row < m && column < n) {
          ptx::st_global(
              reinterpret_cast<std::uint32_t*>(gemm.d + offset(row, column, n)),
              ptx::cvt_rn_bf16x2_f32(accumulators[fm][fn][2 * half], accumulators[fm][fn][2 * half + 1]));
        }
      }
    }
  }
}

template <typename T, SharedLayout kLayout>
Variant variant(const char* name, const char* summary) {
  // For every 16 of K, a warp reads its part of A and B once. All copies cross shared memory once more
  // on the way in.
  constexpr double kCopies = 2.0 * (T::kM + T::kN) / (T::kM * T::kN);
  constexpr double kReads = 2.0 * (T::kWarpM + T::kWarpN) / (T::kWarpM * T::kWarpN);
  return variant_of<mma_sync_kernel<T, kLayout>, TileCtas<T, Shared<T, kLayout>>>(
      {.name = name,
       .summary = summary,
       .traffic = {.lsu_instructions_per_fma = (2 * kCopies + kReads) / 16,
                   .shared_bytes_per_fma = kCopies + kReads,
                   .global_bytes_per_fma = kCopies}});
}

using Tile128x128 = Tiling<128, 128, 64, 2, 2, 2>;

inline const Step kStep{
    .name = "04_mma_sync",
    .title = "ldmatrix and mma.sync, swizzled shared memory",
    .unit = MathUnit::kMmaSync,
    .architecture = Architecture::kSm80,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x128, SharedLayout::kSwizzled>(
            "swizzled", "128x128x64, four warps of 64x64; chunks of a row permuted"),
        variant<Tile128x128, SharedLayout::kPadded>("padded", "rows padded by 16 bytes"),
        variant<Tile128x128, SharedLayout::kPlain>("plain", "rows as they are: 8-way bank conflicts"),
        variant<Tiling<128, 128, 64, 2, 4, 2>, SharedLayout::kSwizzled>(
            "eight_warps", "eight warps of 64x32: more warps, fewer uses of each fragment"),
        variant<Tiling<128, 256, 64, 2, 4>, SharedLayout::kSwizzled>(
            "128x256", "128x256x64, eight warps of 64x64, one CTA per SM")}};

}  // namespace gemm::step_04
