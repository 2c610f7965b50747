// pranjalssh/fast.cu: -I FOLDER -D NDEBUG -D KERNEL=1 to 12.
#define main published_main
#include "matmul.cu"
#undef main

#include "published.h"

void check_kernel(emulate::Run& run) {
  constexpr int kSize = KERNEL >= 6 ? 2048 : 512;  // the later kernels divide by a number of blocks
  constexpr int kDepth = 192;
  const auto a_values = run.small_integers<bf16>(kSize * kDepth);
  const auto b_values = run.small_integers<bf16>(kSize * kDepth);
  bf16* a = run.buffer("A", a_values);
  bf16* b = run.buffer("B", b_values);
  bf16* c = run.buffer<bf16>("C", kSize * kSize);
  run_kernel(KERNEL, kSize, kSize, kDepth, a, b, c);
  if (KERNEL == 1) {  // C = A B, all of them row-major
    std::vector<double> expected = product_of_rows(a_values, b_values, kSize, kSize, kDepth);
    for (double& value : expected) value = rounded_to_bf16(value);
    run.expect_equal("C", run.host(c), expected);
  } else {  // C is column-major
    run.expect_gemm("C", c, b, a, kSize, kSize, kDepth);
  }
}
