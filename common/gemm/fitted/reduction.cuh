// What step 21 taught about stream-K: all CTAs reduce the partials together, when they have multiplied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gemm/fitted/fitted_cluster.cuh"
#include "gemm/fitted/fitted_store.cuh"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/tma.cuh"

namespace gemm {

/// The stream-K tiles' partials in the workspace, in fp32 and as the registers hold them, and how many have
/// arrived. A worker is a cluster of `ctas` CTAs. It has two slots: its range begins in one tile and ends in
/// another. The counters are zero before the first launch, and after every one.
template <typename T>
struct FixUp {
  /// The workspace begins with counters: two of a lockstep, then those of a reduction.
  static constexpr std::size_t kCounterBytes = 16384;
  static constexpr bool kWaitsInside = false;                // all workers have multiplied when one waits
  static constexpr int kRowVectors = T::kN / 8;              // of four accumulators, in a block of 64 rows
  static constexpr int kVectors = T::kBlocks * kRowVectors;  // of a thread
  static constexpr int kChunks = (T::kN + kChunkN - 1) / kChunkN;
  static constexpr int kUnits = T::kM / 64 * kChunks;  // of a tile; what a warpgroup reduces at once

  static std::size_t bytes(const Decomposition& all, int ctas) {
    if (all.stream_k_tiles == 0) return 0;
    return kCounterBytes + 2 * static_cast<std::size_t>(all.ranges() * ctas) * sizeof(float) * T::kM * T::kN;
  }

  std::uint32_t*
      counters;      // [tile][CTA of the cluster]: warpgroups that have stored; then those that are done
  float4* partials;  // [slot][CTA of the cluster][vector][warpgroup][thread]
  int ctas;

  __device__ __forceinline__ FixUp(void* workspace, int cluster_ctas)
      : counters(static_cast<std::uint32_t*>(workspace) + 2),
        partials(reinterpret_cast<float4*>(static_cast<char*>(workspace) + kCounterBytes)),
        ctas(cluster_ctas) {}

  /// The slot of a worker's partials of a tile.
  static __device__ __forceinline__ int slot(const Decomposition& all, int worker, int tile) {
    return 2 * worker + (all.range_begin(worker) / all.k_tiles != tile);
  }

  /// Stores a warpgroup's partials of a work tile. `rank` is the CTA's in the cluster; `warpgroup` is the
  /// number of the calling one among those that share the tile.
  __device__ __forceinline__ void store_partials(const WarpgroupTile<T>& accumulated, int slot, int tile,
                                                 int rank, int warpgroup) const {
    float4* const first = vector(slot, rank, 0, warpgroup);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float* const four = &accumulated.accumulators[i / kRowVectors][i % kRowVectors * 4];
      ptx::st_global(first + i * T::kThreads, make_float4(four[0], four[1], four[2], four[3]));
    }
    sync_warpgroup();
    if (threadIdx.x % 128 == 0) ptx::atom_add_acq_rel_gpu(&counters[tile * ctas + rank], 1);
  }

  /// This warpgroup's share of all reductions. `position(number, rank)` says where a tile is; `index` is the
  /// number of the warpgroup among the `count` of the grid.
  template <bool kTransposed, typename Position, int kBuffers>
  __device__ __forceinline__ void reduce(const Decomposition& all, const Position& position,
                                         int whole_columns, int index, int count,
                                         SomeChunkBuffers<kBuffers>& buffers, ChunkTarget target) const {
    const int units = all.stream_k_tiles * ctas * kUnits;
    const auto share = [&](int i) { return static_cast<int>(static_cast<std::int64_t>(units) * i / count); };
    const bool speaks = threadIdx.x % 128 == 0;
    if (speaks) ptx::cp_async_bulk_wait_group_read<0>();
    int buffer = 0;
    for (int unit = share(index); unit < share(index + 1); ++unit) {
      const int number = unit / kUnits / ctas;
      const int rank = unit / kUnits - number * ctas;
      const int first = all.worker_at(number * all.k_tiles);
      const int last = all.worker_at((number + 1) * all.k_tiles - 1);
      if (first == last) continue;  // one worker has finished it
      // ANCHOR: publish
      if (speaks) {
        const auto arrivals = static_cast<std::uint32_t>((last - first + 1) * T::kWarpgroups);
        while (ptx::ld_acquire_gpu(&counters[number * ctas + rank]) < arrivals) {
        }
      }
      sync_warpgroup();
      // ANCHOR_END: publish
      const int block = unit % kUnits / kChunks;  // 64 rows of the tile
      const int begin = unit % kChunks * kChunkN;
      const int columns = T::kN - begin < kChunkN ? T::kN - begin : kChunkN;
      float sum[kChunkN / 2] = {};
      const auto load = [&](float4(&vectors)[kChunkN / 8], int worker) {
        const float4* const from = vector(slot(all, worker, number), rank,
                                          block % T::kBlocks * kRowVectors + begin / 8, block / T::kBlocks);
#pragma unroll
        for (int i = 0; i < kChunkN / 8; ++i)
          vectors[i] = i * 8 < columns ? ptx::ld_global(from + i * T::kThreads) : float4{};
      };
      // Lesson: a load takes hundreds of clocks, and a loop that asks before each whether there is one more
      // column waits for one after the other. All of two workers' loads are under way before the first sum.
      for (int worker = first; worker <= last; worker += 2) {
        float4 one[kChunkN / 8], next[kChunkN / 8] = {};
        load(one, worker);
        if (worker < last) load(next, worker + 1);
        add(sum, one);
        add(sum, next);
      }
      const TilePosition tile = position(number, rank);
      target.row = tile.m * T::kM + block * 64;
      target.tile = tile.n;
      target.whole = tile.n < whole_columns;
      store_chunk<T::kN, kTransposed, kBuffers>(sum, columns, buffers.d[buffer], target, begin);
      buffer = (buffer + 1) % kBuffers;
    }
    if (!speaks) return;
    // The last warpgroup makes ready for the next launch.
    const int slots = all.stream_k_tiles * ctas;
    std::uint32_t* const done = &counters[slots];
    if (ptx::atom_add_acq_rel_gpu(done, 1) + 1 < static_cast<std::uint32_t>(count)) return;
    for (int i = 0; i <= all.stream_k_tiles * ctas; ++i) ptx::st_relaxed_gpu(&counters[i], 0);
  }

 private:
  static __device__ __forceinline__ void add(float (&sum)[kChunkN / 2],
                                             const float4 (&vectors)[kChunkN / 8]) {
#pragma unroll
    for (int i = 0; i < kChunkN / 8; ++i) {
      const int first = 4 * i;
      sum[first] += vectors[i].x;
      sum[first + 1] += vectors[i].y;
      sum[first + 2] += vectors[i].z;
      sum[first + 3] += vectors[i].w;
    }
  }
  __device__ __forceinline__ float4* vector(int slot, int rank, int i, int warpgroup) const {
    const int index = (slot * ctas + rank) * kVectors + i;
    return partials + static_cast<std::size_t>(index) * T::kThreads + warpgroup * 128 + threadIdx.x % 128;
  }
  static __device__ __forceinline__ void sync_warpgroup() {
    ptx::bar_sync(1 + threadIdx.x / 128, 128);
  }
};

}  // namespace gemm
