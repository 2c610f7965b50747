// What differs from type to type where tiles are multiplied: the opcode, and what sums are.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/problem/types.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_types.cuh"

namespace gemm {

/// What products of this type are summed in.
template <typename A>
using Sum = std::conditional_t<std::is_same_v<A, int8>, std::int32_t, float>;

// Lesson: what differs from type to type is the opcode. A slab has 16 elements of fp16, 8 of tf32, 32 of fp8
// and int8, and 32 bytes of each row.
template <typename A, typename B, int kN>
__device__ __forceinline__ void multiply_slab(Sum<A> (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                              bool accumulate) {
  constexpr bool kFourA = std::is_same_v<A, e4m3>;  // bits of exponent
  constexpr bool kFourB = std::is_same_v<B, e4m3>;
  if constexpr (std::is_same_v<A, bf16>)
    ptx::wgmma_m64nNk16_f32_bf16_ss<kN>(d, a, b, accumulate);
  else if constexpr (std::is_same_v<A, fp16>)
    ptx::wgmma_m64nNk16_f32_f16_ss<kN>(d, a, b, accumulate);
  else if constexpr (std::is_same_v<A, tf32>)
    ptx::wgmma_m64nNk8_f32_tf32_ss<kN>(d, a, b, accumulate);
  else if constexpr (std::is_same_v<A, int8>)
    ptx::wgmma_m64nNk32_s32_s8_ss<kN>(d, a, b, accumulate);
  else if constexpr (kFourA && kFourB)
    ptx::wgmma_m64nNk32_f32_e4m3_e4m3_ss<kN>(d, a, b, accumulate);
  else if constexpr (kFourA)
    ptx::wgmma_m64nNk32_f32_e4m3_e5m2_ss<kN>(d, a, b, accumulate);
  else if constexpr (kFourB)
    ptx::wgmma_m64nNk32_f32_e5m2_e4m3_ss<kN>(d, a, b, accumulate);
  else
    ptx::wgmma_m64nNk32_f32_e5m2_e5m2_ss<kN>(d, a, b, accumulate);
}

/// A sum on its way to D. An integer is rounded to 24 bits first.
__device__ __forceinline__ float scaled(float sum, float scale) {
  return sum * scale;
}
__device__ __forceinline__ float scaled(std::int32_t sum, float scale) {
  return ptx::cvt_rn_f32_s32(sum) * scale;
}

}  // namespace gemm
