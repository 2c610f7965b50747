#include "emulator/sync/mbarrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "emulator/async/hopper.h"
#include "emulator/explore/hooks.h"
#include "emulator/explore/left_out.h"
#include "emulator/ledger/ledger.h"
#include "emulator/machine/watchdog.h"
#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/departures.h"
#include "emulator/report/causes/overwrites.h"
#include "emulator/report/counters.h"
#include "emulator/report/course_rules.h"
#include "emulator/report/event_log.h"
#include "emulator/report/kernel_source.h"
#include "emulator/report/member_names.h"
#include "emulator/report/report.h"
#include "emulator/sync/lanes.h"
#include "emulator/timeline/timeline.h"
#include "ptx/mbarrier_word.h"

namespace emulator {
namespace {

constexpr const char* kMbarrierSection = "PTX ISA, \"mbarrier\"";
constexpr const char* kPhaseSection = "PTX ISA, \"mbarrier\": \"Phase of the mbarrier object\"";
constexpr const char* kTxSection = "PTX ISA, \"mbarrier\": \"Tracking asynchronous operations\"";
constexpr std::uint32_t kMaxCount = (1u << 20) - 1;
constexpr std::uint32_t kPollsPerCompletion = 64;
constexpr std::uint64_t kNoComplete =
    1;  // in a state, whose bit 0 is free: it comes from an arrival with .noComplete

std::string events_text(const Mbarrier& barrier) {
  constexpr std::size_t kShown = 8;
  const Grid& grid = barrier.cta->gang->grid;
  std::string lines;
  for (std::size_t i = 0; i < barrier.events.size() && i < kShown; ++i) {
    const Mbarrier::Event& event = barrier.events[i];
    const char* verb = event.kind == Mbarrier::Event::kArrive   ? "arrived"
                       : event.kind == Mbarrier::Event::kExpect ? "expected"
                                                                : "arrived and expected";
    if (!lines.empty()) lines += '\n';
    lines += fmt::format("{}: {} {}", event.where.text(), name_thread(grid, event.stamp), verb);
    if (event.kind != Mbarrier::Event::kArrive) lines += fmt::format(" {} bytes", event.bytes);
    if (const std::string activity = text(event.activity); !activity.empty())
      lines += ", after its wait as " + activity;
  }
  if (barrier.events.size() > kShown) lines += fmt::format("\nand {} more", barrier.events.size() - kShown);
  return lines;
}

void store_word(const Mbarrier& barrier) {
  const std::uint64_t word = mbarrier_word(barrier);
  std::memcpy(shared_bytes(*barrier.cta, barrier.offset), &word, sizeof word);
}

void log_barrier(const char* event, const Thread* thread, const Mbarrier& barrier, std::uint32_t bytes,
                 Where where) {
  if (!EventLog::on()) return;
  EventLog::write({.event = event,
                   .cta = barrier.cta,
                   .thread = thread,
                   .barrier = &barrier,
                   .bytes = bytes,
                   .where = where});
}

/// The offset behind a pointer into this CTA's shared memory.
std::uint32_t own_offset(const char* what, const void* object, Where where) {
  Thread& thread = this_thread(what, where);
  HopperEngine& engine = hopper_engine(what, where);
  const std::optional<std::uint32_t> found = shared_offset(*thread.cta, object, where);
  if (!found || shared_room(*thread.cta, *found) < 8) {
    engine.fail("mbarrier-address",
                Report("{} names an object that is not in this CTA's shared memory", what)
                    .line("where", where.text())
                    .line("by", name_thread(thread))
                    .rule("an mbarrier is an 8-byte object in shared memory", kMbarrierSection));
  }
  const std::uint32_t offset = *found;
  if (offset % 8 != 0) {
    engine.fail("mbarrier-address", Report("{} names a misaligned object", what)
                                        .line("where", where.text())
                                        .line("by", name_thread(thread))
                                        .line("address", "{}: {} bytes off a multiple of 8",
                                              name_shared_offset(*thread.cta, offset), offset % 8)
                                        .rule("an mbarrier must be 8-byte aligned", kMbarrierSection));
  }
  return offset;
}

[[noreturn]] void fail_overwritten(const char* what, const Mbarrier& barrier, Where where) {
  const Line& line = shared_line(*barrier.cta, barrier.offset);
  const Cell& cell = line.cells()[(barrier.offset % 16) >> line.granule_log2()];
  Report report("{} finds an mbarrier whose bytes were overwritten", what);
  report.line("barrier", name_mbarrier(barrier))
      .at(where, running_thread())
      .line("init", barrier.init_where.text());
  if (cell.write != 0) {
    report.line("write", "{} by {}", Where::from_packed(cell.write_where & ~kAtomicBit).text(),
                is_agent(cell.write) ? name_agent(*barrier.cta->gang, cell.write)
                                     : name_thread(barrier.cta->gang->grid, cell.write));
  }
  report.rule("between init and inval, only mbarrier instructions may access the object", kMbarrierSection);
  hopper_engine(what, where).fail("mbarrier-overwritten", report);
}

void acquire(Thread& thread, Mbarrier& barrier, std::uint32_t parity, Acquires acquires, Where where) {
  if (explore::is_recording()) explore::has_asked(thread, barrier, true, where);
  const bool cluster = acquires == Acquires::kCluster;
  if (ledger_on()) ledger_wait(thread, barrier, acquires);
  HopperThread& state = thread.cta->gang->hopper->thread(thread);
  const Mbarrier::Published& completed = barrier.completed;
  if (acquires == Acquires::kTensor) {
    for (const VectorClock* clock : {&completed.local, &completed.cluster, &completed.execution})
      state.tensor.join(*clock);
    // A fence behind the relaxed wait acquires what was released.
    thread.seen_device.join(completed.local);
    thread.seen_device.join(completed.cluster);
  } else {
    thread.clock.join(completed.local);
    (cluster ? thread.clock : thread.execution).join(completed.cluster);
    thread.execution.join(completed.execution);
    thread.sequential_past.join(completed.sequential_past);
    thread.sequential_seen.join(completed.sequential_seen);
  }
  if (!completed.tensor.empty()) state.tensor.join(completed.tensor);
  barrier.observed_phases = std::max(barrier.observed_phases, barrier.phase);
  state.polls = 0;
  // What was said of an earlier wait says nothing of this one.
  if (!state.labelled) state.activity = {};
  state.labelled = false;
  LastWait wait{&barrier,      parity, barrier.phase, where, thread.cta->gang->hopper->copies.next_serial(),
                state.activity};
  wait.cluster = cluster;
  // Later phases may be over when a report asks who let the thread in.
  if (thread.cta->gang->hopper->tcgen05 && barrier.loaded_phases == 0 && barrier.commits == 0 &&
      barrier.phase != barrier.first_phase)
    wait.arrivals = barrier.previous_events;
  std::erase_if(state.waits, [&](const LastWait& last) {
    if (last.barrier != &barrier) return false;
    wait.count += last.count;
    wait.phase_before = last.phase;
    wait.loads_before_that = last.loads_before;
    return true;
  });
  state.waits.push_back(wait);
}

/// The running thread's wait has passed.
void log_wait(const char* what, const Thread& thread, const Mbarrier& barrier, Where where) {
  log_barrier(what, &thread, barrier, 0, where);
  if (!timeline_on()) return;
  for (const LastWait& wait : thread.cta->gang->hopper->thread(thread).waits) {
    if (wait.barrier == &barrier) log_barrier_wait(barrier, wait.phase, where);
  }
}

/// Wakes the threads whose phase is complete.
void wake(Mbarrier& barrier) {
  Gang& gang = *barrier.cta->gang;
  for (Thread* thread : barrier.waiting) {
    // The wait has seen this phase and no later one, however late the thread goes on.
    HopperThread& state = gang.hopper->thread(*thread);
    acquire(*thread, barrier, state.waiting_parity, state.waiting_acquires, thread->wait.where);
    state.waiting_for = nullptr;
    gang.make_runnable(*thread);
  }
  barrier.waiting.clear();
}

/// Where the latest load was issued, and what it brings.
std::string load_text(const Mbarrier& barrier) {
  const HopperEngine& engine = *barrier.cta->gang->hopper;
  const LoadRecord* load = engine.copies.latest_load(barrier);
  return barrier.last_load.text() + (load ? ": " + describe_load(engine.gang.grid, *load) : "");
}

/// An arrival for a phase while no wait has seen that the one before is complete. The CTA's end reports it:
/// what else is wrong in such a kernel says more. Copies of cp.async arrive without a thread.
void note_unseen(const Mbarrier& barrier, const Thread* thread, const char* what, Where where) {
  if (barrier.observed_phases >= barrier.phase || barrier.phase == barrier.first_phase) return;
  std::string& noted = barrier.cta->unseen_phase;
  if (!noted.empty()) return;
  const std::uint64_t unseen = barrier.phase - 1;
  noted = Report("a thread arrives for phase {} of an mbarrier, although no wait has seen phase {} complete",
                 barrier.phase, unseen)
              .line("barrier", name_mbarrier(barrier))
              .line("arrival", "{} at {}{}", what, where.text(), thread ? " by " + name_thread(*thread) : "")
              .missing(
                  "a wait for phase {} (parity {}) by some thread that then signals the threads that arrive "
                  "for phase {}",
                  unseen, unseen & 1, barrier.phase)
              .rule(
                  "in each phase, at least one test_wait or try_wait must find that the phase is complete "
                  "before a thread arrives for the next phase",
                  kPhaseSection)
              .str();
}

/// Ends the phase when nothing is missing.
void advance(Mbarrier& barrier, Where where) {
  HopperEngine& engine = *barrier.cta->gang->hopper;
  if (barrier.pending != 0) return;
  if (barrier.tx < 0) {
    engine.fail("expect-tx-small", Report("more bytes arrive at an mbarrier than were expected, and no "
                                          "arrival is left that could expect them")
                                       .line("barrier", name_mbarrier(barrier))
                                       .line("state", describe_mbarrier(barrier))
                                       .line("loads", "{} bytes issued in this phase, the last at {}",
                                             barrier.issued, load_text(barrier))
                                       .block(events_text(barrier))
                                       .missing("bytes in the expect_tx: it expects {}, but the copies "
                                                "issued so far deliver {}, which is {} more",
                                                barrier.expected, barrier.issued,
                                                static_cast<std::int64_t>(barrier.issued) -
                                                    static_cast<std::int64_t>(barrier.expected))
                                       .rule("expect_tx must expect exactly the bytes of the phase's copies: "
                                             "whole boxes, even where they extend beyond the tensor's edge",
                                             kTxSection));
  }
  if (barrier.tx != 0) return;
  if (barrier.loads > 0) {
    engine.fail(
        "expect-tx-small",
        Report("a phase of an mbarrier completes while a copy that was issued for it is still in flight")
            .line("barrier", name_mbarrier(barrier))
            .line("phase", "{}: {} bytes expected, loads of {} bytes issued, {} bytes have not arrived yet",
                  barrier.phase, barrier.expected, barrier.issued, barrier.loads)
            .line("load", load_text(barrier))
            .line("now", where.text())
            .block(events_text(barrier))
            .missing("{} bytes in the expect_tx: the copies of the phase deliver {}",
                     barrier.issued - barrier.expected, barrier.issued)
            .rule("a phase completes when the last arrival and all expected bytes are in, so the bytes of "
                  "all copies must be expected before or with the last arrival",
                  kTxSection));
  }
  barrier.completed.local.join(barrier.arriving.local);
  barrier.completed.cluster.join(barrier.arriving.cluster);
  barrier.completed.execution.join(barrier.arriving.execution);
  if (!barrier.arriving.tensor.empty()) barrier.completed.tensor.join(barrier.arriving.tensor);
  barrier.completed.sequential_past.join(barrier.arriving.sequential_past);
  barrier.completed.sequential_seen.join(barrier.arriving.sequential_seen);
  barrier.arriving = {};
  barrier.history.add(parties_of(barrier.events), barrier.expected);
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.expected = 0;
  barrier.issued = 0;
  barrier.previous_events.swap(barrier.events);
  barrier.events.clear();
  store_word(barrier);
  log_barrier("phase", nullptr, barrier, 0, where);
  if (ledger_on()) ledger_phase(barrier);
  wake(barrier);
}

/// Raises the number of bytes that the phase waits for.
void expect(const char* what, Mbarrier& barrier, std::uint32_t bytes, Where where) {
  barrier.tx += bytes;
  barrier.expected += bytes;
  if (barrier.tx > kMaxCount) {
    hopper_engine(what, where)
        .fail("mbarrier-tx-overflow",
              Report("{} raises the tx-count of an mbarrier to {}", what, barrier.tx)
                  .line("barrier", name_mbarrier(barrier))
                  .at(where, running_thread())
                  .block(events_text(barrier))
                  .rule("the tx-count must stay between -(2^20 - 1) and 2^20 - 1 bytes", kTxSection));
  }
}

[[noreturn]] void fail_arrivals(const char* what, const Mbarrier& barrier, const Thread& thread,
                                Where where) {
  Report report("{}: there are more arrivals in one phase than the mbarrier was initialised for", what);
  report.line("barrier", "{}, initialised at {} with a count of {}", name_mbarrier(barrier),
              barrier.init_where.text(), barrier.count);
  report.line("state", describe_mbarrier(barrier));
  report.line("arrival", "{} by {}", where.text(), name_thread(thread));
  report.block("this phase:\n" + events_text(barrier));
  explain_odd_arrival(report, barrier, thread, where);
  const auto partner =
      std::find_if(barrier.events.begin(), barrier.events.end(), [&](const Mbarrier::Event& event) {
        return barrier.count < kWarpSize && one_warp_one_place(thread, where, event.stamp, event.where);
      });
  if (partner != barrier.events.end()) {
    report.missing(two_lanes_text(thread, partner->stamp, "arrive", where));
  } else if (barrier.issued > 0) {
    explain_refill(report, thread, barrier);
  }
  report.rule(
      "the count of mbarrier.init is the number of arrivals per phase, and arrive.expect_tx is one of them",
      kPhaseSection);
  thread.cta->gang->hopper->fail("mbarrier-arrivals", report);
}

/// Compares the arrivals at a barrier on which readers say that a stage is free with the waits for that
/// stage.
void note_release(Thread& thread, const Mbarrier& barrier, Where where) {
  constexpr std::size_t kNoted = 2;
  if (barrier.loaded_phases > 0) return;
  HopperEngine& engine = *thread.cta->gang->hopper;
  HopperThread& state = engine.thread(thread);
  auto found = std::find_if(state.arrivals.begin(), state.arrivals.end(),
                            [&](const Arrivals& arrivals) { return arrivals.barrier == &barrier; });
  if (found == state.arrivals.end()) found = state.arrivals.insert(found, Arrivals{.barrier = &barrier});
  if (found->full == nullptr) found->full = full_of(*thread.cta, barrier);
  ++found->count;
  if (found->full == nullptr) return;
  const std::uint32_t passed = waits_passed(*thread.cta, thread.index / kWarpgroupSize, *found->full);
  if (passed == 0) found->ahead = true;
  if (found->ahead || found->count <= passed || engine.early_arrivals.size() == kNoted) return;
  engine.early_arrivals.push_back({thread.stamp(), where, state.activity, *found, passed});
}

void note_run(const Thread& thread, Mbarrier& barrier, Where where) {
  Mbarrier::Run& run = barrier.run;
  const std::uint32_t warpgroup = thread.index / kWarpgroupSize;
  const bool again = std::find(run.threads.begin(), run.threads.end(), thread.index) != run.threads.end();
  if (run.cta != thread.cta->key || run.warpgroup != warpgroup || run.where.packed() != where.packed() ||
      again)
    run = {thread.cta->key, warpgroup, where, {}, barrier.phase};
  run.threads.push_back(thread.index);
  run.phases = barrier.phase - run.first_phase + (barrier.pending == 0 ? 1 : 0);
  if (run.phases > 1 && run.threads.size() > barrier.longest.threads.size()) barrier.longest = run;
}

/// Returns the word as it was before.
std::uint64_t arrive(Mbarrier& barrier, const ArriveOptions& options, Where where) {
  Thread& thread = running_thread();
  if (explore::is_on())
    explore::before(
        {.kind = options.arrives ? explore::OperationKind::kArrive : explore::OperationKind::kExpect,
         .what = options.what,
         .where = where,
         .barrier = &barrier,
         .count = options.arrives ? options.count : 0,
         .bytes_missing = options.expected_bytes});
  const std::uint64_t before = mbarrier_word(barrier);
  using Event = Mbarrier::Event;
  if (options.arrives && barrier.pending < barrier.late + options.count)
    fail_arrivals(options.what, barrier, thread, where);
  if (!options.completes && barrier.pending == options.count) {
    hopper_engine(options.what, where)
        .fail("mbarrier-arrivals",
              Report("{} completes the phase", options.what)
                  .line("barrier", name_mbarrier(barrier))
                  .line("state", describe_mbarrier(barrier))
                  .line("arrival", "{} by {}", where.text(), name_thread(thread))
                  .rule("an arrival with .noComplete must not be the last one in its phase",
                        "PTX ISA, \"mbarrier.arrive\""));
  }
  barrier.events.push_back(
      {options.arrives ? (options.expects ? Event::kArriveExpect : Event::kArrive) : Event::kExpect,
       thread.stamp(), where, options.expected_bytes,
       hopper_engine(options.what, where).thread(thread).activity, wgmma_executed(thread)});
  if (options.expects) expect(options.what, barrier, options.expected_bytes, where);
  if (options.arrives && !options.expects) note_release(thread, barrier, where);
  if (options.arrives) {
    note_unseen(barrier, &thread, options.what, where);
    SyncObject published;
    Mbarrier::Published& arriving = barrier.arriving;
    if (options.orders_tensor) {
      SyncObject before;
      thread.release_into(before);
      arriving.tensor.join(before.clock);
      arriving.tensor.join(before.execution);
      arriving.tensor.join(hopper_engine(options.what, where).thread(thread).tensor);
    }
    if (options.releases) {
      thread.release_into(published);
    } else {
      // Behind a fence a relaxed arrival ends a release pattern, of what came before the fence.
      published.clock.join(thread.fenced_device);
      if (thread.cta == barrier.cta) published.clock.join_only(thread.cta->key, thread.fenced_cta);
    }
    (thread.cta == barrier.cta                       ? arriving.local
     : options.releases_cluster || !options.releases ? arriving.cluster
                                                     : arriving.execution)
        .join(published.clock);
    arriving.execution.join(published.execution);
    if (thread.cta == barrier.cta || options.releases_cluster) {
      arriving.sequential_past.join(published.sequential_past);
      arriving.sequential_seen.join(published.sequential_seen);
    }
    barrier.pending -= options.count;
    // PTX ISA, "mbarrier.arrive_drop": it lowers the expected arrival count, and then arrives.
    if (options.drops) barrier.count -= options.count;
    note_run(thread, barrier, where);
  }
  store_word(barrier);
  log_barrier(options.what, &thread, barrier, options.expected_bytes, where);
  if (timeline_on()) log_barrier_arrive(barrier, options.expected_bytes, options.arrives, where);
  if (ledger_on()) ledger_arrive(barrier, options);
  ++thread.cta->gang->progress;
  advance(barrier, where);
  return before;
}

/// What a copy that never was would have brought.
void complete_by_thread(const char* what, Mbarrier& barrier, std::uint32_t bytes, Where where) {
  const Thread& thread = running_thread();
  if (explore::is_on())
    explore::before({.kind = explore::OperationKind::kArrive,
                     .what = what,
                     .where = where,
                     .barrier = &barrier,
                     .bytes_missing = -std::int64_t{bytes}});
  barrier.tx -= bytes;
  barrier.issued += bytes;
  barrier.last_load = where;
  if (barrier.tx < -std::int64_t{kMaxCount}) {
    hopper_engine(what, where)
        .fail("mbarrier-tx-overflow",
              Report("{} lowers the tx-count of an mbarrier to {}", what, barrier.tx)
                  .line("barrier", name_mbarrier(barrier))
                  .at(where, thread)
                  .rule("the tx-count must stay between -(2^20 - 1) and 2^20 - 1 bytes", kTxSection));
  }
  store_word(barrier);
  log_barrier("complete_tx", &thread, barrier, bytes, where);
  ++thread.cta->gang->progress;
  advance(barrier, where);
}

void check_parity(const char* what, const Mbarrier& barrier, std::uint32_t parity, Where where) {
  if (parity <= 1) return;
  hopper_engine(what, where)
      .fail("mbarrier-parity",
            Report("{} has a parity of {}", what, parity)
                .line("barrier", name_mbarrier(barrier))
                .at(where, running_thread())
                .rule("a parity must be 0 or 1: that of the phase to wait for", kPhaseSection));
}

void before_wait(explore::OperationKind kind, const char* what, const Mbarrier& barrier, std::uint32_t parity,
                 Where where) {
  explore::before({.kind = kind, .what = what, .where = where, .barrier = &barrier, .parity = parity});
}

/// What a wait that never ends may have come too late for.
std::string missed_text(const HopperThread& state) {
  const Mbarrier& barrier = *state.waiting_for;
  std::uint64_t seen = barrier.first_phase;
  for (const LastWait& wait : state.waits) {
    if (wait.barrier == &barrier) seen = wait.phase;
  }
  const std::uint64_t since = barrier.phase - seen;
  if (since == 1 && seen == barrier.first_phase && state.waiting_parity == 1) {
    return "; it has never waited for the first phase, which is complete and has parity 0";
  }
  if (since < 2) return {};
  return fmt::format(
      "; {} phases have already completed since its last wait there, and a parity cannot distinguish a phase "
      "from the next but one",
      since);
}

std::string mbarrier_wait_detail(const Thread& thread) {
  const HopperThread& state = thread.cta->gang->hopper->thread(thread);
  if (!state.waiting_for) return {};
  const std::string activity = text(state.activity);
  return (activity.empty() ? std::string() : "as " + activity + ", ") +
         fmt::format("for the phase of parity {} of {}, {}{}", state.waiting_parity,
                     name_mbarrier(*state.waiting_for), describe_mbarrier(*state.waiting_for),
                     missed_text(state));
}

}  // namespace

std::string text(const Activity& activity) {
  if (!activity.role) return {};
  if (std::strcmp(activity.barrier, "full") != 0 && std::strcmp(activity.barrier, "empty") != 0)
    return fmt::format("{} at {}, stage {}", activity.role, activity.barrier, activity.stage);
  return fmt::format("{} of k-tile {}, stage {}", activity.role, activity.k_tile, activity.stage);
}

void note_activity(const Activity& activity, Where where) {
  HopperThread& state = hopper_engine("mbarrier_wait_parity", where).thread(running_thread());
  state.activity = activity;
  state.labelled = true;
}

std::uint64_t mbarrier_word(const Mbarrier& barrier) {
  return gemm::ptx::encode(gemm::ptx::MbarrierWord{.count = barrier.count,
                                                   .pending = barrier.pending,
                                                   .tx = static_cast<std::int32_t>(barrier.tx),
                                                   .parity = static_cast<std::uint32_t>(barrier.phase & 1)});
}

std::string describe_waited(const Mbarrier& barrier) {
  std::string text = fmt::format("{}, initialised at {}, in phase {}:", name_mbarrier(barrier),
                                 barrier.init_where.text(), barrier.phase);
  std::string events = barrier.events.empty() ? "" : events_text(barrier);
  for (std::size_t at = 0; (at = events.find('\n', at)) != std::string::npos; at += 3)
    events.replace(at, 1, "\n  ");
  text += events.empty() ? " no thread has arrived" : "\n  " + events;
  if (const Mbarrier::Run& run = barrier.longest; !run.threads.empty()) {
    text += fmt::format(
        "\n  its count is {}: {} of warpgroup {} arrived one after another at {} and completed {} phases, "
        "from phase {} on",
        barrier.count, ranges("thread", run.threads), run.warpgroup, run.where.text(), run.phases,
        run.first_phase);
  }
  return text;
}

std::string name_mbarrier(const Mbarrier& barrier) {
  std::string name = name_shared_offset(*barrier.cta, barrier.offset);
  // The member of a struct that has a base class: its name stands where it was initialised.
  const std::string member = member_name(*barrier.cta, barrier.offset);
  if (lacks_member_name(*barrier.cta, barrier.offset) &&
      name.starts_with(member.empty() ? "shared + " : member)) {
    const std::string place = barrier.init_where.text();
    const std::size_t colon = place.rfind(':');
    const std::string own =
        initialised_member(source_line(place.substr(0, colon), std::atoi(place.c_str() + colon + 1)));
    if (!own.empty() && member.empty()) {
      name = fmt::format("{} ({})", own, name);
    } else if (!own.empty()) {
      name.insert(member.size(), "." + own);
    }
  }
  return "mbarrier " + name;
}

std::string describe_mbarrier(const Mbarrier& barrier) {
  std::string text =
      fmt::format("in phase {} (parity {}): {} of {} arrivals {} missing", barrier.phase, barrier.phase & 1,
                  barrier.pending, barrier.count, barrier.pending == 1 ? "is" : "are");
  if (barrier.tx > 0) {
    text += fmt::format(", {} of {} expected bytes are missing", barrier.tx, barrier.expected);
  } else if (barrier.tx < 0) {
    text += fmt::format(", {} bytes arrived that were not expected", -barrier.tx);
  } else if (barrier.expected > 0) {
    text += fmt::format(", all {} expected bytes have arrived", barrier.expected);
  }
  if (barrier.loads > 0) text += fmt::format(", {} loads are in flight", barrier.loads);
  if (barrier.late > 0) text += fmt::format(", {} arrivals will come with cp.async copies", barrier.late);
  return text;
}

void mbarrier_init(void* object, std::uint32_t count, Where where) {
  constexpr const char* kWhat = "mbarrier_init";
  Thread& thread = this_thread(kWhat, where);
  HopperEngine& engine = hopper_engine(kWhat, where);
  if (context.counters) count_instruction(kWhat, where, 1, 1);
  const std::uint32_t offset = own_offset(kWhat, object, where);
  if (count == 0 || count > kMaxCount) {
    engine.fail("mbarrier-count",
                Report("mbarrier_init has a count of {}", count)
                    .line("barrier", name_shared_offset(*thread.cta, offset))
                    .at(where, thread)
                    .rule("a phase must have 1 to 2^20 - 1 arrivals", "PTX ISA, \"mbarrier.init\""));
  }
  HopperCta& cta = engine.cta(*thread.cta);
  Mbarrier*& slot = cta.barrier_at[offset];
  if (slot && slot->live) {
    engine.fail(
        "mbarrier-reinitialised",
        Report("mbarrier_init initialises an mbarrier that is in use")
            .line("barrier", name_mbarrier(*slot))
            .line("first", "{} by {}", slot->init_where.text(), name_thread(engine.gang.grid, slot->init))
            .line("again", "{} by {}", where.text(), name_thread(thread))
            .line("state", describe_mbarrier(*slot))
            .rule("an object may be initialised only once, and again only after mbarrier.inval",
                  "PTX ISA, \"mbarrier.init\""));
  }
  check_shared(object, 8, Access::kWrite, where);
  if (!slot) {
    cta.barriers.push_back(std::make_unique<Mbarrier>());
    slot = cta.barriers.back().get();
    slot->agent = cta.add_agent(AgentKind::kLoads, static_cast<std::uint32_t>(cta.barriers.size() - 1));
  }
  // An object that was invalidated goes on counting phases, so that an old load is not taken for a new one.
  const std::uint64_t phase = (slot->phase + 1) / 2 * 2;
  const std::uint32_t agent = slot->agent;
  const std::optional<std::uint32_t> copies_agent = slot->copies_agent;
  const std::optional<std::uint32_t> remote_agent = slot->remote_agent;
  const std::optional<std::uint32_t> peer_agent = slot->peer_agent;
  const std::optional<std::uint32_t> commit_agent = slot->commit_agent;
  const std::uint32_t commits = slot->commits;
  *slot = Mbarrier{};
  slot->agent = agent;
  slot->copies_agent = copies_agent;
  slot->remote_agent = remote_agent;
  slot->peer_agent = peer_agent;
  slot->commit_agent = commit_agent;
  slot->commits = commits;
  slot->cta = thread.cta;
  slot->offset = offset;
  slot->live = true;
  slot->count = count;
  slot->pending = count;
  slot->phase = phase;
  slot->first_phase = phase;
  slot->init = thread.stamp();
  slot->init_where = where;
  store_word(*slot);
  log_barrier("mbarrier_init", &thread, *slot, 0, where);
  if (timeline_on()) log_barrier_init(*slot);
  if (ledger_on()) ledger_init(*slot);
  ++engine.gang.progress;
}

void mbarrier_inval(void* object, Where where) {
  constexpr const char* kWhat = "mbarrier_inval";
  Mbarrier& barrier =
      use_mbarrier(kWhat, *this_thread(kWhat, where).cta, own_offset(kWhat, object, where), false, where);
  if (!barrier.waiting.empty() || barrier.loads > 0 || barrier.late > 0 || barrier.tx != 0) {
    hopper_engine(kWhat, where)
        .fail("mbarrier-invalidated-in-use", Report("mbarrier_inval invalidates an mbarrier that is in use")
                                                 .line("barrier", name_mbarrier(barrier))
                                                 .at(where, running_thread())
                                                 .line("state", "{}; {} threads wait for it",
                                                       describe_mbarrier(barrier), barrier.waiting.size())
                                                 .rule("an object may be invalidated only when no thread "
                                                       "waits for it and nothing can still arrive at it",
                                                       "PTX ISA, \"mbarrier.inval\""));
  }
  if (const Stamp last = last_commit_arrival(barrier);
      last != 0 && course_rule_on(CourseRule::kCommitArrival) && !knows_arrival(running_thread(), last)) {
    Report report("mbarrier_inval invalidates an mbarrier at which a tcgen05.commit may still arrive");
    report.line("barrier", name_mbarrier(barrier))
        .at(where, running_thread())
        .line("commit", describe_commit(barrier.commit_log.back()))
        .missing("a wait at {} for the phase that this arrival completes", name_mbarrier(barrier))
        .rule(
            "an object may be invalidated only when no thread waits for it and nothing can still arrive at "
            "it",
            "PTX ISA, \"mbarrier.inval\"; \"tcgen05.commit\"");
    hopper_engine(kWhat, where)
        .fail("mbarrier-invalidated-in-use", report.course_rule(CourseRule::kCommitArrival));
  }
  barrier.live = false;
  std::memset(object, 0xff, 8);
  log_barrier(kWhat, &running_thread(), barrier, 0, where);
}

namespace {

/// fence.mbarrier_init needs no release behind it: a relaxed arrival at the cluster's barrier hands it on.
bool behind_relaxed(const HopperThread& thread, Stamp fence) {
  return fence != 0 && thread.behind_relaxed.covers(fence);
}

}  // namespace

Mbarrier& use_mbarrier(const char* what, Cta& cta, std::uint32_t offset, bool by_engine, Where where) {
  Thread& thread = running_thread();
  HopperEngine& engine = hopper_engine(what, where);
  HopperCta& state = engine.cta(cta);
  const auto found = state.barrier_at.find(offset);
  if (found == state.barrier_at.end() || !found->second->live) {
    Report report("{} uses bytes that are not an mbarrier", what);
    report.line("bytes", name_shared_offset(cta, offset)).at(where, thread);
    if (found != state.barrier_at.end()) {
      report.line("before", "they were one, initialised at {}, until mbarrier_inval",
                  found->second->init_where.text());
    } else {
      report.line("before", "no thread has executed mbarrier_init there so far");
    }
    engine.fail(
        "mbarrier-uninitialised",
        report.rule("mbarrier.init, followed by a barrier between the threads, must precede every use",
                    "PTX ISA, \"mbarrier.init\""));
  }
  Mbarrier& barrier = *found->second;
  const HopperThread& initialiser = state.threads[stamp_thread(barrier.init)];
  // The initialising thread's next fence of this kind.
  const auto fenced = [&](const FenceTimes& fences) {
    const std::uint32_t time = first_fence(fences, stamp_time(barrier.init));
    return time == 0 ? Stamp{0} : make_stamp(cta.key, stamp_thread(barrier.init), time);
  };
  const bool known = knows(thread, barrier.init);
  if (!known && !behind_relaxed(engine.thread(thread), fenced(initialiser.init_releases))) {
    const bool relaxed = behind_relaxed(engine.thread(thread), barrier.init);
    engine.fail(
        "mbarrier-uninitialised",
        Report("nothing orders mbarrier_init before a {} on the same object", what)
            .line("barrier", name_mbarrier(barrier))
            .line("init", "{} by {}", barrier.init_where.text(), name_thread(engine.gang.grid, barrier.init))
            .line("use", "{} by {}", where.text(), name_thread(thread))
            .missing(
                relaxed
                    ? fmt::format(
                          "fence.mbarrier_init by {} after the initialisation at {}, or an arrival without "
                          ".relaxed: barrier_cluster_arrive_relaxed alone does not publish earlier writes",
                          name_thread(engine.gang.grid, barrier.init), barrier.init_where.text())
                    : fmt::format(
                          "{} between the initialisation at {} and {}",
                          barrier.cta == thread.cta
                              ? "a barrier of the CTA (__syncthreads)"
                              : "a barrier of the cluster (barrier_cluster_arrive and barrier_cluster_wait)",
                          barrier.init_where.text(), where.text()))
            .rule("other threads may use an mbarrier only after a barrier (of the CTA or the cluster) that "
                  "follows its initialisation",
                  "PTX ISA, \"mbarrier.init\""));
  }
  if (by_engine && course_rule_on(CourseRule::kMbarrierInitFence)) {
    const Stamp fence = fenced(initialiser.init_fences);
    if (fence == 0 || !(knows(thread, fence) || behind_relaxed(engine.thread(thread), fence))) {
      Report report("{}: no fence makes the initialisation of the mbarrier visible to the copy engine", what);
      report.line("barrier", name_mbarrier(barrier))
          .line("init", "{} by {}", barrier.init_where.text(), name_thread(engine.gang.grid, barrier.init))
          .line("copy", "{} by {}", where.text(), name_thread(thread))
          .rule(
              "the thread that initialises must execute fence.mbarrier_init (or fence.proxy.async) before "
              "the barrier that precedes the first copy",
              "PTX ISA, \"membar, fence\": fence.mbarrier_init");
      report.course_rule(CourseRule::kMbarrierInitFence);
      engine.fail("mbarrier-init-fence", report);
    }
  }
  const std::uint64_t word = mbarrier_word(barrier);
  if (std::memcmp(shared_bytes(cta, offset), &word, sizeof word) != 0) fail_overwritten(what, barrier, where);
  return barrier;
}

void mbarrier_arrive(void* object, const ArriveOptions& options, Where where) {
  mbarrier_arrive_state(object, options, where);
}

std::uint64_t mbarrier_arrive_state(void* object, const ArriveOptions& options, Where where) {
  Thread& thread = this_thread(options.what, where);
  const std::uint32_t offset = own_offset(options.what, object, where);
  if (is_left_out_at(options.what, where, *thread.cta, offset))
    return mbarrier_word(use_mbarrier(options.what, *thread.cta, offset, false, where));
  if (context.counters) count_instruction(options.what, where, 1, 1);
  let_lanes_catch_up(options.what, where);
  Mbarrier& barrier = use_mbarrier(options.what, *thread.cta, offset, false, where);
  return arrive(barrier, options, where) | (options.completes ? 0 : kNoComplete);
}

std::uint32_t mbarrier_pending_count(std::uint64_t state, Where where) {
  constexpr const char* kWhat = "mbarrier_pending_count";
  const Thread& thread = this_thread(kWhat, where);
  if (context.counters) count_instruction(kWhat, where, 1, 1);
  if ((state & kNoComplete) == 0) {
    hopper_engine(kWhat, where)
        .fail("mbarrier-state",
              Report("{} uses a value that is not the state of an arrival with .noComplete", kWhat)
                  .at(where, thread)
                  .rule("the state must come from mbarrier.arrive.noComplete; for other states the count is "
                        "undefined",
                        "PTX ISA, \"mbarrier.pending_count\""));
  }
  return gemm::ptx::decode_mbarrier(state).pending;
}

void mbarrier_complete_tx_by_thread(const char* what, void* object, std::uint32_t bytes, Where where) {
  Thread& thread = this_thread(what, where);
  if (context.counters) count_instruction(what, where, 1, 1);
  Mbarrier& barrier = use_mbarrier(what, *thread.cta, own_offset(what, object, where), false, where);
  complete_by_thread(what, barrier, bytes, where);
}

void mbarrier_complete_tx_remote(const char* what, std::uint32_t address, std::uint32_t bytes, Where where) {
  Thread& thread = this_thread(what, where);
  HopperEngine& engine = hopper_engine(what, where);
  if (context.counters) count_instruction(what, where, 1, 1);
  Cta& target = engine.cluster_cta(what, address, where);
  Mbarrier& barrier = use_mbarrier(what, target, address & 0xffffffu, false, where);
  engine.touches_remote(thread, barrier, where);
  complete_by_thread(what, barrier, bytes, where);
}

void mbarrier_arrive_remote(std::uint32_t address, const ArriveOptions& options, Where where) {
  Thread& thread = this_thread(options.what, where);
  HopperEngine& engine = hopper_engine(options.what, where);
  if (context.counters) count_instruction(options.what, where, 1, 1);
  let_lanes_catch_up(options.what, where);
  Cta& target = engine.cluster_cta(options.what, address, where);
  if (is_left_out_at(options.what, where, target, address & 0xffffffu)) return;
  Mbarrier& barrier = use_mbarrier(options.what, target, address & 0xffffffu, false, where);
  engine.touches_remote(thread, barrier, where);
  arrive(barrier, options, where);
}

void cp_async_mbarrier_arrive(const char* what, void* object, bool adds, Where where) {
  Thread& thread = this_thread(what, where);
  const std::uint32_t offset = own_offset(what, object, where);
  if (is_left_out_at(what, where, *thread.cta, offset)) return;
  if (context.counters) count_instruction(what, where, 1, 1);
  let_lanes_catch_up(what, where);
  Mbarrier& barrier = use_mbarrier(what, *thread.cta, offset, false, where);
  if (adds) {
    ++barrier.pending;
    store_word(barrier);
  }
  hopper_engine(what, where).copies.arrive_with_copies(what, barrier, where);
}

bool mbarrier_test_wait(const char* what, void* object, std::uint32_t parity, Where where, bool cluster) {
  Thread& thread = this_thread(what, where);
  const std::uint32_t offset = own_offset(what, object, where);
  if (is_left_out_at(what, where, *thread.cta, offset)) return true;
  if (context.counters) count_instruction(what, where, 1, 1);
  Mbarrier& barrier = use_mbarrier(what, *thread.cta, offset, false, where);
  check_parity(what, barrier, parity, where);
  if (ledger_on()) ledger_asks(barrier, parity);
  Gang& gang = *thread.cta->gang;
  if (explore::is_choosing()) {
    before_wait(explore::OperationKind::kTest, what, barrier, parity, where);
    if (!barrier.complete(parity)) return false;
  }
  if (!barrier.complete(parity)) {
    // A thread that polls keeps the machine busy; what it polls for must happen all the same.
    HopperEngine& engine = *gang.hopper;
    if (++engine.thread(thread).polls % kPollsPerCompletion == 0 && engine.pending() > 0) {
      engine.complete_one(gang.random);
      ++gang.progress;
    }
    note_poll({.what = what, .barrier = &barrier, .where = where});
    gang.yield();
    if (!barrier.complete(parity)) {
      if (explore::is_recording()) explore::has_asked(thread, barrier, false, where);
      return false;
    }
  }
  acquire(thread, barrier, parity, cluster ? Acquires::kCluster : Acquires::kCta, where);
  log_wait(what, thread, barrier, where);
  return true;
}

bool mbarrier_try_wait(const char* what, void* object, std::uint32_t parity, Acquires acquires, Where where) {
  Thread& thread = this_thread(what, where);
  const std::uint32_t offset = own_offset(what, object, where);
  if (is_left_out_at(what, where, *thread.cta, offset)) return true;
  if (context.counters) count_instruction(what, where, 1, 1);
  Mbarrier& barrier = use_mbarrier(what, *thread.cta, offset, false, where);
  check_parity(what, barrier, parity, where);
  if (ledger_on()) ledger_asks(barrier, parity);
  Gang& gang = *thread.cta->gang;
  if (explore::is_choosing()) {
    before_wait(explore::OperationKind::kWait, what, barrier, parity, where);
  } else if (gang.is_slow(thread) || gang.random.below(8) == 0) {
    gang.yield();
  }
  if (!barrier.complete(parity)) {
    // Where some warps are slow, nobody polls: a poll would be something else that can go on.
    if (gang.grid.options.slow_warps == 0 && gang.random.below(4) == 0) {
      // The time that hardware waits is up; the kernel must ask again.
      note_poll({.what = what, .barrier = &barrier, .where = where});
      gang.yield();
      if (!barrier.complete(parity)) return false;
    } else {
      HopperThread& state = gang.hopper->thread(thread);
      state.waiting_for = &barrier;
      state.waiting_parity = parity;
      state.waiting_acquires = acquires;
      barrier.waiting.push_back(&thread);
      gang.block({.kind = WaitKind::kObject, .what = what, .where = where, .detail = mbarrier_wait_detail});
      if (std::exchange(state.time_is_up, false)) {
        note_poll({.what = what, .barrier = &barrier, .where = where});
        return false;
      }
      log_wait(what, thread, barrier, where);
      return true;
    }
  }
  acquire(thread, barrier, parity, acquires, where);
  log_wait(what, thread, barrier, where);
  return true;
}

bool mbarrier_time_is_up(Mbarrier& barrier) {
  Gang& gang = *barrier.cta->gang;
  for (Thread* thread : barrier.waiting) {
    HopperThread& state = gang.hopper->thread(*thread);
    state.waiting_for = nullptr;
    state.time_is_up = true;
    gang.make_runnable(*thread);
  }
  return !std::exchange(barrier.waiting, {}).empty();
}

void mbarrier_expect_late_arrival(const char* what, Mbarrier& barrier, Where where) {
  if (barrier.pending <= barrier.late) fail_arrivals(what, barrier, running_thread(), where);
  barrier.events.push_back({Mbarrier::Event::kArrive, running_thread().stamp(), where, 0, {}});
  ++barrier.late;
  if (ledger_on()) ledger_copies_arrive(barrier);
  barrier.loaded_phases = barrier.phase + 1;
  barrier.last_load = where;
}

void mbarrier_arrive_late(const char* what, Mbarrier& barrier, const std::vector<Stamp>& stamps,
                          Where where) {
  note_unseen(barrier, nullptr, what, where);
  for (const Stamp stamp : stamps) barrier.arriving.local.add(stamp);
  --barrier.late;
  --barrier.pending;
  store_word(barrier);
  log_barrier(what, nullptr, barrier, 0, where);
  ++barrier.cta->gang->progress;
  advance(barrier, where);
}

std::uint32_t mbarrier_offset(const char* what, const void* object, Where where) {
  return own_offset(what, object, where);
}

std::string describe_commit(const CommitRecord& commit) {
  std::string text = fmt::format("tcgen05.commit at {} by {}", commit.where.text(),
                                 name_thread(commit.committer->cta->gang->grid, commit.committer->stamp()));
  if (commit.k_tile >= 0) text += fmt::format(", after the multiplications of k-tile {}", commit.k_tile);
  return text;
}

bool knows_arrival(const Thread& thread, Stamp arrival) {
  return knows_over(thread, arrival) || thread.cta->gang->hopper->thread(thread).tensor.covers(arrival);
}

Stamp last_commit_arrival(const Mbarrier& barrier) {
  return barrier.commit_agent ? agent_stamp(*barrier.cta, *barrier.commit_agent, barrier.commits) : 0;
}

const CommitRecord* commit_that_ended(const Mbarrier& barrier, std::uint64_t phase) {
  const auto found = std::find_if(barrier.commit_log.rbegin(), barrier.commit_log.rend(),
                                  [&](const CommitRecord& commit) { return commit.phase == phase; });
  return found == barrier.commit_log.rend() ? nullptr : &*found;
}

Stamp mbarrier_expect_commit(Mbarrier& barrier, const CommitRecord& commit) {
  if (!barrier.commit_agent) {
    HopperCta& state = barrier.cta->gang->hopper->cta(*barrier.cta);
    barrier.commit_agent = state.add_agent(AgentKind::kCommits, state.agents[barrier.agent].object);
  }
  if (ledger_on()) ledger_commit(*commit.committer, commit.number);
  constexpr std::size_t kRemembered = 64;
  barrier.commit_log.push_back(commit);
  if (barrier.commit_log.size() > kRemembered) barrier.commit_log.pop_front();
  return agent_stamp(*barrier.cta, *barrier.commit_agent, ++barrier.commits);
}

void mbarrier_arrive_by_commit(const char* what, Mbarrier& barrier, Stamp arrival, Stamp done,
                               const SyncObject& over, const Thread& committer, Stamp issuer, Where where) {
  if (barrier.pending <= barrier.late) fail_arrivals(what, barrier, committer, where);
  note_unseen(barrier, &committer, what, where);
  // The arrival orders what was committed, in another CTA for a wait that acquires at cluster scope. Of what
  // came before the commit, and to other waits there, it only says that it is over.
  const bool local = committer.cta == barrier.cta || !course_rule_on(CourseRule::kPairClusterScope);
  (local ? barrier.arriving.local : barrier.arriving.cluster).add(done);
  barrier.arriving.execution.add(done);
  barrier.arriving.execution.add(arrival);
  barrier.arriving.execution.join(over.clock);
  barrier.arriving.execution.join(over.execution);
  barrier.events.push_back({Mbarrier::Event::kArrive, issuer, where, 0, {}, 0, true});
  // They come in the order of issue.
  const std::size_t later = barrier.commits - stamp_time(arrival);
  if (later < barrier.commit_log.size())
    barrier.commit_log[barrier.commit_log.size() - 1 - later].phase = barrier.phase;
  if (ledger_on()) ledger_commit_arrives(barrier, committer, stamp_time(done));
  --barrier.pending;
  store_word(barrier);
  log_barrier(what, nullptr, barrier, 0, where);
  ++barrier.cta->gang->progress;
  advance(barrier, where);
}

std::uint32_t agent_of(const Mbarrier& barrier, Brings brings) {
  return brings == Brings::kStore      ? *barrier.remote_agent
         : brings == Brings::kPeerLoad ? *barrier.peer_agent
                                       : barrier.agent;
}

void mbarrier_complete_tx(Mbarrier& barrier, std::uint32_t bytes, Brings brings) {
  const bool local = brings == Brings::kLoad ||
                     (brings == Brings::kPeerLoad && !course_rule_on(CourseRule::kPairClusterScope));
  const Stamp there =
      agent_stamp(*barrier.cta, agent_of(barrier, brings), static_cast<std::uint32_t>(barrier.phase) + 1);
  (local ? barrier.arriving.local : barrier.arriving.cluster).add(there);
  barrier.tx -= bytes;
  --barrier.loads;
  barrier.loaded_phases = barrier.phase + 1;
  store_word(barrier);
  log_barrier("complete_tx", nullptr, barrier, bytes, barrier.last_load);
  ++barrier.cta->gang->progress;
  advance(barrier, barrier.last_load);
}

}  // namespace emulator
