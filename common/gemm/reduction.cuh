// What step 21 taught about stream-K: all CTAs reduce the partials together, when they have multiplied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/decomposition.h"
#include "gemm/fitted_store.cuh"
#include "gemm/raster.h"
#include "gemm/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"

namespace gemm {

/// The workspace begins with counters: two of a lockstep, then those of a reduction.
inline constexpr std::size_t kCounterBytes = 16384;

/// The stream-K tiles' partials in the workspace, in fp32 and as the registers hold them, and how many have
/// arrived. Every worker has two slots: its range begins in one tile and ends in another. kCtas CTAs are a
/// worker, with tiles below each other. The counters are zero before the first launch, and after every one.
template <typename T, int kCtas>
struct Reduction {
  static constexpr int kRowVectors = T::kN / 8;              // of four accumulators, in a block of 64 rows
  static constexpr int kVectors = T::kBlocks * kRowVectors;  // of a thread
  static constexpr int kChunks = (T::kN + kChunkN - 1) / kChunkN;
  static constexpr int kUnits = T::kM / 64 * kChunks;  // what a warpgroup reduces at once: 64 x kChunkN

  static std::size_t bytes(const Decomposition& all) {
    if (all.stream_k_tiles == 0) return 0;
    return kCounterBytes + 2 * all.ranges() * kCtas * sizeof(float) * T::kM * T::kN;
  }

  std::uint32_t*
      counters;      // [tile][CTA of the cluster]: warpgroups that have stored; then those that are done
  float4* partials;  // [slot][CTA of the cluster][vector][warpgroup][thread]

  __device__ __forceinline__ explicit Reduction(void* workspace)
      : counters(static_cast<std::uint32_t*>(workspace) + 2),
        partials(reinterpret_cast<float4*>(static_cast<char*>(workspace) + kCounterBytes)) {}

  __device__ __forceinline__ float4* vector(int slot, int rank, int i, int warpgroup) const {
    const auto index = static_cast<std::size_t>((slot * kCtas + rank) * kVectors + i) * T::kWarpgroups;
    return partials + (index + warpgroup) * 128 + threadIdx.x % 128;
  }

  /// Stores a warpgroup's partials of a work tile. `warpgroup`: of the tile's.
  __device__ __forceinline__ void store(const WarpgroupTile<T>& tile, int slot, int tile_number, int rank,
                                        int warpgroup) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float* const four = &tile.accumulators[i / kRowVectors][i % kRowVectors * 4];
      ptx::st_global(vector(slot, rank, i, warpgroup), make_float4(four[0], four[1], four[2], four[3]));
    }
    ptx::bar_sync(1 + threadIdx.x / 128, 128);
    if (threadIdx.x % 128 == 0) ptx::atom_add_acq_rel_gpu(&counters[tile_number * kCtas + rank], 1);
  }

  /// This warpgroup's share of all reductions. `raster` says where a tile is, `index` is the warpgroup's
  /// number in the grid, of `count`.
  template <bool kTransposed, typename TileOf>
  __device__ __forceinline__ void reduce(const Decomposition& all, const TileOf& tile_of, int index,
                                         int count, ChunkBuffers& buffers,
                                         const ptx::TensorMap* d_map) const {
    const int units = all.stream_k_tiles * kCtas * kUnits;
    const auto cut = [&](int i) { return static_cast<int>(static_cast<std::int64_t>(units) * i / count); };
    int buffer = 0;
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
    for (int unit = cut(index); unit < cut(index + 1); ++unit) {
      const int chunk = unit % kChunks;
      const int block = unit / kChunks % (T::kM / 64);  // 64 rows of the tile
      const int rank = unit / kUnits % kCtas;
      const int number = unit / (kUnits * kCtas);
      const int first = all.worker_at(number * all.k_tiles);
      const int last = all.worker_at((number + 1) * all.k_tiles - 1);
      if (first == last) continue;  // it was finished by one worker
      if (threadIdx.x % 128 == 0) {
        const auto arrivals = static_cast<std::uint32_t>((last - first + 1) * T::kWarpgroups);
        while (ptx::ld_acquire_gpu(&counters[number * kCtas + rank]) < arrivals) {
        }
      }
      ptx::bar_sync(1 + threadIdx.x / 128, 128);
      const int columns = chunk + 1 < kChunks ? kChunkN : T::kN - (kChunks - 1) * kChunkN;
      const int warpgroup = block / T::kBlocks;
      const int begin = block % T::kBlocks * kRowVectors + chunk * (kChunkN / 8);
      float sum[kChunkN / 2] = {};
      for (int worker = first; worker <= last; ++worker) {
        const int slot = 2 * worker + (all.range_begin(worker) / all.k_tiles != number);
#pragma unroll
        for (int i = 0; i < kChunkN / 8; ++i) {
          if (i * 8 >= columns) break;
          const float4 more = ptx::ld_global(vector(slot, rank, begin + i, warpgroup));
          sum[4 * i] += more.x;
          sum[4 * i + 1] += more.y;
          sum[4 * i + 2] += more.z;
          sum[4 * i + 3] += more.w;
        }
      }
      const TilePosition tile = tile_of(number, rank);
      store_chunk<T::kN, kTransposed>(sum, columns, buffers.d[buffer], d_map, tile.m * T::kM + block * 64,
                                      tile.n * T::kN + chunk * kChunkN);
      buffer ^= 1;
    }
    if (threadIdx.x % 128 != 0) return;
    std::uint32_t* const done = &counters[all.stream_k_tiles * kCtas];
    if (ptx::atom_add_acq_rel_gpu(done, 1) + 1 < static_cast<std::uint32_t>(count)) return;
    for (int i = 0; i <= all.stream_k_tiles * kCtas; ++i) ptx::st_relaxed_gpu(&counters[i], 0);
  }
};

}  // namespace gemm
