// deepseek-ai/DeepGEMM, the bf16 GEMM for Hopper: -I FOLDER/deep_gemm/include -I CUTLASS/include.
#include <deep_gemm/impls/sm90_bf16_gemm.cuh>

#include "published.h"

template <int kCluster, bool kOnA>
void run_one(emulate::Run& run, int m, int n, int k) {
  constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64, kStages = 4, kSms = 4;
  const auto* a = run.buffer("a", run.small_integers<__nv_bfloat16>(m * k));
  const auto* b = run.buffer("b", run.small_integers<__nv_bfloat16>(n * k));
  auto* const d = run.buffer<__nv_bfloat16>("d", m * n);
  auto* const kernel =
      &deep_gemm::sm90_bf16_gemm_impl<cute::UMMA::Major::K, cute::UMMA::Major::K, 0, 0, 0, 1, kBlockM,
                                      kBlockN, kBlockK, 128, 128, 128, kStages, 128, 256, kCluster, kOnA,
                                      kSms, deep_gemm::GemmType::Normal, false, cutlass::bfloat16_t>;
  constexpr int kShared = kBlockM * kBlockN * 2 + kStages * (kBlockM + kBlockN) * kBlockK * 2 + 1024;
  constexpr auto kType = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  launch_clusters(
      kernel, kSms, 384, kShared, kCluster, static_cast<int*>(nullptr), static_cast<unsigned>(m),
      static_cast<unsigned>(n), static_cast<unsigned>(k), make_map(kType, 2, a, k, m, kBlockK, kBlockM, true),
      make_map(kType, 2, b, k, n, kBlockK, kBlockN, true), make_map(kType, 2, d, n, m, 64, kBlockM, true));
  run.expect_gemm("d", d, a, b, m, n, k);
}

void check_kernel(emulate::Run& run) {
  run_one<1, false>(run, 256, 256, 448);
  run_one<2, false>(run, 256, 256, 448);
}
