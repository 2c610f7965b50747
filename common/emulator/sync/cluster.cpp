#include "emulator/sync/cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/async/hopper.h"
#include "emulator/explore/hooks.h"
#include "emulator/explore/left_out.h"
#include "emulator/ledger/ledger.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/sync/lanes.h"
#include "emulator/timeline/timeline.h"

namespace emulator {
namespace {

constexpr const char* kClusterSection = "PTX ISA, \"barrier.cluster\"";

HopperCta& my_cta(const char* what, Where where) {
  Thread& thread = this_thread(what, where);
  return hopper_engine(what, where).cta(*thread.cta);
}

/// The barrier is kept with the cluster's CTA of rank 0.
ClusterBarrier& barrier_of(HopperEngine& engine, const HopperCta& cta) {
  return engine.cta(*cta.cluster.front()).cluster_barrier;
}

std::uint64_t expected(const HopperCta& cta) {
  std::uint64_t threads = 0;
  for (const Cta* member : cta.cluster)
    threads += static_cast<std::uint64_t>(member->thread_count - member->exited);
  return threads;
}

void complete(HopperEngine& engine, const HopperCta& cta, ClusterBarrier& barrier) {
  if (explore::is_choosing()) explore::complete(&barrier);
  if (ledger_on()) ledger_meeting_over(*cta.cluster.front(), LedgerMeeting::kCluster, 0);
  barrier.completed = std::move(barrier.arriving);
  barrier.arriving = {};
  barrier.relaxed_completed = std::move(barrier.relaxed_arriving);
  barrier.relaxed_arriving = {};
  barrier.arrived = 0;
  ++barrier.round;
  for (Thread* thread : barrier.waiting) engine.gang.make_runnable(*thread);
  barrier.waiting.clear();
  for (Cta* member : cta.cluster) {
    for (HopperThread& thread : engine.cta(*member).threads) thread.at_cluster_barrier = false;
  }
  ++engine.gang.progress;
}

std::string cluster_wait_detail(const Thread& thread) {
  HopperEngine& engine = *thread.cta->gang->hopper;
  const HopperCta& cta = engine.cta(*thread.cta);
  return fmt::format("{} of {} threads of the cluster have arrived", barrier_of(engine, cta).arrived,
                     expected(cta));
}

}  // namespace

std::uint32_t cluster_ctarank(Where where) {
  return static_cast<std::uint32_t>(this_thread("cluster_ctarank", where).cta->rank_in_cluster);
}

std::uint32_t cluster_nctarank(Where where) {
  return static_cast<std::uint32_t>(
      this_thread("cluster_nctarank", where).cta->gang->grid.shape.cluster.count());
}

std::uint32_t mapa(std::uint32_t address, std::uint32_t rank, Where where) {
  const HopperCta& cta = my_cta("mapa", where);
  if (rank >= cta.cluster.size()) {
    hopper_engine("mapa", where)
        .fail("cluster-address",
              Report("mapa names rank {} in a cluster of {} CTAs", rank, cta.cluster.size())
                  .at(where, running_thread())
                  .rule("the rank must be that of a CTA in the cluster", "PTX ISA, \"mapa\""));
  }
  return (address & 0xffffffu) | rank << 24;
}

void st_async(std::uint32_t address, const void* value, std::uint32_t bytes, std::uint32_t barrier,
              Where where) {
  constexpr const char* kWhat = "st_async";
  hopper_engine(kWhat, where)
      .copies.store_remote(
          {.what = kWhat, .address = address, .value = value, .bytes = bytes, .barrier = barrier}, where);
}

void barrier_cluster_arrive(bool releases, Where where) {
  constexpr const char* kWhat = "barrier_cluster_arrive";
  if (is_left_out(kWhat, where)) return;
  require_convergence(kWhat, where);
  HopperCta& cta = my_cta(kWhat, where);
  Thread& thread = running_thread();
  HopperEngine& engine = hopper_engine(kWhat, where);
  HopperThread& state = engine.thread(thread);
  if (context.counters) count_instruction(kWhat, where, thread.lane() == 0, 1);
  if (state.cluster_rounds_owed > 0) {
    engine.fail("cluster-barrier",
                Report("a thread arrives at the cluster's barrier again before it has waited")
                    .at(where, thread)
                    .rule("after every barrier.cluster.arrive, the same thread must execute "
                          "barrier.cluster.wait before it arrives again",
                          kClusterSection));
  }
  if (timeline_on()) log_together(OperationKind::kClusterArrive, 0, 0, 0, where);
  note_warp_instruction(kWhat, where);
  ClusterBarrier& barrier = barrier_of(engine, cta);
  state.cluster_rounds_owed = barrier.round + 1;
  state.at_cluster_barrier = true;
  if (releases) {
    thread.release_into(barrier.arriving);
  } else {
    barrier.arriving.clock.join(thread.fenced_device);
    SyncObject before;
    thread.release_into(before);
    barrier.relaxed_arriving.join(before.clock);
  }
  ++barrier.arrived;
  if (explore::is_choosing()) explore::arrive_at(&barrier);
  if (ledger_on()) ledger_meet(*cta.cluster.front(), LedgerMeeting::kCluster, 0, expected(cta), false, where);
  if (barrier.arrived == expected(cta)) complete(engine, cta, barrier);
}

void barrier_cluster_wait(Where where) {
  constexpr const char* kWhat = "barrier_cluster_wait";
  if (is_cluster_wait_left_out(where)) return;
  require_convergence(kWhat, where);
  HopperCta& cta = my_cta(kWhat, where);
  Thread& thread = running_thread();
  HopperEngine& engine = hopper_engine(kWhat, where);
  HopperThread& state = engine.thread(thread);
  if (context.counters) count_instruction(kWhat, where, thread.lane() == 0, 1);
  if (state.cluster_rounds_owed == 0) {
    engine.fail("cluster-barrier",
                Report("a thread waits at the cluster's barrier without having arrived")
                    .at(where, thread)
                    .rule("barrier.cluster.wait must follow a barrier.cluster.arrive by the same thread",
                          kClusterSection));
  }
  ClusterBarrier& barrier = barrier_of(engine, cta);
  if (barrier.round < state.cluster_rounds_owed) {
    barrier.waiting.push_back(&thread);
    engine.gang.block(
        {.kind = WaitKind::kObject, .what = kWhat, .where = where, .detail = cluster_wait_detail});
  } else {
    engine.gang.yield();
  }
  state.cluster_rounds_owed = 0;
  if (explore::is_choosing()) explore::leave(&barrier, thread);
  if (timeline_on()) log_together(OperationKind::kClusterWait, 0, 0, 0, where);
  if (ledger_on()) ledger_cluster_wait(*cta.cluster.front());
  thread.acquire_from(barrier.completed);
  state.behind_relaxed.join(barrier.relaxed_completed);
}

void cluster_thread_exits(Thread& thread) {
  HopperEngine& engine = *thread.cta->gang->hopper;
  const HopperCta& cta = engine.cta(*thread.cta);
  if (cta.cluster.size() == 1) return;
  ClusterBarrier& barrier = barrier_of(engine, cta);
  // The thread itself still counts as there.
  const std::uint64_t left = expected(cta) - 1;
  if (!engine.thread(thread).at_cluster_barrier && barrier.arrived > 0 && barrier.arrived == left) {
    complete(engine, cta, barrier);
  }
}

namespace {

/// The access is an arrival that ended the latest phase of its mbarrier with others, which a wait has seen:
/// it is over, whatever it released.
bool ended_a_seen_phase(const RemoteAccess& access) {
  const Mbarrier* const barrier = access.barrier;
  return barrier != nullptr && barrier->observed_phases == barrier->phase &&
         std::any_of(barrier->previous_events.begin(), barrier->previous_events.end(),
                     [&](const Mbarrier::Event& event) { return event.stamp == access.stamp; });
}

}  // namespace

void check_remote_accesses(Gang& gang) {
  HopperEngine& engine = *gang.hopper;
  for (const auto& cta : gang.ctas) {
    for (const RemoteAccess& access : engine.cta(*cta).remote) {
      if (std::any_of(cta->threads.begin(), cta->threads.end(),
                      [&](const Thread& thread) { return knows_over(thread, access.stamp); }) ||
          ended_a_seen_phase(access)) {
        continue;
      }
      fail_remote_exit(engine, *cta, access);
    }
  }
}

void fail_remote_exit(HopperEngine& engine, const Cta& target, const RemoteAccess& access) {
  std::vector<std::uint32_t> owing;  // have arrived at the cluster's barrier, and never wait
  for (const HopperThread& thread : engine.cta(target).threads) {
    if (thread.cluster_rounds_owed > 0)
      owing.push_back(static_cast<std::uint32_t>(&thread - engine.cta(target).threads.data()));
  }
  engine.fail(
      "cluster-exit",
      Report("a CTA may end while another CTA of its cluster still uses its shared memory")
          .line("CTA", "{} (rank {})", text(target.id), target.rank_in_cluster)
          .line("access", "{} by {}{}", access.where.text(),
                is_agent(access.stamp) ? name_agent(engine.gang, access.stamp)
                                       : name_thread(engine.gang.grid, access.stamp),
                access.barrier ? ", which arrives at " + name_mbarrier(*access.barrier) : "")
          .missing(
              owing.empty()
                  ? fmt::format("a barrier of the cluster after the last access, before a CTA returns: no "
                                "thread of CTA {} waits for anything that follows the access",
                                text(target.id))
                  : fmt::format("barrier_cluster_wait after the last barrier_cluster_arrive: {} of CTA {} "
                                "arrived at the cluster's barrier but returned without waiting for it",
                                ranges("thread", owing), text(target.id)))
          .rule("a CTA may end only after a barrier (barrier.cluster, or one of its own mbarriers) that "
                "follows the last access to its memory",
                "CUDA C++ Programming Guide, \"Distributed Shared Memory\""));
}

}  // namespace emulator
