// Who multiplies what: whole tiles, or pieces of tiles along K, so that all workers finish together.
//
// Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the
// GPU" (arXiv 2301.03598).
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm {

/// Some k-tiles of one tile of D.
struct Piece {
  int tile = 0;
  int k_begin = 0;
  int k_end = 0;
  int slot = -1;  // of the workspace, where its sums go; a tile's first piece has none and finishes the tile
};

/// How `tiles` tiles of `k_tiles` k-tiles are divided among `workers` workers.
///
/// Tiles 0 to streamed - 1 are laid end to end: a tape of streamed * k_tiles k-tiles that is cut into one
/// range for each worker, of the same length or one more. A range begins somewhere in a tile and ends
/// somewhere in a tile. The other tiles are cut into `splits` pieces each, which are dealt to the workers in
/// turn; with one piece that is the plain data-parallel order. A worker does its range first.
struct Decomposition {
  int tiles = 0;
  int k_tiles = 0;
  int workers = 1;
  int streamed = 0;
  int splits = 1;  // at most k_tiles

  /// Workers that have a range: all, unless the tape has fewer k-tiles than that.
  __host__ __device__ constexpr int ranges() const {
    const int length = streamed * k_tiles;
    return length < workers ? length : workers;
  }
  /// Where the range of `worker` begins on the tape, in k-tiles; the end of the tape for who has none.
  __host__ __device__ constexpr int range_begin(int worker) const {
    if (worker >= ranges()) return streamed * k_tiles;
    return static_cast<int>(static_cast<std::int64_t>(streamed) * k_tiles * worker / ranges());
  }
  /// Pieces that the tiles behind the tape are cut into.
  __host__ __device__ constexpr int dealt() const { return (tiles - streamed) * splits; }
  /// Slots of the workspace, each of one tile of sums.
  __host__ __device__ constexpr int slots() const {
    return (streamed > 0 ? workers : 0) + (tiles - streamed) * (splits - 1);
  }
};

/// The pieces of one worker, in the order in which he does them.
///
/// Nobody waits for somebody who waits for him. On the tape, the worker whose range has a tile's first k-tile
/// finishes the tile: that piece is the last of his range, and the others' pieces of that tile are the first
/// of theirs, so that they are done when he asks. Dealt pieces of a tile come in descending order of k, so
/// that the first one is dealt last and waits only for pieces dealt before.
class WorkList {
 public:
  __host__ __device__ constexpr WorkList(const Decomposition& decomposition, int worker)
      : all_(decomposition),
        worker_(worker),
        at_(decomposition.range_begin(worker)),
        end_(decomposition.range_begin(worker + 1)),
        dealt_(worker) {}

  /// False when there is nothing left.
  __host__ __device__ constexpr bool next(Piece& piece) {
    if (at_ < end_) {
      const int tile = at_ / all_.k_tiles;
      const int begin = at_ - tile * all_.k_tiles;
      const int left = begin + (end_ - at_);
      const int end = left < all_.k_tiles ? left : all_.k_tiles;
      piece = {tile, begin, end, begin == 0 ? -1 : worker_};
      at_ += end - begin;
      return true;
    }
    if (dealt_ >= all_.dealt()) return false;
    const int tile = dealt_ / all_.splits;
    const int part = all_.splits - 1 - (dealt_ - tile * all_.splits);
    const int first_slot = (all_.streamed > 0 ? all_.workers : 0) + tile * (all_.splits - 1);
    piece = {all_.streamed + tile, cut(part), cut(part + 1), part == 0 ? -1 : first_slot + part - 1};
    dealt_ += all_.workers;
    return true;
  }

 private:
  __host__ __device__ constexpr int cut(int part) const {
    return static_cast<int>(static_cast<std::int64_t>(all_.k_tiles) * part / all_.splits);
  }

  Decomposition all_;
  int worker_;
  int at_;
  int end_;
  int dealt_;
};

/// The slots that hold the rest of a tile, in ascending order of k: first, first + 1, ... up to `end`.
struct SlotRange {
  int first = 0;
  int end = 0;
};

/// For the piece with which `worker` finishes a tile.
__host__ __device__ constexpr SlotRange rest_of_tile(const Decomposition& all, const Piece& piece,
                                                     int worker) {
  if (piece.tile >= all.streamed) {
    const int first = (all.streamed > 0 ? all.workers : 0) + (piece.tile - all.streamed) * (all.splits - 1);
    return {first, first + all.splits - 1};
  }
  SlotRange rest{worker + 1, worker + 1};
  if (piece.k_end == all.k_tiles) return rest;
  const int tile_end = (piece.tile + 1) * all.k_tiles;
  while (rest.end < all.ranges() && all.range_begin(rest.end) < tile_end) ++rest.end;
  return rest;
}

enum class Split { kDataParallel, kSplitK, kStreamK, kHybrid };

/// Time that passing sums through the workspace costs, in k-tiles of multiplication: 128 x 256 floats out,
/// waited for and in again.
inline constexpr double kFixupKTiles = 14;

/// Predicted time of the slowest worker, in k-tiles of multiplication.
constexpr double predicted_k_tiles(const Decomposition& all) {
  const int dealt = all.dealt();
  const int rounds = (dealt + all.workers - 1) / all.workers;
  const double range = static_cast<double>(all.streamed) * all.k_tiles / all.workers;
  const bool passes_sums = all.splits > 1 || (all.streamed > 0 && all.streamed % all.workers != 0);
  return range + static_cast<double>(rounds) * all.k_tiles / all.splits + (passes_sums ? kFixupKTiles : 0);
}

/// kSplitK cuts every tile into `splits`; kHybrid streams the tiles that do not fill a wave, alone or
/// together with one whole wave, whichever the prediction prefers, and none where data-parallel is predicted
/// to be as fast: when the last wave is well filled, or K too short to pay for passing sums.
constexpr Decomposition decompose(Split split, int tiles, int k_tiles, int workers, int splits = 1) {
  Decomposition plain{tiles, k_tiles, workers, 0, 1};
  if (split == Split::kSplitK) plain.splits = splits < k_tiles ? splits : k_tiles;
  if (split == Split::kStreamK) plain.streamed = tiles;
  if (split != Split::kHybrid) return plain;
  Decomposition best = plain;
  for (const int streamed : {tiles % workers, tiles % workers + workers}) {
    Decomposition other = plain;
    other.streamed = streamed;
    if (streamed <= tiles && predicted_k_tiles(other) < predicted_k_tiles(best)) best = other;
  }
  return best;
}

}  // namespace gemm
