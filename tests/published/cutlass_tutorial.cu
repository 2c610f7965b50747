// NVIDIA/cutlass, the tutorial's GEMM with TMA and wgmma: -I FOLDER/examples/cute/tutorial/hopper
// -I FOLDER/include -I FOLDER/tools/util/include.
#define main published_main
#include "wgmma_tma_sm90.cu"
#undef main

#include "published.h"

void check_kernel(emulate::Run& run) {
  constexpr int kM = 256, kN = 128, kK = 320;
  const auto a_values = run.small_integers<half>(kM * kK);
  const auto b_values = run.small_integers<half>(kN * kK);
  const auto* a = reinterpret_cast<const cute::half_t*>(run.buffer("A", a_values));
  const auto* b = reinterpret_cast<const cute::half_t*>(run.buffer("B", b_values));
  const cute::half_t one(1.0f), zero(0.0f);
  for (const bool is_tn : {true, false}) {
    half* c = run.buffer<half>("C", kM * kN);
    gemm(is_tn ? 'T' : 'N', is_tn ? 'N' : 'T', kM, kN, kK, one, a, is_tn ? kK : kM, b, is_tn ? kK : kN, zero,
         reinterpret_cast<cute::half_t*>(c), kM);
    // C is column-major.
    std::vector<double> expected(kM * kN);
    const auto element = [is_tn](const std::vector<half>& values, int row, int x, int rows) {
      return static_cast<double>(static_cast<float>(values[is_tn ? row * kK + x : x * rows + row]));
    };
    for (int n = 0; n < kN; ++n) {
      for (int m = 0; m < kM; ++m) {
        for (int x = 0; x < kK; ++x)
          expected[n * kM + m] += element(a_values, m, x, kM) * element(b_values, n, x, kN);
      }
    }
    run.expect_close("C", run.host(c), expected, 0, 0);
  }
}
