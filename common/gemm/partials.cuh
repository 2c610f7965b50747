// What step 18 taught: sums of a piece of a tile, passed on through a workspace in device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"

namespace gemm {

/// Slots for the sums of one tile each, in fp32 and as the registers hold them. Each warpgroup passes its own
/// rows to the same warpgroup of another CTA. Uses named barrier 1 + (number of the warpgroup in the CTA).
/// The workspace is zeroed before the first launch; every launch leaves the flags at zero.
template <typename T>
struct Partials {
  static constexpr int kVectors = T::kBlocks * T::kN / 2 / 4;  // of a thread
  float4* sums;                                                // [slot][warpgroup][vector][thread]
  std::uint32_t* flags;  // [slot][warpgroup]; 1: the sums are there. Zero between launches

  static constexpr std::size_t kBytesPerSlot =
      T::kM * T::kN * sizeof(float) + T::kWarpgroups * sizeof(std::uint32_t);

  __device__ __forceinline__ Partials(void* workspace, int slots)
      : sums(static_cast<float4*>(workspace)),
        flags(reinterpret_cast<std::uint32_t*>(sums + static_cast<std::size_t>(slots) * T::kM * T::kN / 4)) {}

  /// Writes the sums of a piece and raises the flag of its slot. `warpgroup`: of the tile's.
  __device__ __forceinline__ void leave(const WarpgroupTile<T>& tile, int slot, int warpgroup) const {
    float4* const vectors = first_vector(slot, warpgroup);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float* sum = &tile.sum[i / (T::kN / 8)][i % (T::kN / 8) * 4];
      ptx::st_global(vectors + 128 * i, make_float4(sum[0], sum[1], sum[2], sum[3]));
    }
    meet();
    if (threadIdx.x % 128 == 0) ptx::st_release_gpu(&flags[slot * T::kWarpgroups + warpgroup], 1);
  }

  /// Waits for the sums of a slot, takes the flag down and adds them.
  __device__ __forceinline__ void add(WarpgroupTile<T>& tile, int slot, int warpgroup) const {
    if (threadIdx.x % 128 == 0) {
      std::uint32_t* const flag = &flags[slot * T::kWarpgroups + warpgroup];
      while (ptx::ld_acquire_gpu(flag) == 0) {
      }
      ptx::st_relaxed_gpu(flag, 0);  // for the next launch
    }
    meet();
    const float4* const vectors = first_vector(slot, warpgroup);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float4 more = ptx::ld_global(vectors + 128 * i);
      float* sum = &tile.sum[i / (T::kN / 8)][i % (T::kN / 8) * 4];
      sum[0] += more.x;
      sum[1] += more.y;
      sum[2] += more.z;
      sum[3] += more.w;
    }
  }

 private:
  __device__ __forceinline__ float4* first_vector(int slot, int warpgroup) const {
    return sums + static_cast<std::size_t>((slot * T::kWarpgroups + warpgroup) * kVectors) * 128 +
           threadIdx.x % 128;
  }
  static __device__ __forceinline__ void meet() {
    ptx::bar_sync(1 + threadIdx.x / 128, 128);
  }
};

}  // namespace gemm
