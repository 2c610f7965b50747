// Barriers of a CTA and instructions of a warp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>

#include "emulator/explore/hooks.h"
#include "emulator/explore/left_out.h"
#include "emulator/ledger/ledger.h"
#include "emulator/machine/machine.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/timeline/timeline.h"

namespace emulator {
namespace {

[[noreturn]] void fail_different_places(const Cta& cta, const char* what, Where where, bool one_warp) {
  Report report("threads of one CTA meet at different {} in the source", what);
  report.block(places_of_threads(cta));
  report.line("and", "{} arrives at {} {}", name_thread(running_thread()), where.text(), what);
  report.rule("a barrier is allowed in conditional code only if all threads of the CTA take the same branch",
              "CUDA C++ Programming Guide, \"Synchronization Functions\"");
  if (!one_warp) report.course_rule(CourseRule::kBarrierDivergence);
  fail("barrier-divergence", report.str());
}

/// What a barrier of the whole CTA leaves behind: the accesses of every thread are ordered before the next
/// ones of every other.
void order_cta(Cta& cta) {
  std::uint32_t base = 0;
  VectorClock others;
  bool any_others = false;
  VectorClock execution;
  VectorClock past;
  VectorClock seen;
  for (Thread& thread : cta.threads) {
    base = std::max(base, thread.time + 1);
    thread.clock.forget(cta.key);
    if (!thread.clock.empty()) {
      others.join(thread.clock);
      any_others = true;
    }
    if (!thread.execution.empty()) execution.join(thread.execution);
    if (!thread.sequential_past.empty()) past.join(thread.sequential_past);
    if (!thread.sequential_seen.empty()) seen.join(thread.sequential_seen);
  }
  for (Thread& thread : cta.threads) {
    thread.base = base;
    thread.time = base;
    if (any_others) thread.clock = others;
    if (!execution.empty()) thread.execution = execution;
    if (!past.empty()) thread.sequential_past = past;
    if (!seen.empty()) thread.sequential_seen = seen;
  }
  Context& c = context;
  c.base = base;
  c.now = c.thread->stamp();
}

std::vector<std::uint32_t> lanes_of(std::uint32_t mask) {
  std::vector<std::uint32_t> lanes;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) lanes.push_back(lane);
  }
  return lanes;
}

}  // namespace

namespace {

/// The line number tells two places apart, and so does the kind of barrier; the same inlined helper is one
/// place. PTX ISA, "barrier": warps arrive at a barrier, wherever that is in the source; the lanes of a warp
/// execute the same one.
void check_places(const Cta& cta, const char* what, Where where) {
  const auto elsewhere = [&](const Thread* thread) { return !thread->wait.where.is_line_of(where); };
  const auto mate_elsewhere = [&](const Thread* thread) {
    return thread->warp() == running_thread().warp() && elsewhere(thread);
  };
  const std::vector<Thread*>& waiting = cta.barrier.waiting;
  const bool strict = course_rule_on(CourseRule::kBarrierDivergence);
  if (strict ? !elsewhere(waiting.front()) : std::none_of(waiting.begin(), waiting.end(), mate_elsewhere))
    return;
  fail_different_places(cta, what, where, std::any_of(waiting.begin(), waiting.end(), mate_elsewhere));
}

/// All threads have come that the barrier waits for.
void complete_barrier(Cta& cta, const char* what, Where where) {
  CtaBarrier& barrier = cta.barrier;
  if (!cta.unwritten_read.empty()) fail("shared-uninitialised", cta.unwritten_read);
  order_cta(cta);
  if (ledger_on()) ledger_meeting_over(cta, LedgerMeeting::kCta, 0);
  end_barrier_interval(cta, what, where);
  for (Thread& each : cta.threads) lanes_converged(each);
  if (context.counters) realign_counters(cta);
  if (explore::is_choosing()) {
    for (const Thread& thread : cta.threads) explore::add_to_meeting(thread);
    explore::end_meeting();
  }
  for (Thread* waiting : barrier.waiting) cta.gang->make_runnable(*waiting);
  barrier.waiting.clear();
  barrier.result = barrier.count;
  barrier.count = 0;
  ++cta.gang->progress;
}

/// How many threads a barrier of the CTA waits for. PTX ISA, "barrier": for non-exited threads.
int awaited_threads(const Cta& cta) {
  return cta.thread_count - (course_rule_on(CourseRule::kBarrierDivergence) ? 0 : cta.exited);
}

}  // namespace

int cta_barrier(const char* what, int predicate, Where where) {
  Thread& thread = this_thread(what, where);
  if (is_left_out(what, where)) return 0;
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  Cta& cta = *thread.cta;
  CtaBarrier& barrier = cta.barrier;
  if (!barrier.waiting.empty()) check_places(cta, what, where);
  if (timeline_on())
    log_together(OperationKind::kCtaBarrier, static_cast<std::uint32_t>(cta.thread_count), 0, 0, where);
  if (ledger_on())
    ledger_meet(cta, LedgerMeeting::kCta, 0, static_cast<std::uint64_t>(cta.thread_count), true, where);
  if (predicate) ++barrier.count;
  if (static_cast<int>(barrier.waiting.size()) + 1 < awaited_threads(cta)) {
    barrier.waiting.push_back(&thread);
    cta.gang->block({.kind = WaitKind::kCtaBarrier, .what = what, .where = where});
    return barrier.result;
  }
  complete_barrier(cta, what, where);
  cta.gang->yield();  // the last one to arrive has no right to go on first
  return barrier.result;
}

namespace {

/// Fails where a warp goes round a loop of warp-wide instructions that give the same each time, and nothing
/// else happens: then it does so for ever.
void note_round(Cta& cta, Warp& warp, const Rendezvous& meeting) {
  constexpr std::uint32_t kRounds = 100'000;
  constexpr std::uint32_t kLook = 64;
  Rounds& rounds = warp.rounds;
  if (!meeting.result) {
    rounds.count = 0;
    return;
  }
  const std::uint64_t changes = cta.gang->progress + cta.gang->global_stores;
  if (changes != rounds.changes) {
    rounds.changes = changes;
    rounds.count = 0;
  }
  rounds.latest[rounds.count++ % Rounds::kSteps] = {meeting.what, meeting.where, *meeting.result};
  if (rounds.count % kLook != 0) return;
  std::uint64_t loads = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const Thread* const thread = meeting.lanes[lane];
    if (thread == nullptr) continue;
    const void* const last = thread == &running_thread() ? context.last_load : thread->last_load;
    loads = loads * 31 + reinterpret_cast<std::uintptr_t>(last);
  }
  if (loads != rounds.loads) {
    rounds.loads = loads;
    rounds.count = 0;
    return;
  }
  if (rounds.count < kRounds) return;
  const auto step = [&](std::size_t back) -> const Rounds::Step& {
    return rounds.latest[(rounds.count - 1 - back) % Rounds::kSteps];
  };
  std::size_t period = 1;
  const auto repeats = [&] {
    for (std::size_t i = 0; i + period < Rounds::kSteps; ++i) {
      if (!step(i).same_as(step(i + period))) return false;
    }
    return true;
  };
  while (period <= Rounds::kSteps / 2 && !repeats()) ++period;
  if (period > Rounds::kSteps / 2) {
    rounds.count = 0;
    return;
  }
  std::string round;
  for (std::size_t i = period; i-- > 0;) {
    const Rounds::Step& one = step(i);
    round += fmt::format("{}{} at {} gives {:#x}", round.empty() ? "" : ", ", one.what, one.where.text(),
                         one.result);
  }
  Report report("a warp repeats a loop whose warp-wide instructions return the same values every time");
  report.line("where", "{}, {}", meeting.where.text(), name_thread(running_thread()))
      .line("round", round + " (in the lowest lane)")
      .line("since",
            "in the last {} such iterations, nothing was stored, no lane has loaded from another address, "
            "and no barrier was passed",
            rounds.count)
      .missing(
          "a value that advances in each iteration: the loop's condition depends on these values alone. A "
          "search that treats an exclusive end as inclusive (index <= end) finds the same item again and "
          "again")
      .block(places_of_threads(cta));
  report.rule("every loop in a kernel must end: a tile, a k-tile or a counter advances in each iteration",
              "this course");
  fail("livelock", report.str());
}

/// For which lanes the meeting waits. PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync": until
/// all non-exited threads that the mask names have executed it; of __syncwarp the CUDA C++ Programming Guide
/// says the same. An .aligned instruction is executed by all threads of the warp.
std::uint32_t awaited_lanes(const Warp& warp, const Rendezvous& meeting) {
  return meeting.same_place ? meeting.mask : meeting.mask & ~warp.exited;
}

/// All that it waited for have come: by the last of them, or by a lane that returns from the kernel.
void complete_meeting(Cta& cta, Warp& warp, std::list<Rendezvous>::iterator found) {
  const Thread& thread = running_thread();
  if (context.counters)
    count_instruction(found->what, found->where, 1, static_cast<unsigned>(std::popcount(found->arrived)));
  Rendezvous complete = *found;
  warp.open.erase(found);
  complete.mask = complete.arrived;
  if (complete.execute) complete.execute(complete);
  if (!complete.orders_memory) note_round(cta, warp, complete);
  const int first_thread = thread.warp() * kWarpSize;
  const int lanes_in_warp = std::min(kWarpSize, cta.thread_count - first_thread);
  const std::uint32_t existing = lanes_in_warp == 32 ? 0xffffffffu : (1u << lanes_in_warp) - 1;
  const auto for_lanes = [&](auto visit) {
    for (std::uint32_t i = 0; i < 32; ++i) {
      if (complete.mask >> i & 1) visit(*complete.lanes[i]);
    }
  };
  if (explore::is_choosing()) {
    for_lanes([](const Thread& lane) { explore::add_to_meeting(lane); });
    explore::end_meeting();
  }
  if (complete.mask == existing) for_lanes([](Thread& lane) { lanes_converged(lane); });
  if (complete.orders_memory || !course_rule_on(CourseRule::kReleaseForWarp)) {
    SyncObject order;
    for_lanes([&](Thread& lane) { lane.release_into(order); });
    for_lanes([&](Thread& lane) { lane.acquire_from(order); });
    if (complete.orders_memory) ++cta.gang->progress;
    if (ledger_on()) {
      std::vector<std::uint32_t> together;
      for_lanes([&](const Thread& lane) { together.push_back(lane.index); });
      ledger_warp_together(cta, together);
    }
  }
  for_lanes([&](Thread& lane) {
    if (&lane != &thread) cta.gang->make_runnable(lane);
  });
}

}  // namespace

void warp_collective(const char* what, std::uint32_t mask, void* argument,
                     void (*execute)(Rendezvous& rendezvous), bool same_place, bool orders_memory,
                     Where where) {
  Thread& thread = this_thread(what, where);
  if (orders_memory && is_left_out(what, where)) return;
  Cta& cta = *thread.cta;
  Warp& warp = cta.warps[static_cast<std::size_t>(thread.warp())];
  const auto lane = static_cast<std::uint32_t>(thread.lane());
  const int first_thread = thread.warp() * kWarpSize;
  const int lanes_in_warp = std::min(kWarpSize, cta.thread_count - first_thread);
  const std::uint32_t existing = lanes_in_warp == 32 ? 0xffffffffu : (1u << lanes_in_warp) - 1;

  auto fail_warp = [&](const std::string& headline, const Rendezvous* other = nullptr) {
    Report report(headline);
    report.line("where", "{}, {}", where.text(), name_thread(thread));
    // One of the two is an instruction of the whole warp.
    const bool aligned = other != nullptr && (same_place || other->same_place);
    const std::string instruction = aligned && !same_place ? other->what : what;
    if (aligned) {
      report.missing(
          "all {} lanes of warp {} at {} ({}): it is one instruction for the whole warp, but {} reached it "
          "through a branch, or a loop exit, that {} did not take. Work for a single lane belongs before "
          "that instruction, in a branch of its own",
          lanes_in_warp, thread.warp(), instruction, (same_place ? where : other->where).text(),
          same_place ? fmt::format("lane {}", lane) : ranges("lane", lanes_of(other->arrived)),
          same_place ? ranges("lane", lanes_of(other->arrived)) : fmt::format("lane {}", lane));
    }
    report.block(places_of_threads(cta));
    if (aligned) {
      report.rule(
          "all threads in a warp must execute the same .sync.aligned instruction, so it may depend on a "
          "condition only if the condition is the same for all of them",
          "PTX ISA, \"tensormap.cp_fenceproxy\", \"ldmatrix\": .aligned");
      fail("warp-divergence", report.str());
    }
    report.rule(
        "every lane in the mask must execute the same instruction with the same mask, and the calling lane "
        "must be in the mask",
        "CUDA C++ Programming Guide, \"Warp Shuffle Functions\", \"Synchronization Functions\"");
    fail("warp-divergence", report.str());
  };
  if (!(mask >> lane & 1))
    fail_warp(
        fmt::format("{} with mask {:#x} is executed by lane {}, which is not in the mask", what, mask, lane));
  if (const std::uint32_t missing = mask & ~existing) {
    fail_warp(fmt::format("{} with mask {:#x} includes {} in a warp that has only {} threads", what, mask,
                          ranges("lane", lanes_of(missing)), lanes_in_warp));
  }

  auto found = std::find_if(warp.open.begin(), warp.open.end(), [&](const Rendezvous& open) {
    return open.what == what && open.mask == mask && !(open.arrived >> lane & 1) &&
           (!same_place || open.where.is_line_of(where));
  });
  if (found == warp.open.end()) {
    // A lane of my mask that waits elsewhere for me can never come here.
    for (const Rendezvous& open : warp.open) {
      const std::uint32_t overlap = open.arrived & mask;
      if (overlap && (open.mask >> lane & 1)) {
        fail_warp(fmt::format("lane {} executes {} (mask {:#x}) while {} in its mask wait for it at another "
                              "instruction, {} at {} (mask {:#x})",
                              lane, what, mask, ranges("lane", lanes_of(overlap)), open.what,
                              open.where.text(), open.mask),
                  &open);
      }
    }
    warp.open.push_back({.what = what,
                         .mask = mask,
                         .where = where,
                         .same_place = same_place,
                         .orders_memory = orders_memory,
                         .execute = execute});
    found = std::prev(warp.open.end());
  }
  Rendezvous& meeting = *found;
  meeting.arrived |= 1u << lane;
  meeting.lanes[lane] = &thread;
  meeting.arguments[lane] = argument;
  if (meeting.arrived != awaited_lanes(warp, meeting)) {
    cta.gang->block({.kind = WaitKind::kWarp, .what = what, .where = where, .mask = mask});
    return;
  }
  complete_meeting(cta, warp, found);
}

void leave_warp(Thread& thread) {
  Cta& cta = *thread.cta;
  Warp& warp = cta.warps[static_cast<std::size_t>(thread.warp())];
  warp.exited |= 1u << thread.lane();
  for (auto meeting = warp.open.begin(); meeting != warp.open.end();) {
    const auto next = std::next(meeting);
    if (meeting->arrived == awaited_lanes(warp, *meeting)) complete_meeting(cta, warp, meeting);
    meeting = next;
  }
  const std::vector<Thread*>& at_barrier = cta.barrier.waiting;
  if (!course_rule_on(CourseRule::kBarrierDivergence) && !at_barrier.empty() &&
      static_cast<int>(at_barrier.size()) == awaited_threads(cta) - 1) {
    const Wait wait = at_barrier.front()->wait;
    complete_barrier(cta, wait.what, wait.where);
  }
}

std::uint32_t lanes_together(const char* what, Where where) {
  // Any lanes of a warp may run together, and all of them may; what holds for each choice is that the lanes
  // chosen execute the instruction at the same time, so that all of them get the same mask.
  constexpr std::uint32_t kMany = 16;
  constexpr std::uint32_t kFew = 3;
  Thread& thread = this_thread(what, where);
  Cta& cta = *thread.cta;
  Gang& gang = *cta.gang;
  Warp& warp = cta.warps[static_cast<std::size_t>(thread.warp())];
  const std::uint32_t self = 1u << thread.lane();
  for (Gathering& open : warp.gatherings) {
    if (!open.where.is_line_of(where)) continue;
    open.lanes |= self;
    open.waiting.push_back(&thread);
    const std::shared_ptr<std::uint32_t> mask = open.mask;
    gang.block({.kind = WaitKind::kWarp, .what = what, .where = where, .mask = open.lanes});
    return *mask;
  }
  warp.gatherings.push_back({.where = where, .lanes = self, .mask = std::make_shared<std::uint32_t>(0u)});
  const auto gathering = std::prev(warp.gatherings.end());
  const auto others_may_come = [&] {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const std::size_t index =
          static_cast<std::size_t>(thread.warp()) * kWarpSize + static_cast<std::size_t>(lane);
      if (index < cta.threads.size() && &cta.threads[index] != &thread &&
          cta.threads[index].state == ThreadState::kRunnable)
        return true;
    }
    return false;
  };
  const std::uint32_t turns = gang.random.below(2) == 0 ? kMany : gang.random.below(kFew);
  for (std::uint32_t i = 0; i < turns && others_may_come(); ++i) gang.yield();
  const std::uint32_t mask = gathering->lanes;
  *gathering->mask = mask;
  for (Thread* const waiting : gathering->waiting) gang.make_runnable(*waiting);
  warp.gatherings.erase(gathering);
  return mask;
}

}  // namespace emulator
