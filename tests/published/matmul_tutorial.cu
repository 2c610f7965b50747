// KnowingNothing/MatmulTutorial, examples/matmul/this-sm90/matmul-v8.cu: -I FOLDER/examples/matmul/this-sm90.
#include "matmul-v8.cu"

#include "published.h"

void check_kernel(emulate::Run& run) {
  constexpr int kM = 512, kN = 512, kK = 320;
  const auto* a = run.buffer("A", run.small_integers<__nv_bfloat16>(kM * kK));
  const auto* b = run.buffer("B", run.small_integers<__nv_bfloat16>(kN * kK));
  auto* const c = run.buffer<__nv_bfloat16>("C", kM * kN);
  constexpr auto kType = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const CUtensorMap map_a = make_map(kType, 2, a, kK, kM, 64, 128, true);
  const CUtensorMap map_b = make_map(kType, 2, b, kK, kN, 64, 128, true);
  const CUtensorMap map_c = make_map(kType, 2, c, kN, kM, 256, 64, false);
  gemm_bf16_launch(&map_a, &map_b, &map_c, c, kM, kN, kK);
  run.expect_gemm("C", c, a, b, kM, kN, kK);
}
