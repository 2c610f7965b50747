// alpha * accumulators + beta * C, two elements at a time.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/trace.cuh"

namespace gemm {

/// alpha, beta and C for threads that load it themselves.
struct SourceArguments {
  float alpha;
  float beta;
  const bf16* c;         // [m][pitch]
  std::int64_t c_pitch;  // elements
};

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

/// C as the loader has brought it: a subtile in shared memory, 128-byte swizzle. A thread gets the elements
/// of C at its elements of D, because ldmatrix hands out what stmatrix takes.
struct FromShared {
  const bf16 (*c)[64];  // [m][n]

  __device__ __forceinline__ void operator()(std::uint32_t (&pairs)[4], int row, int swizzled, int) const {
    ptx::ldmatrix_x4(pairs, &c[row][swizzled]);
  }
};

/// C in global memory, read by the thread that needs it, two elements at a time; what lies outside of C stays
/// as it is. N is even.
struct FromGlobal {
  const SourceArguments& source;
  const Shape& shape;
  int row;  // of the subtile, in C
  int column;

  __device__ __forceinline__ void operator()(std::uint32_t (&pairs)[4], int, int, int unit) const {
    const int thread = static_cast<int>(threadIdx.x) % 128;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = row + thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
      const int c = column + unit * 8 + thread % 4 * 2 + i / 2 * 8;
      if (r >= shape.m || c >= shape.n) continue;
      pairs[i] = ptx::ld_global(reinterpret_cast<const std::uint32_t*>(source.c + r * source.c_pitch + c));
    }
  }
};

/// A warpgroup's subtile of 64 x 64: writes alpha * accumulators + beta * C to `d`, swizzled, which may be
/// where C is: a thread's warp reads 16 x 16 elements of C and then writes these of D.
template <typename Fetch>
__device__ __forceinline__ void combine_subtile(bf16 (*d)[64], const float* accumulators,
                                                const SourceArguments& source, const Fetch& fetch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane % 16;
  if constexpr (ptx::kTraces) ptx::trace_state(ptx::TraceState::kEpilogue);
  const auto swizzled = [&](int unit) { return ((unit + lane / 16) ^ row % 8) * 8; };
  // ANCHOR: combine
  std::uint32_t added[4][4] = {};  // all loads are in flight together
  if (source.beta != 0) {
#pragma unroll
    for (int unit = 0; unit < 8; unit += 2) fetch(added[unit / 2], row, swizzled(unit), unit);
  }
#pragma unroll
  for (int unit = 0; unit < 8; unit += 2) {
    std::uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = scaled_pair(source, accumulators[unit * 4 + 2 * i], accumulators[unit * 4 + 2 * i + 1],
                             added[unit / 2][i]);
    ptx::stmatrix_x4(&d[row][swizzled(unit)], pairs);
  }
  // ANCHOR_END: combine
}

}  // namespace gemm
