#include "emulator/report/causes/passed_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/causes/tensor_causes.h"
#include "emulator/report/member_names.h"

namespace emulator {
namespace {

/// What a phase of the mbarrier brings, by its load: the number that the producer said, or the k-tile.
std::optional<int> brought_by(const Gang& gang, const Mbarrier& full, std::uint64_t phase) {
  const LoadRecord* const load = gang.hopper->copies.load_of_phase(full, phase);
  if (!load) return std::nullopt;
  if (load->activity.role && std::string_view(load->activity.barrier) == "empty")
    return load->activity.k_tile;
  return k_tile_of(gang.grid, *load);
}

/// The latest wait of the thread that is for threads' arrivals and not for loads, if its phase is the latest.
const LastWait* let_in_by(const Thread& thread) {
  const auto& waits = thread.cta->gang->hopper->thread(thread).waits;
  const auto order = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& other) {
    return other.barrier->loaded_phases == 0 && other.phase != other.barrier->first_phase;
  });
  return order == waits.rend() || order->barrier->phase != order->phase ? nullptr : &*order;
}

void add_let_in(Report& report, const Gang& gang, const LastWait& order) {
  report.line("let in", "by its wait at {} for {}; these arrivals ended phase {} there:", order.where.text(),
              name_mbarrier(*order.barrier), order.phase - 1);
  report.block(arrivals_text(gang.grid, order.barrier->previous_events));
}

/// An arrival that let the thread in to its wait, by another warpgroup that has gone on to wait at the same
/// ring since, and not yet for this phase. nullptr where there is none.
const Mbarrier::Event* let_in_early(const Gang& gang, const Thread& thread, const LastWait& order,
                                    const LastWait& wait, std::uint64_t phase) {
  const Mbarrier& full = *wait.barrier;
  if (!wait.activity.role) return nullptr;
  const std::string_view what = wait.activity.barrier;
  for (const Mbarrier::Event& event : order.barrier->previous_events) {
    if (event.kind == Mbarrier::Event::kExpect || stamp_cta(event.stamp) != full.cta->key ||
        thread.cta != full.cta)
      continue;
    const std::uint32_t warpgroup = stamp_thread(event.stamp) / kWarpgroupSize;
    if (warpgroup == thread.index / kWarpgroupSize) continue;
    const bool at_ring = event.activity.role && event.activity.barrier == what;
    bool takes = false;  // from the ring, since the arrival
    bool has_seen = false;
    for (std::uint32_t i = warpgroup * kWarpgroupSize;
         i < std::min<std::size_t>((std::size_t{warpgroup} + 1) * kWarpgroupSize, full.cta->threads.size());
         ++i) {
      const Activity& now = gang.hopper->thread(full.cta->threads[i]).activity;
      takes = takes || (now.role && now.barrier == what && (!at_ring || now.k_tile > event.activity.k_tile));
      const LastWait* const theirs = last_wait(full.cta->threads[i], full);
      has_seen = has_seen || (theirs && theirs->phase > phase);
    }
    if (takes && !has_seen) return &event;
  }
  return nullptr;
}

/// A load of the k-tile that `wait` was for, behind the one that let it through, into another stage, and with
/// which nobody that waited there has waited for this k-tile: the stage is wrong, not the phase.
const LoadRecord* in_another_stage(const Gang& gang, const Mbarrier& full, const LastWait& wait) {
  const LoadRecord* const brought = gang.hopper->copies.load_of_phase(full, wait.phase - 1);
  const std::string family = family_of(full);
  const LoadRecord* next = nullptr;
  gang.hopper->copies.visit_loads([&](const LoadRecord& load) {
    if (load.barrier->cta != full.cta || load.serial <= brought->serial ||
        (next && next->serial < load.serial) || family_of(*load.barrier) != family)
      return;
    if (brought_by(gang, *load.barrier, load.phase) == wait.activity.k_tile) next = &load;
  });
  if (!next || next->barrier == &full) return nullptr;
  for (const Thread& thread : full.cta->threads) {
    const LastWait* const other = last_wait(thread, *next->barrier);
    if (other && (other->phase > next->phase + 1 ||
                  (other->phase == next->phase + 1 && other->activity.k_tile == wait.activity.k_tile)))
      return nullptr;
  }
  return next;
}

}  // namespace

bool explain_skipped_waits(Report& report, const Gang& gang, const Thread& thread, const Mbarrier& full) {
  const std::string family = family_of(full);
  const auto of_ring = [&](const Mbarrier& other) {
    return other.cta == full.cta && family_of(other) == family;
  };
  const auto waits_there = [&](const Thread& one) {  // on all mbarriers of the ring
    std::uint32_t count = 0;
    for (const LastWait& other : gang.hopper->thread(one).waits)
      count += of_ring(*other.barrier) ? other.count : 0;
    return count;
  };
  const std::uint32_t own = waits_there(thread);
  const std::uint32_t first = thread.index / kWarpgroupSize * kWarpgroupSize;
  const auto end = std::min<std::size_t>(first + kWarpgroupSize, thread.cta->threads.size());
  for (std::uint32_t i = first; i < end; ++i) {
    const std::uint32_t theirs = waits_there(thread.cta->threads[i]);
    if (theirs <= own + 1) continue;
    report.missing(
        "a barrier of warpgroup {} after waits that not all of its threads execute: thread {} has waited for "
        "{} phases of this ring, and thread {} for {}. A thread that skips waits must not run ahead of the "
        "thread that executes them",
        thread.index / kWarpgroupSize, i, theirs, thread.index, own);
    return true;
  }
  return false;
}

namespace {

/// Says that the phase that let the thread through at `wait` brought another k-tile than it waited for. False
/// where that is not so, or not known.
bool add_early(Report& report, const Thread& thread, const LastWait& wait) {
  if (!wait.activity.role || wait.phase == wait.barrier->first_phase) return false;
  const std::optional<int> brought = brought_by(*thread.cta->gang, *wait.barrier, wait.phase - 1);
  if (!brought || *brought == wait.activity.k_tile) return false;
  report.line("early",
              "{} was let through at {}: it waited for k-tile {} by parity {} of {}, and phase {} there, "
              "which had that parity, delivered k-tile {}",
              plain_name(thread), wait.where.text(), wait.activity.k_tile, wait.parity,
              name_mbarrier(*wait.barrier), wait.phase - 1, *brought);
  return true;
}

/// What a thread lacks that a phase of another k-tile has let through at `full`.
void add_missing_phase(Report& report, const Gang& gang, const Thread& thread, const Mbarrier& full,
                       const LastWait& wait) {
  if (explain_skipped_waits(report, gang, thread, full)) return;
  const int k_tile = wait.activity.k_tile;
  if (const LoadRecord* const other = in_another_stage(gang, full, wait)) {
    report.missing(
        "a wait for phase {} (parity {}) of {}, which delivers k-tile {}: the stage is wrong, not the "
        "parity. This thread's read state does not continue where its previous k-tiles ended (the state "
        "starts again from the beginning, or advances by a wrong number)",
        other->phase, other->phase & 1, name_mbarrier(*other->barrier), k_tile);
    return;
  }
  const std::optional<int> next = brought_by(gang, full, wait.phase);
  const LastWait* const order = let_in_by(thread);
  if (order) add_let_in(report, gang, *order);
  const Mbarrier::Event* const arrival =
      order ? let_in_early(gang, thread, *order, wait, wait.phase) : nullptr;
  if (arrival) {
    report.missing(
        "a later arrival at {}: the arrival of {} at {} let this thread proceed before that thread's own "
        "warpgroup had waited for phase {} of {}. The arrival belongs after the last wait of the warpgroup's "
        "turn",
        name_mbarrier(*order->barrier), name_thread(gang.grid, arrival->stamp), arrival->where.text(),
        wait.phase, name_mbarrier(full));
    return;
  }
  report.missing(next ? fmt::format("a wait for the phase that delivers k-tile {}: this thread reaches its "
                                    "wait before phase {} has completed, which delivers k-tile {}, and a "
                                    "parity cannot distinguish a phase from the next but one",
                                    k_tile, wait.phase, *next)
                      : fmt::format("a wait for the phase that delivers k-tile {}: the parity is wrong for "
                                    "this phase, or the thread waits one phase too early",
                                    k_tile));
}

bool explain_other_k_tile(Report& report, const Thread& thread, const LastWait& wait) {
  if (!add_early(report, thread, wait)) return false;
  add_missing_phase(report, *thread.cta->gang, thread, *wait.barrier, wait);
  return true;
}

}  // namespace

bool explain_early_pass(Report& report, const Gang& gang, const Mbarrier& full, const ReaderName& reader) {
  for (const auto& cta : gang.ctas) {
    if (cta->key != reader.cta) continue;
    for (std::uint32_t i = reader.first; i < reader.first + reader.count; ++i) {
      const LastWait* wait = last_wait(cta->threads[i], full);
      if (wait && explain_other_k_tile(report, cta->threads[i], *wait)) return true;
    }
  }
  return false;
}

void explain_empty_phase(Report& report, const Thread& thread) {
  const Gang& gang = *thread.cta->gang;
  if (!gang.hopper || gang.hopper->thread(thread).waits.empty()) return;
  // The latest wait that was for copies, by what it said or by its name.
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& other) {
    return member_name(*other.barrier->cta, other.barrier->offset).find("full") != std::string::npos;
  });
  if (wait == waits.rend() || !wait->barrier->live || wait->phase == wait->barrier->first_phase ||
      wait->barrier->loaded_phases >= wait->phase)
    return;
  report.line("waited",
              "at {} for phase {} of {}, in which no copy was issued: arrivals alone completed it, so it "
              "delivered nothing that could be read",
              wait->where.text(), wait->phase - 1, name_mbarrier(*wait->barrier));
}

void explain_missing_wait(Report& report, const Thread& thread, const Mbarrier& barrier, std::uint64_t phase,
                          bool remote) {
  const LastWait* wait = last_wait(thread, barrier);
  if (!wait) {
    report.missing("a wait for phase {} (parity {}) of {}: {} has never waited for it", phase, phase & 1,
                   name_mbarrier(barrier), name_thread(thread));
  } else if (const LoadRecord* const load = thread.cta->gang->hopper->copies.load_of_phase(barrier, phase);
             load && explain_small_expectation(report, *wait, *load)) {
    return;
  } else if (wait->phase <= phase) {
    report.missing(
        "a wait for phase {} (parity {}) of {}: the latest wait there by {}, at {} for parity {}, {}", phase,
        phase & 1, name_mbarrier(barrier), name_thread(thread), wait->where.text(), wait->parity,
        wait->phase == barrier.first_phase
            ? std::string("passed at once, before the first phase had completed")
            : fmt::format("saw phase {} end", wait->phase - 1));
    const LastWait* const order = let_in_by(thread);
    if (wait->activity.role && is_ring(wait->activity) && add_early(report, thread, *wait) && order)
      add_let_in(report, *thread.cta->gang, *order);
  } else if (remote && !wait->cluster) {
    report.line("waited", "at {} for parity {} of {}, which saw phase {} end, with acquire at CTA scope",
                wait->where.text(), wait->parity, name_mbarrier(barrier), wait->phase - 1);
    report.missing(
        "acquire at cluster scope in the wait at {}: another CTA stored these bytes, and acquire.cta covers "
        "only writes from the thread's own CTA",
        wait->where.text());
  }
}

void explain_passed_too_early(Report& report, const Thread& thread) {
  const Gang& gang = *thread.cta->gang;
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& other) {
    return other.barrier->live && other.barrier->loaded_phases > 0;
  });
  if (wait != waits.rend() && wait->activity.role && is_ring(wait->activity))
    explain_other_k_tile(report, thread, *wait);
}

}  // namespace emulator
