// What a tile of step 23 is, and how the CTAs that share its K exchange partials.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/shared.cuh"

namespace gemm::step_23 {

/// One warpgroup multiplies a tile of 64 x kN. The kParts CTAs of a cluster multiply the same tile, each over
/// its part of K.
template <int kTileN, int kPartsOfK>
struct SmallTiling : WgmmaTiling<64, kTileN, 64, 1> {
  using Base = WgmmaTiling<64, kTileN, 64, 1>;
  static constexpr int kVectorsPerRow = Base::kK / 8;
  static constexpr int kParts = kPartsOfK;
  static constexpr int kStages = 8;
  static constexpr int kAhead = kStages - 2;  // k-tiles that are copied before the first one is used
  static constexpr int kUnits = kTileN / 8;   // four accumulators of a thread, in 8 columns of D
  static constexpr int kUnitsPerCta = kUnits / kParts;  // units of each thread that a CTA finishes
  static_assert(kUnits % kParts == 0, "every CTA of a cluster finishes the same number of units");
};

template <typename T>
struct Shared {
  WgmmaTiles<T> stage[T::kStages];
  float4 partials[std::max(1, (T::kParts - 1) * T::kUnitsPerCta)][T::kThreads];  // [CTA, unit][thread]
  std::uint64_t arrived;  // mbarrier: the bytes of all other CTAs' partials
};

/// The four accumulators of a unit.
__device__ __forceinline__ float4 unit_of(const float* accumulators, int unit) {
  const float* const four = accumulators + std::ptrdiff_t{4} * unit;
  return make_float4(four[0], four[1], four[2], four[3]);
}

/// Sends each unit that another CTA finishes to the thread there that has the same place in the tile.
// ANCHOR: send
template <typename T>
__device__ __forceinline__ void send_partials(Shared<T>& shared, const float* accumulators, int part) {
  const std::uint32_t mine = ptx::shared_address(&shared.partials[0][threadIdx.x]);
  const std::uint32_t arrived = ptx::shared_address(&shared.arrived);
#pragma unroll
  for (int owner = 0; owner < T::kParts; ++owner) {
    if (owner == part) continue;
    const int source = part < owner ? part : part - 1;  // among the owner's sources
    constexpr int kBytes = T::kThreads * static_cast<int>(sizeof(float4));
    const auto peer = static_cast<std::uint32_t>(owner);
    const std::uint32_t to =
        ptx::mapa(mine + static_cast<std::uint32_t>(source * T::kUnitsPerCta * kBytes), peer);
    const std::uint32_t barrier = ptx::mapa(arrived, peer);
#pragma unroll
    for (int i = 0; i < T::kUnitsPerCta; ++i)
      ptx::st_async(to + i * kBytes, unit_of(accumulators, owner * T::kUnitsPerCta + i), barrier);
  }
}
// ANCHOR_END: send

}  // namespace gemm::step_23
