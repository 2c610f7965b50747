// Who multiplies what: whole tiles, or pieces of tiles along K, so that all workers finish together.
//
// Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the
// GPU" (arXiv 2301.03598).
#pragma once

#include <initializer_list>

#include "gemm/divisor.h"

namespace gemm {

/// Some k-tiles of one tile of D: k_begin to k_end - 1, beginning with k_first and going round.
struct Piece {
  int tile = 0;
  int k_begin = 0;
  int k_end = 0;
  int k_first = 0;
  int slot = -1;  // of the workspace, where its sums go; a tile's last piece has none and finishes the tile

  constexpr int count() const { return k_end - k_begin; }
  /// The k-tile that is multiplied as number i.
  constexpr int k_tile(int i) const {
    const int k = k_first + i;
    return k < k_end ? k : k - count();
  }
};

/// How `tiles` tiles of `k_tiles` k-tiles are divided among `workers` workers.
///
/// Tiles 0 to streamed - 1 are laid end to end: a tape of streamed * k_tiles k-tiles that is cut into one
/// range for each worker, of the same length or one more. A range begins somewhere in a tile and ends
/// somewhere in a tile. The other tiles are cut into `splits` pieces each, which are dealt to the workers in
/// turn; with one piece that is the plain data-parallel order. A worker does its range first.
struct Decomposition {
  int tiles = 0;
  Divisor k_tiles = 0;
  int workers = 1;
  int streamed = 0;
  Divisor splits = 1;  // at most k_tiles

  /// Workers that have a range: all, unless the tape has fewer k-tiles than that.
  constexpr int ranges() const {
    const int length = streamed * k_tiles;
    return length < workers ? length : workers;
  }
  /// Where the range of `worker` begins on the tape, in k-tiles; the end of the tape for who has none.
  constexpr int range_begin(int worker) const {
    if (worker >= ranges()) return streamed * k_tiles;
    const int length = streamed * k_tiles / ranges();
    const int longer = streamed * k_tiles - length * ranges();  // the first ranges have one k-tile more
    return length * worker + (worker < longer ? worker : longer);
  }
  /// Pieces that the tiles behind the tape are cut into.
  constexpr int dealt() const { return (tiles - streamed) * splits; }
  /// The first slot of dealt tile number `tile`; it has splits - 1.
  constexpr int dealt_slots(int tile) const { return (streamed > 0 ? workers : 0) + tile * (splits - 1); }
  /// Slots of the workspace, each of one tile of sums.
  constexpr int slots() const { return dealt_slots(tiles - streamed); }
};

/// The pieces of one worker, in the order in which he does them.
///
/// Nobody waits for somebody who waits for him, and hardly anybody waits at all. The last piece of a tile
/// finishes it. A worker does his range from its end to its beginning: first the beginning of a tile, which
/// others finish, last the end of a tile, for which the others did their pieces at the same time or before.
/// Dealt pieces of a tile come in ascending order of k, so that the one that finishes waits only for pieces
/// dealt before.
///
/// What is multiplied at the same time should have the same k, or the L2 cannot share it. All ranges have the
/// same length L, but the k at which they begin drifts from tile to tile. So a piece from the middle of a
/// tile begins where k is a multiple of L, and goes round: at any time all workers are near k = t, t + L, t +
/// 2 L ...
class WorkList {
 public:
  constexpr WorkList(const Decomposition& decomposition, int worker)
      : all_(decomposition), worker_(worker), dealt_(worker) {
    if (all_.streamed == 0) return;
    begin_ = all_.range_begin(worker);
    end_ = all_.range_begin(worker + 1);
    longest_ = (all_.streamed * all_.k_tiles + all_.ranges() - 1) / all_.ranges();
  }

  /// False when there is nothing left.
  constexpr bool next(Piece& piece) {
    if (begin_ < end_) {
      const int tile = (end_ - 1) / all_.k_tiles;
      const int start = tile * all_.k_tiles;
      const int first = begin_ > start ? begin_ : start;
      piece = {tile, first - start, end_ - start, first - start, -1};
      end_ = first;
      if (piece.k_end < all_.k_tiles) {
        piece.slot = worker_;
        const int aligned = (piece.k_begin + longest_ - 1) / longest_ * longest_;
        if (aligned < piece.k_end) piece.k_first = aligned;
      }
      return true;
    }
    if (dealt_ >= all_.dealt()) return false;
    const int tile = dealt_ / all_.splits;
    const int part = dealt_ - tile * all_.splits;
    piece = {all_.streamed + tile, cut(part), cut(part + 1), cut(part), -1};
    if (part + 1 < all_.splits) piece.slot = all_.dealt_slots(tile) + part;
    dealt_ += all_.workers;
    return true;
  }
  /// Whether next() has given the last piece.
  constexpr bool done() const { return begin_ >= end_ && dealt_ >= all_.dealt(); }

 private:
  constexpr int cut(int part) const { return all_.k_tiles * part / all_.splits; }

  Decomposition all_;
  int worker_;
  int begin_ = 0;
  int end_ = 0;
  int longest_ = 0;  // range
  int dealt_;
};

/// The slots that hold the rest of a tile, in ascending order of k: first to end - 1.
struct SlotRange {
  int first = 0;
  int end = 0;
  constexpr int count() const { return end - first; }
};

/// For the piece with which `worker` finishes a tile.
constexpr SlotRange rest_of_tile(const Decomposition& all, const Piece& piece, int worker) {
  if (piece.tile >= all.streamed) {
    const int first = all.dealt_slots(piece.tile - all.streamed);
    return {first, first + all.splits - 1};
  }
  SlotRange rest{worker, worker};
  while (all.range_begin(rest.first) > piece.tile * all.k_tiles) --rest.first;
  return rest;
}

enum class Split { kDataParallel, kSplitK, kStreamK, kHybrid };

/// What passing sums through the workspace costs, in k-tiles of multiplication of a 128 x 256 x 64 tile (0.6
/// us on an H200: 302 us for 512 of them in docs/results/stream_k_h200.json): to leave them and to be waited
/// for, and to add those of one slot, 128 KB.
inline constexpr double kLeaveKTiles = 8;
inline constexpr double kAddKTiles = 5;

/// What the busiest worker multiplies, rounding aside.
constexpr double busiest_k_tiles(const Decomposition& all) {
  const int rounds = (all.dealt() + all.workers - 1) / all.workers;
  const double range = static_cast<double>(all.streamed) * all.k_tiles / all.workers;
  return range + static_cast<double>(rounds) * all.k_tiles / all.splits;
}

/// Predicted time of the slowest worker, in k-tiles of multiplication.
constexpr double predicted_k_tiles(const Decomposition& all) {
  double time = busiest_k_tiles(all);
  if (all.splits > 1) time += kLeaveKTiles + kAddKTiles * (all.splits - 1);
  if (all.streamed > 0 && all.streamed % all.workers != 0) {
    const int sharing = (all.ranges() + all.streamed - 1) / all.streamed;  // workers of a tile, or one more
    time += kLeaveKTiles + kAddKTiles * sharing;
  }
  return time;
}

/// A gain that is predicted to be smaller than this is not worth a workspace.
inline constexpr double kWorthwhile = 0.97;

/// kSplitK cuts every tile into `splits`; kHybrid streams the tiles that do not fill a wave, alone or
/// together with one whole wave, whichever the prediction prefers, and none where that gains next to nothing:
/// when the last wave is well filled, when there are many waves, or when K is too short to pay for passing
/// sums.
constexpr Decomposition decompose(Split split, int tiles, int k_tiles, int workers, int splits = 1) {
  Decomposition plain{tiles, k_tiles, workers, 0, 1};
  if (split == Split::kSplitK) plain.splits = splits < k_tiles ? splits : k_tiles;
  if (split == Split::kStreamK) plain.streamed = tiles;
  if (split != Split::kHybrid) return plain;
  Decomposition best = plain;
  double time = kWorthwhile * predicted_k_tiles(plain);
  for (const int streamed : {tiles % workers, tiles % workers + workers}) {
    Decomposition other = plain;
    other.streamed = streamed;
    if (streamed > tiles || predicted_k_tiles(other) >= time) continue;
    best = other;
    time = predicted_k_tiles(other);
  }
  return best;
}

}  // namespace gemm
