// Step 10: two stages; the copy of the next k-tile is in flight while the warpgroups multiply this one.
#pragma once

#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_10 {

template <typename T>
struct Shared {
  WgmmaTiles<T> stage[2];
  std::uint64_t full[2];  // mbarriers: the bytes of the stage's k-tile have arrived
};

// Lesson: an mbarrier has a phase bit. It starts in phase 0; when the phase completes the bit flips, and the
// barrier is ready for the next k-tile without being initialised again. "Wait for parity p" means: until the
// phase with parity p is complete. Stage s sees k-tiles s, s + 2, s + 4, ...: the parity to wait for is 0, 1,
// 0, ..., one flip each time the stage is used again, which is (i / 2) % 2.
template <typename T>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm)
    tma_double_buffer_kernel(Gemm gemm, const __grid_constant__ ptx::TensorMap a_map,
                             const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T>>();
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  // ANCHOR: load
  const auto load = [&](int i) {
    load_tiles<T>(shared.stage[i % 2], &shared.full[i % 2], &a_map, &b_map, tile_row, tile_column, i * T::kK);
  };
  // ANCHOR_END: load

  // ANCHOR: prologue
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : shared.full) ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init_release_cluster();
    load(0);  // prologue: this thread initialised the barriers, so it need not wait for others
  }
  __syncthreads();
  // ANCHOR_END: prologue

  // ANCHOR: consume
  WarpgroupTile<T> warpgroup;
  // ANCHOR: k_tiles
  for (int i = 0; i < k_tiles; ++i) {
    // The barrier at the end of the last iteration says that all threads have read the other stage.
    if (threadIdx.x == 0 && i + 1 < k_tiles) load(i + 1);
    ptx::mbarrier_wait_parity(&shared.full[i % 2], static_cast<std::uint32_t>(i / 2 % 2),
                              {"consumer", "full", i % 2, i});
    warpgroup.issue(shared.stage[i % 2], i == 0);
    warpgroup.template wait<0>();
    __syncthreads();
    // ANCHOR_END: k_tiles
  }
  warpgroup.store(gemm, tile_row, tile_column);
  // ANCHOR_END: consume
}

template <typename T>
Variant variant(const char* name, const char* summary) {
  return variant_of<tma_double_buffer_kernel<T>, TileCtas<T, Shared<T>>>(
      {.name = name, .summary = summary, .stages = 2, .traffic = wgmma_tile_traffic<T>()},
      [](const Gemm& gemm) { return with_operand_maps<T>(gemm, gemm); });
}

inline const Step kStep{
    .name = "10_tma_double_buffer",
    .title = "two stages, prefetch, phase bits",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<WgmmaTiling<128, 128, 64, 1, 2>>("128x128", "one warpgroup, 64 KB, three CTAs per SM"),
        variant<WgmmaTiling<128, 256, 64, 2>>("128x256", "two warpgroups, 96 KB, one CTA per SM"),
        variant<WgmmaTiling<128, 256, 128, 2>>("128x256x128", "k-tile of 128, 192 KB, one CTA per SM")}};

}  // namespace gemm::step_10
