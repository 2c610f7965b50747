// Activations of one element, in binary32, and how far off each may be: the verifier's bounds
// (harness/verify/epilogue/epilogue.h) are these.
#pragma once

#include "gemm/problem/problem.h"
#include "ptx/core.cuh"
#include "ptx/math.cuh"

namespace gemm {

/// max(x, 0); NaN stays NaN.
__device__ __forceinline__ float relu(float x) {
  return ptx::max_nan_f32(x, 0.0f);
}

/// GELU in the form with tanh (Hendrycks and Gimpel, arXiv 1606.08415): one MUFU.
__device__ __forceinline__ float gelu_tanh(float x) {
  constexpr float kLinear = 0.7978845608f;  // sqrt(2 / pi)
  constexpr float kCubic = 0.044715f * kLinear;
  const float half = 0.5f * x;
  return fmaf(half, ptx::tanh_approx_f32(x * fmaf(kCubic * x, x, kLinear)), half);
}

/// GELU in the form with erf: x * (1 - erfc(x / sqrt(2)) / 2). erfc is the approximation 7.1.26 of Abramowitz
/// and Stegun, "Handbook of Mathematical Functions", which is off by at most 1.5e-7: two MUFU.
__device__ __forceinline__ float gelu_erf(float x) {
  constexpr float kScale = 0.7071067812f;  // 1 / sqrt(2)
  constexpr float kLog2E = 1.4426950409f;
  const float z = fabsf(x) * kScale;
  const float t = ptx::rcp_approx_ftz_f32(fmaf(0.3275911f, z, 1.0f));
  float sum = fmaf(1.061405429f, t, -1.453152027f);
  sum = fmaf(sum, t, 1.421413741f);
  sum = fmaf(sum, t, -0.284496736f);
  sum = fmaf(sum, t, 0.254829592f);
  const float half_erfc = 0.5f * sum * t * ptx::ex2_approx_ftz_f32(-kLog2E * z * z);
  return x * (x < 0 ? half_erfc : 1.0f - half_erfc);
}

/// The derivative of gelu_tanh: with s = (1 + tanh(u)) / 2 = 1 / (1 + e^(-2 u)) it is s + 2 x u' s (1 - s).
/// By two MUFU, because 1 - tanh^2 of an approximate tanh has no correct digit where x is large. Behind 10 it
/// is 1 and 0 to all digits, and e^(-2 u) must stay finite: e^(-2 u) s is 1 - s.
__device__ __forceinline__ float gelu_tanh_slope(float x) {
  constexpr float kLinear = 2 * 0.7978845608f;
  constexpr float kCubic = 0.044715f * kLinear;
  constexpr float kLog2E = 1.4426950409f;
  x = -ptx::max_nan_f32(-ptx::max_nan_f32(x, -10.0f), -10.0f);
  const float square = x * x;
  const float e = ptx::ex2_approx_ftz_f32(x * fmaf(-kLog2E * kCubic, square, -kLog2E * kLinear));
  const float s = ptx::rcp_approx_ftz_f32(1.0f + e);
  return fmaf(x * fmaf(3 * kCubic, square, kLinear) * s, e * s, s);
}

/// x / (1 + e^-x), by two MUFU. The form with one, x / 2 * (1 + tanh(x / 2)), loses all digits where x is
/// very negative: there 1 + tanh is the difference of two numbers of which one is approximate.
__device__ __forceinline__ float silu(float x) {
  constexpr float kLog2E = 1.4426950409f;
  return x * ptx::rcp_approx_ftz_f32(1.0f + ptx::ex2_approx_ftz_f32(-kLog2E * x));
}

}  // namespace gemm
