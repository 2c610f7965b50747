// e4m3 and e5m2: conversions of every half and back from every byte, beside a search among all bytes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "reference.h"

using reference::Format;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = unsigned;

__global__ void to_bytes(const float* x, u8* results, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  results[0 * count + i] = __nv_cvt_float_to_fp8(x[i], __NV_SATFINITE, __NV_E4M3);
  results[1 * count + i] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E4M3);
  results[2 * count + i] = __nv_cvt_float_to_fp8(x[i], __NV_SATFINITE, __NV_E5M2);
  results[3 * count + i] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E5M2);
  results[4 * count + i] = __nv_fp8_e4m3(x[i]).__x;
  results[5 * count + i] =
      static_cast<u8>(__nv_cvt_float2_to_fp8x2(float2{1.0f, x[i]}, __NV_NOSAT, __NV_E4M3) >> 8);
  results[6 * count + i] = static_cast<u8>(__nv_fp8x2_e5m2(float2{x[i], 1.0f}).__x);
  results[7 * count + i] = static_cast<u8>(__nv_fp8x4_e4m3(float4{1.0f, 2.0f, 3.0f, x[i]}).__x >> 24);
}
__global__ void halves_to_bytes(const u16* bits, u8* results, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const __half half = __ushort_as_half(bits[i]);
  const __nv_bfloat16 bfloat16 = __ushort_as_bfloat16(bits[i]);
  results[0 * count + i] = __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E4M3);
  results[1 * count + i] = __nv_cvt_halfraw_to_fp8(half, __NV_NOSAT, __NV_E5M2);
  results[2 * count + i] = __nv_cvt_bfloat16raw_to_fp8(bfloat16, __NV_SATFINITE, __NV_E4M3);
  results[3 * count + i] = __nv_fp8_e5m2(bfloat16).__x;
  results[4 * count + i] = static_cast<u8>(__nv_fp8x2_e4m3(__halves2half2(__half(1.0f), half)).__x >> 8);
  results[5 * count + i] = static_cast<u8>(
      __nv_fp8x4_e5m2(__halves2bfloat162(bfloat16, bfloat16), __halves2bfloat162(bfloat16, bfloat16)).__x >>
      16);
}
__global__ void from_bytes(float* results, int* integers) {
  const int i = static_cast<int>(threadIdx.x);
  __nv_fp8_e4m3 first;
  __nv_fp8_e5m2 second;
  first.__x = static_cast<u8>(i);
  second.__x = static_cast<u8>(i);
  results[i] = static_cast<float>(first);
  results[256 + i] = static_cast<float>(second);
  results[512 + i] = __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<u8>(i), __NV_E5M2)));
  results[768 + i] = __high2float(__half2(__nv_cvt_fp8x2_to_halfraw2(static_cast<u16>(i << 8), __NV_E4M3)));
  __nv_fp8x4_e5m2 four;
  four.__x = static_cast<u32>(i) << 16;
  results[1024 + i] = static_cast<float4>(four).z;
  integers[i] = static_cast<int>(first);
  integers[256 + i] = static_cast<unsigned char>(second);
}

/// A NaN is all ones but for its sign.
int expected_byte(const Format& format, long double x, bool saturates) {
  if (std::isnan(x)) return -1;
  const int bits = reference::rounded(format, x, reference::kNearest);
  const int infinity = static_cast<int>(format.infinity);
  return (bits & 0x7f) == infinity && saturates ? bits - 1 : bits;
}
void expect_byte(emulate::Run& run, const Format& format, const char* what, long double x, bool saturates,
                 u8 got) {
  const int wanted = expected_byte(format, x, saturates);
  const bool right = wanted == -1 ? (got & 0x7fu) > 0x7eu : got == wanted;
  if (!right)
    run.expect(false,
               reference::text(what, std::to_string(static_cast<double>(x)), got, static_cast<u32>(wanted)));
}

void check_kernel(emulate::Run& run) {
  std::vector<float> x;
  for (const Format& format : {reference::kE4m3, reference::kE5m2}) {
    for (u32 bits = 0; bits <= format.infinity; ++bits) {
      const auto value = static_cast<float>(reference::magnitude(format, bits));
      const auto tie = static_cast<float>(
          (reference::magnitude(format, bits) + reference::magnitude(format, bits + 1)) / 2);
      for (float y : {value, tie, std::nextafter(tie, 0.0f), std::nextafter(tie, HUGE_VALF)}) {
        x.push_back(y);
        x.push_back(-y);
      }
    }
  }
  for (float y : {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 1e-30f}) x.push_back(y);
  int count = static_cast<int>(x.size());
  u8* bytes = run.buffer<u8>("bytes", x.size() * 8);
  to_bytes<<<(count + 127) / 128, 128>>>(run.buffer("x", x), bytes, count);
  std::vector<u8> got = run.host(bytes);
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<long double>(x[i]);
    expect_byte(run, reference::kE4m3, "e4m3", value, true, got[i]);
    expect_byte(run, reference::kE4m3, "e4m3, not saturated,", value, false, got[count + i]);
    expect_byte(run, reference::kE5m2, "e5m2", value, true, got[2 * count + i]);
    expect_byte(run, reference::kE5m2, "e5m2, not saturated,", value, false, got[3 * count + i]);
    expect_byte(run, reference::kE4m3, "__nv_fp8_e4m3", value, true, got[4 * count + i]);
    expect_byte(run, reference::kE4m3, "a pair of e4m3", value, false, got[5 * count + i]);
    expect_byte(run, reference::kE5m2, "__nv_fp8x2_e5m2", value, true, got[6 * count + i]);
    expect_byte(run, reference::kE4m3, "__nv_fp8x4_e4m3", value, true, got[7 * count + i]);
  }

  std::vector<u16> halves;
  for (u32 bits = 0; bits < 0x10000; bits += 7) halves.push_back(static_cast<u16>(bits));
  count = static_cast<int>(halves.size());
  bytes = run.buffer<u8>("bytes", halves.size() * 6);
  halves_to_bytes<<<(count + 127) / 128, 128>>>(run.buffer("halves", halves), bytes, count);
  got = run.host(bytes);
  for (int i = 0; i < count; ++i) {
    const long double half = reference::value(reference::kHalf, halves[i]);
    const long double bfloat16 = reference::value(reference::kBfloat16, halves[i]);
    expect_byte(run, reference::kE4m3, "e4m3 from half", half, true, got[i]);
    expect_byte(run, reference::kE5m2, "e5m2 from half", half, false, got[count + i]);
    expect_byte(run, reference::kE4m3, "e4m3 from bf16", bfloat16, true, got[2 * count + i]);
    expect_byte(run, reference::kE5m2, "e5m2 from bf16", bfloat16, true, got[3 * count + i]);
    expect_byte(run, reference::kE4m3, "__nv_fp8x2_e4m3 from half2", half, true, got[4 * count + i]);
    expect_byte(run, reference::kE5m2, "__nv_fp8x4_e5m2 from bf162", bfloat16, true, got[5 * count + i]);
  }

  float* numbers = run.buffer<float>("numbers", 1280);
  int* integers = run.buffer<int>("integers", 512);
  from_bytes<<<1, 256>>>(numbers, integers);
  const std::vector<float> values = run.host(numbers);
  const std::vector<int> whole = run.host(integers);
  for (u32 bits = 0; bits < 256; ++bits) {
    const Format* formats[] = {&reference::kE4m3, &reference::kE5m2, &reference::kE5m2, &reference::kE4m3,
                               &reference::kE5m2};
    for (u32 row = 0; row < 5; ++row) {
      const auto expected = static_cast<float>(reference::value(*formats[row], bits));
      const float is = values[256 * row + bits];
      const bool right = std::isnan(expected) ? std::isnan(is)
                                              : is == expected && std::signbit(is) == std::signbit(expected);
      run.expect(right, "the number of byte " + std::to_string(bits) + " in row " + std::to_string(row) +
                            " is " + std::to_string(is));
    }
    const int first =
        reference::integer<int>(reference::value(reference::kE4m3, bits), reference::kZero, false);
    const int second =
        reference::integer<u8>(reference::value(reference::kE5m2, bits), reference::kZero, false);
    run.expect(whole[bits] == first && whole[256 + bits] == second,
               "the integer of byte " + std::to_string(bits) + " is " + std::to_string(whole[bits]) +
                   " and " + std::to_string(whole[256 + bits]));
  }
}
