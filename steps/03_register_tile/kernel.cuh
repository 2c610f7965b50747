// Step 03: every thread computes an 8 x 8 micro-tile in registers and moves its operands as vectors.
#pragma once

#include <bit>
#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm::step_03 {

// Lesson: shared memory was the limit of step 02: two loads for one multiply-add. A thread that owns kMicro x
// kMicro outputs loads 2 * kMicro values and does kMicro * kMicro multiply-adds with them.
//
// 256 threads as 16 x 16. A thread's micro-tile is split into quarters of 4 x 4, half a tile apart, so that
// the 16-byte shared loads of neighbouring threads are neighbours (no bank conflict).
template <int kTile>
struct alignas(16) Layout {  // its rows are read as float4
  static constexpr int kM = kTile;
  static constexpr int kN = kTile;
  static constexpr int kK = 16;
  static constexpr int kThreads = 256;
  static constexpr int kMicro = kTile / 16;     // outputs per thread, in each direction
  static constexpr int kQuarters = kMicro / 4;  // float4 loads per thread, operand and k
  static_assert(kMicro % 4 == 0, "a micro-tile is made of float4 vectors");

  float a[kK][kTile];  // [k][m]: transposed, so that a thread's rows are contiguous
  float b[kK][kTile];  // [k][n]
};

/// Eight bf16 of row `row` of a [rows][k] matrix, from column `column`; zero outside the matrix.
template <bool kVector>
__device__ __forceinline__ uint4 load_8(const bf16* matrix, int row, int column, int rows, int k) {
  uint4 packed{0, 0, 0, 0};
  if (row >= rows) return packed;
  const bf16* address = matrix + offset(row, column, k);
  if constexpr (kVector) {  // k is a multiple of 8: rows are aligned, a vector is inside or outside
    if (column < k) packed = ptx::ld_global(reinterpret_cast<const uint4*>(address));
  } else {
    std::uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (column + i < k)
        words[i / 2] |= static_cast<std::uint32_t>(ptx::ld_global(address + i).bits) << (i % 2 * 16);
    }
    packed = {words[0], words[1], words[2], words[3]};
  }
  return packed;
}

/// Stores eight bf16 as floats, one below the other: column `column` of tile[k0 .. k0 + 7].
template <int kTile>
__device__ __forceinline__ void store_transposed(float (&tile)[Layout<kTile>::kK][kTile], int k0, int column,
                                                 uint4 packed) {
  const std::uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    ptx::st_shared(&tile[k0 + 2 * i][column], std::bit_cast<float>(words[i] << 16));
    ptx::st_shared(&tile[k0 + 2 * i + 1][column], std::bit_cast<float>(words[i] & 0xffff0000u));
  }
}

template <int kTile, bool kVector>
__global__ void __launch_bounds__(Layout<kTile>::kThreads) register_tile_kernel(Gemm gemm) {
  using L = Layout<kTile>;
  __shared__ L tile;

  const auto [m, n, k] = gemm.shape;
  const int thread = static_cast<int>(threadIdx.x);
  const int tile_row = static_cast<int>(blockIdx.y) * kTile;
  const int tile_column = static_cast<int>(blockIdx.x) * kTile;
  const int micro_row = thread / 16 * 4;  // row of the first quarter; the next one is kQuarterStep further
  const int micro_column = thread % 16 * 4;
  constexpr int kQuarterStep = kTile / L::kQuarters;

  float accumulators[L::kMicro][L::kMicro] = {};  // [m][n]
  for (int k0 = 0; k0 < k; k0 += L::kK) {
    // A row of a k-tile is two vectors of eight k. Neighbouring threads take neighbouring rows.
#pragma unroll
    // ANCHOR: load_vectors
    for (int vector = thread; vector < 2 * kTile; vector += L::kThreads) {
      const int row = vector % kTile;
      const int k_half = vector / kTile * 8;
      store_transposed<kTile>(tile.a, k_half, row,
                              load_8<kVector>(gemm.a, tile_row + row, k0 + k_half, m, k));
      store_transposed<kTile>(tile.b, k_half, row,
                              load_8<kVector>(gemm.b, tile_column + row, k0 + k_half, n, k));
    }
    __syncthreads();
    // ANCHOR_END: load_vectors

#pragma unroll
    for (int i = 0; i < L::kK; ++i) {
      // ANCHOR: micro_tile
      float4 a[L::kQuarters];
      float4 b[L::kQuarters];
#pragma unroll
      for (int q = 0; q < L::kQuarters; ++q) {
        a[q] = ptx::ld_shared(reinterpret_cast<const float4*>(&tile.a[i][micro_row + q * kQuarterStep]));
        b[q] = ptx::ld_shared(reinterpret_cast<const float4*>(&tile.b[i][micro_column + q * kQuarterStep]));
      }
#pragma unroll
      // ANCHOR: outer_product
      for (int qa = 0; qa < L::kQuarters; ++qa) {
        const float a_values[4] = {a[qa].x, a[qa].y, a[qa].z, a[qa].w};
#pragma unroll
        for (int qb = 0; qb < L::kQuarters; ++qb) {
          const float b_values[4] = {b[qb].x, b[qb].y, b[qb].z, b[qb].w};
#pragma unroll
          for (int r = 0; r < 4; ++r) {
#pragma unroll
            for (int c = 0; c < 4; ++c) accumulators[qa * 4 + r][qb * 4 + c] += a_values[r] * b_values[c];
            // ANCHOR_END: outer_product
            // ANCHOR_END: micro_tile
          }
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < L::kMicro; ++r) {
    const int row = tile_row + micro_row + r / 4 * kQuarterStep + r % 4;
    if (row >= m) continue;
#pragma unroll
    for (int q = 0; q < L::kQuarters; ++q) {
      const int column = tile_column + micro_column + q * kQuarterStep;
      const float* values = &accumulators[r][q * 4];
      bf16* address = gemm.d + offset(row, column, n);
      if (n % 4 == 0) {  // rows are 8-byte aligned and four columns are inside or outside together
        if (column < n) {
          ptx::st_global(reinterpret_cast<uint2*>(address),
                         uint2{ptx::cvt_rn_bf16x2_f32(values[0], values[1]),
                               ptx::cvt_rn_bf16x2_f32(values[2], values[3])});
        }
      } else {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          if (column + c < n) ptx::st_global(address + c, ptx::cvt_rn_bf16_f32(values[c]));
        }
      }
    }
  }
}

template <int kTile, bool kAllowVector = true>
Variant variant(const char* name, const char* summary) {
  using L = Layout<kTile>;
  using Grid = TileCtas<L, void>;
  // Per k and thread: 2 * kQuarters shared loads of 16 bytes for kMicro * kMicro multiply-adds. Per k-tile
  // and thread: the loads and stores that bring the tile in.
  constexpr double kFmaPerThread = double{L::kMicro} * L::kMicro;
  constexpr double kFmaPerTile = double{kTile} * kTile * L::kK;
  constexpr double kElements = 2.0 * kTile * L::kK;
  Variant variant = variant_of<register_tile_kernel<kTile, kAllowVector>, Grid>(
      {.name = name,
       .summary = summary,
       .traffic = {.lsu_instructions_per_fma = 2 * L::kQuarters / kFmaPerThread +
                                               kElements * (1 + (kAllowVector ? 1.0 / 8 : 1)) / kFmaPerTile,
                   .shared_bytes_per_fma = 2 * L::kMicro * 4 / kFmaPerThread + kElements * 4 / kFmaPerTile,
                   .global_bytes_per_fma = 4.0 / kTile}});
  variant.prepare = [](const Gemm& gemm) {
    const bool vector = kAllowVector && gemm.shape.k % 8 == 0;
    return vector ? prepare_kernel<register_tile_kernel<kTile, true>, Grid>(gemm)
                  : prepare_kernel<register_tile_kernel<kTile, false>, Grid>(gemm);
  };
  return variant;
}

inline const Step kStep{
    .name = "03_register_tile",
    .title = "a micro-tile in registers, vector loads",
    .architecture = Architecture::kSm80,
    .variants = {
        variant<128>("128", "128x128 tile, 8x8 outputs per thread"),
        variant<64>("64", "64x64 tile, 4x4 outputs per thread: twice the shared loads per multiply-add"),
        variant<128, false>("128_scalar", "128x128 tile, operands loaded 2 bytes at a time")}};

}  // namespace gemm::step_03
