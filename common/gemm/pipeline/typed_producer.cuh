// What step 42 taught: the producer of a persistent CTA whose k-tiles are 128 bytes of K, whatever they are.
#pragma once

#include <cstdint>

#include "gemm/launch/typed_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/cluster_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// Nothing that goes with a k-tile.
struct NothingMore {
  static constexpr std::uint32_t kBytes = 0;
  __device__ __forceinline__ void operator()(int, const TilePosition&, int) const {}
};

/// Loads all k-tiles of all tiles of the CTA into the ring; A is the type of the elements. One thread.
/// more(stage, tile, k_tile) copies More::kBytes bytes more into the stage, with its full barrier. CTAs of a
/// cluster load a share each of what they have in common.
template <typename T, typename A, int kStages, typename More = NothingMore, typename C = Cluster<1, 1>>
__device__ __forceinline__ void produce_typed_tiles(Ring<T, kStages>& ring, const Shape& shape,
                                                    const Raster& raster, const ptx::TensorMap* a_map,
                                                    const ptx::TensorMap* b_map, const More& more = {},
                                                    const C& cluster = {}) {
  constexpr int kK = kRowBytes / static_cast<int>(sizeof(A));  // elements of a k-tile
  const TileGrid tiles = cluster_grid<T, C>(shape);
  const int k_tiles = ceil_div(shape.k, kK);
  PipelineState<kStages> fill{0, 1};
  for (int index = static_cast<int>(blockIdx.x) / C::kCtas; index < tiles.count();
       index += static_cast<int>(gridDim.x) / C::kCtas) {
    const TilePosition tile = cluster_tile(tile_at(index, tiles, raster), cluster);
    for (int i = 0; i < k_tiles; ++i) {
      ring.producer_acquire(fill, i);
      load_shares<T>(ring.stage[fill.stage], &ring.full[fill.stage], a_map, b_map, tile.m * T::kM,
                     tile.n * T::kN, i * kK, cluster, More::kBytes);
      more(fill.stage, tile, i);
      fill.advance();
    }
  }
}

}  // namespace gemm
