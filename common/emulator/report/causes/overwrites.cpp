#include "emulator/report/causes/overwrites.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/departures.h"
#include "emulator/report/causes/early_releases.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/causes/missing_arrivals.h"
#include "emulator/report/causes/missing_ends.h"
#include "emulator/report/causes/passed_phases.h"

namespace emulator {

bool one_warp_one_place(const Thread& thread, Where where, Stamp other, Where other_where) {
  return stamp_cta(other) == thread.cta->key && stamp_thread(other) / kWarpSize == thread.index / kWarpSize &&
         stamp_thread(other) != thread.index && other_where.packed() == where.packed();
}

std::string two_lanes_text(const Thread& thread, Stamp other, const char* verb, Where where) {
  return fmt::format(
      "one lane that {}s: lanes {} and {} of warp {} both {} at {}. Inside elect_sync() (or a test of "
      "threadIdx.x for one value) only one lane would",
      verb, stamp_thread(other) % kWarpSize, thread.lane(), thread.warp(), verb, where.text());
}

bool explain_two_issuers(Report& report, const Thread& thread, Where where, const LoadRecord& other) {
  if (!one_warp_one_place(thread, where, other.issuer, other.where)) return false;
  report.missing(two_lanes_text(thread, other.issuer, "issue", where));
  return true;
}

bool explain_two_warps(Report& report, const Thread& thread, const LoadRecord& load,
                       const LoadRecord& before) {
  const Gang& gang = *thread.cta->gang;
  if (stamp_cta(before.issuer) != thread.cta->key || before.where.packed() != load.where.packed() ||
      before.barrier != load.barrier || before.coordinates != load.coordinates ||
      before.spec.base != load.spec.base || load.remote || before.remote || load.phase > before.phase + 1)
    return false;
  const std::uint32_t earlier = stamp_thread(before.issuer) / kWarpSize;
  if (earlier == static_cast<std::uint32_t>(thread.warp())) return false;
  const std::optional<int> k_tile = k_tile_of(gang.grid, load);
  report.line("before", "the same copy by {} at {}", name_thread(gang.grid, before.issuer),
              before.where.text());
  report.missing(
      "one loading warp instead of two: warps {} and {} of CTA {} both load {} for {} at {}, each with its "
      "own lane. A branch on the warp's number must let only one of them through, and {} counts the arrivals "
      "of one",
      std::min<std::uint32_t>(earlier, static_cast<std::uint32_t>(thread.warp())),
      std::max<std::uint32_t>(earlier, static_cast<std::uint32_t>(thread.warp())), text(thread.cta->id),
      k_tile ? fmt::format("k-tile {}", *k_tile) : std::string("the same box"), name_mbarrier(*load.barrier),
      load.where.text(), name_mbarrier(*load.barrier));
  return true;
}

bool explain_two_copies(Report& report, const Thread& thread, const LoadRecord& load, const Cta& target,
                        const LoadRecord& before) {
  if (before.barrier != load.barrier || before.phase != load.phase || before.remote || load.remote)
    return false;
  const Grid& grid = thread.cta->gang->grid;
  // Of two k-tiles the later one comes too early: nobody has waited for the readers of the first.
  const std::optional<int> first = k_tile_of(grid, before);
  const std::optional<int> second = k_tile_of(grid, load);
  if (first && second && *first != *second) return false;
  const auto of = [&](const LoadRecord& copy) {
    return fmt::format("{} of CTA {}{}", describe_load(grid, copy), name_cta(grid, stamp_cta(copy.issuer)),
                       copy.ctas != 0 ? fmt::format(" with mask {:#x}", copy.ctas) : std::string());
  };
  const auto bytes = [&](const LoadRecord& copy) {
    return fmt::format("{} bytes from {} on", copy.bytes, name_shared_offset(target, copy.offset));
  };
  report.line("both", "{}: {}, which takes {}", before.where.text(), of(before), bytes(before));
  report.line("and", "{}: {}, which takes {}", load.where.text(), of(load), bytes(load));
  const bool two_ctas = stamp_cta(before.issuer) != stamp_cta(load.issuer);
  const std::string phase = fmt::format("phase {} of {}", load.phase, name_mbarrier(*load.barrier));
  if (two_ctas) {
    report.missing(
        "a separate destination for each copy of {}: CTA {} gets the same part of the tile from two CTAs{}. "
        "A CTA's bit must be set only in the masks of the CTAs that share its rows or its columns, and each "
        "of these CTAs loads a different part of the tile",
        phase, text(target.id),
        load.ctas != 0 && before.ctas != 0
            ? fmt::format(", as bit {} (its rank) is set in {:#x} and in {:#x}", target.rank_in_cluster,
                          before.ctas, load.ctas)
            : std::string());
  } else {
    const std::uint32_t apart =
        load.offset > before.offset ? load.offset - before.offset : before.offset - load.offset;
    const LoadRecord& lower = load.offset > before.offset ? before : load;
    report.missing(
        apart > 0 && lower.bytes % apart == 0
            ? fmt::format("a box of {} bytes where this one has {}: the two destinations of {} lie {} bytes "
                          "apart, so the box of the tensor map is {} times too large for them (compare it "
                          "with the tile), or the second destination is wrong",
                          apart, lower.bytes, phase, apart, lower.bytes / apart)
            : fmt::format("a separate destination for each copy of {}: one of the two destinations is wrong, "
                          "or there is one copy too many",
                          phase));
  }
  return true;
}

namespace {

/// Who ended the phase of `empty` in the reader's place: a thread that a phase of another k-tile had let
/// through. False where none of these was.
bool explain_early_arrivals(Report& report, const Gang& gang, const Mbarrier& empty, const Mbarrier& full,
                            const ReaderName& reader) {
  for (const Mbarrier::Event& event : empty.previous_events) {
    if (event.kind == Mbarrier::Event::kExpect) continue;
    const std::uint32_t key = stamp_cta(event.stamp);
    const std::uint32_t index = stamp_thread(event.stamp);
    if (key == reader.cta && index - reader.first < reader.count) continue;
    const auto cta = std::find_if(gang.ctas.begin(), gang.ctas.end(),
                                  [key](const auto& other) { return other->key == key; });
    if (cta == gang.ctas.end()) continue;
    const auto& barriers = gang.hopper->cta(**cta).barrier_at;
    const auto own = barriers.find(full.offset);
    if (own == barriers.end() || !own->second->live) continue;
    ReaderName arrived;
    arrived.cta = key;
    arrived.first = index;
    arrived.count = 1;
    if (!explain_early_pass(report, gang, *own->second, arrived)) continue;
    const std::uint32_t mine = index / kWarpgroupSize;
    const auto times = std::count_if(
        empty.previous_events.begin(), empty.previous_events.end(), [&](const Mbarrier::Event& other) {
          return other.kind != Mbarrier::Event::kExpect && other.stamp >> 32 == event.stamp >> 32;
        });
    if (times > 1) {
      report.line("instead",
                  "{} arrived {} times in this phase, although each reader of the stage should arrive once: "
                  "it released a stage that it had not waited for (its read state and its release state do "
                  "not advance together), and {} has not arrived",
                  name_thread(gang.grid, event.stamp), times, reader.name);
    } else if (key == reader.cta && reader.count == kWarpgroupSize && mine != reader.first / kWarpgroupSize) {
      report.line("instead",
                  "warpgroup {} arrived instead of warpgroup {}: both read k-tiles from this ring, so each "
                  "may wait there only after the other has passed its own waits; an order barrier between "
                  "their main loops ensures that",
                  mine, reader.first / kWarpgroupSize);
    }
    return true;
  }
  return false;
}

/// One phase of `empty` has let the thread fill the stage twice, with `before` and now: the state that it
/// fills with has not moved on as it should. False where that is not so.
bool explain_phase_used_twice(Report& report, const Gang& gang, const LoadRecord& load,
                              const LoadRecord& before, const Mbarrier& empty, const LastWait& wait) {
  if (wait.phase_before != wait.phase || wait.loads_before_that > before.serial) return false;
  const LoadRecord* latest = nullptr;  // of the stage that the thread filled before this one
  gang.hopper->copies.visit_loads([&](const LoadRecord& other) {
    if (other.issuer >> 32 != load.issuer >> 32 || other.serial >= load.serial || other.remote ||
        other.serial >= wait.loads_before || (latest && latest->serial > other.serial))
      return;
    latest = &other;
  });
  const std::optional<int> held = k_tile_of(gang.grid, before);
  const std::string of_stage = held ? fmt::format("k-tile {}", *held) : std::string("what the stage holds");
  std::string missing = fmt::format(
      "a wait for phase {} (parity {}) of {}, in which the readers release {}: phase {} had already let this "
      "thread fill the stage with {}",
      wait.phase, wait.phase & 1, name_mbarrier(empty), of_stage, wait.phase - 1, of_stage);
  if (latest && latest->barrier == load.barrier) {
    missing += fmt::format(
        ", and that was the last stage that it filled. Another stage is due: the thread's fill state (stage "
        "and parity) does not continue from there (it starts again from the beginning, or is not advanced)");
  } else if (latest) {
    missing += fmt::format(
        ". The stage that it filled last belongs to {}: either this stage is not the next one (the state "
        "starts again from the beginning, or advances by a wrong number), or it is the next one and the "
        "parity has not flipped",
        name_mbarrier(*latest->barrier));
  }
  report.missing(missing);
  return true;
}

/// The mbarrier that the thread has waited for since its latest copy into another stage, if the readers'
/// warpgroup arrives there: what lets it fill the stage, whatever it is called.
const Mbarrier* waited_to_fill(const Thread& thread, const LoadRecord& load, const ReaderName& reader) {
  const Gang& gang = *thread.cta->gang;
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& one) {
    return one.barrier->live && one.barrier->loaded_phases == 0;
  });
  if (wait == waits.rend()) return nullptr;
  bool fills_others = false;
  gang.hopper->copies.visit_loads([&](const LoadRecord& other) {
    fills_others = fills_others || (other.issuer >> 32 == load.issuer >> 32 &&
                                    other.serial >= wait->loads_before && other.barrier != load.barrier);
  });
  const std::vector<const Thread*> arrivers = arrivers_of(gang, {wait->barrier});
  const bool readers_arrive = std::any_of(arrivers.begin(), arrivers.end(), [&](const Thread* one) {
    return one->cta->key == reader.cta && one->index / kWarpgroupSize == reader.first / kWarpgroupSize;
  });
  return fills_others || !readers_arrive ? nullptr : wait->barrier;
}

}  // namespace

bool explain_read_before_copy(Report& report, const Cta& target, const Mbarrier& signalled, Stamp reader,
                              Where read_at) {
  if (stamp_cta(reader) != target.key) return false;
  const Thread& thread = target.threads[stamp_thread(reader)];
  if (const LastWait* const wait = last_wait(thread, signalled)) {
    if (wait->phase > signalled.phase) return false;
    if (explain_skipped_waits(report, *target.gang, thread, signalled)) return true;
    report.missing(
        "a wait for phase {} (parity {}) of {} before the read at {}: the latest wait there of {}, at {} for "
        "parity {}, passed at once, because an earlier phase of that parity had completed. The bytes held "
        "nothing when it read them, so what it wants is what this copy brings. Does the parity flip as often "
        "as the barrier completes a phase?",
        signalled.phase, signalled.phase & 1, name_mbarrier(signalled), read_at.text(),
        name_thread(target.gang->grid, reader), wait->where.text(), wait->parity);
    return true;
  }
  report.missing(
      "a wait at {} before the read at {}: {} has never waited there. The bytes held nothing when it read "
      "them, so what it wants is what this copy brings. Every thread that reads waits, not only the one that "
      "copies (or a barrier of the CTA follows that one's wait)",
      name_mbarrier(signalled), read_at.text(), name_thread(target.gang->grid, reader));
  return true;
}

void explain_overwrite(Report& report, const Thread& thread, const LoadRecord& load, const Cta& target,
                       const LoadRecord* before, Stamp reader, Where read_at) {
  const Gang& gang = *thread.cta->gang;
  std::string content;
  if (const auto next = k_tile_of(gang.grid, load)) content = fmt::format("k-tile {} is being loaded", *next);
  if (before) {
    if (const auto held = k_tile_of(gang.grid, *before)) {
      content += fmt::format("{}the bytes hold k-tile {}", content.empty() ? "" : ", ", *held);
    }
  }
  const std::string stage = stage_text(target, target.dynamic_window.begin + load.offset);
  if (!content.empty()) report.line("content", (stage.empty() ? "" : stage + ": ") + content);

  if (before && explain_two_issuers(report, thread, load.where, *before)) return;
  if (before && explain_two_warps(report, thread, load, *before)) return;
  if (before && explain_two_copies(report, thread, load, target, *before)) return;
  if (explain_early_pass(report, gang, *load.barrier, reader_name(gang, reader))) return;
  const Mbarrier* empty = empty_of(*thread.cta, *load.barrier);
  if (!empty) empty = waited_to_fill(thread, load, reader_name(gang, reader));
  // What was released for nothing may be missed at any stage that comes later.
  if (empty && !gang.hopper->early_arrivals.empty())
    report.line("early", text(gang.grid, gang.hopper->early_arrivals.front()));
  if (!empty) {
    explain_missing_end(report, gang, reader, read_at, "this copy");
    return;
  }
  const LastWait* wait = last_wait(thread, *empty);
  if (!wait) {
    report.missing("{} {} before the copy: {}", name_mbarrier(*empty),
                   empty->observed_phases == empty->first_phase && empty->waiting.empty()
                       ? "is not waited for by any thread"
                       : "is not waited for by this thread",
                   "no thread waits for the readers of the stage");
    return;
  }
  const bool own_before = before && before->issuer >> 32 == load.issuer >> 32;
  if (wait->phase == empty->first_phase) {
    report.missing(
        "a wait for the readers: at {}, the thread waited for parity {} of {} before its first phase had "
        "completed; a fresh barrier lets a wait for parity 1 pass, once per stage",
        wait->where.text(), wait->parity, name_mbarrier(*empty));
    return;
  }
  if (empty->phase != wait->phase) {
    const std::string saw =
        fmt::format("its wait at {} saw phase {} of {} end; phase {} has completed since then",
                    wait->where.text(), wait->phase - 1, name_mbarrier(*empty), empty->phase - 1);
    const std::string many = too_many_arrivals(gang, *empty, *load.barrier, reader_name(gang, reader));
    if (!many.empty()) report.line("waited", saw);
    report.missing(many.empty() ? saw : many);
    return;
  }
  report.line("waited", "at {} for parity {} of {}; these arrivals ended phase {} there:", wait->where.text(),
              wait->parity, name_mbarrier(*empty), wait->phase - 1);
  report.block(arrivals_text(gang.grid, empty->previous_events));
  explain_odd_phase(report, *empty);
  if (own_before && explain_phase_used_twice(report, gang, load, *before, *empty, *wait)) return;
  if (explain_early_arrivals(report, gang, *empty, *load.barrier, reader_name(gang, reader))) return;
  // That adds lines of its own, which come first.
  const std::string missing =
      what_the_reader_missed(report, gang, empty->previous_events, *empty, reader, read_at, target, load);
  report.missing(missing);
}

namespace {

/// The thread fills a stage again behind a wait for `empty` that came in time, and saw a phase of an earlier
/// use of the stage. False where that is not so.
bool explain_stale_release(Report& report, const Thread& thread, const Mbarrier& full,
                           const Mbarrier& empty) {
  const Gang& gang = *thread.cta->gang;
  const LoadRecord* const load = gang.hopper->copies.latest_load(full);
  const LastWait* const wait = last_wait(thread, empty);
  if (!load || !wait || wait->loads_before <= load->serial || load->issuer >> 32 != thread.stamp() >> 32)
    return false;
  const bool fresh = wait->phase == empty.first_phase;
  const CommitRecord* const commit = fresh ? nullptr : commit_that_ended(empty, wait->phase - 1);
  report.line("early", "its wait at {} for parity {} of {} {}{}", wait->where.text(), wait->parity,
              name_mbarrier(empty),
              fresh ? std::string("passed at once: a fresh barrier lets a wait for parity 1 pass, once")
                    : fmt::format("was satisfied by phase {}, which had already completed", wait->phase - 1),
              commit ? fmt::format(": {} ended it", describe_commit(*commit)) : std::string());
  const std::optional<int> held = k_tile_of(gang.grid, *load);
  report.missing("a wait for phase {} (parity {}) of {}, in which the readers release {}", wait->phase,
                 wait->phase & 1, name_mbarrier(empty),
                 held ? fmt::format("k-tile {}", *held) : std::string("what the stage holds"));
  return true;
}

}  // namespace

void explain_refill(Report& report, const Thread& thread, const Mbarrier& full) {
  const Gang& gang = *thread.cta->gang;
  if (const LoadRecord* load = gang.hopper->copies.latest_load(full)) {
    report.line("load", "{}: {}", load->where.text(), describe_load(gang.grid, *load));
  }
  const Mbarrier* empty = empty_of(*thread.cta, full);
  if (empty && !last_wait(thread, *empty)) {
    std::string filled;
    if (const std::optional<int> latest = gang.hopper->copies.latest_k_tile_of(thread.stamp()))
      filled = fmt::format(" with k-tile {} (the latest that this thread has loaded is k-tile {})",
                           *latest + 1, *latest);
    report.missing("a wait for {} before the stage is filled{}: no thread waits for the readers",
                   name_mbarrier(*empty), filled);
  } else if (empty && explain_stale_release(report, thread, full, *empty)) {
    return;
  } else if (empty) {
    report.missing("a wait for {} before the stage is filled again, or an arrival by one thread too many",
                   name_mbarrier(*empty));
  }
}

}  // namespace emulator
