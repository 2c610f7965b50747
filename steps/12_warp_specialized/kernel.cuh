// Step 12: warps with roles: one warp loads, a warpgroup multiplies, and registers move to where they are
// used.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_12 {

// Lesson: the SM has 65536 registers, and a launch gives every thread the same number of them. A producer
// needs few, a consumer all it can get for its accumulators. setmaxnreg moves them: first the producer's
// warpgroup gives up what it does not need, then the consumers take it; they wait until it is there.
template <typename T>
struct Roles {
  // ANCHOR: roles
  static constexpr int kProducerWarp = 4;  // the consumers are warps 0 to 3
  // setmaxnreg is for whole warpgroups, so the producer has one, and 127 of its threads nothing to do.
  static constexpr int kThreads = 256;
  // ANCHOR: registers
  static constexpr int kAtStart = std::min(256, 65536 / T::kCtasPerSm / kThreads);
  static constexpr int kProducerRegisters = 40;
  static constexpr int kConsumerRegisters = std::min(256, 2 * kAtStart - kProducerRegisters);
  // ANCHOR_END: registers
  // ANCHOR_END: roles
  static_assert(T::kWarpgroups == 1, "one consumer warpgroup");
};

// kPeek: the consumer asks for the next k-tile before it waits for the multiplication of this one, and waits
// on the barrier only if the answer was no.
template <typename T, int kStages, bool kPeek>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    warp_specialized_kernel(Gemm gemm, const __grid_constant__ ptx::TensorMap a_map,
                            const __grid_constant__ ptx::TensorMap b_map) {
  auto& ring = ptx::dynamic_shared<Ring<T, kStages>>();
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.x) * T::kN;
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    // ANCHOR: init
    ring.init(1);
    // ANCHOR_END: init
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  // ANCHOR: producer
  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      PipelineState<kStages> fill{0, 1};
      for (int i = 0; i < k_tiles; ++i) {
        ring.producer_acquire(fill, i);
        load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile_row, tile_column,
                      i * T::kK);
        fill.advance();
      }
    }
  } else {  // the consumer warpgroup
    // ANCHOR: consumer
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    // ANCHOR_END: producer
    const bool releases = threadIdx.x == 0;
    WarpgroupTile<T> warpgroup;
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    bool is_full = false;
    for (int i = 0; i < k_tiles; ++i) {
      // ANCHOR: peek
      if (!kPeek || !is_full) {
        ring.consumer_wait(read, i);
      }
      warpgroup.issue(ring.stage[read.stage], i == 0);
      read.advance();
      if constexpr (kPeek) {
        is_full = i + 1 < k_tiles && ring.consumer_try_wait(read);
      }
      warpgroup.template wait<1>();
      // ANCHOR_END: peek
      if (i > 0) {  // k-tile i - 1 has been read by all four warps: a wgmma group finishes for all of them
        if (releases) ring.consumer_release(release);
        // ANCHOR_END: consumer
        release.advance();
      }
    }
    warpgroup.template wait<0>();
    warpgroup.store(gemm, tile_row, tile_column);
  }
}

template <typename T, int kStages, bool kPeek = false>
Variant variant(const char* name, const char* summary) {
  using Grid = TileCtas<T, Ring<T, kStages>, Roles<T>::kThreads, T::kCtasPerSm>;
  return variant_of<warp_specialized_kernel<T, kStages, kPeek>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>()},
      [](const Gemm& gemm) { return with_operand_maps<T>(gemm, gemm); });
}

using Tile128x128 = WgmmaTiling<128, 128, 64, 1, 2>;
using Tile128x192 = WgmmaTiling<128, 192, 64, 1>;

inline const Step kStep{
    .name = "12_warp_specialized",
    .title = "a producer warp and a consumer warpgroup, setmaxnreg",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x192, 3>("128x192_stages3", "120 KB, one CTA per SM, 192 accumulators per thread"),
        variant<Tile128x192, 3, true>("128x192_stages3_peek", "peeks at the next k-tile before it waits"),
        variant<Tile128x192, 4>("128x192_stages4", "160 KB"),
        variant<Tile128x192, 5>("128x192_stages5", "200 KB"),
        variant<Tile128x128, 3>("128x128_stages3", "96 KB, two CTAs per SM, 216 registers per consumer"),
        variant<Tile128x128, 3, true>("128x128_stages3_peek", "peeks at the next k-tile before it waits"),
        variant<Tile128x128, 2>("128x128_stages2", "64 KB, two CTAs per SM")}};

}  // namespace gemm::step_12
