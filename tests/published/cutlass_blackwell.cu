// NVIDIA/cutlass, the tutorial's GEMMs for Blackwell: --arch sm_100a -D 'SOURCE="01_mma_sm100.cu"'
// -I FOLDER/examples/cute/tutorial/blackwell -I FOLDER/include -I FOLDER/tools/util/include.
#define main published_main
#include SOURCE
#undef main

#include "published.h"

void check_kernel(emulate::Run& run) {
  constexpr int kM = 512, kN = 1024, kK = 256;
  const auto a_values = run.small_integers<half>(kM * kK);
  const auto b_values = run.small_integers<half>(kN * kK);
  const auto c_values = run.small_integers<float>(kM * kN);
  const auto* a = reinterpret_cast<const cute::half_t*>(run.buffer("A", a_values));
  const auto* b = reinterpret_cast<const cute::half_t*>(run.buffer("B", b_values));
  const float* c = run.buffer("C", c_values);
  float* d = run.buffer<float>("D", kM * kN);
  const auto rows = [](int height, int width) {
    return cute::make_layout(cute::make_shape(height, width), cute::make_stride(width, cute::Int<1>{}));
  };
  const auto layout_a = rows(kM, kK), layout_b = rows(kN, kK), layout_d = rows(kM, kN);
  gemm_host_f16xf16_f32_f32_tnt(a, layout_a, b, layout_b, c, layout_d, d, layout_d, 1.0f, 2.0f);
  std::vector<double> expected(kM * kN);
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) {
      double sum = 2.0 * c_values[m * kN + n];
      for (int k = 0; k < kK; ++k)
        sum += static_cast<double>(static_cast<float>(a_values[m * kK + k])) *
               static_cast<double>(static_cast<float>(b_values[n * kK + k]));
      expected[m * kN + n] = sum;
    }
  }
  run.expect_close("D", run.host(d), expected, 0, 0);
}
