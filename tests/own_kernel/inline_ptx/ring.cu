// Broken on purpose: -D NO_WAIT (wgmma before its tiles are there), -D EARLY_RELEASE (a stage is released
// while wgmma reads it), -D SHORT_EXPECT (the barrier expects half of the bytes), -D NO_FENCE (the copy
// engine stores what ordinary stores wrote, with no proxy fence between).
#include "ring.cuh"

void check_kernel(emulate::Run& run) {
  constexpr int kM = 128, kN = 64, kK = 64 * 7;
  const auto* a = run.buffer("a", run.small_integers<__nv_bfloat16>(kM * kK));
  const auto* b = run.buffer("b", run.small_integers<__nv_bfloat16>(kN * kK));
  auto* const d = run.buffer<__nv_bfloat16>("d", kM * kN);
  run_gemm<1>(a, b, d, kM, kN, kK);
  run.expect_gemm("d", d, a, b, kM, kN, kK);
  auto* const shared_loads = run.buffer<__nv_bfloat16>("d of clusters", kM * kN);
  run_gemm<2>(a, b, shared_loads, kM, kN, kK);
  run.expect_gemm("d of clusters", shared_loads, a, b, kM, kN, kK);
}
