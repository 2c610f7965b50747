// What step 16 taught: CTAs of a cluster on neighbouring tiles, each loading a share of what several need.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// The CTA in a cluster of kClusterM x kClusterN that work on neighbouring tiles.
template <int kClusterM, int kClusterN>
struct Cluster {
  static constexpr int kM = kClusterM;
  static constexpr int kN = kClusterN;
  static constexpr int kCtas = kM * kN;
  static constexpr int kPeers = kM + kN - 1;  // CTAs that write to a CTA's stages, itself among them

  int rank = static_cast<int>(ptx::cluster_ctarank());
  int m = rank % kM;
  int n = rank / kM;

  __device__ __forceinline__ bool is_peer(int other) const { return other % kM == m || other / kM == n; }
  __device__ __forceinline__ std::uint16_t row_mask() const {  // the CTAs with this m
    std::uint16_t mask = 0;
    for (int i = 0; i < kN; ++i) mask |= 1u << (m + i * kM);
    return mask;
  }
  __device__ __forceinline__ std::uint16_t column_mask() const {  // the CTAs with this n
    return ((1u << kM) - 1) << (n * kM);
  }
};

/// Every thread of the cluster calls it.
__device__ __forceinline__ void sync_cluster() {
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}

/// load_tiles for a CTA of a cluster: expects the whole k-tile, loads this CTA's share of it for every CTA
/// that needs it.
template <typename T, typename C>
__device__ __forceinline__ void load_shares(WgmmaTiles<T>& tiles, std::uint64_t* full,
                                            const ptx::TensorMap* a_map, const ptx::TensorMap* b_map,
                                            int tile_row, int tile_column, int k0, const C& cluster) {
  constexpr int kRowsA = T::kM / C::kN;
  constexpr int kRowsB = T::kN / C::kM;
  static_assert(kRowsA % 8 == 0 && kRowsB % 8 == 0, "shares start where the swizzle does");
  const int row_a = cluster.n * kRowsA;
  const int row_b = cluster.m * kRowsB;
  ptx::mbarrier_arrive_expect_tx(full, WgmmaTiles<T>::kBytes);
#pragma unroll
  for (int panel = 0; panel < T::kPanels; ++panel) {
    const int k = k0 + panel * T::kPanelK;
    if constexpr (C::kN > 1) {
      ptx::cp_async_bulk_tensor_2d_multicast(tiles.a[panel][row_a], a_map, k, tile_row + row_a, full,
                                             cluster.row_mask());
    } else {
      ptx::cp_async_bulk_tensor_2d(tiles.a[panel], a_map, k, tile_row, full);
    }
    if constexpr (C::kM > 1) {
      ptx::cp_async_bulk_tensor_2d_multicast(tiles.b[panel][row_b], b_map, k, tile_column + row_b, full,
                                             cluster.column_mask());
    } else {
      ptx::cp_async_bulk_tensor_2d(tiles.b[panel], b_map, k, tile_column, full);
    }
  }
}

/// The clusters that cover D.
template <typename T, typename C>
__host__ __device__ constexpr TileGrid cluster_grid(const Shape& shape) {
  return {ceil_div(shape.m, T::kM * C::kM), ceil_div(shape.n, T::kN * C::kN)};
}

/// This CTA's tile of the cluster's; it may lie outside D.
template <typename C>
__device__ __forceinline__ TilePosition cluster_tile(TilePosition position, const C& cluster) {
  return {position.m * C::kM + cluster.m, position.n * C::kN + cluster.n};
}

/// Releases a stage: thread i of the warpgroup arrives at `empty` of CTA i, if that CTA sends to this one.
/// All threads of the warpgroup call it, after the wgmma group that read the stage has finished.
// ANCHOR: release_to_peers
template <typename C>
__device__ __forceinline__ void release_to_peers(std::uint64_t* empty, const C& cluster) {
  const int peer = static_cast<int>(threadIdx.x) % 128;
  if (peer < C::kCtas && cluster.is_peer(peer)) {
    ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(empty), static_cast<std::uint32_t>(peer)));
  }
}
// ANCHOR_END: release_to_peers

}  // namespace gemm
