// What every decomposition must be, however it was made: checks that several tests share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "gemm/schedule/decomposition.h"

namespace gemm {

inline std::string to_string(const Decomposition& all) {
  return std::to_string(all.tiles) + " tiles of " + std::to_string(all.k_tiles) + " k-tiles, " +
         std::to_string(all.workers) + " workers, " + std::to_string(all.stream_k_tiles) +
         " stream-K tiles, " + std::to_string(all.splits) + " splits";
}

inline std::vector<std::vector<WorkTile>> all_work_tiles(const Decomposition& all) {
  std::vector<std::vector<WorkTile>> lists(static_cast<std::size_t>(all.workers));
  for (int worker = 0; worker < all.workers; ++worker) {
    TileScheduler scheduler(all, worker);
    for (WorkTile work; scheduler.next(work);) lists[static_cast<std::size_t>(worker)].push_back(work);
  }
  return lists;
}

/// What is wrong with the work tiles, or nothing.
inline std::string mistake_in_cover(const Decomposition& all) {
  std::vector<int> seen(static_cast<std::size_t>(all.tiles) * static_cast<std::size_t>(all.k_tiles), 0);
  std::vector<int> finished(static_cast<std::size_t>(all.tiles), 0);
  std::vector<int> written(static_cast<std::size_t>(all.slots()), 0);
  for (const auto& list : all_work_tiles(all)) {
    for (const WorkTile& work : list) {
      if (work.tile < 0 || work.tile >= all.tiles) return "a tile that is none";
      if (work.k_begin < 0 || work.count() <= 0 || work.k_end > all.k_tiles) return "an empty work tile";
      for (int i = 0; i < work.count(); ++i) {
        const int k = work.k_tile(i);
        if (k < work.k_begin || k >= work.k_end) return "a k-tile outside its work tile";
        ++seen[static_cast<std::size_t>(work.tile * all.k_tiles + k)];
      }
      const bool last = work.k_end == all.k_tiles;
      if (last != (work.slot < 0)) return "a slot for the last work tile, or none for another";
      if (last) {
        ++finished[static_cast<std::size_t>(work.tile)];
      } else if (work.slot >= all.slots()) {
        return "a slot after the last one";
      } else {
        ++written[static_cast<std::size_t>(work.slot)];
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

/// What goes wrong when the workers run, `first` of them first: a work tile is done when all partials that it
/// adds are there.
inline std::string mistake_in_run(const Decomposition& all, int first) {
  struct Slot {
    int tile = -1;
    int k_begin = 0;
    int k_end = 0;
    int read = 0;
  };
  const auto lists = all_work_tiles(all);
  std::vector<Slot> slots(static_cast<std::size_t>(all.slots()));
  std::vector<std::size_t> done(lists.size(), 0);
  const auto do_work_tile = [&](int worker, const WorkTile& work, std::string& mistake) {
    if (work.slot >= 0) {
      slots[static_cast<std::size_t>(work.slot)] = {work.tile, work.k_begin, work.k_end, 0};
      return true;
    }
    const SlotRange peers = peers_of(all, work, worker);
    if (peers.first < 0 || peers.end > all.slots() || peers.first > peers.end) {
      mistake = "slots that do not exist";
      return false;
    }
    for (int slot = peers.first; slot < peers.end; ++slot) {
      if (slots[static_cast<std::size_t>(slot)].tile < 0) return false;  // waits
    }
    int k = 0;
    for (int slot = peers.first; slot < peers.end; ++slot) {
      Slot& partials = slots[static_cast<std::size_t>(slot)];
      if (partials.tile != work.tile) mistake = "partials of another tile";
      if (partials.k_begin != k) mistake = "partials that are not next in k";
      if (++partials.read > 1) mistake = "partials that are added twice";
      k = partials.k_end;
    }
    if (k != work.k_begin) mistake = "partials that no fix-up adds";
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (int i = 0; i < all.workers; ++i) {
      const int worker = (first + i) % all.workers;
      const auto& list = lists[static_cast<std::size_t>(worker)];
      std::size_t& next = done[static_cast<std::size_t>(worker)];
      std::string mistake;
      while (next < list.size() && do_work_tile(worker, list[next], mistake)) {
        ++next;
        progress = true;
      }
      if (!mistake.empty()) return mistake;
    }
  }
  for (std::size_t worker = 0; worker < lists.size(); ++worker) {
    if (done[worker] < lists[worker].size()) return "a worker waits for ever";
  }
  for (const Slot& slot : slots) {
    if (slot.tile >= 0 && slot.read != 1) return "partials that are never read";
  }
  return {};
}

/// The k-tiles that the busiest worker multiplies.
inline int busiest(const Decomposition& all) {
  int most = 0;
  for (const auto& list : all_work_tiles(all)) {
    int count = 0;
    for (const WorkTile& work : list) count += work.count();
    most = std::max(most, count);
  }
  return most;
}

}  // namespace gemm
