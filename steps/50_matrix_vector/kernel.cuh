// Step 50: a matrix times a vector. Nothing is reused, so the kernel is as fast as memory, or as its loads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/tile_corner.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm::step_50 {

// Lesson: with few rows of A, every element of B is used a few times only. All that counts is how many bytes
// of B are on their way at any moment (in flight), and which bytes a warp requests together.
//
// A warp computes kRows columns of D, which are rows of B, for kM rows of A at once. It has kRows * kLoads
// loads of 16 bytes per lane in flight. kSplit warps share the K axis of the same rows.
template <int kRowsOfB, int kLoadsOfARow, int kRowsOfA = 1, int kLanesOfARow = 32, int kWarpsOfARow = 1>
struct Layout {
  static constexpr int kLanes = kLanesOfARow;  // lanes that read one row of B together
  static constexpr int kRows = kRowsOfB;       // rows of B per lane
  static constexpr int kLoads = kLoadsOfARow;  // loads of 16 bytes in flight per lane and row
  static constexpr int kSplit = kWarpsOfARow;
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kCtas = 4 * kLoads * (kRows + kRowsOfA) + kRows * kRowsOfA > 50 ? 2 : 3;  // per SM
  static constexpr int kGroups = 32 / kLanes;                                                    // per warp
  static constexpr int kWarpRows = kRows * kGroups;
  static constexpr int kM = kRowsOfA;
  static constexpr int kN = kWarps / kSplit * kWarpRows;
  static constexpr int kK = kLanes * 8 * kSplit;  // from a lane's load to its next one
};

/// Eight multiply-adds: a bf16 is the upper half of an fp32.
__device__ __forceinline__ void multiply_add(float& accumulator, uint4 a, uint4 b) {
  const std::uint32_t a_words[4] = {a.x, a.y, a.z, a.w};
  const std::uint32_t b_words[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    accumulator += std::bit_cast<float>(a_words[i] << 16) * std::bit_cast<float>(b_words[i] << 16);
    accumulator +=
        std::bit_cast<float>(a_words[i] & 0xffff0000u) * std::bit_cast<float>(b_words[i] & 0xffff0000u);
  }
}

/// The rows of A and of B that a lane reads, and what it has summed up.
template <typename T>
struct Lane {
  const bf16* a[T::kM];
  const bf16* b[T::kRows];
  float accumulators[T::kM][T::kRows] = {};

  /// kLoads vectors of every row of B, then the multiplication. All loads are issued before one is used.
  template <int kLoads>
  __device__ __forceinline__ void step(int k0) {
    // ANCHOR: loads_in_flight
    uint4 vectors[kLoads][T::kRows];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (int r = 0; r < T::kRows; ++r)
        vectors[i][r] = ptx::ld_global_no_allocate(reinterpret_cast<const uint4*>(b[r] + k0 + i * T::kK));
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (int m = 0; m < T::kM; ++m) {
        const uint4 vector = ptx::ld_global(reinterpret_cast<const uint4*>(a[m] + k0 + i * T::kK));
#pragma unroll
        for (int r = 0; r < T::kRows; ++r) multiply_add(accumulators[m][r], vector, vectors[i][r]);
        // ANCHOR_END: loads_in_flight
      }
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(T::kThreads, T::kCtas) matrix_vector_kernel(Gemm gemm) {
  const auto [m, n, k] = gemm.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto [tile_row, tile_column] = tile_along_m<T>(m);
  const int warp_column = tile_column + warp / T::kSplit * T::kWarpRows;
  const int column = warp_column + lane / T::kLanes;  // this lane's first row of B

  Lane<T> mine;  // beyond the edge it reads the last row, and stores nothing
#pragma unroll
  for (int i = 0; i < T::kM; ++i) mine.a[i] = gemm.a + offset(std::min(tile_row + i, m - 1), 0, k);
#pragma unroll
  for (int r = 0; r < T::kRows; ++r)
    mine.b[r] = gemm.b + offset(std::min(column + r * T::kGroups, n - 1), 0, k);

  int k0 = (warp % T::kSplit * T::kLanes + lane % T::kLanes) * 8;
#pragma unroll 1
  for (; k0 + (T::kLoads - 1) * T::kK < k; k0 += T::kLoads * T::kK) mine.template step<T::kLoads>(k0);
#pragma unroll 1
  for (; k0 < k; k0 += T::kK) mine.template step<1>(k0);  // fewer than kLoads vectors are left

  __shared__ float partials[T::kSplit == 1 ? 1 : T::kWarps][T::kM][T::kWarpRows];
#pragma unroll
  for (int i = 0; i < T::kM; ++i) {
#pragma unroll
    for (int r = 0; r < T::kRows; ++r) {
      float sum = mine.accumulators[i][r];
#pragma unroll
      for (int distance = T::kLanes / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
      const int row = r * T::kGroups + lane / T::kLanes;  // among the warp's rows of B
      if (lane % T::kLanes != 0) continue;
      if constexpr (T::kSplit > 1) {
        ptx::st_shared(&partials[warp][i][row], sum);
      } else if (tile_row + i < m && warp_column + row < n) {
        ptx::st_global(gemm.d + offset(tile_row + i, warp_column + row, n), ptx::cvt_rn_bf16_f32(sum));
      }
    }
  }
  if constexpr (T::kSplit > 1) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < T::kM * T::kN; i += T::kThreads) {
      const int row = i % T::kN;
      float sum = 0;
      for (int slice = 0; slice < T::kSplit; ++slice)  // always in the same order
        sum +=
            ptx::ld_shared(&partials[row / T::kWarpRows * T::kSplit + slice][i / T::kN][row % T::kWarpRows]);
      if (tile_row + i / T::kN < m && tile_column + row < n)
        ptx::st_global(gemm.d + offset(tile_row + i / T::kN, tile_column + row, n),
                       ptx::cvt_rn_bf16_f32(sum));
    }
  }
}

template <int kM>
using Rows = TileCtasAlongM<Layout<kM >= 4 ? 4 : 2, kM >= 4 ? 8 / kM : 4, kM>>;
struct AnyRows : Rows<1> {};

/// Takes the kernel for as many rows of A as there are; with more than 8, several of its CTAs share them.
template <int kM = 1>
Launcher prepare_rows(const Gemm& gemm) {
  if constexpr (kM < 8) {
    if (gemm.shape.m > kM) return prepare_rows<2 * kM>(gemm);
  }
  return prepare_kernel<matrix_vector_kernel<typename Rows<kM>::Tile>, Rows<kM>>(gemm);
}

template <typename Grid>
Variant variant(const char* name, const char* summary) {
  using T = typename Grid::Tile;
  constexpr int kAsked = T::kLanes == 1 ? 2 : 1;  // requests to the L2 per byte of B; A is in L1
  Variant variant = variant_of<matrix_vector_kernel<T>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = T::kLoads,
       .traffic = {.lsu_instructions_per_fma = (1.0 / T::kM + 1.0 / T::kRows) / 8,
                   .global_bytes_per_fma = 2.0 * kAsked / T::kM}});
  if constexpr (std::is_same_v<Grid, AnyRows>) variant.prepare = prepare_rows<>;
  return variant;
}

template <typename T, int kReserved = 0>
using AlongM = TileCtasAlongM<T, kReserved>;

inline constexpr int kOneCta = 120 * 1024;  // bytes: a second CTA with so many does not fit an SM

inline const Step kStep{
    .name = "50_matrix_vector",
    .title = "a matrix times a vector: bound by bandwidth, by latency, by locality",
    .builds_on = "03_register_tile",
    .architecture = Architecture::kSm80,
    .contract = {.k_multiple = 8},
    .variants = {
        variant<AnyRows>("2_rows", "a warp reads two rows of B, four loads each in flight"),
        variant<AlongM<Layout<1, 8>>>("1_row", "one row of B per warp, eight loads in flight"),
        variant<AlongM<Layout<4, 2>>>("4_rows", "four rows of B per warp, two loads each"),
        variant<AlongM<Layout<8, 1>>>("8_rows", "eight rows of B per warp, one load each"),
        variant<AlongM<Layout<2, 4, 1, 32, 8>>>("split_k", "eight warps share the K axis of two rows"),
        variant<AlongM<Layout<1, 1>, kOneCta>>("in_flight_4k", "one CTA on an SM, one load per lane: 4 KB"),
        variant<AlongM<Layout<1, 2>, kOneCta>>("in_flight_8k", "one CTA on an SM, two loads: 8 KB"),
        variant<AlongM<Layout<1, 4>, kOneCta>>("in_flight_16k", "one CTA on an SM, four loads: 16 KB"),
        variant<AlongM<Layout<1, 8>, kOneCta>>("in_flight_32k", "one CTA on an SM, eight loads: 32 KB"),
        variant<AlongM<Layout<1, 8, 1, 2>>>("lane_pairs", "a load of a warp reads a sector of 16 rows each"),
        variant<AlongM<Layout<1, 8, 1, 1>>>("lone_lanes",
                                            "a load of a warp reads half a sector of 32 rows each"),
        variant<Rows<1>>("m1", "reads B for every row of A"),
        variant<Rows<2>>("m2", "reads B for every second row of A"),
        variant<Rows<4>>("m4", "reads B for every fourth row of A"),
        variant<Rows<8>>("m8", "reads B for every eighth row of A")}};

}  // namespace gemm::step_50
