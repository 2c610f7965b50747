// Step 71: a ring of stages; the loads run ahead, and tcgen05.commit itself releases a stage.
#pragma once

#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/tensor_tile.cuh"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_fence.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_71 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  std::uint64_t done;  // mbarrier: all multiplications of the tile are done
  std::uint32_t tensor_memory;
};

template <typename T, int kStages>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm)
    tensor_memory_ring_kernel(Gemm gemm, const __grid_constant__ ptx::TensorMap a_map,
                              const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  Ring<T, kStages>& ring = shared.ring;
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(1);  // one arrival releases a stage: that of tcgen05.commit
    ptx::mbarrier_init(&shared.done, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (warp == 0) {
    __syncwarp();
    ptx::tcgen05_alloc(&shared.tensor_memory, T::kColumns);
    ptx::tcgen05_relinquish_alloc_permit();
  }
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);

  // Lesson: loading and multiplying are two loops in two warps now, and neither waits for a multiplication.
  // The loader goes as far ahead as the ring has stages. The issuer hands the tensor cores one k-tile after
  // the other; what it has issued runs in order.
  // ANCHOR: issuer
  if (warp == 1 && ptx::elect_sync()) {
    PipelineState<kStages> fill{0, 1};
    for (int i = 0; i < k_tiles; ++i) {
      ring.producer_acquire(fill, i);
      load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile_row, tile_column,
                    i * T::kK);
      fill.advance();
    }
    // Lesson: nothing orders the arrivals of two commits. After the one at `done` those at `empty` may still
    // be under way, and they must find this CTA's barriers. So the loader waits for every stage once more.
    ring.producer_tail(fill, k_tiles);
  } else if (warp == 0 && ptx::elect_sync()) {
    // ANCHOR: multiply_and_store
    PipelineState<kStages> read{0, 0};
    for (int i = 0; i < k_tiles; ++i) {
      ring.consumer_wait(read, i);
      ptx::tcgen05_fence_after_thread_sync();
      multiply<T>(ring.stage[read.stage], d, i == 0);
      // Lesson: the release of a stage needs no thread. On Hopper a consumer waits for its wgmma and then
      // arrives; here the tensor cores arrive at `empty` when they have read the stage.
      ptx::tcgen05_commit(&ring.empty[read.stage]);
      read.advance();
    }
    ptx::tcgen05_commit(&shared.done);
    // ANCHOR_END: issuer
  }
  // Phase 0 is the only one of `done`: nobody can miss it.
  ptx::mbarrier_wait_parity(&shared.done, 0, {"epilogue", "done", 0, k_tiles - 1});
  ptx::tcgen05_fence_after_thread_sync();
  __syncwarp();  // one lane of two warps was busy elsewhere
  store<T>(gemm, d, tile_row, tile_column);
  // ANCHOR_END: multiply_and_store
  __syncthreads();  // every warp has read its lanes
  if (warp == 0) ptx::tcgen05_dealloc(d, T::kColumns);
}

template <int kTileN, int kStages, int kCtas>
Variant variant(const char* name, const char* summary) {
  using T = TensorTiling<kTileN, 64, kCtas>;
  using Grid = TileCtas<T, Shared<T, kStages>, T::kThreads, T::kCtasPerSm>;
  return variant_of<tensor_memory_ring_kernel<T, kStages>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = tensor_tile_traffic<T>()},
      [](const Gemm& gemm) { return with_operand_maps<T>(gemm, gemm); });
}

inline const Step kStep{
    .name = "71_tensor_memory_ring",
    .title = "a ring whose stages the tensor cores release themselves",
    .builds_on = "70_tensor_memory",
    .unit = MathUnit::kTcgen05,
    .architecture = Architecture::kSm100a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<256, 4, 1>("128x256_stages4", "192 KB, 256 columns, one CTA per SM"),
                 variant<256, 2, 2>("128x256_stages2", "96 KB, two CTAs per SM share its 512 columns"),
                 variant<128, 6, 1>("128x128_stages6", "192 KB, 128 columns"),
                 variant<128, 3, 2>("128x128_stages3", "96 KB, two CTAs per SM"),
                 variant<256, 1, 2>("128x256_stages1",
                                    "step 70 with two issuing threads: the loads cannot run ahead")}};

}  // namespace gemm::step_71
