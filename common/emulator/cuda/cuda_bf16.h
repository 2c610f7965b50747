// bf16 of CUDA's headers on the emulator: its types, conversions and the packing of pairs. Arithmetic and
// mathematics are in narrow_functions.h.
//
// CUDA Math API, "Bfloat16 Precision Intrinsics".
#pragma once

#include "narrow_functions.h"

using __nv_bfloat16 = emulator::NarrowFloat<emulator::Bfloat16Format>;
using __nv_bfloat162 = emulator::NarrowPair<__nv_bfloat16>;
using __nv_bfloat16_raw = __nv_bfloat16::Raw;
using __nv_bfloat162_raw = __nv_bfloat162::Raw;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)

EMULATOR_CONVERSIONS(__nv_bfloat16, bfloat16)

constexpr unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) {
  return value.bits;
}
constexpr short __bfloat16_as_short(__nv_bfloat16 value) {
  return static_cast<short>(value.bits);
}
constexpr __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16::of_bits(bits);
}
constexpr __nv_bfloat16 __short_as_bfloat16(short bits) {
  return __nv_bfloat16::of_bits(static_cast<unsigned short>(bits));
}

inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
  return {low, high};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 values) {
  return {values.x, values.y};
}
inline __nv_bfloat162 __float2bfloat162_rn(float value) {
  return {value, value};
}
inline float2 __bfloat1622float2(__nv_bfloat162 values) {
  return {values.x, values.y};
}
constexpr __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
  return {low, high};
}
constexpr __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
  return {low, high};
}
constexpr __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) {
  return {value, value};
}
constexpr __nv_bfloat16 __low2bfloat16(__nv_bfloat162 values) {
  return values.x;
}
constexpr __nv_bfloat16 __high2bfloat16(__nv_bfloat162 values) {
  return values.y;
}
constexpr __nv_bfloat162 __low2bfloat162(__nv_bfloat162 values) {
  return {values.x, values.x};
}
constexpr __nv_bfloat162 __high2bfloat162(__nv_bfloat162 values) {
  return {values.y, values.y};
}
constexpr __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {a.x, b.x};
}
constexpr __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {a.y, b.y};
}
