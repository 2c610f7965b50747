// Which worker multiplies what: whole tiles, or parts of tiles along K, so that all workers finish together.
//
// Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the
// GPU" (arXiv 2301.03598).
#pragma once

#include <initializer_list>

#include "gemm/schedule/divisor.h"

namespace gemm {

/// Work for one CTA: some k-tiles of one tile of D, k_begin to k_end - 1, starting with k_first and wrapping.
struct WorkTile {
  int tile = 0;
  int k_begin = 0;
  int k_end = 0;
  int k_first = 0;
  int slot = -1;  // of the workspace, where its partials go; -1: the last work tile of a tile fixes up

  constexpr int count() const { return k_end - k_begin; }
  /// The k-tile that is multiplied as number i.
  // ANCHOR: k_tile_of_work
  constexpr int k_tile(int i) const {
    const int k = k_first + i;
    return k < k_end ? k : k - count();
  }
  // ANCHOR_END: k_tile_of_work
};

/// How `tiles` tiles of `k_tiles` k-tiles are divided among `workers` workers (CTAs).
///
/// Tiles 0 to stream_k_tiles - 1 are stream-K tiles. Laid end to end they are stream_k_tiles * k_tiles
/// k-tiles, which are cut into one range for each worker, all of the same length or one more. A range begins
/// and ends anywhere in a tile. The other tiles are data-parallel: each is cut into `splits` work tiles
/// (split-K; 1: whole tiles), and these go to the workers round robin. A worker does its range first.
struct Decomposition {
  int tiles = 0;
  Divisor k_tiles = 0;
  int workers = 1;
  int stream_k_tiles = 0;
  Divisor splits = 1;  // at most k_tiles

  /// Workers that have a range: all, unless there are fewer stream-K k-tiles than workers.
  constexpr int ranges() const {
    const int length = stream_k_tiles * k_tiles;
    return length < workers ? length : workers;
  }
  /// Where the range of `worker` begins among the linearised k-tiles; their end for a worker without a range.
  constexpr int range_begin(int worker) const {
    if (worker >= ranges()) return stream_k_tiles * k_tiles;
    const int length = stream_k_tiles * k_tiles / ranges();
    const int longer = stream_k_tiles * k_tiles - length * ranges();  // the first ranges have one k-tile more
    return length * worker + (worker < longer ? worker : longer);
  }
  /// The worker whose range holds this one of the linearised k-tiles.
  constexpr int worker_at(int k_tile) const {
    const int length = stream_k_tiles * k_tiles / ranges();
    const int longer = stream_k_tiles * k_tiles - length * ranges();
    const int in_longer = (length + 1) * longer;
    return k_tile < in_longer ? k_tile / (length + 1) : longer + (k_tile - in_longer) / length;
  }
  /// Work tiles that the data-parallel tiles are cut into.
  constexpr int data_parallel() const { return (tiles - stream_k_tiles) * splits; }
  /// The first slot of data-parallel tile number `tile`; it has splits - 1.
  constexpr int data_parallel_slots(int tile) const {
    return (stream_k_tiles > 0 ? workers : 0) + tile * (splits - 1);
  }
  /// Slots of the workspace, each for the partials of one tile.
  constexpr int slots() const { return data_parallel_slots(tiles - stream_k_tiles); }
};

/// The work tiles of one worker, in order.
///
/// No worker waits for a worker that waits for it, and hardly any waits at all. The last work tile of a tile
/// does the fix-up. A worker does its range from the end to the beginning: first the beginning of a tile,
/// which its peers finish, last the end of a tile, whose other parts the peers did at the same time or
/// before. Data-parallel work tiles of a tile come in ascending order of k, so that the one that fixes up
/// waits only for work tiles handed out before it.
///
/// What is multiplied at the same time should have the same k, or the L2 cannot share it. All ranges have the
/// same length L, but the k at which they begin drifts from tile to tile. So a work tile from the middle of a
/// tile starts where k is a multiple of L, and wraps: at any time all workers are near k = t, t + L, t + 2 L
/// ...
class TileScheduler {
 public:
  constexpr TileScheduler(const Decomposition& decomposition, int worker)
      : all_(decomposition), worker_(worker), data_parallel_(worker) {
    if (all_.stream_k_tiles == 0) return;
    begin_ = all_.range_begin(worker);
    end_ = all_.range_begin(worker + 1);
    longest_ = (all_.stream_k_tiles * all_.k_tiles + all_.ranges() - 1) / all_.ranges();
  }

  /// False when there is nothing left.
  constexpr bool next(WorkTile& work) {
    if (begin_ < end_) {
      const int tile = (end_ - 1) / all_.k_tiles;
      const int start = tile * all_.k_tiles;
      const int first = begin_ > start ? begin_ : start;
      work = {tile, first - start, end_ - start, first - start, -1};
      end_ = first;
      if (work.k_end < all_.k_tiles) {
        work.slot = worker_;
        const int aligned = (work.k_begin + longest_ - 1) / longest_ * longest_;
        if (aligned < work.k_end) work.k_first = aligned;
      }
      return true;
    }
    if (data_parallel_ >= all_.data_parallel()) return false;
    const int tile = data_parallel_ / all_.splits;
    const int part = data_parallel_ - tile * all_.splits;
    work = {all_.stream_k_tiles + tile, cut(part), cut(part + 1), cut(part), -1};
    if (part + 1 < all_.splits) work.slot = all_.data_parallel_slots(tile) + part;
    data_parallel_ += all_.workers;
    return true;
  }
  /// Whether next() has returned the last work tile.
  constexpr bool done() const { return begin_ >= end_ && data_parallel_ >= all_.data_parallel(); }

 private:
  constexpr int cut(int part) const { return all_.k_tiles * part / all_.splits; }

  Decomposition all_;
  int worker_;
  int begin_ = 0;
  int end_ = 0;
  int longest_ = 0;  // range
  int data_parallel_;
};

/// The slots that hold the peers' partials of a tile, in ascending order of k: first to end - 1.
struct SlotRange {
  int first = 0;
  int end = 0;
  constexpr int count() const { return end - first; }
};

/// Whose partials `worker` must add to finish the tile of `work`, the last work tile of its tile.
constexpr SlotRange peers_of(const Decomposition& all, const WorkTile& work, int worker) {
  if (work.tile >= all.stream_k_tiles) {
    const int first = all.data_parallel_slots(work.tile - all.stream_k_tiles);
    return {first, first + all.splits - 1};
  }
  SlotRange peers{worker, worker};
  while (all.range_begin(peers.first) > work.tile * all.k_tiles) --peers.first;
  return peers;
}

enum class Split { kDataParallel, kSplitK, kStreamK, kHybrid };

/// What passing partials through the workspace costs, in k-tiles of multiplication of a 128 x 256 x 64 tile
/// (0.6 us on an H200: 302 us for 512 of them in docs/results/stream_k_h200.json): to store them and to be
/// waited for, and to add those of one slot, 128 KB.
inline constexpr double kStorePartialsKTiles = 8;
inline constexpr double kFixupKTiles = 5;

/// What the busiest worker multiplies, rounding aside.
constexpr double busiest_k_tiles(const Decomposition& all) {
  const int rounds = (all.data_parallel() + all.workers - 1) / all.workers;
  const double range = static_cast<double>(all.stream_k_tiles) * all.k_tiles / all.workers;
  return range + static_cast<double>(rounds) * all.k_tiles / all.splits;
}

/// Predicted time of the slowest worker, in k-tiles of multiplication.
constexpr double predicted_k_tiles(const Decomposition& all) {
  double time = busiest_k_tiles(all);
  if (all.splits > 1) time += kStorePartialsKTiles + kFixupKTiles * (all.splits - 1);
  if (all.stream_k_tiles > 0 && all.stream_k_tiles % all.workers != 0) {
    const int sharing =
        (all.ranges() + all.stream_k_tiles - 1) / all.stream_k_tiles;  // workers of a tile, or one more
    time += kStorePartialsKTiles + kFixupKTiles * sharing;
  }
  return time;
}

/// A gain that is predicted to be smaller than this is not worth a workspace.
inline constexpr double kWorthwhile = 0.97;

/// kSplitK cuts every tile into `splits`. kHybrid makes stream-K tiles of those that do not fill a wave,
/// alone or with one whole wave, whichever the prediction prefers, and of none where that gains next to
/// nothing: when the last wave is well filled, when there are many waves, or when K is too short to pay for
/// the fix-up.
constexpr Decomposition decompose(Split split, int tiles, int k_tiles, int workers, int splits = 1) {
  Decomposition plain{tiles, k_tiles, workers, 0, 1};
  if (split == Split::kSplitK) plain.splits = splits < k_tiles ? splits : k_tiles;
  if (split == Split::kStreamK) plain.stream_k_tiles = tiles;
  if (split != Split::kHybrid) return plain;
  Decomposition best = plain;
  double time = kWorthwhile * predicted_k_tiles(plain);
  for (const int stream_k_tiles : {tiles % workers, tiles % workers + workers}) {
    Decomposition other = plain;
    other.stream_k_tiles = stream_k_tiles;
    if (stream_k_tiles > tiles || predicted_k_tiles(other) >= time) continue;
    best = other;
    time = predicted_k_tiles(other);
  }
  return best;
}

}  // namespace gemm
