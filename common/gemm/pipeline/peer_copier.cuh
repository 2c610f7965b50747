// What step 60 taught: one thread copies pieces into the memory of peers, by way of stages in shared memory,
// and raises the flag of each piece when it has been written there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gemm/pipeline/ring.cuh"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/tma.cuh"

namespace gemm {

/// Waits for a word in this rank's memory that only grows.
__device__ __forceinline__ void wait_until(const std::uint32_t* word, std::uint32_t least) {
  while (static_cast<std::int32_t>(ptx::ld_acquire_sys(word) - least) < 0) {
  }
}

/// A part of a copy that has a flag of its own.
struct PeerPiece {
  const uint4* source;  // in this rank's memory
  uint4* target;        // in a peer's memory
  std::uint32_t* flag;  // in the same peer's memory
  std::int64_t vectors;
};

// Step 60's pieces lie behind each other and go to one peer. Here, `Pieces` says where each of them is.

/// `Pieces` has the functions count() and at(index), which returns a PeerPiece, and an epoch. `ctas` CTAs
/// copy. The one with the number `cta` copies the pieces cta, cta + ctas, cta + 2 * ctas and so on, and one
/// of its threads does it all.
class PeerCopier {
 public:
  static constexpr int kChunk = 1024;  // vectors of 16 bytes, copied by one instruction
  static constexpr int kStages = 12;
  static constexpr int kLoading = 4;  // the others hold chunks that are on their way to the peer
  static constexpr int kStoring = kStages - kLoading;
  struct Storage {
    alignas(128) uint4 stage[kStages][kChunk];
    std::uint64_t full[kStages];
  };

  template <typename Pieces>
  __device__ static void copy(Storage& shared, const Pieces& pieces, int cta, int ctas) {
    for (std::uint64_t& barrier : shared.full) ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init_release_cluster();
    PipelineState<kStages> fill{};
    const auto load = [&](const Chunk<Pieces>& chunk) {
      ptx::mbarrier_arrive_expect_tx(&shared.full[fill.stage], chunk.bytes());
      ptx::cp_async_bulk(shared.stage[fill.stage], chunk.piece.source + chunk.at, chunk.bytes(),
                         &shared.full[fill.stage]);
      fill.advance();
    };
    Chunk<Pieces> loaded(pieces, cta);
    for (int i = 0; i < kLoading && loaded.exists(); ++i, loaded.advance(ctas)) load(loaded);

    Chunk<Pieces> landed(pieces, cta);
    const auto land = [&] {
      if (landed.ends_piece()) ptx::st_release_sys(landed.piece.flag, pieces.epoch);
      landed.advance(ctas);
    };
    PipelineState<kStages> read{};
    int stored = 0;
    for (Chunk<Pieces> chunk(pieces, cta); chunk.exists(); chunk.advance(ctas), ++stored) {
      ptx::mbarrier_wait_parity(&shared.full[read.stage], read.phase, {"copier", "full", read.stage, stored});
      ptx::cp_async_bulk_store(chunk.piece.target + chunk.at, shared.stage[read.stage], chunk.bytes());
      ptx::cp_async_bulk_commit_group();
      read.advance();
      ptx::cp_async_bulk_wait_group<kStoring>();  // not .read: all but the newest are written
      if (stored >= kStoring) land();
      if (loaded.exists()) {
        load(loaded);
        loaded.advance(ctas);
      }
    }
    ptx::cp_async_bulk_wait_group<0>();
    while (landed.exists()) land();
  }

 private:
  template <typename Pieces>
  struct Chunk {
    const Pieces& pieces;
    int index;
    PeerPiece piece{};
    std::int64_t at = 0;

    __device__ Chunk(const Pieces& all, int first) : pieces(all), index(first) {
      if (exists()) piece = pieces.at(index);
    }
    __device__ __forceinline__ bool exists() const { return index < pieces.count(); }
    __device__ __forceinline__ std::uint32_t bytes() const {
      return static_cast<std::uint32_t>(std::min<std::int64_t>(kChunk, piece.vectors - at)) * 16;
    }
    __device__ __forceinline__ bool ends_piece() const { return at + kChunk >= piece.vectors; }
    __device__ __forceinline__ void advance(int ctas) {
      at += kChunk;
      if (at < piece.vectors) return;
      at = 0;
      index += ctas;
      if (exists()) piece = pieces.at(index);
    }
  };
};

}  // namespace gemm
