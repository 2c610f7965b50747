// What step 74 taught about operands: two CTAs are a pair. Each has its rows of A and half of the columns of
// B.
#pragma once

#include <cstdint>

#include "gemm/schedule/raster.h"
#include "gemm/tile/cluster_tile.cuh"
#include "gemm/tile/tensor_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

using Pair = Cluster<2, 1>;  // one tile above the other: the same columns of B
inline constexpr std::uint32_t kLeader = 0;
inline constexpr std::uint16_t kBoth = 0b11;

/// Of the pair's 256 x kN tile, what one CTA loads and holds.
template <typename T>
struct PairHalf {
  static constexpr int kM = T::kM;
  static constexpr int kN = T::kN / 2;
  static constexpr int kK = T::kK;
  static constexpr int kPanelK = T::kPanelK;
  static constexpr int kPanels = T::kPanels;
  static constexpr std::uint32_t kInstruction =
      ptx::encode(ptx::InstructionDescriptor{.m = 2 * kM, .n = T::kN});  // of both halves
  static_assert(ptx::instruction_descriptor_fault(kInstruction, 2) == nullptr, "a shape that a pair has");
};

/// Both CTAs call it, each for its half of the k-tile. The leader's mbarrier counts the bytes of both.
template <typename T>
__device__ __forceinline__ void load_half(WgmmaTiles<PairHalf<T>>& tiles, std::uint64_t* full,
                                          const ptx::TensorMap* a_map, const ptx::TensorMap* b_map,
                                          TilePosition tile, int k0, const Pair& pair) {
  const std::uint32_t leader_full = ptx::mapa(ptx::shared_address(full), kLeader);
  if (pair.rank == kLeader) ptx::mbarrier_arrive_expect_tx(full, 2 * WgmmaTiles<PairHalf<T>>::kBytes);
#pragma unroll
  for (int panel = 0; panel < T::kPanels; ++panel) {
    const int k = k0 + panel * T::kPanelK;
    ptx::cp_async_bulk_tensor_2d_cta_group_2(tiles.a[panel], a_map, k, tile.m * T::kM, leader_full);
    ptx::cp_async_bulk_tensor_2d_cta_group_2(tiles.b[panel], b_map, k,
                                             tile.n * T::kN + pair.rank * PairHalf<T>::kN, leader_full);
  }
}

}  // namespace gemm
