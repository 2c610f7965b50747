// What the kernel of step 62 gets, and who starts it: a launch for each rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/problem/ranks.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_62 {

/// The tile of D that a CTA multiplies next, and the rank whose rows it is in.
struct ScatteredTile {
  int owner;
  int number;  // among the tiles of this rank's rows
  int row;     // in the owner's part of D
  int column;
};

inline constexpr int kMostRanks = 8;

/// Which tiles there are, in which order, and where their partials go.
struct Scatter {
  int rank, ranks;
  int rows;  // that each rank owns
  std::uint32_t epoch;
  GroupedRaster raster;  // places the tiles of one rank's rows
  int tiles_of_rank;
  int first_owner;  // whose tiles come first
  // Of each rank, in its memory. Partials are in the order in which a warpgroup's threads hold them.
  uint4* partials[kMostRanks];         // [sender][tile][warpgroup][vector][thread]
  std::uint32_t* arrived[kMostRanks];  // [sender][tile][warpgroup]

  __device__ __forceinline__ int tiles() const { return ranks * tiles_of_rank; }

  // ANCHOR: order
  /// A rank's own tiles need what the others send, so they come last. Every rank begins with those of the
  /// next one, and so on around the circle. While they are equally fast, no two send to the same one.
  template <typename T>
  __device__ __forceinline__ ScatteredTile tile_at(int index) const {
    const int turn = index / tiles_of_rank;
    const int number = index - turn * tiles_of_rank;
    const TilePosition tile = raster.at(number);
    return {(first_owner + turn) % ranks, number, tile.m * T::kM, tile.n * T::kN};
  }
  // ANCHOR_END: order

  /// Which of a sender's slots in the owner's memory is this warpgroup's.
  template <typename T>
  __device__ __forceinline__ int slot(int sender, const ScatteredTile& tile, int warpgroup) const {
    return (sender * tiles_of_rank + tile.number) * T::kWarpgroups + warpgroup;
  }
};

template <typename T>
Scatter scatter_of(const ScatterGemm& all, int rank, std::uint32_t epoch, bool turned) {
  constexpr int kRasterGroup = 16;
  const TileGrid tiles = tile_grid<T>({all.rows_of_rank(), all.shape.n, all.shape.k});
  Scatter scatter{.rank = rank,
                  .ranks = all.count(),
                  .rows = all.rows_of_rank(),
                  .epoch = epoch,
                  .raster = GroupedRaster(tiles, kRasterGroup),
                  .tiles_of_rank = tiles.count(),
                  .first_owner = turned ? (rank + 1) % all.count() : 0,
                  .partials = {},
                  .arrived = {}};
  for (int owner = 0; owner < all.count(); ++owner) {
    scatter.partials[owner] = static_cast<uint4*>(all.memory(owner).partials[epoch % 2]);
    scatter.arrived[owner] = all.memory(owner).arrived;
  }
  return scatter;
}

/// Prepares kKernel, which has tiles of T and the dynamic shared memory of Shared.
template <auto kKernel, typename T, typename Shared, int kThreads, bool kTurned>
RankLauncher prepare(const ScatterGemm& all) {
  struct Maps {
    ptx::TensorMap a[kScatterPhases];
    ptx::TensorMap b;
    ptx::TensorMap d;
  };
  const auto maps = std::make_shared<std::vector<Maps>>();
  for (const ScatterMemory& memory : all.ranks) {
    Maps& one = maps->emplace_back();
    for (std::size_t phase = 0; phase < kScatterPhases; ++phase)
      one.a[phase] = operand_map<T>(memory.a[phase], all.shape.m, all.shape.k, T::kM);
    one.b = operand_map<T>(memory.b, all.shape.n, all.shape.k, T::kN);
    one.d = store_map(memory.d, all.rows_of_rank(), all.shape.n);
  }
  RankLauncher launcher;
  // ANCHOR: launch
  launcher.run = [all, maps](int rank, std::uint32_t epoch, ptx::Stream stream) {
    const Scatter scatter = scatter_of<T>(all, rank, epoch, kTurned);
    // Lesson: a CTA that waits for another rank keeps its SM. If the waiting CTAs of all ranks held all SMs,
    // no CTA that they wait for could start. So all CTAs of a launch are resident together.
    const ptx::LaunchShape shape =
        persistent_launch(ptx::kernel_handle(kKernel),
                          {.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>, .co_resident = true},
                          all.count() * scatter.tiles_of_rank);
    const Maps& mine = (*maps)[static_cast<std::size_t>(rank)];
    ptx::launch(kKernel, shape, stream, scatter, ceil_div(all.shape.k, T::kK), mine.a[epoch % kScatterPhases],
                mine.b, mine.d);
  };
  // ANCHOR_END: launch
  return launcher;
}

}  // namespace gemm::step_62
