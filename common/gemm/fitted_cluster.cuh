// What step 21 taught about clusters: their shape is an argument of the launch.
#pragma once

#include <bit>
#include <cstdint>

#include "gemm/gemm.h"
#include "gemm/raster.h"
#include "gemm/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/unused.cuh"

namespace gemm {

/// m CTAs with tiles below each other times n with tiles beside each other, each 1, 2, 4 or 8.
struct ClusterShape {
  int m = 1;
  int n = 1;
  constexpr int ctas() const { return m * n; }
};

/// A CTA in its cluster. Everything but the rank is a parameter of the kernel.
struct FittedCluster {
  ClusterShape shape;
  int log2_m, log2_n;
  unsigned row_mask_0, column_mask_0;  // of the CTAs with the first rows, with the first columns
  int rank = 0;

  FittedCluster() = default;
  explicit FittedCluster(const ClusterShape& given)
      : shape(given),
        log2_m(std::countr_zero(static_cast<unsigned>(given.m))),
        log2_n(std::countr_zero(static_cast<unsigned>(given.n))),
        row_mask_0(0),
        column_mask_0((1u << given.m) - 1) {
    for (int i = 0; i < given.ctas(); i += given.m) row_mask_0 |= 1u << i;
  }

  /// Its place.
  __device__ __forceinline__ int m() const { return rank & (shape.m - 1); }
  __device__ __forceinline__ int n() const { return rank >> log2_m; }
  /// CTAs that write to a CTA's stages, itself among them.
  __device__ __forceinline__ int peers() const { return shape.m + shape.n - 1; }
  __device__ __forceinline__ bool is_peer(int other) const {
    return other < shape.ctas() && ((((other ^ rank) & (shape.m - 1)) == 0) || ((other ^ rank) < shape.m));
  }
  /// The CTAs with the same rows, and with the same columns.
  __device__ __forceinline__ std::uint16_t row_mask() const {
    return static_cast<std::uint16_t>(row_mask_0 << m());
  }
  __device__ __forceinline__ std::uint16_t column_mask() const {
    return static_cast<std::uint16_t>(column_mask_0 << (rank - m()));
  }
  /// Of the tiles that a cluster works on, this CTA's.
  __device__ __forceinline__ TilePosition tile(TilePosition cluster) const {
    return {cluster.m * shape.m + m(), cluster.n * shape.n + n()};
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

// Lesson: TMA fills rows that lie outside the matrix with zeros, and takes four times as long for one as for
// a row that it loads. So the last tile asks only for rows that there are. What the other rows of a stage
// hold ends in accumulators that the store clips.

/// An operand's tile of kRows rows, and this CTA's share of it.
template <int kRows>
struct TileRows {
  const ptx::TensorMap* map;  // of boxes that are as high as what there is of the share
  int row;                    // of the share, in the matrix
  int rows;                   // of the tile, that lie in the matrix: 0 to kRows

  /// `whole`, `edge`: the maps of a whole share, and of what the matrix's last tile leaves of one.
  __device__ __forceinline__ TileRows(int first, int all, int log2_shares, int index,
                                      const ptx::TensorMap* whole, const ptx::TensorMap* edge)
      : row(first + (kRows >> log2_shares) * index), rows(min(max(all - first, 0), kRows)) {
    map = all - row < kRows >> log2_shares ? edge : whole;
  }
};

/// Issues the copy of a share at column k. With more than one share it goes to all CTAs in `mask`.
/// `streams`: no row is read again, so the L2 may let it go first.
template <int kRows, int kPanelK>
__device__ __forceinline__ void load_share(bf16 (&panel)[kRows][kPanelK], const TileRows<kRows>& tile, int k,
                                           std::uint64_t* full, int log2_shares, int index, unsigned mask,
                                           bool streams) {
  const int begin = (kRows >> log2_shares) * index;
  if (tile.rows <= begin) return;
  if (log2_shares > 0) {
    ptx::cp_async_bulk_tensor_2d_multicast(panel[begin], tile.map, k, tile.row, full,
                                           static_cast<std::uint16_t>(mask));
  } else if (streams) {
    ptx::cp_async_bulk_tensor_2d_cache_hint(panel, tile.map, k, tile.row, full,
                                            ptx::createpolicy_fractional_l2_evict_first());
  } else {
    ptx::cp_async_bulk_tensor_2d(panel, tile.map, k, tile.row, full);
  }
}

/// Expects the k-tile at column k0 and issues this CTA's copies. In a cluster, CTAs with the same rows load a
/// share each for all of them, and so do those with the same columns. One thread of the CTA calls it.
template <typename T>
__device__ __forceinline__ void load_fitted(WgmmaTiles<T>& tiles, std::uint64_t* full,
                                            const FittedCluster& cluster, const TileRows<T::kM>& rows,
                                            const TileRows<T::kN>& columns, int k0, bool streams) {
#pragma unroll
  for (int panel = 0; panel < T::kPanels; ++panel) {
    ptx::fill_unused(tiles.a[panel] + rows.rows, (T::kM - rows.rows) * T::kPanelK * 2, full);
    ptx::fill_unused(tiles.b[panel] + columns.rows, (T::kN - columns.rows) * T::kPanelK * 2, full);
  }
  ptx::mbarrier_arrive_expect_tx(full, static_cast<std::uint32_t>(2 * T::kK * (rows.rows + columns.rows)));
#pragma unroll
  for (int panel = 0; panel < T::kPanels; ++panel) {
    const int k = k0 + panel * T::kPanelK;
    load_share(tiles.a[panel], rows, k, full, cluster.log2_n, cluster.n(), cluster.row_mask(), streams);
    load_share(tiles.b[panel], columns, k, full, cluster.log2_m, cluster.m(), cluster.column_mask(), false);
  }
}

/// Releases a stage to all CTAs that write to it. All threads of a warpgroup call it, after the wgmma group
/// that read the stage has finished.
__device__ __forceinline__ void release_to_writers(std::uint64_t* empty, bool arrives, bool single) {
  const auto peer = threadIdx.x % 128;
  if (single) {
    if (peer == 0) ptx::mbarrier_arrive(empty);
    return;
  }
  if (arrives) ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(empty), peer));
}

}  // namespace gemm
