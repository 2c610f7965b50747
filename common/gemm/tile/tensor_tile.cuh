// What step 70 taught: a tile whose accumulator is in tensor memory, multiplied by one thread with
// tcgen05.mma.
#pragma once

#include <bit>
#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_ld.cuh"
#include "ptx/tcgen05_mma.cuh"

namespace gemm {

/// The CTA multiplies a 128 x kN tile, kK at a time. Its accumulator is kN columns of tensor memory; row i of
/// the tile is lane i. The k-tile in shared memory is the one of the Hopper steps (WgmmaTiles).
template <int kTileN, int kTileK, int kCtas>
struct TensorTiling {
  static constexpr int kM = 128;
  static constexpr int kN = kTileN;
  static constexpr int kK = kTileK;
  static constexpr int kCtasPerSm = kCtas;
  static constexpr int kThreads = 128;
  static constexpr int kPanelK = 64;  // a panel is as deep as one swizzle span of 128 bytes
  static constexpr int kPanels = kK / kPanelK;
  // An allocation is a power of 2 of columns.
  static constexpr std::uint32_t kColumns = std::bit_ceil(static_cast<unsigned>(kN));
  static constexpr std::uint32_t kInstruction = ptx::encode(ptx::InstructionDescriptor{.m = kM, .n = kN});
  static_assert(ptx::instruction_descriptor_fault(kInstruction) == nullptr, "a shape that .kind::f16 has");
  static_assert(kN % 32 == 0 && kK % kPanelK == 0, "the epilogue takes 32 columns at a time");
  static_assert(kColumns * kCtas <= 512, "the CTAs of an SM share its 512 columns");
};

/// Issues the multiplication of one k-tile into the accumulator at `d`; with `first` it is overwritten. One
/// thread of the CTA calls it, behind tcgen05_fence_after_thread_sync(). kCtaGroup = 2: for a pair of CTAs,
/// of which each has such a part of the k-tile.
template <typename T, int kCtaGroup = 1>
__device__ __forceinline__ void multiply(const WgmmaTiles<T>& tiles, std::uint32_t d, bool first) {
  const std::uint64_t a =
      ptx::tcgen05_k_major_descriptor(ptx::shared_address(tiles.a), kPanelSwizzle<T::kPanelK>);
  const std::uint64_t b =
      ptx::tcgen05_k_major_descriptor(ptx::shared_address(tiles.b), kPanelSwizzle<T::kPanelK>);
#pragma unroll
  for (int k = 0; k < T::kK; k += 16) {
    const int panel = k / T::kPanelK;
    const int in_row = k % T::kPanelK;
    ptx::tcgen05_mma_f16_ss<kCtaGroup>(d, ptx::advanced(a, 2 * (panel * T::kM * T::kPanelK + in_row)),
                                       ptx::advanced(b, 2 * (panel * T::kN * T::kPanelK + in_row)),
                                       T::kInstruction, !first || k > 0);
  }
}

/// Loads the accumulator at `d` and writes what lies inside D, times `scale`, rounded to bf16. Four warps
/// call it, the first with a number divisible by 4, behind tcgen05_fence_after_thread_sync().
template <typename T>
__device__ __forceinline__ void store(const Gemm& gemm, std::uint32_t d, int tile_row, int tile_column,
                                      float scale = 1) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int row = tile_row + thread;
  const std::uint32_t lanes = ptx::tensor_memory_address(d, static_cast<std::uint32_t>(thread) / 32 * 32, 0);
#pragma unroll 1
  // ANCHOR: store_rows
  for (int column = 0; column < T::kN; column += 32) {
    float values[32];
    ptx::tcgen05_ld_32x32b_x32(values, lanes + static_cast<std::uint32_t>(column));
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (float& value : values) value *= scale;
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
      const int d_column = tile_column + column + i;
      if (row >= gemm.shape.m || d_column >= gemm.shape.n) continue;
      const uint4 eight = {ptx::cvt_rn_bf16x2_f32(values[i], values[i + 1]),
                           ptx::cvt_rn_bf16x2_f32(values[i + 2], values[i + 3]),
                           ptx::cvt_rn_bf16x2_f32(values[i + 4], values[i + 5]),
                           ptx::cvt_rn_bf16x2_f32(values[i + 6], values[i + 7])};
      ptx::st_global(reinterpret_cast<uint4*>(gemm.d + offset(row, d_column, gemm.shape.n)), eight);
      // ANCHOR_END: store_rows
    }
  }
}

/// Traffic of a CTA tile: operands cross shared memory once on the way in, and once into the tensor cores. Of
/// `ctas` CTAs that share B each has as large a part of it.
template <typename T>
constexpr Traffic tensor_tile_traffic(int ctas = 1, double element_bytes = 2) {
  const double copies = element_bytes * (T::kM + 1.0 * T::kN / ctas) / (T::kM * T::kN);
  return {.shared_bytes_per_fma = copies + element_bytes / T::kN + element_bytes / (T::kM * ctas),
          .global_bytes_per_fma = copies};
}

}  // namespace gemm
