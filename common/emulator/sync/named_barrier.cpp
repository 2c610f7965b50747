#include "emulator/sync/named_barrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "emulator/async/hopper.h"
#include "emulator/explore/hooks.h"
#include "emulator/explore/left_out.h"
#include "emulator/ledger/ledger.h"
#include "emulator/report/causes/meetings.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/sync/lanes.h"
#include "emulator/timeline/timeline.h"

namespace emulator {
namespace {

constexpr const char* kNamedBarrierSection = "PTX ISA, \"bar, barrier\"";

std::string arrivals_text(const NamedBarrier& barrier) {
  std::vector<std::uint32_t> waiting;
  std::vector<std::uint32_t> arrived;
  for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
    (arrival.waits ? waiting : arrived).push_back(arrival.thread->index);
  }
  std::string text;
  for (auto* numbers : {&waiting, &arrived}) {
    if (numbers->empty()) continue;
    std::sort(numbers->begin(), numbers->end());
    if (!text.empty()) text += ", ";
    text +=
        ranges("thread", *numbers) + (numbers == &arrived            ? " (bar_arrive)"
                                      : barrier.reduction != nullptr ? fmt::format(" ({})", barrier.reduction)
                                                                     : " (bar_sync)");
  }
  return text;
}

/// ", also at kernel.cu:12": where else than at the first arrival's place threads have arrived.
std::string other_places(const NamedBarrier& barrier) {
  std::set<std::string> places;
  for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
    places.insert(arrival.where.text());
  }
  places.erase(barrier.arrivals.front().where.text());
  return places.empty() ? std::string() : fmt::format(", also at {}", fmt::join(places, ", "));
}

[[noreturn]] void fail_barrier(const std::string& headline, const NamedBarrier& barrier, const char* what,
                               std::uint32_t number, std::uint32_t threads, Where where,
                               const std::string& rule, const std::string& missing = {}) {
  Report report(headline);
  report.line("where", "{} {}, {} threads, by {}", where.text(), what, threads,
              name_thread(running_thread()));
  if (!barrier.arrivals.empty()) {
    report.line("others", "barrier {} of {} threads, first {}{}; arrived: {}", number, barrier.threads,
                barrier.arrivals.front().where.text(), other_places(barrier), arrivals_text(barrier));
  }
  if (!missing.empty()) report.missing(missing);
  hopper_engine(what, where).fail("named-barrier", report.rule(rule, kNamedBarrierSection));
}

std::string named_barrier_wait_detail(const Thread& thread) {
  const HopperCta& cta = thread.cta->gang->hopper->cta(*thread.cta);
  for (const NamedBarrier& barrier : cta.named_barriers) {
    for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
      if (arrival.thread != &thread || !arrival.waits) continue;
      return fmt::format("number {}, where {} of {} threads have arrived",
                         &barrier - cta.named_barriers.data(), barrier.arrivals.size(), barrier.threads);
    }
  }
  return {};
}

/// More warps have come than the count is for: two groups of threads use one number. Returns where that is
/// not so.
void fail_shared_number(const NamedBarrier& barrier, const char* what, std::uint32_t number,
                        std::uint32_t threads, Where where) {
  std::map<std::uint32_t, std::uint32_t> of_warpgroup;  // threads that came
  std::set<int> warps;
  for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
    ++of_warpgroup[arrival.thread->index / kWarpgroupSize];
    warps.insert(arrival.thread->warp());
  }
  if (of_warpgroup.size() < 2 || warps.size() * kWarpSize <= threads) return;
  std::string who;
  std::string groups;
  for (const auto& [warpgroup, count] : of_warpgroup) {
    who += fmt::format("{}{} threads of warpgroup {}", who.empty() ? "" : ", ", count, warpgroup);
    groups += fmt::format("{}{}", groups.empty() ? "" : " and ", warpgroup);
  }
  Report report(
      "warpgroups {} use the same named barrier, number {}, and its {} threads are some from each of them",
      groups, number, threads);
  report.line("where", "{} {}, {} threads, by {}", where.text(), what, threads,
              name_thread(running_thread()));
  report.line("came", "{}: {} warps, and the count of {} threads is that of {}", who, warps.size(), threads,
              threads / kWarpSize);
  report.missing(
      "a different number for each group (barrier 1 + warpgroup, for example), or a count that includes all "
      "threads that use number {}",
      number);
  hopper_engine(what, where)
      .fail("named-barrier",
            report.rule("a barrier completes when as many threads have arrived as its count says, whichever "
                        "threads they are, so groups that synchronise separately must use different numbers",
                        kNamedBarrierSection));
}

/// The latest round of a named barrier that is over. Gangs that are gone may have had theirs at its place.
struct Past {
  std::uint64_t launch = 0;
  std::uint32_t cta = 0;  // key
  std::uint64_t rounds = 0;
  std::vector<NamedBarrier::Arrival> arrivals;
};
Past& past_of(const NamedBarrier& barrier) {
  constexpr std::size_t kMost = 4096;
  static thread_local std::unordered_map<const NamedBarrier*, Past> all;
  if (all.size() >= kMost && !all.contains(&barrier)) all.clear();
  return all[&barrier];
}

void complete(Cta& cta, NamedBarrier& barrier, const char* what, std::uint32_t number, std::uint32_t threads,
              Where where) {
  // The hardware counts warps, so a warp of which only some lanes came has come as a whole.
  std::vector<std::uint32_t> lanes(cta.warps.size(), 0);
  for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
    lanes[static_cast<std::size_t>(arrival.thread->warp())] |= 1u << arrival.thread->lane();
  }
  for (std::size_t warp = 0; warp < lanes.size(); ++warp) {
    if (lanes[warp] == 0 || lanes[warp] == 0xffffffffu) continue;
    fail_shared_number(barrier, what, number, threads, where);
    fail_barrier(fmt::format("a barrier counts warp {}, but only some of its lanes reached it (mask {:#x})",
                             warp, lanes[warp]),
                 barrier, what, number, threads, where,
                 "every warp that takes part must do so with all its lanes, and the count includes all of "
                 "them, so it is a multiple of 32");
  }
  for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
    if (arrival.waits) arrival.thread->acquire_from(barrier.order);
    if (arrival.count != nullptr) *arrival.count = barrier.held;
  }
  if (ledger_on()) ledger_meeting_over(cta, LedgerMeeting::kNamed, number);
  Gang& gang = *cta.gang;
  Past& past = past_of(barrier);
  past.rounds = past.launch == gang.grid.launch && past.cta == cta.key ? past.rounds + 1 : 1;
  past.launch = gang.grid.launch;
  past.cta = cta.key;
  past.arrivals = std::move(barrier.arrivals);
  const std::vector<NamedBarrier::Arrival>& arrivals = past.arrivals;
  barrier = {};
  if (explore::is_choosing()) {
    explore::complete(&barrier);
    for (const NamedBarrier::Arrival& arrival : arrivals) {
      if (arrival.waits) explore::leave(&barrier, *arrival.thread);
    }
  }
  for (const NamedBarrier::Arrival& arrival : arrivals) {
    if (arrival.waits && arrival.thread != &running_thread()) gang.make_runnable(*arrival.thread);
  }
  ++gang.progress;
}

/// What is missing where two counts meet: the same count, or, where the lines differ, a number for one of
/// them.
std::string other_purpose(const NamedBarrier& barrier, std::uint32_t number, std::uint32_t threads,
                          Where where) {
  const Where first = barrier.arrivals.front().where;
  if (first.is_line_of(where)) return "the same count for all threads that use the barrier";
  return fmt::format(
      "a different number for one of the two purposes: {} threads meet at barrier {} at {}, and {} at {}. "
      "Alternatively, a barrier of all of them between the two uses",
      barrier.threads, number, first.text(), threads, where.text());
}

/// What bar.red brings with it, and learns.
struct Predicate {
  bool holds = false;
  std::uint32_t held = 0;  // of all threads
};

void arrive(const char* what, std::uint32_t number, std::uint32_t threads, bool waits, Where where,
            Predicate* predicate = nullptr) {
  if (predicate == nullptr && is_left_out(what, where)) return;
  require_convergence(what, where);
  Thread& thread = this_thread(what, where);
  Cta& cta = *thread.cta;
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  HopperCta& state = hopper_engine(what, where).cta(cta);
  if (number >= kNamedBarriers) {
    fail_barrier(fmt::format("{} names barrier number {}", what, number), {}, what, number, threads, where,
                 "a CTA has 16 barriers, numbers 0 to 15");
  }
  NamedBarrier& barrier = state.named_barriers[number];
  const std::uint32_t most = static_cast<std::uint32_t>(cta.warps.size()) * kWarpSize;
  if (threads == 0 || threads % kWarpSize != 0 || threads > most) {
    fail_barrier(fmt::format("{} has a count of {} threads in a CTA of {}", what, threads, cta.thread_count),
                 barrier, what, number, threads, where,
                 "the count must include all threads that sync or arrive: a multiple of 32, and at most the "
                 "number of threads in the CTA");
  }
  if (number == 0 && threads == most && waits) {
    const int held = cta_barrier(what, predicate != nullptr && predicate->holds ? 1 : 0, where);
    if (predicate != nullptr) predicate->held = static_cast<std::uint32_t>(held);
    return;
  }
  if (number == 0 && !cta.barrier.waiting.empty()) {
    fail_barrier("barrier 0 is used by __syncthreads and with another count at the same time", barrier, what,
                 number, threads, where, "barrier 0 belongs to __syncthreads");
  }
  if (barrier.threads != 0 && barrier.threads != threads) {
    fail_barrier(fmt::format("threads use barrier {} with different counts, {} and {}", number,
                             barrier.threads, threads),
                 barrier, what, number, threads, where,
                 "all threads that use a barrier must give the same count",
                 other_purpose(barrier, number, threads, where));
  }
  const char* const reduction = predicate != nullptr ? what : nullptr;
  if (barrier.threads != 0 && (barrier.reduction == nullptr) != (reduction == nullptr)) {
    fail_barrier(
        fmt::format("{} meets {} at barrier {}", what,
                    barrier.reduction != nullptr ? barrier.reduction : "bar_sync or bar_arrive", number),
        barrier, what, number, threads, where,
        "bar.red must not be mixed with bar.sync or bar.arrive in one use of a barrier");
  }
  if (barrier.threads != 0 && reduction != nullptr && std::string_view(barrier.reduction) != reduction) {
    fail_barrier(fmt::format("threads use barrier {} with different reductions, {} and {}", number,
                             barrier.reduction, reduction),
                 barrier, what, number, threads, where,
                 "all threads that use a barrier must execute the same bar.red");
  }
  for (const NamedBarrier::Arrival& arrival : barrier.arrivals) {
    if (arrival.thread != &thread) continue;
    fail_barrier(fmt::format("a thread reaches barrier {} twice before it is complete", number), barrier,
                 what, number, threads, where,
                 "a thread that has arrived may use the barrier again only after a bar.sync has shown it "
                 "that the barrier has completed");
  }
  if (explore::is_on())
    explore::before({.kind = explore::OperationKind::kNamed,
                     .what = what,
                     .where = where,
                     .object = &barrier,
                     .number = number,
                     .others = threads - static_cast<std::uint32_t>(barrier.arrivals.size()) - 1});
  if (explore::is_choosing()) explore::arrive_at(&barrier);
  if (timeline_on()) log_named_barrier(number, threads, waits, where);
  if (ledger_on()) ledger_meet(cta, LedgerMeeting::kNamed, number, threads, waits, where);
  note_warp_instruction(what, where);
  barrier.threads = threads;
  barrier.reduction = reduction;
  if (predicate != nullptr && predicate->holds) ++barrier.held;
  thread.release_into(barrier.order);
  barrier.arrivals.push_back({&thread, where, waits, predicate != nullptr ? &predicate->held : nullptr});
  if (barrier.arrivals.size() == threads) {
    complete(cta, barrier, what, number, threads, where);
    if (waits) cta.gang->yield();
  } else if (waits) {
    cta.gang->block(
        {.kind = WaitKind::kObject, .what = what, .where = where, .detail = named_barrier_wait_detail});
  }
}

}  // namespace

void bar_sync(std::uint32_t number, std::uint32_t threads, Where where) {
  arrive("bar_sync", number, threads, true, where);
}

void bar_arrive(std::uint32_t number, std::uint32_t threads, Where where) {
  arrive("bar_arrive", number, threads, false, where);
}

std::uint32_t bar_red(const char* what, std::uint32_t number, std::uint32_t threads, bool predicate,
                      Where where) {
  Predicate own{predicate};
  arrive(what, number, threads, true, where, &own);
  return own.held;
}

namespace {

/// Why the count is not reached, where too many threads have returned; or "".
std::string never_reached_text(const NamedBarrier& barrier) {
  const Cta& cta = *barrier.arrivals.front().thread->cta;
  std::vector<std::uint32_t> gone;
  for (const Thread& thread : cta.threads) {
    if (thread.state == ThreadState::kExited) gone.push_back(thread.index);
  }
  const auto came = static_cast<std::uint32_t>(barrier.arrivals.size());
  const auto others = static_cast<std::uint32_t>(cta.threads.size() - gone.size()) - came;
  if (gone.empty() || came + others >= barrier.threads) return {};
  std::string text =
      fmt::format("\n  {} have returned and will never arrive, so the count of {} is never reached",
                  ranges("thread", gone), barrier.threads);
  if (came % kWarpSize == 0) text += fmt::format("; {} threads arrive here", came);
  return text;
}

}  // namespace

std::string past_of_named_barrier(const NamedBarrier& barrier) {
  if (barrier.arrivals.empty()) return {};
  const Cta& cta = *barrier.arrivals.front().thread->cta;
  const Past& past = past_of(barrier);
  if (past.launch != cta.gang->grid.launch || past.cta != cta.key || past.arrivals.empty()) return {};
  std::map<std::string, std::vector<std::uint32_t>> places;
  for (const NamedBarrier::Arrival& arrival : past.arrivals) {
    places[fmt::format("{} at {}", arrival.waits ? "bar_sync" : "bar_arrive", arrival.where.text())]
        .push_back(arrival.thread->index);
  }
  std::string list;
  for (auto& [place, threads] : places) {
    std::sort(threads.begin(), threads.end());
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", ranges("thread", threads), place);
  }
  return fmt::format("It has completed {} time{} before, most recently with {}", past.rounds,
                     past.rounds == 1 ? "" : "s", list);
}

std::string describe_named_barriers(const std::vector<NamedBarrier>& barriers) {
  std::string lines;
  for (const NamedBarrier& barrier : barriers) {
    if (std::none_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                     [](const NamedBarrier::Arrival& arrival) { return arrival.waits; })) {
      continue;
    }
    lines += fmt::format("{}named barrier {}: {} of {} threads have arrived: {}", lines.empty() ? "" : "\n",
                         &barrier - barriers.data(), barrier.arrivals.size(), barrier.threads,
                         arrivals_text(barrier));
    lines += never_reached_text(barrier);
  }
  return lines;
}

}  // namespace emulator
