// What step 21 taught about clusters: their shape is an argument of the launch, and their CTAs take turns.
#pragma once

#include <cstdint>

#include "gemm/raster.h"
#include "gemm/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm {

/// m CTAs with tiles below each other times n with tiles beside each other, each 1, 2, 4 or 8.
struct ClusterShape {
  int m = 1;
  int n = 1;
  constexpr int ctas() const { return m * n; }
};

/// A CTA in its cluster.
struct FittedCluster {
  const ClusterShape& shape;  // a parameter of the kernel
  int rank;
  int m, n;  // its place

  __device__ __forceinline__ explicit FittedCluster(const ClusterShape& given)
      : shape(given),
        rank(given.ctas() == 1 ? 0 : static_cast<int>(ptx::cluster_ctarank())),
        m(rank & (given.m - 1)),
        n(rank / given.m) {}

  /// CTAs that write to a CTA's stages, itself among them.
  __device__ __forceinline__ int peers() const { return shape.m + shape.n - 1; }
  __device__ __forceinline__ bool is_peer(int other) const {
    return other < shape.ctas() && ((other & (shape.m - 1)) == m || other / shape.m == n);
  }
  /// The CTAs with the same rows, and with the same columns.
  __device__ __forceinline__ std::uint16_t row_mask() const {
    std::uint32_t mask = 0;
    for (int i = 0; i < shape.ctas(); i += shape.m) mask |= 1u << i;
    return static_cast<std::uint16_t>(mask << m);
  }
  __device__ __forceinline__ std::uint16_t column_mask() const {
    return static_cast<std::uint16_t>(((1u << shape.m) - 1) << (n * shape.m));
  }
  /// Of the tiles that a cluster works on, this CTA's.
  __device__ __forceinline__ TilePosition tile(TilePosition cluster) const {
    return {cluster.m * shape.m + m, cluster.n * shape.n + n};
  }
  /// The CTAs of the cluster wait for each other; without clusters, the threads of the CTA.
  __device__ __forceinline__ void sync() const {
    if (shape.ctas() > 1) {
      ptx::barrier_cluster_arrive();
      ptx::barrier_cluster_wait();
    } else {
      __syncthreads();
    }
  }
};

/// The loads of one k-tile. In a cluster, the CTAs with the same rows take turns to load them for all,
/// and so do those with the same columns.
template <typename T>
struct FittedLoader {
  const ptx::TensorMap* row_map;
  const ptx::TensorMap* column_map;
  FittedCluster cluster;
  bool streams;  // every row of the row operand is read once: the L2 may let it go first
  int turn = 0;

  /// Expects the k-tile at column k0 and issues this CTA's copies. One thread of the CTA calls it.
  __device__ __forceinline__ void load(WgmmaTiles<T>& tiles, std::uint64_t* full, int row, int column,
                                       int k0) {
    ptx::mbarrier_arrive_expect_tx(full, WgmmaTiles<T>::kBytes);
    const bool loads_rows = (turn & (cluster.shape.n - 1)) == cluster.n;
    const bool loads_columns = (turn & (cluster.shape.m - 1)) == cluster.m;
    ++turn;
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      const int k = k0 + panel * T::kPanelK;
      if (cluster.shape.n > 1) {
        if (loads_rows)
          ptx::cp_async_bulk_tensor_2d_multicast(tiles.a[panel], row_map, k, row, full, cluster.row_mask());
      } else if (streams) {
        const std::uint64_t policy = ptx::createpolicy_fractional_l2_evict_first();
        ptx::cp_async_bulk_tensor_2d_cache_hint(tiles.a[panel], row_map, k, row, full, policy);
      } else {
        ptx::cp_async_bulk_tensor_2d(tiles.a[panel], row_map, k, row, full);
      }
      if (cluster.shape.m > 1) {
        if (loads_columns)
          ptx::cp_async_bulk_tensor_2d_multicast(tiles.b[panel], column_map, k, column, full,
                                                 cluster.column_mask());
      } else {
        ptx::cp_async_bulk_tensor_2d(tiles.b[panel], column_map, k, column, full);
      }
    }
  }
};

/// Releases a stage to all CTAs that write to it. All threads of a warpgroup call it, after the wgmma group
/// that read the stage has finished.
__device__ __forceinline__ void release_in_turn(std::uint64_t* empty, bool arrives) {
  const auto peer = threadIdx.x % 128;
  if (arrives) ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(empty), peer));
}

}  // namespace gemm
