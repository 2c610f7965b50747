// leimao/CUDA-GEMM-Optimization: -I FOLDER/include -I FOLDER/src -D 'SOURCE="FILE"' -D
// LAUNCH=launch_gemm_kernel_v07.
#include SOURCE
#include "cuda_gemm_utils.cu"

#include "published.h"

void check_kernel(emulate::Run& run) {
  constexpr std::size_t kM = 256, kN = 256, kK = 64;
  const half alpha = __float2half(2);
  const half beta = __float2half(0.5f);
  const auto a_values = run.small_integers<half>(kM * kK);
  const auto b_values = run.small_integers<half>(kK * kN);
  const auto c_values = run.small_integers<half>(kM * kN);
  half* const c = run.buffer("C", c_values);
  LAUNCH<half>(kM, kN, kK, &alpha, run.buffer("A", a_values), kK, run.buffer("B", b_values), kN, &beta, c, kN,
               nullptr);
  std::vector<double> expected = product_of_rows(a_values, b_values, kM, kN, kK);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = 2 * expected[i] + 0.5 * static_cast<double>(__half2float(c_values[i]));
  run.expect_close("C", run.host(c), expected, 0.01, 0.01);
}
