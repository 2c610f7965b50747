// What step 18 taught: sums of a piece of a tile, passed on through a workspace in device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"

namespace gemm {

/// Slots for the sums of one tile each, in fp32 and as the registers hold them. Each warpgroup passes its own
/// rows to the same warpgroup of another CTA. Uses named barrier 1 + (number of the warpgroup in the CTA).
/// The workspace is zeroed before the first launch; every launch leaves the flags at zero.
template <typename T>
struct Partials {
  static constexpr int kVectors = T::kBlocks * T::kN / 2 / 4;  // of a thread
  float4* sums;                                                // [slot][vector][warpgroup][thread]
  std::uint32_t* flags;  // [slot][warpgroup]; 1: the sums are there. Zero between launches

  static constexpr std::size_t kBytesPerSlot =
      T::kM * T::kN * sizeof(float) + T::kWarpgroups * sizeof(std::uint32_t);

  __device__ __forceinline__ Partials(void* workspace, int slots)
      : sums(static_cast<float4*>(workspace)),
        flags(reinterpret_cast<std::uint32_t*>(sums + static_cast<std::size_t>(slots) * T::kM * T::kN / 4)) {}

  /// Writes the sums of a piece and raises the flag of its slot. `warpgroup`: of the tile's. kFetched: a bulk
  /// copy will read them, through the async proxy.
  template <bool kFetched = false>
  __device__ __forceinline__ void leave(const WarpgroupTile<T>& tile, int slot, int warpgroup) const {
    float4* const vectors = first_vector(slot, warpgroup);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float* sum = &tile.sum[i / (T::kN / 8)][i % (T::kN / 8) * 4];
      ptx::st_global(vectors + T::kThreads * i, make_float4(sum[0], sum[1], sum[2], sum[3]));
    }
    if constexpr (kFetched) ptx::fence_proxy_async_global();
    meet();
    if (threadIdx.x % 128 == 0) ptx::st_release_gpu(&flags[slot * T::kWarpgroups + warpgroup], 1);
  }

  /// Waits for the sums of a slot, takes the flag down and adds them.
  __device__ __forceinline__ void add(WarpgroupTile<T>& tile, int slot, int warpgroup) const {
    if (threadIdx.x % 128 == 0) wait(slot, warpgroup);
    meet();
    const float4* const vectors = first_vector(slot, warpgroup);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      add(tile, i, ptx::ld_global(vectors + T::kThreads * i));
    }
  }
  /// Adds a thread's vector number i.
  static __device__ __forceinline__ void add(WarpgroupTile<T>& tile, int i, const float4& more) {
    float* sum = &tile.sum[i / (T::kN / 8)][i % (T::kN / 8) * 4];
    sum[0] += more.x;
    sum[1] += more.y;
    sum[2] += more.z;
    sum[3] += more.w;
  }

  /// Waits for a warpgroup's sums of a slot and takes the flag down. One thread.
  __device__ __forceinline__ void wait(int slot, int warpgroup) const {
    std::uint32_t* const flag = &flags[slot * T::kWarpgroups + warpgroup];
    while (ptx::ld_acquire_gpu(flag) == 0) {
    }
    ptx::st_relaxed_gpu(flag, 0);  // for the next launch
  }
  /// Where vector number `vector` of all the tile's threads begins.
  __device__ __forceinline__ float4* vectors_of(int slot, int vector) const {
    return sums + static_cast<std::size_t>(slot * kVectors + vector) * T::kThreads;
  }

 private:
  __device__ __forceinline__ float4* first_vector(int slot, int warpgroup) const {
    return vectors_of(slot, 0) + warpgroup * 128 + threadIdx.x % 128;
  }
  static __device__ __forceinline__ void meet() {
    ptx::bar_sync(1 + threadIdx.x / 128, 128);
  }
};

}  // namespace gemm
