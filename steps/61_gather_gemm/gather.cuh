// What the kernel of step 61 gets, and who starts it: a launch for each rank, and the copies that run beside
// it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gemm/launch/grids.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/peer_copier.cuh"
#include "gemm/problem/ranks.h"
#include "gemm/schedule/raster.h"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/peer_copy.h"

namespace gemm::step_61 {

/// The tile of D that a CTA multiplies next, and the rank whose rows of A it needs.
struct GatheredTile {
  int owner;  // the rank that has its rows of A
  int row;
  int column;
};

/// Which tiles there are, in which order, and what each of them waits for.
struct Gather {
  int rank, ranks;
  int rows;                      // rows of A that each rank has
  int piece_rows, pieces;        // the same for every rank
  const std::uint32_t* arrived;  // [ranks][pieces], in this rank's memory
  std::uint32_t epoch;
  GroupedRaster raster;  // places the tiles of one rank's rows
  int tiles_of_rank;
  int first_owner;  // 0: this rank's own rows come first; 1: they come last

  __device__ __forceinline__ int tiles() const { return ranks * tiles_of_rank; }
  __device__ __forceinline__ const std::uint32_t* flag(const GatheredTile& tile) const {
    return &arrived[tile.owner * pieces + (tile.row - tile.owner * rows) / piece_rows];
  }

  // ANCHOR: order
  /// Own rows are here before the launch. Every rank sends to the one before it first, so the next rank's
  /// rows are the first ones to arrive, and so on around the circle.
  template <typename T>
  __device__ __forceinline__ GatheredTile tile_at(int index) const {
    const int turn = index / tiles_of_rank;
    const int owner = (rank + first_owner + turn) % ranks;
    const TilePosition tile = raster.at(index - turn * tiles_of_rank);
    return {owner, owner * rows + tile.m * T::kM, tile.n * T::kN};
  }
  // ANCHOR_END: order
};

inline constexpr int kMostRanks = 8;

/// What a rank sends, piece by piece, and where to: all its rows to the rank before it, then all to the one
/// before that.
struct Outbox {
  const bf16* a;                       // this rank's A
  bf16* peers[kMostRanks];             // [ranks]: the A of each rank
  std::uint32_t* arrived[kMostRanks];  // [ranks]: the flags of each rank
  int rank, ranks;
  int rows, piece_rows, pieces;
  int k;
  std::uint32_t epoch;
  int ctas;  // CTAs that copy; 0: a copy engine does it

  __host__ __device__ int count() const { return (ranks - 1) * pieces; }
  __host__ __device__ int receiver(int index) const { return (rank + ranks - 1 - index / pieces) % ranks; }
  __host__ __device__ PeerPiece at(int index) const {
    const int piece = index % pieces;
    const int first = rank * rows + piece * piece_rows;
    const int count_of_rows = piece_rows < rows - piece * piece_rows ? piece_rows : rows - piece * piece_rows;
    const int to = receiver(index);
    return {reinterpret_cast<const uint4*>(a + offset(first, 0, k)),
            reinterpret_cast<uint4*>(peers[to] + offset(first, 0, k)), &arrived[to][rank * pieces + piece],
            offset(count_of_rows, 0, k) / 8};
  }
};

/// Who moves the bytes, and what the launch waits for.
enum class Sender {
  kCopyEngine,
  kCopyEngineFirst,  // the product begins when everything has been sent
  kNobody,           // everything has been sent before, and that is not timed
  kSms,
};

inline Outbox outbox_of(const GatherGemm& all, int rank, std::uint32_t epoch, int ctas) {
  Outbox outbox{.a = all.memory(rank).a[epoch % 2],
                .peers = {},
                .arrived = {},
                .rank = rank,
                .ranks = all.count(),
                .rows = all.rows_of_rank(),
                .piece_rows = all.piece_rows,
                .pieces = all.pieces(),
                .k = all.shape.k,
                .epoch = epoch,
                .ctas = ctas};
  for (int peer = 0; peer < all.count(); ++peer) {
    outbox.peers[peer] = all.memory(peer).a[epoch % 2];
    outbox.arrived[peer] = all.memory(peer).arrived;
  }
  return outbox;
}

template <typename T>
Gather gather_of(const GatherGemm& all, int rank, std::uint32_t epoch, int first_owner) {
  constexpr int kRasterGroup = 16;
  const TileGrid tiles = tile_grid<T>({all.rows_of_rank(), all.shape.n, all.shape.k});
  return {.rank = rank,
          .ranks = all.count(),
          .rows = all.rows_of_rank(),
          .piece_rows = all.piece_rows,
          .pieces = all.pieces(),
          .arrived = all.memory(rank).arrived,
          .epoch = epoch,
          .raster = GroupedRaster(tiles, kRasterGroup),
          .tiles_of_rank = tiles.count(),
          .first_owner = first_owner};
}

// ANCHOR: by_engine
/// Gives the copies to a second stream, and after each of them the flag of its piece. The stream keeps this
/// order.
inline void send_by_engine(const Outbox& outbox, ptx::Stream stream) {
  for (int index = 0; index < outbox.count(); ++index) {
    const PeerPiece piece = outbox.at(index);
    ptx::copy_to_peer(piece.target, outbox.receiver(index), piece.source, outbox.rank,
                      static_cast<std::size_t>(piece.vectors) * sizeof(uint4), stream);
    ptx::write_flag(piece.flag, outbox.epoch, stream);
  }
}
// ANCHOR_END: by_engine

/// Prepares kKernel, which has tiles of T and the dynamic shared memory of Shared.
template <auto kKernel, typename T, typename Shared, int kThreads, Sender kSender, int kFirstOwner>
RankLauncher prepare(const GatherGemm& all) {
  struct OfRank {
    TileMaps maps[2];  // for even and for odd epochs
    std::unique_ptr<ptx::SideStream> copies;
  };
  const auto ranks = std::make_shared<std::vector<OfRank>>();
  for (const GatherMemory& memory : all.ranks) {
    OfRank& one = ranks->emplace_back();
    for (std::size_t parity = 0; parity < 2; ++parity)
      one.maps[parity] = tile_maps<T>(Gemm{all.shape, memory.a[parity], memory.b, memory.d});
  }
  RankLauncher launcher;
  if constexpr (kSender == Sender::kNobody) {
    launcher.before = [all](int rank, std::uint32_t epoch, ptx::Stream stream) {
      send_by_engine(outbox_of(all, rank, epoch, 0), stream);
    };
  }
  launcher.run = [all, ranks](int rank, std::uint32_t epoch, ptx::Stream stream) {
    OfRank& mine = (*ranks)[static_cast<std::size_t>(rank)];
    const ptx::LaunchShape resident =
        persistent_launch(ptx::kernel_handle(kKernel), {.block = {kThreads},
                                                        .cluster = {},
                                                        .shared_bytes = kSharedBytes<Shared>,
                                                        .co_resident = kSender == Sender::kSms});
    const int most = static_cast<int>(resident.grid.x);
    const int senders = kSender == Sender::kSms ? std::clamp(all.ctas, 1, std::max(1, most - 1)) : 0;
    const Outbox outbox = outbox_of(all, rank, epoch, senders);
    const Gather gather = gather_of<T>(all, rank, epoch, kFirstOwner);
    // ANCHOR: streams
    // Lesson: the host gives a rank's copies to the GPU before the kernel, which waits for copies of other
    // ranks. Even if the two streams share a queue of the hardware, no copy is behind its epoch's kernel.
    if constexpr (kSender == Sender::kCopyEngine || kSender == Sender::kCopyEngineFirst) {
      if (!mine.copies) mine.copies = std::make_unique<ptx::SideStream>();
      send_by_engine(outbox, mine.copies->begin_after(stream));
      if constexpr (kSender == Sender::kCopyEngineFirst) mine.copies->end_before(stream);
    }
    const TileMaps& maps = mine.maps[epoch % 2];
    ptx::LaunchShape shape = resident;
    shape.grid.x =
        std::min(shape.grid.x, static_cast<unsigned>(all.count() * gather.tiles_of_rank + senders));
    ptx::launch(kKernel, shape, stream, gather, outbox, ceil_div(all.shape.k, T::kK), maps.a, maps.b, maps.d);
    if constexpr (kSender == Sender::kCopyEngine) mine.copies->end_before(stream);
    // ANCHOR_END: streams
  };
  return launcher;
}

}  // namespace gemm::step_61
