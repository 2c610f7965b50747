#include "emulator/report/causes/early_releases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "emulator/report/causes/barriers.h"

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
  if (!arrived && name.count == 1 && mate != events.end()) {
    const std::string late =
        fmt::format("lane {} arrived for warp {} before lane {} had read",
                    stamp_thread(mate->stamp) % kWarpSize, name.first / kWarpSize, name.first % kWarpSize);
    const bool below = mate->where.file() == read_at.file() && mate->where.line() < read_at.line();
    if (below)
      return fmt::format(
          "the arrival at {} after the read at {}: {}. A __syncwarp before the arrival does not delay reads "
          "that follow it",
          mate->where.text(), read_at.text(), late);
    return fmt::format(
        "__syncwarp between the read at {} and the arrival at {}: {}, and being in the same warp does not "
        "order lanes{}",
        read_at.text(), mate->where.text(), late,
        empty.count == 1 ? ". Where that lane arrives for other warps as well, a barrier of all of them"
                         : "");
  }
  if (!arrived && arriving_threads(gang, empty) > empty.count) {
    return fmt::format(
        "the arrival of {}: the phase ended without it. The count of {} is {}, set at {}, but {} threads "
        "arrive there. If each of them arrives in every phase, the count is too small",
        name.name, name_mbarrier(empty), empty.count, empty.init_where.text(), arriving_threads(gang, empty));
  }
  if (arrived)
    return fmt::format("{} arrived before it read: the arrival must follow the last read", name.name);
  return fmt::format(
      "{} has not arrived in that phase, whose count is {}: either it must arrive itself, or it must meet "
      "the arriving thread at a barrier between its read at {} and that thread's arrival",
      name.name, empty.count, read_at.text());
}

}  // namespace emulator
