// deepseek-ai/DeepGEMM, the bf16 GEMM for Blackwell: -D CTAS=1 (or 2) --arch sm_100a
// -I FOLDER/deep_gemm/include -I CUTLASS/include.
#include <deep_gemm/impls/sm100_bf16_gemm.cuh>

#include "published.h"

template <int kCluster>
void run_one(emulate::Run& run, int m, int n, int k) {
  constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64, kStages = 4, kSms = 4;
  const auto* a = run.buffer("a", run.small_integers<__nv_bfloat16>(m * k));
  const auto* b = run.buffer("b", run.small_integers<__nv_bfloat16>(n * k));
  auto* const d = run.buffer<__nv_bfloat16>("d", m * n);
  auto* const kernel =
      &deep_gemm::sm100_bf16_gemm_impl<cute::UMMA::Major::K, cute::UMMA::Major::K, 0, 0, 0, kBlockM, kBlockN,
                                       kBlockK, 1, 128, 128, 128, kStages, 128, 128, kCluster, false, kSms,
                                       kBlockK, false, false, deep_gemm::GemmType::Normal, false,
                                       cutlass::bfloat16_t, 100>;
  constexpr int kLoadN = kBlockN / kCluster;
  constexpr int kShared = 2 * kBlockM * 64 * 2 + kStages * (kBlockM + kLoadN) * kBlockK * 2 + 1024;
  constexpr auto kType = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  launch_clusters(
      kernel, kSms, 256, kShared, kCluster, static_cast<int*>(nullptr), static_cast<unsigned>(m),
      static_cast<unsigned>(n), static_cast<unsigned>(k), make_map(kType, 2, a, k, m, kBlockK, kBlockM, true),
      make_map(kType, 2, b, k, n, kBlockK, kLoadN, true), make_map(kType, 2, d, n, m, 64, kBlockM, true));
  run.expect_gemm("d", d, a, b, m, n, k);
}

void check_kernel(emulate::Run& run) {
  run_one<CTAS>(run, 256 * CTAS, 256, 448);
}
