// bf16 of CUDA's headers on the emulator: conversions round to nearest even, arithmetic is done in binary32
// and rounded once.
//
// CUDA Math API, "Bfloat16 Precision Intrinsics".
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda_runtime.h"
#include "emulator/instrument/narrow_float.h"

using __nv_bfloat16 = emulator::NarrowFloat<emulator::Bfloat16Format>;
using __nv_bfloat162 = emulator::NarrowPair<__nv_bfloat16>;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline float __bfloat162float(__nv_bfloat16 value) {
  return static_cast<float>(value);
}
inline __nv_bfloat16 __float2bfloat16(float value) {
  return __nv_bfloat16(value);
}
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return __nv_bfloat16(value);
}
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
  return {__nv_bfloat16(low), __nv_bfloat16(high)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 values) {
  return {__nv_bfloat16(values.x), __nv_bfloat16(values.y)};
}
inline __nv_bfloat162 __float2bfloat162_rn(float value) {
  return {__nv_bfloat16(value), __nv_bfloat16(value)};
}
inline float2 __bfloat1622float2(__nv_bfloat162 values) {
  return {static_cast<float>(values.x), static_cast<float>(values.y)};
}
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
  return {low, high};
}
inline float __low2float(__nv_bfloat162 values) {
  return static_cast<float>(values.x);
}
inline float __high2float(__nv_bfloat162 values) {
  return static_cast<float>(values.y);
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) {
  return value.bits;
}
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16::of_bits(bits);
}
