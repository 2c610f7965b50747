// Step 16: the CTAs of a cluster work on neighbouring tiles, and each part of A and B that they share is
// loaded once.
#pragma once

#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_16 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
};

// Lesson: kM x kN CTAs work on kM x kN neighbouring tiles. The kN tiles of a row need the same rows of A:
// each of the row's CTAs loads a kN-th of them and multicasts it to all. The same with B and the kM tiles of
// a column.
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
  // ANCHOR: multicast
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
      // ANCHOR_END: multicast
    }
  }
}

/// The clusters that cover D.
template <typename T, typename C>
__host__ __device__ constexpr TileGrid cluster_grid(const Shape& shape) {
  return {ceil_div(shape.m, T::kM * C::kM), ceil_div(shape.n, T::kN * C::kN)};
}

template <typename C>
__device__ __forceinline__ TilePosition cluster_tile(TilePosition position, const C& cluster) {
  return {position.m * C::kM + cluster.m, position.n * C::kN + cluster.n};
}

template <typename T, int kStages, typename C>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    cluster_multicast_kernel(Shape shape, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                             const __grid_constant__ ptx::TensorMap b_map,
                             const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const C cluster;
  const TileGrid tiles = cluster_grid<T, C>(shape);  // in clusters; their last tiles may lie outside D
  const int first = static_cast<int>(blockIdx.x) / C::kCtas;
  const int step = static_cast<int>(gridDim.x) / C::kCtas;
  const int k_tiles = ceil_div(shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    // ANCHOR: init
    ring.init(T::kWarpgroups * C::kPeers);  // a stage is free when every CTA that gets its bytes has read it
    ptx::fence_mbarrier_init_release_cluster();
  }
  ptx::barrier_cluster_arrive();  // no CTA may signal a peer's barrier before it is initialised
  ptx::barrier_cluster_wait();
  // ANCHOR_END: init

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      PipelineState<kStages> fill{0, 1};
      for (int index = first; index < tiles.count(); index += step) {
        const TilePosition tile = cluster_tile(tile_at(index, tiles, raster), cluster);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          load_shares<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.m * T::kM,
                         tile.n * T::kN, i * T::kK, cluster);
          fill.advance();
        }
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    // ANCHOR: release
    const int peer = static_cast<int>(threadIdx.x) % 128;  // thread i of a warpgroup signals CTA i
    const bool releases = peer < C::kCtas && cluster.is_peer(peer);
    WarpgroupTile<T> warpgroup;
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      if (releases) {
        const std::uint32_t empty = ptx::shared_address(&ring.empty[release.stage]);
        ptx::mbarrier_arrive_cluster(ptx::mapa(empty, static_cast<std::uint32_t>(peer)));
      }
      release.advance();
      // ANCHOR_END: release
    };
    // ANCHOR: consumer
    for (int index = first; index < tiles.count(); index += step) {
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) release_stage();
      }
      const TilePosition tile = cluster_tile(tile_at(index, tiles, raster), cluster);
      warpgroup.template wait<0>();
      release_stage();  // the last k-tile's stage must be released now: the next tile will reuse it
      store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, tile.m * T::kM, tile.n * T::kN);
      // ANCHOR_END: consumer
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
  __syncwarp();  // the producer's other lanes arrived here long ago
  // No CTA exits while a peer may still write to, or signal, its shared memory.
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}

template <typename T, int kStages, typename C, RasterOrder kOrder, int kGroup = 1>
Variant variant(const char* name, const char* summary) {
  using Grid = PersistentCtas<T, Shared<T, kStages>, Roles<T>::kThreads, C>;
  return variant_of<cluster_multicast_kernel<T, kStages, C>, Grid>(
      {.name = name, .summary = summary, .stages = kStages, .traffic = wgmma_tile_traffic<T>(C::kM, C::kN)},
      [](const Gemm& gemm) {
        return with_tile_maps<T, C>(gemm, gemm.shape, Raster{kOrder, kGroup});
      });
}

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using Tile256x128 = WgmmaTiling<256, 128, 64, 2>;
using enum RasterOrder;

inline const Step kStep{
    .name = "16_cluster_multicast",
    .title = "the CTAs of a cluster share what they load",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {
        variant<Tile128x256, 4, Cluster<2, 1>, kGrouped, 8>("128x256_2x1_group8", "two CTAs share B"),
        variant<Tile128x256, 4, Cluster<2, 1>, kHilbert>("128x256_2x1_hilbert",
                                                         "two CTAs share B, Hilbert curve"),
        variant<Tile128x256, 4, Cluster<1, 2>, kGrouped, 16>("128x256_1x2_group16", "two CTAs share A"),
        variant<Tile128x256, 4, Cluster<2, 2>, kGrouped, 8>("128x256_2x2_group8", "four CTAs share A and B"),
        variant<Tile256x128, 4, Cluster<2, 1>, kGrouped, 4>("256x128_2x1_group4",
                                                            "256 x 128, two CTAs share B"),
        variant<Tile256x128, 4, Cluster<1, 2>, kGrouped, 8>("256x128_1x2_group8",
                                                            "256 x 128, two CTAs share A"),
        variant<Tile256x128, 4, Cluster<1, 2>, kHilbert>("256x128_1x2_hilbert", "256 x 128, Hilbert curve")}};

}  // namespace gemm::step_16
