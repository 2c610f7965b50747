// siboehm/SGEMM_CUDA, kernels 1 to 12 by the project's own launches: -I FOLDER -I FOLDER/src.
#include "runner.cu"

#include "published.h"

void check_kernel(emulate::Run& run) {
  constexpr int kM = 256, kN = 256, kK = 64;
  constexpr float kAlpha = 0.5f, kBeta = 3;
  const auto a_values = run.small_integers<float>(kM * kK);
  const auto b_values = run.small_integers<float>(kK * kN);
  const auto c_values = run.small_integers<float>(kM * kN);
  float* a = run.buffer("A", a_values);
  float* b = run.buffer("B", b_values);
  std::vector<double> expected = product_of_rows(a_values, b_values, kM, kN, kK);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = kAlpha * expected[i] + kBeta * c_values[i];
  for (int kernel = 1; kernel <= 12; ++kernel) {
    float* c = run.buffer("C", c_values);
    run_kernel(kernel, kM, kN, kK, kAlpha, a, b, kBeta, c, nullptr);
    run.expect_equal("C of kernel " + std::to_string(kernel), run.host(c), expected);
  }
}
