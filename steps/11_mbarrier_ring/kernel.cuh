// Step 11: a ring of stages, each with a full and an empty barrier; one wgmma group stays in flight.
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

namespace gemm::step_11 {

template <typename T, int kStages>
struct Shared {
  WgmmaTiles<T> stage[kStages];
  std::uint64_t full[kStages];   // the bytes of the stage's k-tile have arrived; count 1, the producer
  std::uint64_t empty[kStages];  // every warpgroup has read the stage; count kWarpgroups
};

// Lesson: a position in the ring is a stage and a phase, and the phase flips when the stage number wraps. The
// producer waits for `empty` and fills; the consumer waits for `full` and multiplies. At the start nothing is
// full and everything is empty, so the two begin with different phases: the consumer waits for phase 0 of
// `full` to complete, the producer for phase 1 of `empty`, which a fresh barrier counts as already complete.
// ANCHOR: pipeline_state
template <int kStages>
struct PipelineState {
  int stage = 0;
  std::uint32_t phase = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};
// ANCHOR_END: pipeline_state

// kInFlight: wgmma groups that may still run when the next one is issued. With 1 the tensor cores never wait
// for the threads, and a stage is released one k-tile late, when the group that read it is known to have
// finished.
template <typename T, int kStages, int kInFlight>
__global__ void __launch_bounds__(T::kThreads, T::kCtasPerSm)
    mbarrier_ring_kernel(Gemm gemm, const __grid_constant__ ptx::TensorMap a_map,
                         const __grid_constant__ ptx::TensorMap b_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const bool is_producer = threadIdx.x == 0;
  const bool releases = threadIdx.x % 128 == 0;  // one for its warpgroup: wgmma finishes for all of it

  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], T::kWarpgroups);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  // ANCHOR: producer
  PipelineState<kStages> fill{0, 1};
  int next_load = 0;
  // ANCHOR: produce
  const auto produce = [&] {
    ptx::mbarrier_wait_parity(&shared.empty[fill.stage], fill.phase,
                              {"producer", "empty", fill.stage, next_load});
    load_tiles<T>(shared.stage[fill.stage], &shared.full[fill.stage], &a_map, &b_map, tile_row, tile_column,
                  next_load * T::kK);
    fill.advance();
    ++next_load;
  };
  // ANCHOR_END: produce

  // Prologue: fill the ring.
  if (is_producer) {
    while (next_load < kStages && next_load < k_tiles) produce();
    // ANCHOR_END: producer
  }

  // ANCHOR: consumer
  WarpgroupTile<T> warpgroup;
  PipelineState<kStages> read{0, 0};
  PipelineState<kStages> release{0, 0};
  for (int i = 0; i < k_tiles; ++i) {
    ptx::mbarrier_wait_parity(&shared.full[read.stage], read.phase, {"consumer", "full", read.stage, i});
    warpgroup.issue(shared.stage[read.stage], i == 0);
    read.advance();
    warpgroup.template wait<kInFlight>();
    if (i >= kInFlight) {  // k-tile i - kInFlight has been read
      if (releases) ptx::mbarrier_arrive(&shared.empty[release.stage]);
      release.advance();
      // Steady state: refill the stage that was just released, as soon as the other warpgroups have released
      // it too.
      if (is_producer && next_load < k_tiles) produce();
    }
  }
  // Drain: nothing left to load; the last group finishes. No stage is filled again, so none is released.
  warpgroup.template wait<0>();
  warpgroup.store(gemm, tile_row, tile_column);
  // ANCHOR_END: consumer
}

template <typename T, int kStages, int kInFlight = 1>
Variant variant(const char* name, const char* summary) {
  return variant_of<mbarrier_ring_kernel<T, kStages, kInFlight>, TileCtas<T, Shared<T, kStages>>>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>()},
      [](const Gemm& gemm) { return with_operand_maps<T>(gemm, gemm); });
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using Tile128x128 = WgmmaTiling<128, 128, 64, 1, 2>;

inline const Step kStep{
    .name = "11_mbarrier_ring",
    .title = "N stages with full and empty barriers, one wgmma group in flight",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x256, 4>("128x256_stages4", "two warpgroups, 192 KB, one CTA per SM"),
        variant<Tile128x256, 3>("128x256_stages3", "144 KB"),
        variant<Tile128x256, 2>("128x256_stages2", "96 KB"),
        variant<Tile128x256, 4, 0>("128x256_stages4_wait0", "no wgmma group in flight across k-tiles"),
        variant<Tile128x128, 3>("128x128_stages3", "one warpgroup, 96 KB, two CTAs per SM"),
        variant<Tile128x128, 2>("128x128_stages2", "64 KB, three CTAs per SM"),
        variant<Tile128x128, 3, 0>("128x128_stages3_wait0", "no wgmma group in flight across k-tiles"),
        variant<WgmmaTiling<128, 256, 128, 2>, 2>("128x256x128_stages2", "k-tile of 128, 192 KB")}};

}  // namespace gemm::step_11
