// What step 15 taught about the consumers: a stage is released when the k-tile behind it has been issued, the
// last one's at the end of the tile, before anything is stored.
#pragma once

#include "gemm/pipeline/ring.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"

namespace gemm {

/// A consumer warpgroup's way through the ring, with one k-tile multiplied while the next one is issued.
template <typename T, int kStages>
struct RingReader {
  Ring<T, kStages>& ring;
  PipelineState<kStages> read{0, 0};
  PipelineState<kStages> release{0, 0};
  bool releases = threadIdx.x % 128 == 0;

  /// The k-tiles of a tile. The last one may still be multiplied: finish() waits for it.
  __device__ __forceinline__ void multiply(WarpgroupTile<T>& warpgroup, int k_tiles) {
    for (int i = 0; i < k_tiles; ++i) {
      ring.consumer_wait(read, i);
      warpgroup.issue(ring.stage[read.stage], i == 0);
      read.advance();
      warpgroup.template wait<1>();
      if (i > 0) release_stage();
    }
  }
  /// The accumulators may be read, and the producer may fill every stage of the tile.
  __device__ __forceinline__ void finish(WarpgroupTile<T>& warpgroup) {
    warpgroup.template wait<0>();
    release_stage();
  }
  /// The next of the stages that have been read.
  __device__ __forceinline__ void release_stage() {
    if (releases) ring.consumer_release(release);
    release.advance();
  }
};

}  // namespace gemm
