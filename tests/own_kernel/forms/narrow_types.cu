// 8-bit floats, and arithmetic of half and its pairs.
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <vector>

__global__ void forms(const float* x, __nv_fp8_e4m3* narrow, float* out) {
  const float value = x[threadIdx.x];
  narrow[threadIdx.x] = __nv_fp8_e4m3(value);
  const half2 pair = __floats2half2_rn(value, 1.0f);
  const half2 zero = __hsub2(pair, pair);
  const half2 one = h2exp(__lowhigh2highlow(zero));
  const half larger = __hmax(__low2half(pair), __high2half(pair));
  const float sum = __low2float(one) + __high2float(one) + (__hge(larger, __high2half(pair)) ? 4.0f : 0.0f);
  out[threadIdx.x] = static_cast<float>(narrow[threadIdx.x]) + static_cast<float>(__nv_fp8_e5m2(value)) + sum;
}

void check_kernel(emulate::Run& run) {
  const std::vector<float> x = {0, 1, -1.5f, 448, 1.1f, 3.3f, 0.0625f, -20};
  // e4m3 has three bits behind the leading one, e5m2 two.
  const std::vector<float> expected = {
      0 + 0 + 6,         1 + 1 + 6,        -1.5f - 1.5f + 6,      448 + 448 + 6,
      1.125f + 1.0f + 6, 3.25f + 3.5f + 6, 0.0625f + 0.0625f + 6, -20 - 20 + 6};
  float* out = run.buffer<float>("out", x.size());
  forms<<<1, 8>>>(run.buffer("x", x), run.buffer<__nv_fp8_e4m3>("narrow", x.size()), out);
  run.expect_equal("out", run.host(out), expected);
}
