// What every decomposition must be, whoever made it: checks that several tests share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "gemm/decomposition.h"

namespace gemm {

inline std::string to_string(const Decomposition& all) {
  return std::to_string(all.tiles) + " tiles of " + std::to_string(all.k_tiles) + " k-tiles, " +
         std::to_string(all.workers) + " workers, " + std::to_string(all.stream_k_tiles) +
         " tiles stream_k_tiles, " + std::to_string(all.splits) + " splits";
}

inline std::vector<std::vector<WorkTile>> all_pieces(const Decomposition& all) {
  std::vector<std::vector<WorkTile>> lists(static_cast<std::size_t>(all.workers));
  for (int worker = 0; worker < all.workers; ++worker) {
    TileScheduler work(all, worker);
    for (WorkTile piece; work.next(piece);) lists[static_cast<std::size_t>(worker)].push_back(piece);
  }
  return lists;
}

/// What is wrong with the pieces, or nothing.
inline std::string mistake_in_cover(const Decomposition& all) {
  std::vector<int> seen(static_cast<std::size_t>(all.tiles) * static_cast<std::size_t>(all.k_tiles), 0);
  std::vector<int> finished(static_cast<std::size_t>(all.tiles), 0);
  std::vector<int> written(static_cast<std::size_t>(all.slots()), 0);
  for (const auto& list : all_pieces(all)) {
    for (const WorkTile& piece : list) {
      if (piece.tile < 0 || piece.tile >= all.tiles) return "a tile that is none";
      if (piece.k_begin < 0 || piece.count() <= 0 || piece.k_end > all.k_tiles) return "an empty piece";
      for (int i = 0; i < piece.count(); ++i) {
        const int k = piece.k_tile(i);
        if (k < piece.k_begin || k >= piece.k_end) return "a k-tile outside its piece";
        ++seen[static_cast<std::size_t>(piece.tile * all.k_tiles + k)];
      }
      const bool last = piece.k_end == all.k_tiles;
      if (last != (piece.slot < 0)) return "a slot for the last piece, or none for another";
      if (last) {
        ++finished[static_cast<std::size_t>(piece.tile)];
      } else if (piece.slot >= all.slots()) {
        return "a slot behind the last one";
      } else {
        ++written[static_cast<std::size_t>(piece.slot)];
      }
    }
  }
  for (const int times : seen) {
    if (times != 1) return "a k-tile that is multiplied " + std::to_string(times) + " times";
  }
  for (const int times : finished) {
    if (times != 1) return "a tile that is finished " + std::to_string(times) + " times";
  }
  for (const int times : written) {
    if (times > 1) return "a slot that is written " + std::to_string(times) + " times";
  }
  return {};
}

/// What goes wrong when the workers run, `first` of them first: a piece is done when all sums that it adds
/// are there.
inline std::string mistake_in_run(const Decomposition& all, int first) {
  struct Slot {
    int tile = -1;
    int k_begin = 0;
    int k_end = 0;
    int read = 0;
  };
  const auto lists = all_pieces(all);
  std::vector<Slot> slots(static_cast<std::size_t>(all.slots()));
  std::vector<std::size_t> done(lists.size(), 0);
  const auto do_piece = [&](int worker, const WorkTile& piece, std::string& mistake) {
    if (piece.slot >= 0) {
      slots[static_cast<std::size_t>(piece.slot)] = {piece.tile, piece.k_begin, piece.k_end, 0};
      return true;
    }
    const SlotRange rest = peers_of(all, piece, worker);
    if (rest.first < 0 || rest.end > all.slots() || rest.first > rest.end) {
      mistake = "slots that do not exist";
      return false;
    }
    for (int slot = rest.first; slot < rest.end; ++slot) {
      if (slots[static_cast<std::size_t>(slot)].tile < 0) return false;  // waits
    }
    int k = 0;
    for (int slot = rest.first; slot < rest.end; ++slot) {
      Slot& sums = slots[static_cast<std::size_t>(slot)];
      if (sums.tile != piece.tile) mistake = "sums of another tile";
      if (sums.k_begin != k) mistake = "sums that are not next in k";
      if (++sums.read > 1) mistake = "sums that are added twice";
      k = sums.k_end;
    }
    if (k != piece.k_begin) mistake = "sums that nobody adds";
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (int i = 0; i < all.workers; ++i) {
      const int worker = (first + i) % all.workers;
      const auto& list = lists[static_cast<std::size_t>(worker)];
      std::size_t& next = done[static_cast<std::size_t>(worker)];
      std::string mistake;
      while (next < list.size() && do_piece(worker, list[next], mistake)) {
        ++next;
        progress = true;
      }
      if (!mistake.empty()) return mistake;
    }
  }
  for (std::size_t worker = 0; worker < lists.size(); ++worker) {
    if (done[worker] < lists[worker].size()) return "somebody waits for ever";
  }
  for (const Slot& slot : slots) {
    if (slot.tile >= 0 && slot.read != 1) return "sums that nobody reads";
  }
  return {};
}

/// The k-tiles that the busiest worker multiplies.
inline int busiest(const Decomposition& all) {
  int most = 0;
  for (const auto& list : all_pieces(all)) {
    int count = 0;
    for (const WorkTile& piece : list) count += piece.count();
    most = std::max(most, count);
  }
  return most;
}

}  // namespace gemm
