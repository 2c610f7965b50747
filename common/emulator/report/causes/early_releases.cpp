#include "emulator/report/causes/early_releases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/member_names.h"

namespace emulator {
namespace {

/// The CTAs of a list of keys, each once: "CTA (0,0,0), CTA (1,0,0)".
std::string names_of_ctas(const Grid& grid, const std::vector<std::uint32_t>& keys) {
  std::string names;
  for (const std::uint32_t key : keys)
    names += fmt::format("{}CTA {}", names.empty() ? "" : ", ", name_cta(grid, key));
  return names;
}

/// The bytes that a load of another k-tile brought are overwritten, and no reader has said that it read them.
/// `to`: the CTA that they lie in; `issuer` loads into it.
std::string whose_release_is_missing(const Gang& gang, const std::vector<Mbarrier::Event>& events,
                                     const Mbarrier& empty, const Cta& to, const LoadRecord& load) {
  std::vector<std::uint32_t> targets;
  for (const Cta* cta : gang.hopper->copies.targets_of(load.issuer)) targets.push_back(cta->key);
  if (std::find(targets.begin(), targets.end(), to.key) == targets.end()) targets.push_back(to.key);
  std::vector<std::uint32_t> strangers;
  bool arrived = false;
  for (const Mbarrier::Event& event : events) {
    if (event.kind == Mbarrier::Event::kExpect) continue;
    const std::uint32_t key = stamp_cta(event.stamp);
    arrived = arrived || key == to.key;
    if (std::find(targets.begin(), targets.end(), key) == targets.end() &&
        std::find(strangers.begin(), strangers.end(), key) == strangers.end())
      strangers.push_back(key);
  }
  if (arrived) {
    return fmt::format(
        "a thread of CTA {} arrived before it had waited for the bytes that are there: the arrival is for "
        "another stage, or precedes the wait for this one",
        text(to.id));
  }
  std::string missing = fmt::format(
      "the arrival of the consumers of CTA {}: this producer's copies go to that CTA, and the phase ended "
      "without its consumers (the count of {} is {})",
      text(to.id), name_mbarrier(empty), empty.count);
  if (load.ctas != 0) {
    missing += fmt::format(
        ". Alternatively, the multicast mask at {} has a bit too many: it is {:#x}, which includes rank {} "
        "of the cluster, CTA {}",
        load.where.text(), load.ctas, to.rank_in_cluster, text(to.id));
  }
  if (strangers.empty() && targets.size() > 2) {
    missing += fmt::format(". They go to {}", names_of_ctas(gang.grid, targets));
  } else if (!strangers.empty()) {
    missing += fmt::format(
        ". {} arrived instead, but none of this producer's copies go there ({}): either the arrivals or the "
        "copies go to the wrong peers",
        names_of_ctas(gang.grid, strangers), "they go to " + names_of_ctas(gang.grid, targets));
  }
  return missing;
}

/// One thread arrives for several warps that have waited for the stage, and had not met them behind their
/// reads: what is missing then, or "".
std::string who_spoke_for(const Gang& gang, const std::vector<Mbarrier::Event>& events, const Mbarrier& empty,
                          const Mbarrier& full, const ReaderName& reader, Where read_at) {
  if (empty.count != 1) return {};
  const auto event = std::find_if(events.begin(), events.end(), [&](const Mbarrier::Event& arrival) {
    return arrival.kind != Mbarrier::Event::kExpect && stamp_cta(arrival.stamp) == reader.cta;
  });
  const auto cta = std::find_if(gang.ctas.begin(), gang.ctas.end(),
                                [&](const auto& other) { return other->key == reader.cta; });
  if (event == events.end() || event->commit || cta == gang.ctas.end()) return {};
  const HopperCta& state = gang.hopper->cta(**cta);
  const std::uint32_t warpgroup = reader.first / kWarpgroupSize;
  if (stamp_thread(event->stamp) / kWarpgroupSize != warpgroup) return {};
  std::vector<std::uint32_t> warps;  // of the warpgroup, that have waited for the stage
  for (std::uint32_t i = warpgroup * kWarpgroupSize;
       i < std::min<std::size_t>(state.threads.size(), (std::size_t{warpgroup} + 1) * kWarpgroupSize); ++i) {
    const std::uint32_t warp = i / kWarpSize;
    if (last_wait((*cta)->threads[i], full) && (warps.empty() || warps.back() != warp)) warps.push_back(warp);
  }
  if (warps.size() < 2) return {};
  return fmt::format(
      "a barrier of {} between the read at {} and the arrival at {}: thread {} arrived for all of them (the "
      "count of {} is 1) before thread {} had read",
      ranges("warp", warps), read_at.text(), event->where.text(), stamp_thread(event->stamp),
      name_mbarrier(empty), reader.first);
}

/// The latest arrival there by one of the reader's threads, or nullptr.
const Mbarrier::Event* latest_arrival(const Mbarrier& barrier, const ReaderName& reader) {
  for (const auto* events : {&barrier.events, &barrier.previous_events}) {
    for (auto event = events->rbegin(); event != events->rend(); ++event) {
      if (event->kind != Mbarrier::Event::kExpect && !event->commit &&
          stamp_cta(event->stamp) == reader.cta && stamp_thread(event->stamp) - reader.first < reader.count)
        return &*event;
    }
  }
  return nullptr;
}

/// A reader that hands back each stage behind its wait for the next one handed back the last of a tile by
/// itself, and goes on with one arrival too many: what is missing then, or "".
std::string released_twice(const Mbarrier& empty, const ReaderName& reader, const Mbarrier::Event& arrival) {
  const std::string family = family_of(empty);
  std::map<int, const Mbarrier*> stages;
  for (const auto& other : empty.cta->gang->hopper->cta(*empty.cta).barriers) {
    const std::string index = index_in(member_name(*other->cta, other->offset));
    if (other->live && !index.empty() && family_of(*other) == family)
      stages[std::stoi(index.substr(1))] = other.get();
  }
  const auto is_own = [](const Mbarrier::Event& event, int stage) {
    return event.activity.role != nullptr && std::string_view(event.activity.barrier) == "full" &&
           event.activity.stage == stage;
  };
  const int count = static_cast<int>(stages.size());
  const int stage = arrival.activity.stage;
  if (count < 3 || !is_own(arrival, stage) || !stages.contains(stage) || stages[stage] != &empty ||
      stages.rbegin()->first != count - 1)
    return {};
  const int last = (stage + count - 1) % count;
  const int before = (last + count - 1) % count;
  const Mbarrier::Event* const of_last = latest_arrival(*stages[last], reader);
  const Mbarrier::Event* const of_before = latest_arrival(*stages[before], reader);
  // The last k-tile of the tile before was handed back by itself, the one before it behind the next wait.
  if (of_last == nullptr || of_before == nullptr || !is_own(*of_last, last) || !is_own(*of_before, last) ||
      of_last->activity.k_tile <= arrival.activity.k_tile)
    return {};
  return fmt::format(
      "one arrival fewer: {} releases k-tile {} twice. With the arrival at {} ({}, at {}), it had released "
      "every stage that it had waited for. The next arrival, after its wait as {}, can therefore only be for "
      "k-tile {}, whose wgmma has just been issued. Until then, each k-tile was released after the wait for "
      "the following one. The last k-tile must be released only once, either after the loop or in the first "
      "iteration of the next tile",
      reader.name, of_last->activity.k_tile, name_mbarrier(*stages[last]), text(of_last->activity),
      of_last->where.text(), text(arrival.activity), arrival.activity.k_tile);
}

/// A relaxed arrival by a thread that knew of the read, and has executed no fence since: what is missing
/// then, or
/// "".
std::string relaxed_without_fence(const Gang& gang, const std::vector<Mbarrier::Event>& events,
                                  const Mbarrier& empty, Stamp reader, Where read_at) {
  const Mbarrier::Published& over = empty.completed;
  for (const Mbarrier::Event& event : events) {
    // What releases publishes itself, too.
    if (event.kind != Mbarrier::Event::kArrive || event.commit || over.local.covers(event.stamp) ||
        over.cluster.covers(event.stamp) || over.execution.covers(event.stamp))
      continue;
    const auto cta = std::find_if(gang.ctas.begin(), gang.ctas.end(),
                                  [&](const auto& other) { return other->key == stamp_cta(event.stamp); });
    if (cta == gang.ctas.end()) continue;
    const Thread& thread = (*cta)->threads[stamp_thread(event.stamp)];
    const bool own = reader >> 32 == event.stamp >> 32;
    if (own ? stamp_time(reader) > stamp_time(event.stamp) : !knows(thread, reader)) continue;
    if (thread.fenced_device.covers(reader)) continue;
    return fmt::format(
        "a release in the arrival at {}, or a fence.acq_rel.cluster between the read at {} and that arrival: "
        "a relaxed arrival passes on only what an earlier fence of its thread covers",
        event.where.text(), read_at.text());
  }
  return {};
}

/// Whether the thread that arrived for its warp has read what the load is to overwrite at this line, behind
/// its arrival.
bool reads_behind(const Cta& target, const LoadRecord& load, Stamp arrival, Where at) {
  const std::uintptr_t end = std::min<std::uintptr_t>(load.offset + load.bytes, target.dynamic_window.bytes);
  for (std::uintptr_t offset = std::uintptr_t{load.offset} / 16 * 16; offset < end; offset += 16) {
    const Line& line = target.dynamic_window.lines[offset / 16];
    if (line.tag() != target.tag || line.cells() == nullptr) continue;
    for (unsigned i = 0; i < 16u >> line.granule_log2(); ++i) {
      const Cell& cell = line.cells()[i];
      for (std::size_t j = 0; j < cell.readers; ++j) {
        const Reader& reader = j == 0 ? cell.first : cell.more[j - 1];
        if (reader.stamp >> 32 != arrival >> 32 || (reader.where & ~kAtomicBit) != at.packed()) continue;
        if (stamp_time(reader.stamp) > stamp_time(arrival)) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::string too_many_arrivals(const Gang& gang, const Mbarrier& empty, const Mbarrier& full,
                              const ReaderName& reader) {
  const std::uint64_t filled = full.phase - full.first_phase;
  std::uint64_t total = 0;
  std::vector<std::uint32_t> threads;  // of the reader's warpgroup
  std::set<std::uint32_t> warps;
  for (const auto& cta : gang.ctas) {
    const auto& states = gang.hopper->cta(*cta).threads;
    for (std::uint32_t i = 0; i < states.size(); ++i) {
      for (const Arrivals& arrivals : states[i].arrivals) {
        if (arrivals.barrier != &empty || arrivals.count == 0) continue;
        if (arrivals.ahead) return {};
        total += arrivals.count;
        if (cta->key != reader.cta || i / kWarpgroupSize != reader.first / kWarpgroupSize) continue;
        threads.push_back(i);
        warps.insert(i / kWarpSize);
      }
    }
  }
  if (warps.size() < 2 || total <= empty.count * filled || empty.commits > 0) return {};
  return fmt::format(
      "fewer arrivals per k-tile, or a larger count: {} was filled {} time{}, but {} threads have arrived {} "
      "times at {}, whose count is {} (set at {}). {} of warpgroup {}, in {} warps, arrive there, and every "
      "{} of these arrivals end{} a phase. The count must equal the number of threads that arrive for one "
      "k-tile",
      name_mbarrier(full), filled, filled == 1 ? "" : "s", arriving_threads(gang, empty), total,
      name_mbarrier(empty), empty.count, empty.init_where.text(), ranges("thread", threads),
      reader.first / kWarpgroupSize, warps.size(), empty.count, empty.count == 1 ? "s" : "");
}

std::string what_the_reader_missed(Report& report, const Gang& gang,
                                   const std::vector<Mbarrier::Event>& events, const Mbarrier& empty,
                                   Stamp reader, Where read_at, const Cta& target, const LoadRecord& load) {
  const ReaderName name = reader_name(gang, reader);
  if (std::string relaxed = relaxed_without_fence(gang, events, empty, reader, read_at); !relaxed.empty())
    return relaxed;
  if (std::string many = too_many_arrivals(gang, empty, *load.barrier, name); !many.empty()) return many;
  if (name.agent && (name.kind == AgentKind::kLoads || name.kind == AgentKind::kCopies))
    return whose_release_is_missing(gang, events, empty, target, load);
  const auto own = [&](const Mbarrier::Event& event) {
    return event.kind != Mbarrier::Event::kExpect && stamp_cta(event.stamp) == name.cta &&
           stamp_thread(event.stamp) - name.first < name.count;
  };
  const bool arrived = std::any_of(events.begin(), events.end(), own);
  if (name.agent && name.kind == AgentKind::kWgmma) {
    if (!arrived) {
      return fmt::format("the arrival of {}: the phase ended without it (the count of {} is {})", name.name,
                         name_mbarrier(empty), empty.count);
    }
    std::uint64_t executed = 0;
    const Mbarrier::Event* last = nullptr;
    for (const Mbarrier::Event& event : events) {
      if (!own(event) || (last && event.wgmma < executed)) continue;
      executed = event.wgmma;
      last = &event;
    }
    if (executed < stamp_time(reader)) {
      return fmt::format(
          "{} arrived before it issued its wgmma {} at {}, which reads the stage: it had issued {} of them "
          "before the arrival at {}. There must be one release per k-tile, after its last wgmma and the wait "
          "for that wgmma: this release is too early, or there is one too many",
          name.name, stamp_time(reader), read_at.text(), executed, last->where.text());
    }
    if (std::string twice = last ? released_twice(empty, name, *last) : std::string(); !twice.empty())
      return twice;
    return fmt::format(
        "{} arrived before its wgmma had completed: a wgmma.wait_group that covers it (wait_group<0>, or "
        "with fewer groups left in flight) is missing before the arrival, or the arrival is for another "
        "stage",
        name.name);
  }
  const auto arrival = std::find_if(events.begin(), events.end(), own);
  if (name.agent && name.kind == AgentKind::kMultiplications && arrived && !arrival->commit) {
    return fmt::format(
        "tcgen05.commit at {} instead of the arrival at {}: an arrival by the issuing thread does not say "
        "that the tensor cores have finished reading, and the tcgen05.mma at {} may still be running",
        name_mbarrier(empty), arrival->where.text(), read_at.text());
  }
  if (name.agent && name.kind == AgentKind::kMultiplications && arrived) {
    return fmt::format(
        "tcgen05.commit at {} after the tcgen05.mma at {}: the commit precedes it, and a commit tracks only "
        "what its thread has already issued",
        arrival->where.text(), read_at.text());
  }
  if (name.agent && name.kind == AgentKind::kStoreReads) {
    for (const auto& cta : gang.ctas) {
      if (cta->key != name.cta) continue;
      const std::string wait =
          gang.hopper->copies.explain_unread(report, cta->threads[name.first], stamp_time(reader));
      return fmt::format("{}, before {}, which releases the buffer", wait,
                         arrived ? fmt::format("the arrival at {}", arrival->where.text())
                                 : std::string("the arrival that ended the phase"));
    }
  }
  const auto mate = std::find_if(events.begin(), events.end(), [&](const Mbarrier::Event& event) {
    return event.kind != Mbarrier::Event::kExpect && stamp_cta(event.stamp) == name.cta &&
           stamp_thread(event.stamp) / kWarpSize == name.first / kWarpSize;
  });
  if (!arrived && name.count == 1) {
    std::string spokesman = who_spoke_for(gang, events, empty, *load.barrier, name, read_at);
    if (!spokesman.empty()) return spokesman;
  }
  if (!arrived && name.count == 1 && mate != events.end()) {
    const std::string late =
        fmt::format("lane {} arrived for warp {} before lane {} had read",
                    stamp_thread(mate->stamp) % kWarpSize, name.first / kWarpSize, name.first % kWarpSize);
    const bool below = mate->where.file() == read_at.file() && mate->where.line() < read_at.line();
    if (reads_behind(target, load, mate->stamp, read_at))
      return fmt::format(
          "the arrival at {} after the read at {}: {}, and that lane itself reads there after it has "
          "arrived. A __syncwarp before the arrival does not delay reads that follow it",
          mate->where.text(), read_at.text(), late);
    if (below)
      return fmt::format(
          "the arrival at {} after the read at {}, which comes later in the source: {}, and a __syncwarp "
          "before the arrival does not delay reads that follow it. (If the arrival belongs to a later "
          "iteration, a __syncwarp between the two is missing instead)",
          mate->where.text(), read_at.text(), late);
    return fmt::format(
        "__syncwarp between the read at {} and the arrival at {}: lane {} arrived for warp {} before lane {} "
        "had read, and being in the same warp does not order lanes",
        read_at.text(), mate->where.text(), stamp_thread(mate->stamp) % kWarpSize, name.first / kWarpSize,
        name.first % kWarpSize);
  }
  if (!arrived && arriving_threads(gang, empty) > empty.count) {
    return fmt::format(
        "the arrival of {}: the phase ended without it. The count of {} is {}, set at {}, but {} threads "
        "arrive there. If each of them arrives in every phase, the count is too small",
        name.name, name_mbarrier(empty), empty.count, empty.init_where.text(), arriving_threads(gang, empty));
  }
  return arrived ? fmt::format("{} arrived before it read: the arrival must follow the last read", name.name)
                 : fmt::format(
                       "{} has not arrived in that phase: either it must arrive itself, or it must meet the "
                       "arriving thread at a barrier before that thread arrives",
                       name.name);
}

}  // namespace emulator
