// Step 09: one thread asks the copy engine for a whole tile; an mbarrier counts the bytes that arrive.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_09 {

// Lesson: a tensor map says what a tile is: where the matrix is, its sizes and strides, the box that one copy
// moves, and the swizzle it is written with. The kernel only names the corner. Elements outside the matrix
// arrive as zeros, and count as bytes all the same.
// ANCHOR: tensor_map
inline ptx::TensorMap operand_map(const bf16* matrix, int rows, int columns, int box_rows) {
  ptx::TensorMapSpec spec;
  spec.base = const_cast<bf16*>(matrix);
  spec.element = ptx::TensorElement::kBf16;
  spec.rank = 2;
  spec.extent = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)};  // innermost first
  spec.stride_bytes = {0, 2 * static_cast<std::uint64_t>(columns)};
  spec.box = {64, static_cast<std::uint32_t>(box_rows)};  // 64 bf16 are one 128-byte swizzle span
  spec.swizzle = ptx::Swizzle::k128B;
  return ptx::make_tensor_map(spec);
}
// ANCHOR_END: tensor_map

template <typename T>
struct Shared {
  WgmmaTiles<T> tiles;
  std::uint64_t full;  // mbarrier: the bytes of the k-tile have arrived
};

template <typename T>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm)
    tma_kernel(Gemm gemm, const __grid_constant__ ptx::TensorMap a_map,
               const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T>>();
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);

  // ANCHOR: init_barrier
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);  // one arrival per phase, by the thread that expects the bytes
    ptx::fence_mbarrier_init_release_cluster();  // the copy engine must also see the initialised barrier
  }
  __syncthreads();
  // ANCHOR_END: init_barrier

  WarpgroupTile<T> warpgroup;
  // ANCHOR: main_loop
  std::uint32_t parity = 0;  // the parity of the phase that completes next
  // ANCHOR: k_tiles
  for (int i = 0; i < k_tiles; ++i) {
    // ANCHOR: copy_and_wait
    if (threadIdx.x == 0) {
      // Lesson: exactly one thread expects the bytes and issues the copies. The phase completes when the
      // one arrival and all expected bytes are in: too many bytes expected and it never does, too few and
      // it does too early, or never.
      ptx::mbarrier_arrive_expect_tx(&shared.full, WgmmaTiles<T>::kBytes);
      for (int panel = 0; panel < T::kPanels; ++panel) {
        const int column = i * T::kK + panel * 64;
        ptx::cp_async_bulk_tensor_2d(shared.tiles.a[panel], &a_map, column, tile_row, &shared.full);
        ptx::cp_async_bulk_tensor_2d(shared.tiles.b[panel], &b_map, column, tile_column, &shared.full);
      }
    }
    ptx::mbarrier_wait_parity(&shared.full, parity, {"consumer", "full", 0, i});
    parity ^= 1;
    // ANCHOR_END: copy_and_wait

    warpgroup.issue(shared.tiles, i == 0);
    warpgroup.template wait<0>();
    // ANCHOR_END: main_loop
    __syncthreads();  // every warpgroup has read the tile: the next copy may overwrite it
    // ANCHOR_END: k_tiles
  }
  warpgroup.store(gemm, tile_row, tile_column);
}

template <typename T>
ptx::LaunchShape launch_shape(const Shape& shape) {
  return {.grid = {static_cast<unsigned>(ceil_div(shape.n, T::kN)),
                   static_cast<unsigned>(ceil_div(shape.m, T::kM))},
          .block = {T::kThreads},
          .shared_bytes = sizeof(Shared<T>)};
}

template <typename T>
Launcher prepare(const Gemm& gemm) {
  const auto [m, n, k] = gemm.shape;
  return [gemm, a_map = operand_map(gemm.a, m, k, T::kM),
          b_map = operand_map(gemm.b, n, k, T::kN)](ptx::Stream stream) {
    ptx::launch(tma_kernel<T>, launch_shape<T>(gemm.shape), stream, gemm, a_map, b_map);
  };
}

template <typename T>
Variant variant(const char* name, const char* summary) {
  return {.name = name,
          .summary = summary,
          .tile = {T::kM, T::kN, T::kK},
          .traffic = wgmma_tile_traffic<T>(),
          .kernel = ptx::kernel_handle(tma_kernel<T>),
          .launch_shape = launch_shape<T>,
          .prepare = prepare<T>};
}

inline const Step kStep{
    .name = "09_tma",
    .title = "one thread issues the copy, an mbarrier counts the bytes",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<WgmmaTiling<128, 128, 64, 1, 2>>("128x128", "one warpgroup, 32 KB, three CTAs per SM"),
        variant<WgmmaTiling<128, 128, 128, 1, 2>>("128x128x128",
                                                  "k-tile of 128: half the round trips, 64 KB"),
        variant<WgmmaTiling<128, 256, 64, 2>>("128x256", "two warpgroups, 48 KB, one CTA per SM"),
        variant<WgmmaTiling<128, 256, 128, 2>>("128x256x128", "k-tile of 128, 96 KB")}};

}  // namespace gemm::step_09
