// What step 42 taught: the producer of a persistent CTA whose k-tiles are 128 bytes of K, whatever they are.
#pragma once

#include <cstdint>

#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// Nothing that goes with a k-tile.
struct NothingMore {
  static constexpr std::uint32_t kBytes = 0;
  __device__ __forceinline__ void operator()(int, const TilePosition&, int) const {}
};

/// Loads all k-tiles of all tiles of the CTA into the ring; A is the type of the elements. One thread.
/// more(stage, tile, k_tile) copies More::kBytes bytes more into the stage, with its full barrier. Returns
/// where the next k-tile would go. kBackAndForth: every second tile goes backwards along K (step 46).
template <typename T, typename A, bool kBackAndForth = false, int kStages, typename More = NothingMore>
__device__ __forceinline__ PipelineState<kStages> produce_typed_tiles(
    Ring<T, kStages>& ring, const Shape& shape, const Raster& raster, const ptx::TensorMap* a_map,
    const ptx::TensorMap* b_map, const More& more = {}) {
  constexpr int kK = kRowBytes / static_cast<int>(sizeof(A));  // elements of a k-tile
  const TileGrid tiles = tile_grid<T>(shape);
  const int k_tiles = ceil_div(shape.k, kK);
  PipelineState<kStages> fill{0, 1};
  bool backwards = false;
  for (int index = static_cast<int>(blockIdx.x); index < tiles.count();
       index += static_cast<int>(gridDim.x)) {
    const TilePosition tile = tile_at(index, tiles, raster);
    for (int number = 0; number < k_tiles; ++number) {
      const int i = backwards ? k_tiles - 1 - number : number;
      ring.producer_acquire(fill, number);
      auto& stage = ring.stage[fill.stage];
      ptx::mbarrier_arrive_expect_tx(&ring.full[fill.stage], kRowBytes * (T::kM + T::kN) + More::kBytes);
      ptx::cp_async_bulk_tensor_2d(stage.a, a_map, i * kK, tile.m * T::kM, &ring.full[fill.stage]);
      ptx::cp_async_bulk_tensor_2d(stage.b, b_map, i * kK, tile.n * T::kN, &ring.full[fill.stage]);
      more(fill.stage, tile, i);
      fill.advance();
    }
    if constexpr (kBackAndForth) backwards = !backwards;
  }
  return fill;
}

}  // namespace gemm
