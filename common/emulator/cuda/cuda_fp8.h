// The 8-bit floats of CUDA's headers on the emulator: numbers, pairs and fours of them. Conversions to them
// round once to nearest even; what is too large becomes the largest number, and an infinity or a NaN for
// __NV_NOSAT.
//
// CUDA Math API, "FP8 Intrinsics".
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "gemm/problem/types.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
using __nv_fp8_storage_t = std::uint8_t;
using __nv_fp8x2_storage_t = std::uint16_t;
using __nv_fp8x4_storage_t = std::uint32_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

// ---- To 8 bits, from numbers and from pairs, of which x is in the lower byte.

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturation,
                                                 __nv_fp8_interpretation_t type) {
  using emulator::Rounding;
  const bool e4m3 = type == __NV_E4M3;
  const double largest = e4m3 ? 448 : 57344;
  const double rounded = e4m3 ? emulator::rounded_to<3, -6>(value, Rounding::kNearest)
                              : emulator::rounded_to<2, -14>(value, Rounding::kNearest);
  if (saturation == __NV_NOSAT && std::fabs(rounded) > largest)
    return static_cast<__nv_fp8_storage_t>((std::signbit(value) ? 0x80 : 0) | (e4m3 ? 0x7f : 0x7c));
  const auto exact = static_cast<float>(rounded);  // or an infinity, which saturates
  return e4m3 ? gemm::to_e4m3(exact).bits : gemm::to_e5m2(exact).bits;
}
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 values, __nv_saturation_t saturation,
                                                      __nv_fp8_interpretation_t type) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_double_to_fp8(values.y, saturation, type) << 8 |
                                           __nv_cvt_double_to_fp8(values.x, saturation, type));
}
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturation,
                                                __nv_fp8_interpretation_t type) {
  return __nv_cvt_double_to_fp8(static_cast<double>(value), saturation, type);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 values, __nv_saturation_t saturation,
                                                     __nv_fp8_interpretation_t type) {
  return __nv_cvt_double2_to_fp8x2({values.x, values.y}, saturation, type);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw value, __nv_saturation_t saturation,
                                                  __nv_fp8_interpretation_t type) {
  return __nv_cvt_float_to_fp8(__half(value), saturation, type);
}
inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw values, __nv_saturation_t saturation,
                                                       __nv_fp8_interpretation_t type) {
  return __nv_cvt_float2_to_fp8x2(__half22float2(values), saturation, type);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw value, __nv_saturation_t saturation,
                                                      __nv_fp8_interpretation_t type) {
  return __nv_cvt_float_to_fp8(__nv_bfloat16(value), saturation, type);
}
inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw values,
                                                           __nv_saturation_t saturation,
                                                           __nv_fp8_interpretation_t type) {
  return __nv_cvt_float2_to_fp8x2(__bfloat1622float2(values), saturation, type);
}

// ---- From 8 bits: exact.

inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t type) {
  return __half(type == __NV_E4M3 ? gemm::to_float(gemm::e4m3{bits}) : gemm::to_float(gemm::e5m2{bits}));
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t bits, __nv_fp8_interpretation_t type) {
  return {__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), type).x,
          __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits >> 8), type).x};
}

// ---- Types.

namespace emulator {

template <__nv_fp8_interpretation_t kType>
struct Fp8 {
  __nv_fp8_storage_t __x;

  Fp8() = default;
  template <typename T>
  requires std::is_arithmetic_v<T>
  explicit Fp8(T value) : __x(__nv_cvt_double_to_fp8(static_cast<double>(value), __NV_SATFINITE, kType)) {}
  explicit Fp8(__half value) : Fp8(float(value)) {}
  explicit Fp8(__nv_bfloat16 value) : Fp8(float(value)) {}

  explicit operator __half() const { return __nv_cvt_fp8_to_halfraw(__x, kType); }
  explicit operator __nv_bfloat16() const { return __nv_bfloat16(float(*this)); }
  explicit operator bool() const { return (__x & 0x7fu) != 0; }
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) explicit operator T() const {
    const float value = __half(__nv_cvt_fp8_to_halfraw(__x, kType));
    if constexpr (std::is_integral_v<T>) {
      return integer_of<T>(value, Rounding::kZero);
    } else {
      return static_cast<T>(value);
    }
  }
};

template <__nv_fp8_interpretation_t kType>
struct alignas(2) Fp8x2 {
  __nv_fp8x2_storage_t __x;

  Fp8x2() = default;
  explicit Fp8x2(__half2 values) : __x(__nv_cvt_halfraw2_to_fp8x2(values, __NV_SATFINITE, kType)) {}
  explicit Fp8x2(__nv_bfloat162 values)
      : __x(__nv_cvt_bfloat16raw2_to_fp8x2(values, __NV_SATFINITE, kType)) {}
  explicit Fp8x2(float2 values) : __x(__nv_cvt_float2_to_fp8x2(values, __NV_SATFINITE, kType)) {}
  explicit Fp8x2(double2 values) : __x(__nv_cvt_double2_to_fp8x2(values, __NV_SATFINITE, kType)) {}

  explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, kType); }
  explicit operator float2() const { return __half22float2(__nv_cvt_fp8x2_to_halfraw2(__x, kType)); }
};

template <__nv_fp8_interpretation_t kType>
struct alignas(4) Fp8x4 {
  using Pair = Fp8x2<kType>;
  __nv_fp8x4_storage_t __x;

  Fp8x4() = default;
  explicit Fp8x4(__half2 low, __half2 high) : Fp8x4(Pair(low), Pair(high)) {}
  explicit Fp8x4(__nv_bfloat162 low, __nv_bfloat162 high) : Fp8x4(Pair(low), Pair(high)) {}
  explicit Fp8x4(float4 values) : Fp8x4(Pair(float2{values.x, values.y}), Pair(float2{values.z, values.w})) {}
  explicit Fp8x4(double4 values)
      : Fp8x4(Pair(double2{values.x, values.y}), Pair(double2{values.z, values.w})) {}

  explicit operator float4() const {
    Pair low, high;
    low.__x = static_cast<__nv_fp8x2_storage_t>(__x);
    high.__x = static_cast<__nv_fp8x2_storage_t>(__x >> 16);
    const auto first = static_cast<float2>(low);
    const auto second = static_cast<float2>(high);
    return {first.x, first.y, second.x, second.y};
  }

 private:
  Fp8x4(Pair low, Pair high) : __x(static_cast<__nv_fp8x4_storage_t>(high.__x) << 16 | low.__x) {}
};

}  // namespace emulator

using __nv_fp8_e4m3 = emulator::Fp8<__NV_E4M3>;
using __nv_fp8_e5m2 = emulator::Fp8<__NV_E5M2>;
using __nv_fp8x2_e4m3 = emulator::Fp8x2<__NV_E4M3>;
using __nv_fp8x2_e5m2 = emulator::Fp8x2<__NV_E5M2>;
using __nv_fp8x4_e4m3 = emulator::Fp8x4<__NV_E4M3>;
using __nv_fp8x4_e5m2 = emulator::Fp8x4<__NV_E5M2>;
// NOLINTEND(readability-identifier-naming)
