// What step 21 taught about clusters: their shape is an argument of the launch.
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

/// Whether the CTAs of such a cluster can share the loads of a tile this wide: shares start where the swizzle
/// does.
constexpr bool shares_columns(const ClusterShape& cluster, int columns) {
  return columns % (8 * cluster.m) == 0;
}

/// The loads of one k-tile. In a cluster, CTAs with the same rows load a share each for all of them, and so
/// do those with the same columns.
template <typename T>
struct FittedLoader {
  const ptx::TensorMap* row_map;
  const ptx::TensorMap* column_map;
  FittedCluster cluster;
  bool streams;  // every row of the row operand is read once: the L2 may let it go first

  /// Expects the k-tile at column k0 and issues this CTA's copies. One thread of the CTA calls it.
  __device__ __forceinline__ void load(WgmmaTiles<T>& tiles, std::uint64_t* full, int row, int column,
                                       int k0) const {
    const int row_share = T::kM / cluster.shape.n * cluster.n;
    const int column_share = T::kN / cluster.shape.m * cluster.m;
    ptx::mbarrier_arrive_expect_tx(full, WgmmaTiles<T>::kBytes);
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      const int k = k0 + panel * T::kPanelK;
      if (cluster.shape.n > 1) {
        ptx::cp_async_bulk_tensor_2d_multicast(tiles.a[panel][row_share], row_map, k, row + row_share, full,
                                               cluster.row_mask());
      } else if (streams) {
        ptx::cp_async_bulk_tensor_2d_cache_hint(tiles.a[panel], row_map, k, row, full,
                                                ptx::createpolicy_fractional_l2_evict_first());
      } else {
        ptx::cp_async_bulk_tensor_2d(tiles.a[panel], row_map, k, row, full);
      }
      if (cluster.shape.m > 1) {
        ptx::cp_async_bulk_tensor_2d_multicast(tiles.b[panel][column_share], column_map, k,
                                               column + column_share, full, cluster.column_mask());
      } else {
        ptx::cp_async_bulk_tensor_2d(tiles.b[panel], column_map, k, column, full);
      }
    }
  }
};

/// Releases a stage to all CTAs that write to it. All threads of a warpgroup call it, after the wgmma group
/// that read the stage has finished.
__device__ __forceinline__ void release_to_writers(std::uint64_t* empty, bool arrives) {
  const auto peer = threadIdx.x % 128;
  if (arrives) ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(empty), peer));
}

}  // namespace gemm
