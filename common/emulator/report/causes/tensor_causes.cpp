#include "emulator/report/causes/tensor_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/member_names.h"

namespace emulator {
namespace {

/// Another mbarrier of the CTA, at which a commit behind multiplications into the column arrives.
const Mbarrier* committed_for(const Cta& cta, std::uint32_t column, const Mbarrier& other) {
  for (const auto& barrier : cta.gang->hopper->cta(cta).barriers) {
    if (barrier.get() == &other) continue;
    // Where stages are released, each k-tile is committed, and nothing is said of the tile as a whole.
    if (member_name(cta, barrier->offset).find("empty") != std::string::npos) continue;
    if (std::any_of(barrier->commit_log.begin(), barrier->commit_log.end(), [&](const CommitRecord& commit) {
          return commit.columns != 0 && column - commit.column < commit.columns;
        }))
      return barrier.get();
  }
  return nullptr;
}

/// What is missing where `column` is loaded behind a wait for `barrier`, and `commit` is behind
/// multiplications into others.
std::string two_accumulators(const Cta& cta, std::uint32_t column, const Mbarrier& barrier,
                             const CommitRecord& commit) {
  const Mbarrier* const right = committed_for(cta, column, barrier);
  return fmt::format(
      "a wait for {}, or a tcgen05.ld of columns {}-{}: the mbarrier and the address belong to two different "
      "accumulators",
      right ? name_mbarrier(*right)
            : fmt::format("the commit after the multiplications into column {}", column),
      commit.column, commit.column + commit.columns - 1);
}

/// "lanes 0, 1, 2 and 3 of warp 0", of the first warp of which several have arrived, or "".
std::string several_lanes(const std::vector<Mbarrier::Event>& events) {
  std::map<std::uint64_t, std::vector<std::uint32_t>> lanes;
  for (const Mbarrier::Event& event : events) {
    if (event.kind == Mbarrier::Event::kExpect) continue;
    lanes[std::uint64_t{stamp_cta(event.stamp)} << 32 | stamp_thread(event.stamp) / kWarpSize].push_back(
        stamp_thread(event.stamp) % kWarpSize);
  }
  for (auto& [warp, of_warp] : lanes) {
    std::sort(of_warp.begin(), of_warp.end());
    of_warp.erase(std::unique(of_warp.begin(), of_warp.end()), of_warp.end());
    if (of_warp.size() < 2) continue;
    return fmt::format("{} of warp {}", ranges("lane", of_warp), warp & 0xffffffffu);
  }
  return {};
}

/// The latest wait of the thread for arrivals of threads, which are not about bytes.
const LastWait* latest_thread_wait(const Thread& thread) {
  const auto& waits = thread.cta->gang->hopper->thread(thread).waits;
  const auto found = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& wait) {
    return wait.barrier->loaded_phases == 0 && wait.barrier->commits == 0 && wait.barrier->live;
  });
  return found == waits.rend() ? nullptr : &*found;
}

std::string at_text(const LastWait& wait) {
  return fmt::format("at {} for parity {} of {}", wait.where.text(), wait.parity,
                     name_mbarrier(*wait.barrier));
}

constexpr const char* kFreshBarrier =
    ", whose first phase had not completed: a fresh barrier lets a wait for parity 1 pass, once";

}  // namespace

const LastWait* latest_commit_wait(const Thread& thread) {
  const auto& waits = thread.cta->gang->hopper->thread(thread).waits;
  const auto found = std::find_if(waits.rbegin(), waits.rend(),
                                  [](const LastWait& wait) { return wait.barrier->commits > 0; });
  return found == waits.rend() ? nullptr : &*found;
}

EarlyPass explain_earlier_commit(Report& report, const Thread& thread, const TensorAccumulation& accumulation,
                                 int k_tile, bool labelled) {
  const LastWait* const wait = latest_commit_wait(thread);
  if (!wait) return EarlyPass::kNone;
  const Grid& grid = thread.cta->gang->grid;
  const std::string let_through =
      fmt::format("{} was let through at {}", name_thread(grid, thread.stamp()), wait->where.text());
  const bool fresh = wait->phase == wait->barrier->first_phase;
  const CommitRecord* const commit = fresh ? nullptr : commit_that_ended(*wait->barrier, wait->phase - 1);
  const std::string phase = fresh ? std::string() : fmt::format("phase {} of", wait->phase - 1);
  // Several commits may have ended a phase together, one of each CTA.
  const auto& log = wait->barrier->commit_log;
  if (!fresh && std::any_of(log.begin(), log.end(), [&](const CommitRecord& one) {
        return one.committer == accumulation.issuer && one.number > accumulation.latest && one.phase &&
               *one.phase < wait->phase;
      }))
    return EarlyPass::kNone;
  if (commit && commit->committer != accumulation.issuer) {
    report.line("early",
                "{}: {} {} was completed by {}, which tracks what that thread has issued, and not this "
                "multiplication",
                let_through, phase, name_mbarrier(*wait->barrier), describe_commit(*commit));
    report.missing("tcgen05.commit by {}, which issued the multiplication, at {}",
                   name_thread(grid, accumulation.issuer->stamp()), name_mbarrier(*wait->barrier));
    return EarlyPass::kOtherThread;
  }
  const bool elsewhere =
      commit && commit->columns != 0 && accumulation.column - commit->column >= commit->columns;
  if (!labelled && elsewhere) {
    report.line("early", "{}: {} {} was completed by {}, into columns {}-{} of tensor memory", let_through,
                phase, name_mbarrier(*wait->barrier), describe_commit(*commit), commit->column,
                commit->column + commit->columns - 1);
    report.missing(two_accumulators(*thread.cta, accumulation.column, *wait->barrier, *commit));
    return EarlyPass::kEarlierPhase;
  }
  if (!fresh && (!commit || commit->number > accumulation.latest)) return EarlyPass::kNone;
  const bool says = wait->activity.role != nullptr;
  if ((labelled && (!says || wait->activity.k_tile != k_tile || (commit && commit->k_tile == k_tile))) ||
      (fresh && !says))
    return EarlyPass::kNone;
  // Of an older phase a thread has waited for another k-tile, or more often than there were phases.
  const bool older = fresh || (says && commit->k_tile != wait->activity.k_tile) ||
                     wait->count > wait->phase - wait->barrier->first_phase;
  if (!older) {
    report.line("in between",
                "{}: {} {} was completed by {}. This multiplication was issued after that commit, into the "
                "same columns",
                let_through, phase, name_mbarrier(*wait->barrier), describe_commit(*commit));
    const std::string issuer = name_thread(grid, accumulation.issuer->stamp());
    const LastWait* const released = latest_thread_wait(*accumulation.issuer);
    report.missing(
        "a wait by {} for the arrival of warp {} after its tcgen05.wait::ld, before it overwrites the "
        "accumulator{}",
        issuer, thread.warp(),
        released ? fmt::format(": its latest wait for other threads was {}{}", at_text(*released),
                               released->phase == released->barrier->first_phase
                                   ? std::string(kFreshBarrier)
                                   : fmt::format(", which saw phase {} end", released->phase - 1))
                 : std::string());
    return EarlyPass::kOvertaken;
  }
  const std::string for_tile =
      says ? fmt::format("it waited for k-tile {} by", wait->activity.k_tile) : "it waited by";
  report.line("early", "{}: {} parity {} of {}{}", let_through, for_tile, wait->parity,
              name_mbarrier(*wait->barrier),
              fresh ? std::string(kFreshBarrier)
                    : fmt::format(", and phase {} there, which had that parity, was completed by {}",
                                  wait->phase - 1, describe_commit(*commit)));
  const int wanted = says ? wait->activity.k_tile : k_tile;
  report.missing(
      "a wait for the phase that a commit after {} completes. A parity cannot distinguish a phase from the "
      "next but one, so a thread must wait for every phase of an mbarrier, or wait at an mbarrier that has "
      "only one phase while the thread needs it",
      wanted >= 0 ? fmt::format("k-tile {}", wanted) : "this multiplication");
  return EarlyPass::kEarlierPhase;
}

std::string explain_handed_back(Report& report, const Thread& writer, const TensorTransfer& read,
                                std::uint32_t column) {
  const std::string reader = fmt::format("warp {} of CTA {}", read.warp, text(read.cta->id));
  if (read.waited_for.barrier && read.waited_for.phase != read.waited_for.barrier->first_phase) {
    const Mbarrier& barrier = *read.waited_for.barrier;
    const CommitRecord* const commit = commit_that_ended(barrier, read.waited_for.phase - 1);
    if (commit && commit->columns != 0 && column - commit->column >= commit->columns) {
      report.line("early",
                  "{} read after its wait at {} for {}: phase {} there was completed by {}, into columns "
                  "{}-{} of tensor memory. The thread reads column {}",
                  reader, read.waited_for.where.text(), name_mbarrier(barrier), read.waited_for.phase - 1,
                  describe_commit(*commit), commit->column, commit->column + commit->columns - 1, column);
      return two_accumulators(*read.cta, column, barrier, *commit);
    }
  }
  const LastWait* const wait = latest_thread_wait(writer);
  if (!wait) return {};
  const std::string barrier = name_mbarrier(*wait->barrier);
  if (wait->phase == wait->barrier->first_phase) {
    report.line("waited", at_text(*wait) + kFreshBarrier);
    return fmt::format("a wait for the arrival of {} at {}, after its tcgen05.wait::ld", reader, barrier);
  }
  if (wait->arrivals.empty()) return {};
  report.line("waited", "{}; these arrivals ended phase {} there:", at_text(*wait), wait->phase - 1);
  report.block(arrivals_text(writer.cta->gang->grid, wait->arrivals));
  const auto own =
      std::find_if(wait->arrivals.begin(), wait->arrivals.end(), [&](const Mbarrier::Event& event) {
        return event.kind != Mbarrier::Event::kExpect && stamp_cta(event.stamp) == read.cta->key &&
               stamp_thread(event.stamp) / kWarpSize == read.warp;
      });
  if (own != wait->arrivals.end()) {
    return fmt::format(
        "an arrival of {} at {} after its tcgen05.ld at {} and the wait for it: the arrival at {} that "
        "completed the phase was for an earlier read",
        reader, barrier, read.where.text(), own->where.text());
  }
  std::string missing = fmt::format(
      "the arrival of {} at {}, after its tcgen05.wait::ld: the phase ended without it. The count is {}, set "
      "at {}",
      reader, barrier, wait->barrier->count, wait->barrier->init_where.text());
  if (const std::string lanes = several_lanes(wait->arrivals); !lanes.empty()) {
    missing += fmt::format(
        ", and {} have all arrived: either one lane must arrive for each warp, or the count must include all "
        "lanes",
        lanes);
  } else {
    const std::uint32_t arriving = arriving_threads(*writer.cta->gang, *wait->barrier);
    if (arriving > wait->barrier->count)
      missing += fmt::format(", and {} threads have arrived there so far: the count must equal that number",
                             arriving);
  }
  return missing;
}

bool explain_small_expectation(Report& report, const LastWait& wait, const LoadRecord& load) {
  const Mbarrier& barrier = *wait.barrier;
  const Grid& grid = barrier.cta->gang->grid;
  const std::optional<int> k_tile = k_tile_of(grid, load);
  if (!wait.activity.role || std::strcmp(wait.activity.barrier, "full") != 0 || !k_tile ||
      *k_tile != wait.activity.k_tile || load.phase != wait.phase || barrier.phase != wait.phase)
    return false;
  std::uint64_t expected = 0;
  std::string places;
  for (const Mbarrier::Event& event : barrier.previous_events) {
    if (event.kind == Mbarrier::Event::kArrive) continue;
    expected += event.bytes;
    places += fmt::format("{} at {}", places.empty() ? "" : ",", event.where.text());
  }
  std::map<std::uint32_t, std::uint64_t> brought;  // by CTA
  std::uint64_t all = 0;
  barrier.cta->gang->hopper->copies.visit_loads([&](const LoadRecord& one) {
    if (one.barrier != &barrier || one.phase + 1 < wait.phase || k_tile_of(grid, one) != k_tile) return;
    brought[stamp_cta(one.issuer)] += one.bytes;
    all += one.bytes;
  });
  if (expected == 0 || all <= expected) return false;
  std::string by_cta;
  for (const auto& [key, bytes] : brought)
    by_cta += fmt::format("{}{} by CTA {}", by_cta.empty() ? "" : ", ", bytes, name_cta(grid, key));
  report.line("expected",
              "phase {} of {} expected {} bytes ({}) and completed when they had arrived; the copies of "
              "k-tile {} have delivered {} so far: {}",
              wait.phase - 1, name_mbarrier(barrier), expected, places.substr(1), *k_tile, all, by_cta);
  report.missing(
      "at least {} more bytes in the expect_tx: one phase counts all copies of the k-tile, from every CTA "
      "that signals the mbarrier",
      all - expected);
  return true;
}

std::string bytes_by_cta(const Mbarrier& full) {
  const Gang& gang = *full.cta->gang;
  const std::vector<Cta*>& cluster = gang.hopper->cta(*full.cta).cluster;
  if (cluster.size() != 2) return {};
  std::string list;
  for (const Cta* cta : cluster) {
    std::uint64_t bytes = 0;
    gang.hopper->copies.visit_loads([&](const LoadRecord& load) {
      if (load.barrier == &full && load.phase == full.phase && stamp_cta(load.issuer) == cta->key)
        bytes += load.bytes;
    });
    list += fmt::format("{}{} by CTA {}", list.empty() ? ": " : ", ",
                        bytes == 0 ? "none" : std::to_string(bytes), text(cta->id));
  }
  return list;
}

bool explain_absent_loader(Report& report, const Gang& gang, const Mbarrier& full) {
  HopperEngine& engine = *gang.hopper;
  for (const Cta* cta : engine.cta(*full.cta).cluster) {
    for (const Thread& thread : cta->threads) {
      const HopperThread& state = engine.thread(thread);
      if (!state.waiting_for || !state.activity.role) continue;
      bool loads = false;
      bool loaded = false;
      engine.copies.visit_loads([&](const LoadRecord& load) {
        if (load.barrier != &full || load.issuer >> 32 != thread.stamp() >> 32) return;
        loads = true;
        loaded |= load.phase == full.phase;
      });
      const std::string name = member_name(*full.cta, full.offset);
      if (!loads || loaded || !name.ends_with(fmt::format("[{}]", state.activity.stage))) continue;
      const Mbarrier& held = *state.waiting_for;
      report.line("lacks", "the copies of {} ({}), which waits at {} for phase {} of {}",
                  name_thread(gang.grid, thread.stamp()), text(state.activity), thread.wait.where.text(),
                  held.phase, name_mbarrier(held));
      for (const Cta* other : engine.cta(*cta).cluster) {
        const auto& barriers = engine.cta(*other).barrier_at;
        const auto same_place = barriers.find(held.offset);
        if (other == cta || same_place == barriers.end() || same_place->second->phase <= held.phase) continue;
        const CommitRecord* const commit = commit_that_ended(*same_place->second, held.phase);
        report.line("differs", "{} is in phase {} already{}", name_mbarrier(*same_place->second),
                    same_place->second->phase,
                    commit ? fmt::format(": {} arrived there", describe_commit(*commit)) : std::string());
        report.missing("the same arrival at {}, in CTA {}{}", name_mbarrier(held), text(cta->id),
                       commit ? ": a commit with .multicast::cluster, and a mask that names rank " +
                                    std::to_string(cta->rank_in_cluster) + ", too"
                              : std::string());
        return true;
      }
      report.missing("the event that completes phase {} of {}", held.phase, name_mbarrier(held));
      return true;
    }
  }
  return false;
}

bool explain_idle_peer(Report& report, const Gang& gang, const Mbarrier& full) {
  HopperEngine& engine = *gang.hopper;
  for (const Cta* cta : engine.cta(*full.cta).cluster) {
    if (cta == full.cta) continue;
    const Thread* waits = nullptr;
    bool busy = false;
    for (const Thread& thread : cta->threads) {
      busy = busy || engine.thread(thread).waiting_for != nullptr;
      if (thread.state == ThreadState::kWaiting &&
          (waits == nullptr || thread.wait.kind == WaitKind::kObject))
        waits = &thread;
    }
    if (busy) continue;
    bool here = false;
    bool any = false;
    engine.copies.visit_loads([&](const LoadRecord& load) {
      if (stamp_cta(load.issuer) != cta->key) return;
      any = true;
      here = here || (load.barrier == &full && load.phase == full.phase);
    });
    if (here) continue;
    report.missing(
        "the copies of CTA {} into CTA {}: it has issued {} and will issue no more: {}, and none of its "
        "threads waits at an mbarrier. A CTA in a cluster must load its share, and release what it is sent, "
        "as often as the other CTAs do, even where its own tile lies outside D",
        text(cta->id), text(full.cta->id), any ? "none for this phase" : "none at all",
        waits ? fmt::format("it waits at {} {}", waits->wait.where.text(), waits->wait.what)
              : std::string("it has returned"));
    return true;
  }
  return false;
}

std::string name_commit(const Mbarrier& barrier, std::uint32_t number) {
  const std::size_t later = barrier.commits - number;
  if (later >= barrier.commit_log.size()) return "a tcgen05.commit";
  const CommitRecord& commit = barrier.commit_log[barrier.commit_log.size() - 1 - later];
  std::string text =
      fmt::format("a tcgen05.commit by {}", name_thread(barrier.cta->gang->grid, commit.committer->stamp()));
  if (commit.k_tile >= 0) text += fmt::format(" after the multiplications of k-tile {}", commit.k_tile);
  return text;
}

std::string describe_commits(const Mbarrier& barrier) {
  for (auto commit = barrier.commit_log.rbegin(); commit != barrier.commit_log.rend(); ++commit) {
    if (!commit->phase) continue;
    return fmt::format("the latest arrival was by {}, in phase {}", describe_commit(*commit), *commit->phase);
  }
  return {};
}

}  // namespace emulator
