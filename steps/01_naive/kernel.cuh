// Step 01: one thread computes one element of D.
#pragma once

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/memory.cuh"

namespace gemm::step_01 {

// Lesson: a thread finds its place in the problem from its place in the grid, and nothing else. The block is
// kRows x kColumns threads; threadIdx.x runs along a row of D, so the 32 lanes of a warp take consecutive
// columns (and kColumns < 32 folds the warp into several rows).
template <int kRows, int kColumns>
__global__ void __launch_bounds__(kRows* kColumns) naive_kernel(Gemm gemm) {
  // ANCHOR: body
  const auto [m, n, k] = gemm.shape;
  const int row = static_cast<int>(blockIdx.y * kRows + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * kColumns + threadIdx.x);
  if (row >= m || column >= n) return;

  const bf16* a_row = gemm.a + offset(row, 0, k);     // [k]
  const bf16* b_row = gemm.b + offset(column, 0, k);  // [k]
  float accumulator = 0;
  // ANCHOR: sum
  for (int i = 0; i < k; ++i) {
    const float a = to_float(ptx::ld_global(a_row + i));
    const float b = to_float(ptx::ld_global(b_row + i));
    accumulator += a * b;
  }
  // ANCHOR_END: sum
  ptx::st_global(gemm.d + offset(row, column, n), ptx::cvt_rn_bf16_f32(accumulator));
  // ANCHOR_END: body
}

template <int kRows, int kColumns>
ptx::LaunchShape launch_shape(const Shape& shape) {
  return {.grid = {static_cast<unsigned>(ceil_div(shape.n, kColumns)),
                   static_cast<unsigned>(ceil_div(shape.m, kRows))},
          .block = {kColumns, kRows}};
}

template <int kRows, int kColumns>
Launcher prepare(const Gemm& gemm) {
  return [gemm](ptx::Stream stream) {
    ptx::launch(naive_kernel<kRows, kColumns>, launch_shape<kRows, kColumns>(gemm.shape), stream, gemm);
  };
}

template <int kRows, int kColumns>
Variant variant(const char* name, const char* summary) {
  return {
      .name = name,
      .summary = summary,
      .tile = {kRows, kColumns, 1},
      // Two 2-byte loads per multiply-add. L1 merges a block's loads, so the L2 sees each of its rows once.
      .traffic = {.lsu_instructions_per_fma = 2, .global_bytes_per_fma = 2.0 / kRows + 2.0 / kColumns},
      .kernel = ptx::kernel_handle(naive_kernel<kRows, kColumns>),
      .launch_shape = launch_shape<kRows, kColumns>,
      .prepare = prepare<kRows, kColumns>};
}

inline const Step kStep{
    .name = "01_naive",
    .title = "one thread, one output",
    .architecture = Architecture::kSm80,
    .variants = {variant<16, 16>("16x16", "a warp covers 2 rows x 16 columns of D"),
                 variant<8, 32>("8x32", "a warp covers 1 row x 32 columns: 33 rows of operands per load"),
                 variant<32, 8>("32x8", "a warp covers 4 rows x 8 columns: 12 rows of operands per load")}};

}  // namespace gemm::step_01
