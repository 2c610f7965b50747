// What a variant of step 46 for many rows is built of: its tile, stages and store, what is in shared memory,
// and the copy of scales into a stage.
#pragma once

#include <cstdint>

#include "gemm/pipeline/issue_order.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_46 {

/// How D leaves: through two buffers for each warpgroup, or through buffers for the whole tile.
enum class Store { kTwoBuffers, kWhole };

// Lesson: the CTAs of a wave read the same rows of A as those of the wave before, but all along K, which is
// more than the L2 keeps. If they begin where the others ended, the L2 still has what was read last.

/// What a variant is built of.
template <int kM, int kN, int kRingStages, Store kStoreAs, Phase kOrder = Phase::kAny>
struct Built {
  using T = ByteTiling<kM, kN, 2>;  // a k-tile is 128 bytes of K
  static constexpr int kStages = kRingStages;
  static constexpr Store kStore = kStoreAs;
  static constexpr Phase kPhase = kOrder;
  /// Every second tile of a CTA goes backwards along K. The other tiles gain less, or nothing.
  static constexpr bool kBackAndForth = kN == 256 && kStore == Store::kWhole;
  static constexpr int kBuffers = kStore == Store::kWhole ? kN / 64 : 2;
};

template <typename V, typename T = typename V::T>
struct Shared {
  Ring<T, V::kStages> ring;
  alignas(128) float scales_a[V::kStages][T::kM];                             // [stage][m]
  alignas(1024) unsigned char d[T::kWarpgroups][V::kBuffers][64][kRowBytes];  // [warpgroup][buffer][m]
};

/// A's scales of a k-tile: the third copy into its stage.
template <typename V>
struct LoadScales {
  static constexpr std::uint32_t kBytes = 4 * V::T::kM;
  Shared<V>& shared;
  const ptx::TensorMap* scale_map;

  __device__ __forceinline__ void operator()(int stage, const TilePosition& tile, int k_tile) const {
    ptx::cp_async_bulk_tensor_2d(shared.scales_a[stage], scale_map, tile.m * V::T::kM, k_tile,
                                 &shared.ring.full[stage]);
  }
};

}  // namespace gemm::step_46
