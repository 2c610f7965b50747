// What step 21 taught about clusters: their shape is an argument of the launch.
#pragma once

#include <cstdint>

#include "gemm/fitted/fitted_plan.h"
#include "gemm/pipeline/lockstep.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/unused.cuh"

namespace gemm {

/// A named barrier that no warpgroup uses for its stores.
inline constexpr std::uint32_t kStartBarrier = 8;

/// The logarithm of a power of two. (In a kernel std::countr_zero gives no defined result.)
__host__ __device__ constexpr int log2_power(int power) {
  int log2 = 0;
  while (1 << log2 < power) ++log2;
  return log2;
}

/// How many rows the last share has, where `size` rows are cut into shares of `share`.
constexpr int edge_rows(int size, int share) {
  return size % share == 0 ? share : size % share;
}

/// A CTA's share of a tile that several CTAs load.
struct Share {
  int log2_count;  // the tile is cut into two to the power of this many shares
  int index;       // the number of the CTA's own
};

/// A CTA in its cluster. Everything but the rank is a parameter of the kernel.
struct FittedCluster {
  ClusterShape shape;
  int log2_m, log2_n;
  unsigned row_mask_0, column_mask_0;  // the CTAs with the cluster's first rows, and with its first columns
  int rank = 0;
  int row_edge = 0, column_edge = 0;  // how high the edge maps' boxes are
  int row_last = 0, column_last = 0;  // the row of each operand's matrix at which the last such box begins

  FittedCluster() = default;
  __host__ __device__ explicit FittedCluster(const ClusterShape& given)
      : shape(given),
        log2_m(log2_power(given.m)),
        log2_n(log2_power(given.n)),
        row_mask_0(0),
        column_mask_0((1u << given.m) - 1) {
    for (int i = 0; i < given.ctas(); i += given.m) row_mask_0 |= 1u << i;
  }

  /// What the matrix's last tiles leave of the shares, of `row_share` rows and `column_share` columns.
  FittedCluster& set_edges(int rows, int row_share, int columns, int column_share) {
    row_edge = edge_rows(rows, row_share);
    row_last = rows - row_edge;
    column_edge = edge_rows(columns, column_share);
    column_last = columns - column_edge;
    return *this;
  }

  /// The same where the hardware's cluster holds several of these, one after the other.
  __device__ __forceinline__ FittedCluster number(int index) const {
    FittedCluster one = *this;
    one.row_mask_0 <<= index * shape.ctas();
    one.column_mask_0 <<= index * shape.ctas();
    return one;
  }

  /// Its place in the cluster.
  __device__ __forceinline__ int m() const { return rank & (shape.m - 1); }
  __device__ __forceinline__ int n() const { return rank >> log2_m; }
  /// Its share of a tile's rows, and of its columns.
  __device__ __forceinline__ Share row_share() const { return {log2_n, n()}; }
  __device__ __forceinline__ Share column_share() const { return {log2_m, m()}; }
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
  /// This CTA's tile, one of those that the cluster works on.
  __device__ __forceinline__ TilePosition tile(TilePosition cluster) const {
    return {cluster.m * shape.m + m(), cluster.n * shape.n + n()};
  }
  /// The kernel begins: the barriers are initialised, and fence_mbarrier_init_release_cluster() follows. In a
  /// cluster everybody waits for everybody. Without, only warps that use barriers which another warp has
  /// initialised wait: the consumers. All kThreads threads of the CTA call it.
  template <int kThreads>
  __device__ __forceinline__ void start(bool waits) const {
    if (shape.ctas() > 1) {
      sync_relaxed();
    } else if (waits) {
      ptx::bar_sync(kStartBarrier, kThreads);
    } else {
      ptx::bar_arrive(kStartBarrier, kThreads);
    }
  }
  // Lesson: an arrival that publishes costs a fence of the whole GPU (MEMBAR.ALL.GPU), and the first loads
  // wait for it. Initialised barriers have a fence of their own.

  /// The CTAs of the cluster wait for each other, and nobody sees what another has written.
  __device__ __forceinline__ void sync_relaxed() const {
    ptx::barrier_cluster_arrive_relaxed();
    ptx::barrier_cluster_wait();
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

// Lesson: TMA fills rows that lie outside the matrix with zeros, and takes four times as long for one as for
// a row that it loads. So the last tile asks only for rows that there are. What the other rows of a stage
// hold ends in accumulators that the store clips.
//
// A CTA of a cluster whose share lies outside still loads rows, the matrix's last ones. A peer that did not
// wait for its bytes could get a whole ring ahead, and release a stage again before others released it once.

/// The maps of an operand.
struct ShareMaps {
  const ptx::TensorMap* whole;  // its boxes are as high as a share
  const ptx::TensorMap* edge;   // its boxes are as high as what the matrix's last tile leaves of one
};

/// Which share of an operand's tile a CTA loads, and from where.
struct OperandShare {
  int first;  // the row of the matrix at which the tile begins
  int all;    // rows of the matrix
  Share share;
  ShareMaps maps;
};

/// An operand's tile of kRows rows, and this CTA's share of it.
template <int kRows>
struct TileRows {
  const ptx::TensorMap* map;  // its boxes are as high as what there is of the share
  int rows;                   // how many rows of the tile lie in the matrix: 0 to kRows
  int begin;                  // the row of the tile at which the share begins
  int row;                    // the row of the matrix at which the share begins

  __device__ __forceinline__ explicit TileRows(const OperandShare& given)
      : rows(min(max(given.all - given.first, 0), kRows)),
        begin((kRows >> given.share.log2_count) * given.share.index),
        row(given.first + begin) {
    map = given.all - row < kRows >> given.share.log2_count ? given.maps.edge : given.maps.whole;
  }

  /// How many shares lie outside the matrix. (The shift makes the divisor a constant.)
  __device__ __forceinline__ int shares_outside(int log2_shares) const {
    return (1 << log2_shares) - static_cast<int>(((rows << log2_shares) + kRows - 1u) / kRows);
  }
  /// Says of a panel's rows that no CTA loads that they are read all the same.
  template <int kPanelK>
  __device__ __forceinline__ void fill_others(bf16 (&panel)[kRows][kPanelK], std::uint64_t* full,
                                              int log2_shares, int edge) const {
    const int share = kRows >> log2_shares;
    for (int i = 0; i < kRows; i += share) {
      const int loaded = min(rows > i ? rows - i : log2_shares > 0 ? edge : 0, share);
      ptx::fill_unused(panel[i] + loaded * kPanelK, (share - loaded) * kPanelK * 2, full);
    }
  }

  /// The row of the matrix that the share is loaded from. A shared one that lies outside is loaded from
  /// `last`, because peers wait for its bytes. A tile that lies outside and is not shared is not loaded: -1.
  template <bool kShared>
  __device__ __forceinline__ int from(int last) const {
    return rows > begin ? row : kShared ? last : -1;
  }
  /// Issues the copy of the share at column k. kShared: for all CTAs in `mask`; otherwise it is the whole
  /// tile.
  template <bool kShared, int kPanelK>
  __device__ __forceinline__ void load(bf16 (&panel)[kRows][kPanelK], int k, std::uint64_t* full,
                                       std::uint16_t mask, int from) const {
    if constexpr (kShared) {
      ptx::cp_async_bulk_tensor_2d_multicast(panel[begin], map, k, from, full, mask);
    } else {
      // Lesson: what one CTA reads alone is no multicast. The L2 merges equal requests of several SMs that
      // meet, but not multicasts; and of rows that do not start on a line a multicast reads more sectors.
      ptx::cp_async_bulk_tensor_2d(panel, map, k, from, full);
    }
  }
};

/// Loads the k-tiles of a work tile, one after the other, into the ring. kShareRows: CTAs of a cluster with
/// the same rows load a share each for all of them; kShareColumns: so do those with the same columns.
template <bool kShareRows, bool kShareColumns, typename T, int kStages>
__device__ __forceinline__ void load_k_tiles(Ring<T, kStages>& ring, PipelineState<kStages>& fill,
                                             Lockstep& lockstep, const WorkTile& work,
                                             const TileRows<T::kM>& rows, const TileRows<T::kN>& columns,
                                             const FittedCluster& cluster) {
  constexpr bool kCluster = kShareRows || kShareColumns;  // where a CTA's tile may lie outside the matrix
  int loaded = rows.rows + columns.rows;
  if constexpr (kShareRows) loaded += rows.shares_outside(cluster.log2_n) * cluster.row_edge;
  if constexpr (kShareColumns) loaded += columns.shares_outside(cluster.log2_m) * cluster.column_edge;
  const auto bytes = static_cast<std::uint32_t>(2 * T::kK * loaded);
  const std::uint16_t row_mask = cluster.row_mask();
  const std::uint16_t column_mask = cluster.column_mask();
  const int row = rows.template from<kShareRows>(cluster.row_last);
  const int column = columns.template from<kShareColumns>(cluster.column_last);
#pragma unroll 1
  for (int i = 0; i < work.count(); ++i) {
    lockstep.before_k_tile();
    ring.producer_acquire(fill, i);
    WgmmaTiles<T>& tiles = ring.stage[fill.stage];
    std::uint64_t* const full = &ring.full[fill.stage];
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      rows.fill_others(tiles.a[panel], full, cluster.log2_n, cluster.row_edge);
      columns.fill_others(tiles.b[panel], full, cluster.log2_m, cluster.column_edge);
    }
    ptx::mbarrier_arrive_expect_tx(full, bytes);
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      const int k = work.k_tile(i) * T::kK + panel * T::kPanelK;
      if (kShareRows || !kCluster || row >= 0)
        rows.template load<kShareRows>(tiles.a[panel], k, full, row_mask, row);
      if (kShareColumns || !kCluster || column >= 0)
        columns.template load<kShareColumns>(tiles.b[panel], k, full, column_mask, column);
    }
    fill.advance();
  }
}

// Lesson: which operand is shared is asked before the loop. Inside, the producer would issue one copy, ask,
// and only then work out where the next one goes.

/// The same, with what the cluster's shape says of shares. One thread of the CTA calls it.
template <BuiltFor kBuiltFor, typename T, int kStages>
__device__ __forceinline__ void load_work_tile(Ring<T, kStages>& ring, PipelineState<kStages>& fill,
                                               Lockstep& lockstep, const WorkTile& work,
                                               const TileRows<T::kM>& rows, const TileRows<T::kN>& columns,
                                               const FittedCluster& cluster) {
  const bool alone = kBuiltFor < BuiltFor::kWholeInClusters ||
                     (kBuiltFor == BuiltFor::kAnyPlan && cluster.shape.ctas() == 1);
  if (alone) {
    load_k_tiles<false, false>(ring, fill, lockstep, work, rows, columns, cluster);
  } else if (cluster.log2_n == 0) {
    load_k_tiles<false, true>(ring, fill, lockstep, work, rows, columns, cluster);
  } else if (cluster.log2_m == 0) {
    load_k_tiles<true, false>(ring, fill, lockstep, work, rows, columns, cluster);
  } else {
    load_k_tiles<true, true>(ring, fill, lockstep, work, rows, columns, cluster);
  }
}

/// Releases a stage to all CTAs that write to it: thread i arrives at CTA i, where `arrives` is is_peer(i).
/// All threads of a warpgroup call it, after the wgmma group that read the stage has finished. `first`: the
/// hardware's rank of the cluster's first CTA.
__device__ __forceinline__ void release_to_writers(std::uint64_t* empty, const FittedCluster& cluster,
                                                   bool arrives, int first = 0) {
  if (!arrives) return;
  if (cluster.shape.ctas() == 1) {
    ptx::mbarrier_arrive(empty);
  } else {
    const auto peer = static_cast<std::uint32_t>(first) + threadIdx.x % 128;
    ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(empty), peer));
  }
}

/// Releases a stage that this CTA has filled alone. No peer hears of it, since one that has not yet waited
/// for the stage's phase before must get no arrival for the next: for each peer, one thread arrives at the
/// CTA's own barrier. All threads of a warpgroup call it.
__device__ __forceinline__ void release_to_itself(std::uint64_t* empty, const FittedCluster& cluster) {
  if (static_cast<int>(threadIdx.x) % 128 < cluster.peers()) ptx::mbarrier_arrive(empty);
}

}  // namespace gemm
