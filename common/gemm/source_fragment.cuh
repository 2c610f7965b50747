// alpha * accumulators + beta * C, two elements at a time.
#pragma once

#include <cstdint>

#include "gemm/gemm.h"
#include "gemm/source_launch.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm {

/// Both halves of a register with two bf16, the lower one first.
struct FloatPair {
  float first;
  float second;
};
__device__ __forceinline__ FloatPair unpacked(std::uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}

/// Two neighbouring elements of D, rounded once. `c` is not looked at where beta is 0: it may be anything.
__device__ __forceinline__ std::uint32_t scaled_pair(const SourceArguments& source, float first, float second,
                                                     std::uint32_t c) {
  first *= source.alpha;
  second *= source.alpha;
  if (source.beta != 0) {
    const FloatPair added = unpacked(c);
    first = fmaf(source.beta, added.first, first);
    second = fmaf(source.beta, added.second, second);
  }
  return ptx::cvt_rn_bf16x2_f32(first, second);
}

/// This thread's elements of the 16 x 16 block of C at (row, column), from global memory, as ldmatrix_x4
/// would hand them out; what lies outside of C is left as it is. N is even.
__device__ __forceinline__ void load_fragment(std::uint32_t (&pairs)[4], const SourceArguments& source,
                                              const Shape& shape, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = row + lane / 4 + i % 2 * 8;
    const int c = column + lane % 4 * 2 + i / 2 * 8;
    if (r >= shape.m || c >= shape.n) continue;
    pairs[i] = ptx::ld_global(reinterpret_cast<const std::uint32_t*>(source.c + r * source.c_pitch + c));
  }
}

}  // namespace gemm
