#include "emulator/ledger/record.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "emulator/async/hopper.h"
#include "emulator/machine/machine.h"
#include "emulator/memory/shared_space.h"

namespace emulator {
namespace ledger_parts {

constexpr std::size_t kMostCtas = 256;  // of all launches
constexpr std::size_t kRememberedWaits = 256;
constexpr std::uint32_t kLineBytes = 16;

/// Something that told a thread of others: a wait at a barrier, or a wait for its own operations.
struct Learned {
  BarrierLog* by = nullptr;                  // nullptr: the latter
  std::shared_ptr<const LedgerClock> clock;  // of the phase
  std::uint32_t agent = 0, time = 0;         // of the operations
  std::uint32_t knows(std::uint32_t of) const { return clock ? clock->at(of) : of == agent ? time : 0; }
};

struct ThreadLedger {
  std::uint32_t number = 0;  // its time in the clocks
  std::uint32_t time = 1;
  LedgerClock clock;
  std::deque<Learned> learned;
  std::size_t shared = 0;  // of `learned`: since that many, the warp has not been together
  bool forgot = false;     // what it learned first
  bool fenced = false;     // fence.proxy.async, since its last arrival
  std::map<std::uint32_t, LedgerClock> commits;  // tcgen05.commit: what it knew then, by number; the latest
  // The latest question that told_by answered.
  mutable std::uint32_t asked_agent = ~0u, asked_time = 0;
  mutable BarrierLog* answer = nullptr;

  /// The barrier whose wait told the thread of what `agent` did at `when`, or nullptr.
  BarrierLog* told_by(std::uint32_t agent, std::uint32_t when) const {
    if (asked_agent == agent && asked_time == when) return answer;
    if (clock.at(agent) < when) return nullptr;
    const auto found = std::find_if(learned.begin(), learned.end(),
                                    [&](const Learned& one) { return one.knows(agent) >= when; });
    asked_agent = agent;
    asked_time = when;
    return answer = found == learned.end() || (forgot && found == learned.begin()) ? nullptr : found->by;
  }
  void learn(const Learned& one) {
    if (one.clock) {
      // Who knows of a phase knows what its clock says. Lanes tell each other of the same phases again and
      // again.
      if (clock.at(one.by->number) >= one.clock->at(one.by->number) || !clock.join(*one.clock)) return;
    } else {
      if (clock.at(one.agent) >= one.time) return;
      clock.raise(one.agent, one.time);
    }
    learned.push_back(one);
    if (learned.size() <= kRememberedWaits) return;
    learned.pop_front();
    shared -= shared > 0 ? 1 : 0;
    forgot = true;
  }
  void release(LedgerClock& into) {
    clock.raise(number, time);
    into.join(clock);
    ++time;
  }
};

/// An access of a line, the latest of a thread, of one of its engines or of the copies that signal a barrier.
struct Mark {
  std::uint32_t agent = 0;
  std::uint32_t time = 0;  // 0: none
  LedgerVia via = LedgerVia::kThreads;
};

struct MarkedLine {
  Mark write;
  std::vector<Mark> readers;  // since
};

/// A barrier of threads that not all of them have reached.
struct Meeting {
  std::uint64_t threads = 0;
  LedgerClock arriving;
  LedgerPhase phase;
  std::set<std::uint64_t> places;
  std::vector<ThreadLedger*> waiting;
};

struct GangLedger {
  LedgerRecord record;
  std::uint32_t agents = 0;
};

}  // namespace ledger_parts

using namespace ledger_parts;

namespace {

LedgerVia via_of(LedgerReader reader) {
  return reader == LedgerReader::kWgmma         ? LedgerVia::kWgmma
         : reader == LedgerReader::kTensorCores ? LedgerVia::kTensorCores
                                                : LedgerVia::kStore;
}

}  // namespace

struct CtaLedger {
  GangLedger* gang = nullptr;
  const Cta* cta = nullptr;
  std::uint64_t launch = 0;
  std::vector<ThreadLedger> threads;
  std::vector<MarkedLine> lines;
  std::unordered_map<std::uint32_t, BarrierLog*> mbarriers;  // by offset
  std::map<std::pair<LedgerMeeting, std::uint32_t>, Meeting> meetings;
  BarrierLog* latest_cluster_barrier = nullptr;
  std::map<std::pair<LedgerReader, std::uint32_t>, std::uint32_t>
      engines;  // of a thread -> their time's number

  MarkedLine& line(std::uint32_t index) {
    if (index >= lines.size()) lines.resize(index + std::size_t{1});
    return lines[index];
  }
  /// The time of the engine that works for the thread, or for its warpgroup.
  std::uint32_t engine(LedgerReader reader, std::uint32_t thread) {
    if (reader == LedgerReader::kWgmma) thread = thread / kWarpgroupSize * kWarpgroupSize;
    const auto [found, is_new] = engines.try_emplace({reader, thread}, gang->agents);
    if (is_new) ++gang->agents;
    return found->second;
  }
  LedgerRecord::WarpWork& work(int warp) { return gang->record.work[{launch, warp}]; }
};

namespace {

std::mutex ledger_mutex;
std::vector<std::unique_ptr<GangLedger>> all_gangs;
std::vector<std::unique_ptr<CtaLedger>> all_ctas;
std::set<std::uint64_t> seen_ctas;
std::uint64_t ctas_of_launches = 0;

/// nullptr: the CTA is not among those that are recorded.
CtaLedger* ledger_of(const Cta& asked) {
  auto& cta = const_cast<Cta&>(asked);
  if (cta.ledger) return cta.ledger;
  if (cta.linear >= kRecordedCtas) return nullptr;
  const std::lock_guard lock(ledger_mutex);
  if (all_ctas.size() >= kMostCtas) return nullptr;
  GangLedger* gang = nullptr;
  for (const auto& other : cta.gang->ctas) {
    if (other->ledger) gang = other->ledger->gang;
  }
  if (!gang) {
    all_gangs.push_back(std::make_unique<GangLedger>());
    gang = all_gangs.back().get();
    const gemm::ptx::Extent& extent = cta.gang->grid.shape.grid;
    ctas_of_launches = std::max<std::uint64_t>(ctas_of_launches, static_cast<std::uint64_t>(extent.count()));
  }
  seen_ctas.insert(cta.linear);
  all_ctas.push_back(std::make_unique<CtaLedger>());
  CtaLedger& ledger = *all_ctas.back();
  ledger.gang = gang;
  ledger.cta = &cta;
  ledger.launch = cta.gang->grid.launch;
  ledger.threads.resize(static_cast<std::size_t>(cta.thread_count));
  for (ThreadLedger& thread : ledger.threads) thread.number = gang->agents++;
  cta.ledger = &ledger;
  return &ledger;
}

ThreadLedger& thread_of(CtaLedger& ledger, const Thread& thread) {
  return ledger.threads[thread.index];
}

BarrierLog& new_barrier(CtaLedger& ledger, const char* kind) {
  ledger.gang->record.barriers.push_back(std::make_unique<BarrierLog>());
  BarrierLog& log = *ledger.gang->record.barriers.back();
  const Cta& cta = *ledger.cta;
  log.kind = kind;
  log.number = ledger.gang->agents++;
  log.rank = cta.rank_in_cluster;
  log.ranks = static_cast<int>(cta.gang->grid.shape.cluster.count());
  log.cta_warps = static_cast<int>(cta.warps.size());
  log.linear = cta.linear;
  log.launch = ledger.launch;
  return log;
}

BarrierLog* log_of_mbarrier(const Mbarrier& barrier) {
  CtaLedger* const ledger = ledger_of(*barrier.cta);
  if (!ledger) return nullptr;
  BarrierLog*& log = ledger->mbarriers[barrier.offset];
  if (!log) {
    log = &new_barrier(*ledger, "mbarrier");
    log->offset = barrier.offset;
    log->places.insert(barrier.init_where.packed());
  }
  log->count = barrier.count;
  // A kernel may say what its shared memory is only after the initialisation.
  if (log->name.empty() || log->name.starts_with("shared +")) {
    log->name = name_mbarrier(barrier).substr(std::string_view("mbarrier ").size());
    log->name = log->name.substr(0, log->name.find(" of CTA "));
  }
  return log;
}

void note_order(BarrierLog* by, const Mark& before, bool before_writes, LedgerVia after, bool after_writes,
                const CtaLedger& holder, std::uint32_t line) {
  if (!by) return;
  by->orders[{before.via, before_writes, after, after_writes}].insert(holder.cta->linear << 32 | line);
}

/// `thread` reads: what was written there before, and by what that is known.
void see_write(const ThreadLedger& thread, LedgerVia via, CtaLedger& holder, std::uint32_t index) {
  const Mark& write = holder.line(index).write;
  if (write.time == 0 || write.agent == thread.number) return;
  note_order(thread.told_by(write.agent, write.time), write, true, via, false, holder, index);
}

void mark_reader(CtaLedger& holder, std::uint32_t index, const Mark& mark) {
  std::vector<Mark>& readers = holder.line(index).readers;
  const auto same = std::find_if(readers.begin(), readers.end(), [&](const Mark& reader) {
    return reader.agent == mark.agent && reader.via == mark.via;
  });
  if (same == readers.end()) {
    readers.push_back(mark);
  } else {
    same->time = mark.time;
  }
}

/// `thread` overwrites what others have read.
void see_readers(const ThreadLedger& thread, LedgerVia via, CtaLedger& holder, std::uint32_t index) {
  for (const Mark& reader : holder.line(index).readers) {
    if (reader.agent != thread.number)
      note_order(thread.told_by(reader.agent, reader.time), reader, false, via, true, holder, index);
  }
}

void mark_writer(CtaLedger& holder, std::uint32_t index, const Mark& mark) {
  MarkedLine& line = holder.line(index);
  line.write = mark;
  line.readers.clear();
}

void add_arrivals(LedgerPhase& phase, LedgerParty::What what, int rank, int warp, bool fenced, int times) {
  phase.arrivals[{what, rank, warp, fenced}] += times;
}

/// Calls visit(index) for each line of 16 bytes of the running thread's CTA that the access touches.
template <typename Visit>
void for_lines(const Cta& cta, const void* address, unsigned bytes, Where where, Visit visit) {
  const std::optional<std::uint32_t> offset = shared_offset(cta, address, where);
  if (!offset) return;
  for (std::uint32_t index = *offset / kLineBytes; index <= (*offset + bytes - 1) / kLineBytes; ++index)
    visit(index);
}

}  // namespace

void begin_ledger() {
  const std::lock_guard lock(ledger_mutex);
  all_gangs.clear();
  all_ctas.clear();
  seen_ctas.clear();
  ctas_of_launches = 0;
  ledger_active = true;
}

Ledger end_ledger() {
  const std::lock_guard lock(ledger_mutex);
  ledger_active = false;
  LedgerRecord record;
  for (const auto& gang : all_gangs) {
    for (auto& barrier : gang->record.barriers) record.barriers.push_back(std::move(barrier));
    for (auto& [warp, work] : gang->record.work) record.work[warp].issues.merge(work.issues);
  }
  Ledger ledger = make_ledger(record);
  ledger.ctas = ctas_of_launches;
  ledger.ctas_seen = seen_ctas.size();
  all_gangs.clear();
  all_ctas.clear();
  return ledger;
}

void ledger_init(const Mbarrier& barrier) {
  if (BarrierLog* const log = log_of_mbarrier(barrier)) log->places = {barrier.init_where.packed()};
}

void ledger_arrive(const Mbarrier& barrier, const ArriveOptions& options) {
  BarrierLog* const log = log_of_mbarrier(barrier);
  const Thread& thread = running_thread();
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!log || !own) return;
  LedgerPhase& phase = log->present();
  if (options.expects) phase.expected += options.expected_bytes;
  if (!options.arrives) return;
  ThreadLedger& mine = thread_of(*own, thread);
  mine.release(log->arriving);
  add_arrivals(phase, LedgerParty::kThreads, thread.cta->rank_in_cluster, thread.warp(),
               std::exchange(mine.fenced, false), static_cast<int>(options.count));
  if (options.releases_cluster) log->arrives_at_cluster = true;
}

void ledger_commit(const Thread& committer, std::uint32_t number) {
  CtaLedger* const own = ledger_of(*committer.cta);
  if (!own) return;
  ThreadLedger& mine = thread_of(*own, committer);
  LedgerClock& known = mine.commits[number];
  mine.release(known);
  if (mine.commits.size() > kRememberedWaits) mine.commits.erase(mine.commits.begin());
}

void ledger_commit_arrives(const Mbarrier& barrier, const Thread& committer, std::uint32_t number) {
  BarrierLog* const log = log_of_mbarrier(barrier);
  CtaLedger* const own = ledger_of(*committer.cta);
  if (!log || !own) return;
  add_arrivals(log->present(), LedgerParty::kCommits, committer.cta->rank_in_cluster, committer.warp(), false,
               1);
  // What was multiplied is known with the end of this phase, and so is what the committer knew.
  const auto& commits = thread_of(*own, committer).commits;
  if (const auto known = commits.find(number); known != commits.end()) log->arriving.join(known->second);
  log->arriving.raise(own->engine(LedgerReader::kTensorCores, committer.index), number);
}

void ledger_copies_arrive(const Mbarrier& barrier) {
  BarrierLog* const log = log_of_mbarrier(barrier);
  const Thread& thread = running_thread();
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!log || !own) return;
  thread_of(*own, thread).release(log->arriving);
  add_arrivals(log->present(), LedgerParty::kCopies, thread.cta->rank_in_cluster, thread.warp(), false, 1);
}

void ledger_phase(const Mbarrier& barrier) {
  BarrierLog* const log = log_of_mbarrier(barrier);
  if (!log) return;
  log->close();
}

void ledger_asks(const Mbarrier& barrier, std::uint32_t parity) {
  if (BarrierLog* const log = log_of_mbarrier(barrier))
    log->first.try_emplace(running_thread().warp(), parity);
}

void ledger_wait(const Thread& thread, const Mbarrier& barrier, Acquires acquires) {
  BarrierLog* const log = log_of_mbarrier(barrier);
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!log || !own) return;
  if (acquires == Acquires::kCluster) log->waits_at_cluster = true;
  thread_of(*own, thread).learn({.by = log, .clock = log->known});
  for (LedgerPhase& phase : log->open) {
    if (phase.number + 1 == log->phases) phase.waiters[thread.warp()].insert(thread.index);
  }
  // Before the first phase is over, a wait for parity 1 passes and waits for nobody.
  if (log->phases == 0) log->passed_at_once[thread.warp()].insert(thread.index);
}

void ledger_meet(const Cta& holder, LedgerMeeting kind, std::uint32_t number, std::uint64_t threads,
                 bool waits, Where where) {
  CtaLedger* const ledger = ledger_of(holder);
  const Thread& thread = running_thread();
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!ledger || !own) return;
  Meeting& meeting = ledger->meetings[{kind, number}];
  meeting.threads = threads;
  meeting.places.insert(where.packed());
  ThreadLedger& mine = thread_of(*own, thread);
  mine.release(meeting.arriving);
  // A barrier of the whole CTA comes behind many fences, and says nothing of them.
  const bool fenced = std::exchange(mine.fenced, false) && kind == LedgerMeeting::kNamed;
  add_arrivals(meeting.phase, LedgerParty::kThreads, thread.cta->rank_in_cluster, thread.warp(), fenced, 1);
  if (!waits) return;
  meeting.phase.waiters[thread.warp()].insert(thread.index);
  meeting.waiting.push_back(&mine);
}

void ledger_meeting_over(const Cta& holder, LedgerMeeting kind, std::uint32_t number) {
  CtaLedger* const ledger = ledger_of(holder);
  if (!ledger) return;
  const auto found = ledger->meetings.find({kind, number});
  if (found == ledger->meetings.end()) return;
  Meeting meeting = std::move(found->second);
  ledger->meetings.erase(found);
  BarrierLog* log = nullptr;
  const char* const name = kind == LedgerMeeting::kCta     ? "CTA barrier"
                           : kind == LedgerMeeting::kNamed ? "named barrier"
                                                           : "cluster barrier";
  for (const auto& other : ledger->gang->record.barriers) {
    if (other->kind == name && other->linear == holder.linear && other->offset == number &&
        other->places == meeting.places)
      log = other.get();
  }
  if (!log) {
    log = &new_barrier(*ledger, name);
    log->name = kind == LedgerMeeting::kCta     ? "__syncthreads"
                : kind == LedgerMeeting::kNamed ? "named barrier " + std::to_string(number)
                                                : "cluster barrier";
    log->offset = number;
    log->places = meeting.places;
  }
  log->count = meeting.threads;
  log->arriving = std::move(meeting.arriving);
  meeting.phase.number = log->phases;
  log->present() = std::move(meeting.phase);
  log->close();
  if (kind == LedgerMeeting::kCluster) ledger->latest_cluster_barrier = log;
  for (ThreadLedger* thread : meeting.waiting) thread->learn({.by = log, .clock = log->known});
}

void ledger_cluster_wait(const Cta& holder) {
  CtaLedger* const ledger = ledger_of(holder);
  const Thread& thread = running_thread();
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!ledger || !own || !ledger->latest_cluster_barrier) return;
  BarrierLog& log = *ledger->latest_cluster_barrier;
  thread_of(*own, thread).learn({.by = &log, .clock = log.known});
  // All threads wait: those of other CTAs are not told apart.
  for (LedgerPhase& phase : log.open) {
    if (phase.number + 1 == log.phases && thread.cta == &holder)
      phase.waiters[thread.warp()].insert(thread.index);
  }
}

void ledger_group_wait(const char* what, std::uint64_t pending, Where where) {
  const Thread& thread = running_thread();
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!own) return;
  BarrierLog* log = nullptr;
  for (const auto& other : own->gang->record.barriers) {
    if (other->kind == "wait for groups" && other->linear == thread.cta->linear &&
        other->name.starts_with(what) && other->offset == pending && other->places.contains(where.packed()))
      log = other.get();
  }
  if (!log) {
    log = &new_barrier(*own, "wait for groups");
    log->name = std::string(what) + " " + std::to_string(pending);
    log->offset = static_cast<std::uint32_t>(pending);
    log->places = {where.packed()};
  }
  // One phase for all of its waits: whoever executes the instruction.
  log->present().waiters[thread.warp()].insert(thread.index);
}

void ledger_proxy_fence() {
  const Thread& thread = running_thread();
  if (CtaLedger* const own = ledger_of(*thread.cta)) thread_of(*own, thread).fenced = true;
}

void ledger_access(const void* address, unsigned bytes, bool writes, Where where) {
  const Thread& thread = running_thread();
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!own) return;
  const ThreadLedger& mine = thread_of(*own, thread);
  for_lines(*thread.cta, address, bytes, where, [&](std::uint32_t index) {
    if (writes) {
      see_readers(mine, LedgerVia::kThreads, *own, index);
      mark_writer(*own, index, {mine.number, mine.time, LedgerVia::kThreads});
    } else {
      see_write(mine, LedgerVia::kThreads, *own, index);
      mark_reader(*own, index, {mine.number, mine.time, LedgerVia::kThreads});
    }
  });
}

void ledger_copied(const Thread& thread, const void* shared, unsigned bytes) {
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!own) return;
  const ThreadLedger& mine = thread_of(*own, thread);
  own->work(thread.warp()).issues.insert(LedgerVia::kCpAsync);
  for_lines(*thread.cta, shared, bytes, Where(), [&](std::uint32_t index) {
    see_readers(mine, LedgerVia::kCpAsync, *own, index);
    mark_writer(*own, index, {mine.number, mine.time, LedgerVia::kCpAsync});
  });
}

namespace {

LedgerVia via_of_load(const LoadRecord& load) {
  return load.remote ? LedgerVia::kStAsync : load.request ? LedgerVia::kResponse : LedgerVia::kTma;
}

}  // namespace

void ledger_load(const Cta& target, const Mbarrier& barrier, const LoadRecord& load) {
  static_cast<void>(target);
  BarrierLog* const log = log_of_mbarrier(barrier);
  const Thread& thread = running_thread();
  CtaLedger* const own = ledger_of(*thread.cta);
  if (!log || !own) return;
  log->present().brought[{via_of_load(load), thread.cta != barrier.cta}] += load.bytes;
  own->work(thread.warp()).issues.insert(via_of_load(load));
}

void ledger_load_bytes(const Cta& target, const Mbarrier& barrier, const LoadRecord& load,
                       std::uint32_t offset) {
  BarrierLog* const log = log_of_mbarrier(barrier);
  const Thread& thread = running_thread();
  CtaLedger* const own = ledger_of(*thread.cta);
  CtaLedger* const holder = ledger_of(target);
  if (!log || !own || !holder) return;
  const std::uint32_t index = offset / kLineBytes;
  see_readers(thread_of(*own, thread), via_of_load(load), *holder, index);
  mark_writer(*holder, index, {log->number, static_cast<std::uint32_t>(log->phases) + 1, via_of_load(load)});
}

void ledger_engine_reads(const Thread& issuer, LedgerReader reader, std::uint64_t number, const Cta& holder,
                         std::uint32_t offset) {
  CtaLedger* const own = ledger_of(*issuer.cta);
  CtaLedger* const there = ledger_of(holder);
  if (!own || !there) return;
  const std::uint32_t index = offset / kLineBytes;
  // A wgmma is one of the whole warpgroup: the thread that begins it has waited for its operands.
  const Thread& executing = reader == LedgerReader::kWgmma ? running_thread() : issuer;
  see_write(thread_of(*own, executing), via_of(reader), *there, index);
  const int warps = reader == LedgerReader::kWgmma ? static_cast<int>(kWarpgroupSize) / kWarpSize : 1;
  for (int warp = issuer.warp(); warp < issuer.warp() + warps; ++warp)
    own->work(warp).issues.insert(via_of(reader));
  mark_reader(*there, index,
              {own->engine(reader, issuer.index), static_cast<std::uint32_t>(number), via_of(reader)});
}

void ledger_engine_done(const Thread& issuer, LedgerReader reader, std::uint64_t number) {
  CtaLedger* const own = ledger_of(*issuer.cta);
  if (!own || number == 0) return;
  thread_of(*own, issuer)
      .learn({.agent = own->engine(reader, issuer.index), .time = static_cast<std::uint32_t>(number)});
}

void ledger_warp_together(const Cta& cta, const std::vector<std::uint32_t>& threads) {
  CtaLedger* const own = ledger_of(cta);
  if (!own) return;
  LedgerClock all;
  std::vector<Learned> news;
  for (const std::uint32_t index : threads) {
    ThreadLedger& thread = own->threads[index];
    thread.release(all);
    news.insert(news.end(), thread.learned.begin() + static_cast<std::ptrdiff_t>(thread.shared),
                thread.learned.end());
  }
  for (const std::uint32_t index : threads) {
    ThreadLedger& thread = own->threads[index];
    for (const Learned& one : news) thread.learn(one);
    thread.clock.join(all);
    thread.shared = thread.learned.size();
  }
}

}  // namespace emulator
