// alexarmbr/matmul-playground: -I FOLDER/src -D 'SOURCE="kernel6.cu"' -D LAUNCH=kernel_6_launch.
#include "host_utils.cuh"
#include SOURCE

#include "published.h"

void check_kernel(emulate::Run& run) {
  constexpr unsigned kM = 512, kN = 256, kK = 256;
  constexpr float kAlpha = 0.5f, kBeta = 2;
  const auto a_values = run.small_integers<half>(kM * kK);
  const auto b_values = run.small_integers<half>(kK * kN);
  const auto c_values = run.small_integers<half>(kM * kN);
  const sgemm_params sizes{run.buffer("A", a_values),
                           run.buffer("B", b_values),
                           run.buffer("C", c_values),
                           run.buffer<half>("D", kM * kN),
                           kAlpha,
                           kBeta,
                           kM,
                           kN,
                           kK};
  KernelLogger logger("emulated");
  LAUNCH(sizes, logger, 1);
  std::vector<double> expected = product_of_rows(a_values, b_values, kM, kN, kK);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = kAlpha * expected[i] + kBeta * static_cast<double>(__half2float(c_values[i]));
  run.expect_close("D", run.host(sizes.D), expected, 0.002, 0.01);
}
