// The 8-bit floats of CUDA's headers on the emulator: conversions round to nearest even and saturate.
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

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t,
                                                __nv_fp8_interpretation_t type) {
  return type == __NV_E4M3 ? gemm::to_e4m3(value).bits : gemm::to_e5m2(value).bits;
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 values, __nv_saturation_t saturation,
                                                     __nv_fp8_interpretation_t type) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_fp8(values.y, saturation, type) << 8 |
                                           __nv_cvt_float_to_fp8(values.x, saturation, type));
}

namespace emulator {

struct E4m3Format {
  static float widen(std::uint8_t bits) { return gemm::to_float(gemm::e4m3{bits}); }
  static std::uint8_t narrow(float value) { return gemm::to_e4m3(value).bits; }
};
struct E5m2Format {
  static float widen(std::uint8_t bits) { return gemm::to_float(gemm::e5m2{bits}); }
  static std::uint8_t narrow(float value) { return gemm::to_e5m2(value).bits; }
};
template <typename Format>
struct Fp8 {
  __nv_fp8_storage_t __x;
  Fp8() = default;
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_convertible_v<T, float>) explicit Fp8(T value)
      : __x(Format::narrow(static_cast<float>(value))) {}
  explicit operator float() const { return Format::widen(__x); }
  explicit operator __half() const { return __half(Format::widen(__x)); }
  explicit operator __nv_bfloat16() const { return __nv_bfloat16(Format::widen(__x)); }
};

}  // namespace emulator

using __nv_fp8_e4m3 = emulator::Fp8<emulator::E4m3Format>;
using __nv_fp8_e5m2 = emulator::Fp8<emulator::E5m2Format>;
// NOLINTEND(readability-identifier-naming)
