// What step 04 taught: a k-tile in swizzled shared memory, multiplied by warps with ldmatrix and mma.sync.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/swizzle.h"
#include "gemm/tile/tiling.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sync.cuh"
#include "ptx/trace.cuh"

namespace gemm {

/// A k-tile of one operand, kRows x T::kK, the 16-byte chunks of every row swizzled.
template <typename T, int kRows>
struct SwizzledTile {
  bf16 element[kRows * T::kK];

  /// The address of element (row, k); k is a multiple of 8.
  __device__ bf16* at(int row, int k) {
    return element + row * T::kK + swizzle_chunk<2 * T::kK>(row, k / 8) * 8;
  }
};

/// One k-tile of both operands: what one stage of a pipeline holds.
template <typename T>
struct OperandTiles {
  SwizzledTile<T, T::kM> a;  // [m][k]
  SwizzledTile<T, T::kN> b;  // [n][k]
};

/// The part of D that one warp accumulates in registers, fp32.
template <typename T>
struct WarpTile {
  int lane = static_cast<int>(threadIdx.x) % 32;
  int row = static_cast<int>(threadIdx.x) / 32 / T::kWarpsN * T::kWarpM;     // in the CTA's tile
  int column = static_cast<int>(threadIdx.x) / 32 % T::kWarpsN * T::kWarpN;  // in the CTA's tile
  float accumulators[T::kFragmentsM][T::kFragmentsN][4] = {};

  /// This warp's operands for one mma.sync deep (16 of K), in registers.
  struct Fragments {
    std::uint32_t a[T::kFragmentsM][4];
    std::uint32_t b[T::kFragmentsN / 2][4];  // two fragments side by side
  };

  /// Loads the fragments at `k` of the k-tile. The whole tile must be visible to this warp.
  __device__ __forceinline__ void load(Fragments& fragments, OperandTiles<T>& tiles, int k) const {
    load(fragments, tiles.a, tiles.b, k);
  }
  __device__ __forceinline__ void load(Fragments& fragments, SwizzledTile<T, T::kM>& a,
                                       SwizzledTile<T, T::kN>& b, int k) const {
    // Rows 16 apart have the same swizzle, so the addresses of one k differ by constants: one register for
    // each k.
    const bf16* a_row = a.at(row + lane % 16, k + lane / 16 * 8);
    const bf16* b_row = b.at(column + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8);
#pragma unroll
    for (int f = 0; f < T::kFragmentsM; ++f) ptx::ldmatrix_x4(fragments.a[f], a_row + f * 16 * T::kK);
#pragma unroll
    for (int f = 0; f < T::kFragmentsN / 2; ++f) ptx::ldmatrix_x4(fragments.b[f], b_row + f * 16 * T::kK);
  }

  /// Adds the product of the fragments.
  __device__ __forceinline__ void multiply(const Fragments& fragments) {
    if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kMultiply, 16);
    add_product(fragments);
  }

  /// Adds the product of one k-tile, which must be visible to this warp.
  __device__ __forceinline__ void multiply(OperandTiles<T>& tiles) {
    multiply(tiles.a, tiles.b);
  }
  __device__ __forceinline__ void multiply(SwizzledTile<T, T::kM>& a, SwizzledTile<T, T::kN>& b) {
    // A timeline needs a few registers; with 128 for a thread there is none left.
    if constexpr (ptx::kTraces && 65536 / (T::kCtasPerSm * T::kThreads) > 128) {
      ptx::trace_state(ptx::TraceState::kMultiply, T::kK);
    }
#pragma unroll
    for (int k = 0; k < T::kK; k += 16) {
      Fragments fragments;
      load(fragments, a, b, k);
      add_product(fragments);
    }
  }

  /// Rounds to bf16 and writes what lies inside D; (tile_row, tile_column) is the corner of the CTA's tile.
  __device__ __forceinline__ void store(const Gemm& gemm, int tile_row, int tile_column) const {
    if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kStore);
#pragma unroll
    for (int fm = 0; fm < T::kFragmentsM; ++fm) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int d_row = tile_row + row + fm * 16 + half * 8 + lane / 4;
        if (d_row >= gemm.shape.m) continue;
#pragma unroll
        for (int fn = 0; fn < T::kFragmentsN; ++fn) {
          const int d_column = tile_column + column + fn * 8 + lane % 4 * 2;
          if (d_column >= gemm.shape.n) continue;
          ptx::st_global(
              reinterpret_cast<std::uint32_t*>(gemm.d + offset(d_row, d_column, gemm.shape.n)),
              ptx::cvt_rn_bf16x2_f32(accumulators[fm][fn][2 * half], accumulators[fm][fn][2 * half + 1]));
        }
      }
    }
    if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kNone);
  }

 private:
  __device__ __forceinline__ void add_product(const Fragments& fragments) {
#pragma unroll
    for (int fm = 0; fm < T::kFragmentsM; ++fm) {
#pragma unroll
      for (int fn = 0; fn < T::kFragmentsN; ++fn) {
        const std::uint32_t b[2] = {fragments.b[fn / 2][fn % 2 * 2], fragments.b[fn / 2][fn % 2 * 2 + 1]};
        ptx::mma_m16n8k16_bf16(accumulators[fm][fn], fragments.a[fm], b);
      }
    }
  }
};

/// Traffic of a CTA tile of this tiling: each operand element crosses shared memory once on the way in and
/// once for every warp that multiplies it.
template <typename T>
constexpr Traffic mma_tile_traffic(double lsu_instructions_per_vector) {
  const double copies = 2.0 * (T::kM + T::kN) / (T::kM * T::kN);
  const double reads = 2.0 * (T::kWarpM + T::kWarpN) / (T::kWarpM * T::kWarpN);
  return {.lsu_instructions_per_fma = (lsu_instructions_per_vector * copies + reads) / 16,
          .shared_bytes_per_fma = copies + reads,
          .global_bytes_per_fma = copies};
}

}  // namespace gemm
