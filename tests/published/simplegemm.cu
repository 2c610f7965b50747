// bertmaher/simplegemm: -I FOLDER -D 'SOURCE="gemm.cu"' -D RUN=run_gemm; also pingpong.cu with run_pingpong,
// and stmatrix.cu with run_stmatrix_gemm.
#include SOURCE

void check_kernel(emulate::Run& run) {
  constexpr int kSize = 512;
  constexpr int kDepth = 320;
  bf16* a = run.buffer("A", run.small_integers<bf16>(kSize * kDepth));
  bf16* b = run.buffer("B", run.small_integers<bf16>(kSize * kDepth));
  bf16* c = run.buffer<bf16>("C", kSize * kSize);
  RUN(a, b, c, kSize, kSize, kDepth);
  run.expect_gemm("C", c, b, a, kSize, kSize, kDepth);  // C is column-major
}
