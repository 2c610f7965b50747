// half of CUDA's headers on the emulator: conversions round to nearest even, arithmetic is done in binary32
// and rounded once.
//
// CUDA Math API, "Half Precision Intrinsics".
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda_runtime.h"
#include "emulator/instrument/narrow_float.h"

using __half = emulator::NarrowFloat<emulator::HalfFormat>;
using __half2 = emulator::NarrowPair<__half>;
using half = __half;
using half2 = __half2;

inline float __half2float(__half value) {
  return static_cast<float>(value);
}
inline __half __float2half(float value) {
  return __half(value);
}
inline __half __float2half_rn(float value) {
  return __half(value);
}
inline __half2 __floats2half2_rn(float low, float high) {
  return {__half(low), __half(high)};
}
inline __half2 __float22half2_rn(float2 values) {
  return {__half(values.x), __half(values.y)};
}
inline __half2 __float2half2_rn(float value) {
  return {__half(value), __half(value)};
}
inline float2 __half22float2(__half2 values) {
  return {static_cast<float>(values.x), static_cast<float>(values.y)};
}
inline __half2 __halves2half2(__half low, __half high) {
  return {low, high};
}
inline __half __low2half(__half2 values) {
  return values.x;
}
inline __half __high2half(__half2 values) {
  return values.y;
}
inline float __low2float(__half2 values) {
  return static_cast<float>(values.x);
}
inline float __high2float(__half2 values) {
  return static_cast<float>(values.y);
}
inline unsigned short __half_as_ushort(__half value) {
  return value.bits;
}
inline __half __ushort_as_half(unsigned short bits) {
  return __half::of_bits(bits);
}
inline __half2 make_half2(__half low, __half high) {
  return {low, high};
}
