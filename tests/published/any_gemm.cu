// A published function f(A, B, C, m, n, k) that launches a GEMM: -D 'SOURCE="FILE"' -D 'CALLS=f, g' -D
// TYPE=half, and -D ROWS_OF_B where B is [k][n]. Otherwise it is [n][k]. -D DEPTH=512 for another K than 128.
#define main published_main
#include SOURCE
#undef main

#include "published.h"

#ifndef DEPTH
#define DEPTH 128
#endif

void check_kernel(emulate::Run& run) {
  constexpr int kM = 256, kN = 512, kK = DEPTH;
  const auto a_values = run.small_integers<TYPE>(kM * kK);
  const auto b_values = run.small_integers<TYPE>(kN * kK);
  TYPE* a = run.buffer("A", a_values);
  TYPE* b = run.buffer("B", b_values);
  for (const auto function : {CALLS}) {
    TYPE* c = run.buffer<TYPE>("C", kM * kN);
    function(a, b, c, kM, kN, kK);
#ifdef ROWS_OF_B
    run.expect_close("C", run.host(c), product_of_rows(a_values, b_values, kM, kN, kK), 0.01);
#else
    run.expect_gemm("C", c, a, b, kM, kN, kK, 0.01);
#endif
  }
}
