#include "emulator/async/async_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "emulator/report/member_names.h"
#include "emulator/report/report.h"

namespace emulator {

Stamp agent_stamp(const Cta& cta, std::uint32_t agent, std::uint32_t time) {
  return make_stamp(kAgentKey | cta.key, agent, time);
}

bool knows(const Thread& thread, Stamp stamp) {
  if (stamp_cta(stamp) == thread.cta->key &&
      (stamp_time(stamp) < thread.base || stamp_thread(stamp) == thread.index)) {
    return true;
  }
  return thread.clock.covers(stamp);
}

void record_fence(FenceTimes& times, Thread& thread) {
  times.push_back(thread.time);
  thread.advance();
}

std::uint32_t first_fence(const FenceTimes& times, std::uint32_t time) {
  const auto found = std::lower_bound(times.begin(), times.end(), time);
  return found == times.end() ? 0 : *found;
}

void add_another_async_reader(Cell& cell, Stamp stamp, Where where, const Thread& issuer) {
  const Reader reader{stamp, where.packed()};
  // Knowing an agent's later time implies the earlier ones.
  for (unsigned i = 0; i < cell.readers; ++i) {
    Reader& old = i == 0 ? cell.first : cell.more[i - 1];
    if (old.stamp >> 32 == stamp >> 32) {
      old = reader;
      return;
    }
  }
  // An agent goes in front: the inline paths forget older readers only behind a front that they know.
  auto passed = [&](const Reader& old) {
    return stamp_cta(old.stamp) == issuer.cta->key && stamp_time(old.stamp) < issuer.base;
  };
  if (cell.readers == 1 && passed(cell.first)) {
    cell.first = reader;
    return;
  }
  if (cell.readers > cell.capacity) {
    const unsigned capacity = std::max(4u, 2u * cell.readers);
    auto* grown =
        static_cast<Reader*>(issuer.cta->gang->worker.cta_arena.allocate(capacity * sizeof(Reader)));
    std::copy(cell.more, cell.more + (cell.readers - 1), grown);
    cell.more = grown;
    cell.capacity = static_cast<std::uint16_t>(capacity);
  }
  cell.more[cell.readers - 1u] = cell.first;
  cell.first = reader;
  ++cell.readers;
}

std::string name_shared_offset(const Cta& cta, std::uint32_t offset) {
  const std::string member = member_name(cta, offset);
  std::string place = static_name(cta, offset);
  if (place.empty())
    place = member.empty() ? fmt::format("shared + {:#x}", offset)
                           : fmt::format("{} (shared + {:#x})", member, offset);
  if (cta.gang->ctas.size() > 1) place += fmt::format(" of CTA {}", text(cta.id));
  return place;
}

namespace {

struct MisalignedTile {
  std::mutex mutex;
  std::atomic<bool> noted{false};
  std::string text;
};
MisalignedTile& misaligned_tile() {
  static MisalignedTile tile;
  return tile;
}

struct Noted {
  std::mutex mutex;
  std::uint64_t count = 0;
  std::string first;

  void add(const std::string& text) {
    const std::lock_guard lock(mutex);
    if (count++ == 0) first = text;
  }
};
Noted& outside_stores() {
  static Noted stores;
  return stores;
}
Noted& outside_loads() {
  static Noted loads;
  return loads;
}
Noted& outside_rows() {
  static Noted rows;
  return rows;
}
Noted& unread() {
  static Noted loads;
  return loads;
}
Noted& map_faults() {
  static Noted maps;
  return maps;
}
Noted& cancelled() {
  static Noted clusters;
  return clusters;
}

}  // namespace

void note_outside_store(const char* what, const std::string& box, const Thread& thread, Where where) {
  outside_stores().add(fmt::format("{} at {} by {}: {}", what, where.text(), name_thread(thread), box));
}

void note_outside_load(const char* what, const std::string& box, const Thread& thread, Where where) {
  outside_loads().add(fmt::format("{} at {} by {}: {}", what, where.text(), name_thread(thread), box));
}

void note_outside_row(const char* what, const std::string& box, const Thread& thread, Where where) {
  outside_rows().add(fmt::format("{} at {} by {}: {}", what, where.text(), name_thread(thread), box));
}

void note_unread(const Cta& cta, std::uint32_t offset, std::uint32_t bytes, const std::string& box) {
  Noted& loads = unread();
  const std::lock_guard lock(loads.mutex);
  if (loads.count++ > 0) return;
  loads.first = fmt::format("{} bytes from {} on, of the {}", bytes, name_shared_offset(cta, offset), box);
}

void note_map_fault(const std::string& sentence) {
  map_faults().add(sentence);
}

std::string take_outside_loads() {
  std::string text;
  const auto take = [&](Noted& noted, const auto& sentence) {
    const std::lock_guard lock(noted.mutex);
    const std::uint64_t count = std::exchange(noted.count, 0);
    if (count > 0) text += (text.empty() ? "" : " ") + sentence(count, noted.first);
  };
  take(map_faults(), [](std::uint64_t, const std::string& first) { return first + "."; });
  const auto take_loads = [&](Noted& noted, const char* because, const char* hint) {
    take(noted, [&](std::uint64_t count, const std::string& first) {
      return fmt::format("{} bulk load{} delivered only zeros, because {}: {}{}. {}", count,
                         count == 1 ? "" : "s", because, count == 1 ? "" : "the first was ", first, hint);
    });
  };
  take(unread(), [](std::uint64_t count, const std::string& first) {
    return fmt::format(
        "the data of {} bulk load{} were overwritten by the next load before any thread had read them, in "
        "part or as a whole: {}{}. No thread reads that part of the stage: check where the thread that "
        "should read it begins (its descriptor or its address, which depends on the warpgroup, the slab of K "
        "and the panel), and check the strides.",
        count, count == 1 ? "" : "s", count == 1 ? "" : "the first was ", first);
  });
  take_loads(outside_rows(), "the box begins after the last row that the tensor map covers",
             "An extent (a number of blocks or groups) that is rounded down instead of up leaves out the "
             "last, incomplete one.");
  take_loads(outside_loads(), "the box lies more than a tile outside the area that the tensor map covers",
             "Does the map cover the whole matrix (all groups, all batches), and do the coordinates count "
             "elements?");
  return text;
}

void note_cancelled(uint3 first, std::size_t ctas, uint3 by) {
  constexpr std::uint64_t kListed = 6;
  Noted& clusters = cancelled();
  const std::lock_guard lock(clusters.mutex);
  if (clusters.count++ >= kListed) return;
  if (clusters.count == 1) clusters.first.clear();
  clusters.first += fmt::format("{}cluster {} (first CTA {}) by CTA {}", clusters.count == 1 ? "" : ", ",
                                first.x / ctas, text(first), text(by));
}

std::string take_cancelled() {
  Noted& clusters = cancelled();
  const std::lock_guard lock(clusters.mutex);
  const std::uint64_t count = std::exchange(clusters.count, 0);
  if (count == 0) return {};
  return fmt::format(
      "{} cluster{} cancelled, and the CTA that cancels a cluster must compute its tile: {}. If these tiles "
      "were not stored, check how the tile's number is derived from the response: it contains the cluster's "
      "first CTA, which is the cluster's number times the number of CTAs per cluster.",
      count, count == 1 ? " was" : "s were", clusters.first);
}

std::string take_outside_stores() {
  Noted& stores = outside_stores();
  const std::lock_guard lock(stores.mutex);
  const std::uint64_t count = std::exchange(stores.count, 0);
  if (count == 0) return {};
  return fmt::format(
      "{} bulk store{} moved nothing, because the box lies wholly outside the area that the tensor map "
      "covers: {}{}. If that box is a tile of D, check the coordinates, and which tiles this map is for.",
      count, count == 1 ? "" : "s", count == 1 ? "" : "the first was ", stores.first);
}

void note_misaligned_tile(const char* what, const Cta& cta, std::uint32_t offset, std::uint32_t span,
                          Where where) {
  MisalignedTile& tile = misaligned_tile();
  if (tile.noted.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(tile.mutex);
  if (tile.noted) return;
  const std::uint32_t repeat = 8 * span;
  tile.text = fmt::format(
      "the tile at {} lies {} bytes off a multiple of {}, and {} at {} uses it with a {}-byte swizzle, whose "
      "pattern depends on the address and begins at a multiple of {}: align the tile in shared memory "
      "(alignas({})).",
      name_shared_offset(cta, offset / span * span), offset % repeat / span * span, repeat, what,
      where.text(), span, repeat, repeat);
  tile.noted = true;
}

std::string take_misaligned_tile() {
  MisalignedTile& tile = misaligned_tile();
  const std::lock_guard lock(tile.mutex);
  tile.noted = false;
  return std::exchange(tile.text, {});
}

}  // namespace emulator
