// What step 18 taught: partials, the accumulators of a part of a tile, passed on through a workspace in
// device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/schedule/decomposition.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"

namespace gemm {

// Step 18 has [slot][warpgroup][vector][thread]. Here the same vector of all warpgroups lies together,
// because the producer of step 22 fetches the partials of a whole tile, as many vectors at a time as fit into
// a stage.

/// Slots for the partials of one tile each, in fp32 and as the registers hold them. Each warpgroup passes its
/// own rows to the same warpgroup of another CTA. Uses named barrier 1 + (number of the warpgroup in the
/// CTA). The workspace is zeroed before the first launch; every launch leaves the flags at zero.
template <typename T>
struct Partials {
  static constexpr int kVectors = T::kBlocks * T::kN / 2 / 4;  // of a thread
  float4* values;                                              // [slot][vector][warpgroup][thread]
  std::uint32_t* flags;  // [slot][warpgroup]; 1: the partials are there. Zero between launches

  static constexpr std::size_t kBytesPerSlot =
      T::kM * T::kN * sizeof(float) + T::kWarpgroups * sizeof(std::uint32_t);

  __device__ __forceinline__ Partials(void* workspace, int slots)
      : values(static_cast<float4*>(workspace)),
        flags(
            reinterpret_cast<std::uint32_t*>(values + static_cast<std::size_t>(slots) * T::kM * T::kN / 4)) {}

  /// Writes the partials of a work tile and raises the flag of its slot. `warpgroup` is the number of the
  /// calling one among those that share the tile.
  /// kFetched: a bulk copy will read them, through the async proxy.
  template <bool kFetched = false>
  __device__ __forceinline__ void store_partials(const WarpgroupTile<T>& tile, int slot,
                                                 int warpgroup) const {
    float4* const vectors = first_vector(slot, warpgroup);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float* accumulators = &tile.accumulators[i / (T::kN / 8)][i % (T::kN / 8) * 4];
      ptx::st_global(vectors + T::kThreads * i,
                     make_float4(accumulators[0], accumulators[1], accumulators[2], accumulators[3]));
    }
    if constexpr (kFetched) ptx::fence_proxy_async_global();
    sync_warpgroup();
    if (threadIdx.x % 128 == 0) ptx::st_release_gpu(&flags[slot * T::kWarpgroups + warpgroup], 1);
  }

  /// The fix-up: waits for the partials of a slot, lowers the flag and adds them.
  __device__ __forceinline__ void fixup(WarpgroupTile<T>& tile, int slot, int warpgroup) const {
    if (threadIdx.x % 128 == 0) wait(slot, warpgroup);
    sync_warpgroup();
    const float4* const vectors = first_vector(slot, warpgroup);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      add(tile, i, ptx::ld_global(vectors + T::kThreads * i));
    }
  }
  /// The fix-up of all peers. Each flag has a thread that waits for it, so that they cost one round trip
  /// together.
  __device__ __forceinline__ void fixup(WarpgroupTile<T>& tile, const SlotRange& peers, int warpgroup) const {
    for (int slot = peers.first + static_cast<int>(threadIdx.x) % 128; slot < peers.end; slot += 128) {
      wait(slot, warpgroup);
    }
    sync_warpgroup();
    for (int slot = peers.first; slot < peers.end; ++slot) {
      const float4* const vectors = first_vector(slot, warpgroup);
#pragma unroll
      for (int i = 0; i < kVectors; ++i) add(tile, i, ptx::ld_global(vectors + T::kThreads * i));
    }
  }
  /// Adds a thread's vector number i.
  static __device__ __forceinline__ void add(WarpgroupTile<T>& tile, int i, const float4& more) {
    float* accumulators = &tile.accumulators[i / (T::kN / 8)][i % (T::kN / 8) * 4];
    accumulators[0] += more.x;
    accumulators[1] += more.y;
    accumulators[2] += more.z;
    accumulators[3] += more.w;
  }

  /// Waits for a warpgroup's partials of a slot and lowers the flag. One thread.
  __device__ __forceinline__ void wait(int slot, int warpgroup) const {
    std::uint32_t* const flag = &flags[slot * T::kWarpgroups + warpgroup];
    while (ptx::ld_acquire_gpu(flag) == 0) {
    }
    ptx::st_relaxed_gpu(flag, 0);  // for the next launch
  }
  /// Where vector number `vector` of all the tile's threads begins.
  __device__ __forceinline__ float4* slot_vectors(int slot, int vector) const {
    return values + static_cast<std::size_t>(slot * kVectors + vector) * T::kThreads;
  }

 private:
  __device__ __forceinline__ float4* first_vector(int slot, int warpgroup) const {
    return slot_vectors(slot, 0) + warpgroup * 128 + threadIdx.x % 128;
  }
  static __device__ __forceinline__ void sync_warpgroup() {
    ptx::bar_sync(1 + threadIdx.x / 128, 128);
  }
};

}  // namespace gemm
