// deepseek-ai/DeepGEMM, the fp8 GEMMs for Hopper: -I FOLDER/deep_gemm/include -I CUTLASS/include, and
// -D SCALES_1D1D for the one whose B has a scale for each row.
#include <cuda_fp8.h>
#ifdef SCALES_1D1D
#include <deep_gemm/impls/sm90_fp8_gemm_1d1d.cuh>
#else
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>
#endif

#include "published.h"

constexpr int kBlock = 128;  // of rows, columns and depth
constexpr int kSms = 4;

/// Powers of two, with which every product stays exact.
std::vector<float> scales(std::size_t count, unsigned step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.5f * static_cast<float>(1 << (i * step % 3));
  return values;
}

template <int kCluster, bool kOnA>
void run_one(emulate::Run& run, int m, int n, int k) {
  const int depth_blocks = k / kBlock;
  const auto a_values = run.small_integers<__nv_fp8_e4m3>(m * k);
  const auto b_values = run.small_integers<__nv_fp8_e4m3>(n * k);
  const auto* a = run.buffer("a", a_values);
  const auto* b = run.buffer("b", b_values);
  const auto a_scales = scales(m * depth_blocks, 7);
  const auto* sfa = run.buffer("sfa", a_scales);
  constexpr auto kBytes = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  constexpr auto kFloats = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const CUtensorMap map_a = make_map(kBytes, 1, a, k, m, kBlock, kBlock, true);
  const CUtensorMap map_b = make_map(kBytes, 1, b, k, n, kBlock, kBlock, true);
  const CUtensorMap map_sfa = make_map(kFloats, 4, sfa, m, depth_blocks, kBlock, 1, false);
  std::vector<double> expected(m * n);
  const auto add_products = [&](auto scale_of_b) {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        for (int x = 0; x < k; ++x)
          expected[i * n + j] += static_cast<double>(float(a_values[i * k + x])) *
                                 a_scales[x / kBlock * m + i] *
                                 static_cast<double>(float(b_values[j * k + x])) * scale_of_b(j, x / kBlock);
      }
    }
  };
#ifdef SCALES_1D1D
  constexpr int kStages = 3;
  const auto b_scales = scales(n * depth_blocks, 5);
  const auto* sfb = run.buffer("sfb", b_scales);
  std::vector<float> before(m * n);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i % 5);
  float* const d = run.buffer("d", before);  // it is added to
  auto* const kernel =
      &deep_gemm::sm90_fp8_gemm_1d1d_impl<0, 0, 0, 1, kBlock, kBlock, kBlock, 128, 128, kStages, 128, 256,
                                          kCluster, kOnA, kSms, deep_gemm::GemmType::Normal, float>;
  constexpr int kShared = kBlock * kBlock * 4 + kStages * (2 * kBlock * kBlock + 1024) + 1024;
  launch_clusters(kernel, kSms, 384, kShared, kCluster, static_cast<__nv_fp8_e4m3*>(nullptr),
                  static_cast<__nv_fp8_e4m3*>(nullptr), static_cast<int*>(nullptr),
                  static_cast<cute::TmaDescriptor*>(nullptr), static_cast<unsigned>(m),
                  static_cast<unsigned>(n), static_cast<unsigned>(k), map_a, map_b, map_sfa,
                  make_map(kFloats, 4, sfb, n, depth_blocks, kBlock, 1, false),
                  make_map(kFloats, 4, d, n, m, kBlock, 64, false));
  for (std::size_t i = 0; i < before.size(); ++i) expected[i] = before[i];
  add_products([&](int column, int block) { return b_scales[block * n + column]; });
#else
  constexpr int kStages = 4;
  const auto b_scales = scales(n / kBlock * depth_blocks, 5);
  float* const sfb = run.buffer("sfb", b_scales);
  auto* const d = run.buffer<__nv_bfloat16>("d", m * n);
  auto* const kernel =
      &deep_gemm::sm90_fp8_gemm_1d2d_impl<cute::UMMA::Major::K, 0, 0, 0, 1, kBlock, kBlock, kBlock, 128, 128,
                                          128, kStages, 128, 256, kCluster, kOnA, kSms,
                                          deep_gemm::GemmType::Normal, cutlass::bfloat16_t,
                                          deep_gemm::epilogue::transform::EpilogueIdentity>;
  const int shared = kBlock * kBlock * 2 + kStages * (2 * kBlock * kBlock + 512) + depth_blocks * 8 + 1024;
  launch_clusters(kernel, kSms, 384, shared, kCluster, sfb, static_cast<int*>(nullptr),
                  static_cast<unsigned>(m), static_cast<unsigned>(n), static_cast<unsigned>(k), map_a, map_b,
                  make_map(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, d, n, m, 64, kBlock, true), map_sfa);
  add_products([&](int column, int block) { return b_scales[column / kBlock * depth_blocks + block]; });
  for (double& value : expected) value = rounded_to_bf16(value);
#endif
  run.expect_equal("d", run.host(d), expected);
}

void check_kernel(emulate::Run& run) {
  run_one<1, false>(run, 256, 256, 640);
  run_one<2, false>(run, 256, 256, 640);
  run_one<2, true>(run, 256, 256, 384);
}
