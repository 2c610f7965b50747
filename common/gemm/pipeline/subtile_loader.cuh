// What step 30 taught: a warp of its own loads what the epilogue reads, behind the loads of the first
// k-tiles.
#pragma once

#include <cstdint>

#include "gemm/pipeline/ping_pong.cuh"
#include "gemm/pipeline/subtile_ring.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/tensor_map.h"

namespace gemm {

/// In shared memory. The further barrier: the loads of the first k-tiles are issued; count 1, the producer.
template <int kBuffers>
using LoadedSubtiles = SubtileRing<kBuffers, 1>;

/// Loads all subtiles of all tiles of a CTA with tiling T, tile by tile and row of subtiles by row: a loader
/// for run_ping_pong. Where two consumers share a tile, their subtiles alternate, because both store at the
/// same time.
template <typename T, int kBuffers>
struct SubtileLoader {
  static constexpr bool kLoads = true;
  static constexpr int kReaders = T::kWarpgroups;  // of a tile
  static constexpr int kAcross = T::kN / 64;
  static constexpr int kSubtiles = T::kM / 64 * kAcross;  // of a tile

  LoadedSubtiles<kBuffers>& shared;
  const CtaTiles<T>& tiles;
  const ptx::TensorMap* map;
  int first_loads;    // k-tiles that come before it; at most those of a tile and those of the ring
  bool reads = true;  // false: buffers are handed out with nothing in them

  __device__ __forceinline__ std::uint64_t* main_loads_begun() const { return &shared.empty[kBuffers]; }
  __device__ __forceinline__ void init() const {
    shared.init();
    ptx::mbarrier_init(main_loads_begun(), 1);
  }
  /// The producer has issued so many k-tiles.
  __device__ __forceinline__ void loaded(int issued) const {
    if (issued == first_loads) ptx::mbarrier_arrive(main_loads_begun());
  }
  /// One thread calls it.
  __device__ __forceinline__ void run() const {
    PipelineState<kBuffers> fill{0, 1};
    ptx::mbarrier_wait_parity(main_loads_begun(), 0, {"loader", "load order", 0, 0});
    for (int index = tiles.first; index < tiles.count(); index += tiles.step) {
      const TilePosition corner = tiles.corner(index);
      for (int i = 0; i < kSubtiles; ++i) {
        shared.producer_acquire(fill, i / kReaders);
        const int of_reader = i / kReaders;
        shared.load(fill, map, reads, corner.m + i % kReaders * T::kWarpgroupM + of_reader / kAcross * 64,
                    corner.n + of_reader % kAcross * 64);
        fill.advance();
      }
    }
  }
};

}  // namespace gemm
