// Where step 44's scales lie in shared memory, and how the producer brings them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/pipeline/lane_scales.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/subtile_ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_44 {

/// Where consumers find B's scales.
enum class ScalePlace { kLanes, kRing };

template <typename T, int kStages, ScalePlace kPlace>
struct Shared {
  using ScalesB = std::conditional_t<kPlace == ScalePlace::kRing, float[kStages][4], NoBuffers>;
  Ring<T, kStages> ring;
  alignas(128) float scales_a[kStages][T::kM];                      // [stage][m]
  alignas(1024) unsigned char d[T::kWarpgroups][2][64][kRowBytes];  // [warpgroup][buffer][m], swizzled
  [[no_unique_address]] alignas(16) ScalesB scales_b;               // [stage][k / 128 % 4]
};

// Lesson: the scales travel with what they scale. A's are M-major, so those of a tile's rows and one block of
// K are contiguous: a third copy into the stage, and its bytes count at the same full barrier. Where the
// tile is 128 wide, a k-tile has a single scale of B, but the smallest copy has 16 bytes, or four scales.
template <typename T, int kStages, ScalePlace kPlace>
struct LoadScales {
  static constexpr std::uint32_t kBytes = 4 * T::kM + (kPlace == ScalePlace::kRing ? 16 : 0);
  Shared<T, kStages, kPlace>& shared;
  const BlockScales& scales;
  const ptx::TensorMap* scale_map;

  __device__ __forceinline__ void operator()(int stage, const TilePosition& tile, int k_tile) const {
    // ANCHOR: load_scales
    auto* const full = &shared.ring.full[stage];
    ptx::cp_async_bulk_tensor_2d(shared.scales_a[stage], scale_map, tile.m * T::kM, k_tile, full);
    // ANCHOR_END: load_scales
    if constexpr (kPlace == ScalePlace::kRing) {
      static_assert(T::kN <= kScaleBlock, "a tile has one scale of B in each k-tile");
      ptx::cp_async_bulk(shared.scales_b[stage], scales.row_scales(tile.n * T::kN) + k_tile / 4 * 4, 16,
                         full);
    }
  }
};

}  // namespace gemm::step_44
