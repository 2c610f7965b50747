// What the examples with wgmma share: descriptors of swizzled tiles, a k-tile's products, and the way of
// accumulators to D.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "ptx/wgmma.cuh"

/// A K-major tile whose rows are 128 bytes long and swizzled, from its 32-bit address on.
__device__ inline std::uint64_t descriptor(const void* tile) {
  const std::uint64_t address = __cvta_generic_to_shared(tile);
  return (address & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{64} << 32 | std::uint64_t{1} << 62;
}

/// d[64][kN] += a[64][64] * b[kN][64]^T, one group of wgmma.
template <int kN>
__device__ inline void multiply(float (&d)[kN / 2], const __nv_bfloat16* a, const __nv_bfloat16* b,
                                bool first) {
  gemm::ptx::wgmma_fence_operand(d);
  gemm::ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k)
    gemm::ptx::wgmma_m64nNk16_f32_bf16_ss<kN>(d, descriptor(a) + 2 * k, descriptor(b) + 2 * k,
                                              !first || k > 0);
  gemm::ptx::wgmma_commit_group();
}

/// The accumulators of a warpgroup, whose first row and column are given, to D with `columns` columns.
template <int kN>
__device__ inline void store(const float (&d)[kN / 2], float* out, int row, int column, int columns) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  row += thread / 32 * 16 + thread % 32 / 4;
  column += thread % 4 * 2;
#pragma unroll
  for (int j = 0; j < kN / 8; ++j) {
    float* at = out + static_cast<size_t>(row) * columns + column + 8 * j;
    *reinterpret_cast<float2*>(at) = make_float2(d[4 * j], d[4 * j + 1]);
    *reinterpret_cast<float2*>(at + 8 * static_cast<size_t>(columns)) =
        make_float2(d[4 * j + 2], d[4 * j + 3]);
  }
}
