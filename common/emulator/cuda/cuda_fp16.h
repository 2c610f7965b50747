// half of CUDA's headers on the emulator: its types, conversions and the packing of pairs. Arithmetic and
// mathematics are in narrow_functions.h.
//
// CUDA Math API, "Half Precision Intrinsics".
#pragma once

#include "narrow_functions.h"

using __half = emulator::NarrowFloat<emulator::HalfFormat>;
using __half2 = emulator::NarrowPair<__half>;
using __half_raw = __half::Raw;
using __half2_raw = __half2::Raw;
using half = __half;
using half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using __nv_half_raw = __half_raw;
using __nv_half2_raw = __half2_raw;
using nv_half = __half;
using nv_half2 = __half2;

#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)

EMULATOR_CONVERSIONS(__half, half)

constexpr unsigned short __half_as_ushort(__half value) {
  return value.bits;
}
constexpr short __half_as_short(__half value) {
  return static_cast<short>(value.bits);
}
constexpr __half __ushort_as_half(unsigned short bits) {
  return __half::of_bits(bits);
}
constexpr __half __short_as_half(short bits) {
  return __half::of_bits(static_cast<unsigned short>(bits));
}

inline __half2 __floats2half2_rn(float low, float high) {
  return {low, high};
}
inline __half2 __float22half2_rn(float2 values) {
  return {values.x, values.y};
}
inline __half2 __float2half2_rn(float value) {
  return {value, value};
}
inline float2 __half22float2(__half2 values) {
  return {values.x, values.y};
}
constexpr __half2 make_half2(__half low, __half high) {
  return {low, high};
}
constexpr __half2 __halves2half2(__half low, __half high) {
  return {low, high};
}
constexpr __half2 __half2half2(__half value) {
  return {value, value};
}
constexpr __half __low2half(__half2 values) {
  return values.x;
}
constexpr __half __high2half(__half2 values) {
  return values.y;
}
constexpr __half2 __low2half2(__half2 values) {
  return {values.x, values.x};
}
constexpr __half2 __high2half2(__half2 values) {
  return {values.y, values.y};
}
constexpr __half2 __lows2half2(__half2 a, __half2 b) {
  return {a.x, b.x};
}
constexpr __half2 __highs2half2(__half2 a, __half2 b) {
  return {a.y, b.y};
}
