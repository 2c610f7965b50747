#include "emulator/report/causes/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/async/cp_async.h"
#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/departures.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/member_names.h"

namespace emulator {
namespace {

/// What an arrival in the phase that `thread` waited for, or none, did not say of the earlier access.
std::string what_the_arrival_missed(const Mbarrier& barrier, Stamp earlier, Where earlier_where,
                                    Access access) {
  const char* did = access == Access::kRead ? "read" : "written";
  const char* act = access == Access::kRead ? "read" : "write";
  const std::uint32_t warp = stamp_thread(earlier) / kWarpSize;
  const Mbarrier::Event* mate = nullptr;
  for (const Mbarrier::Event& event : barrier.previous_events) {
    if (event.kind == Mbarrier::Event::kExpect || stamp_cta(event.stamp) != stamp_cta(earlier)) continue;
    if (event.stamp >> 32 == earlier >> 32) {
      mate = &event;
      break;
    }
    if (stamp_thread(event.stamp) / kWarpSize == warp) mate = &event;
  }
  if (!mate) {
    return fmt::format(
        "the arrival of warp {} (after its {} at {}): the phase ended without it. The count of {} is {}, set "
        "at {}. Either that is too small because more than {} arrivals belong to each phase, or warp {} does "
        "not arrive there",
        warp, act, earlier_where.text(), name_mbarrier(barrier), barrier.count, barrier.init_where.text(),
        barrier.count, warp);
  }
  const std::string arrival = fmt::format("the arrival at {}", mate->where.text());
  const std::string behind = fmt::format("{} after the {} at {}", arrival, act, earlier_where.text());
  if (mate->stamp >> 32 == earlier >> 32)
    return fmt::format("{}: thread {} had arrived before it had {}", behind, stamp_thread(earlier), did);
  const std::uint32_t lane = stamp_thread(mate->stamp) % kWarpSize;
  const std::string for_all = fmt::format("lane {} arrived for warp {} before lane {} had {}", lane, warp,
                                          stamp_thread(earlier) % kWarpSize, did);
  const std::string syncwarp =
      fmt::format("__syncwarp between the {} at {} and {}", act, earlier_where.text(), arrival);
  if (mate->where.file() != earlier_where.file())
    return fmt::format("{}, or {}: {}", syncwarp, behind, for_all);
  return fmt::format("{}: {}", mate->where.line() > earlier_where.line() ? syncwarp : behind, for_all);
}

/// How often threads of a warp have arrived: the most of any.
std::uint32_t arrivals_of_warp(const HopperCta& cta, std::uint32_t warp, const Mbarrier& barrier) {
  std::uint32_t most = 0;
  for (std::size_t i = std::size_t{warp} * kWarpSize;
       i < std::min<std::size_t>(cta.threads.size(), (std::size_t{warp} + 1) * kWarpSize); ++i) {
    for (const Arrivals& arrivals : cta.threads[i].arrivals) {
      if (arrivals.barrier == &barrier) most = std::max(most, arrivals.count);
    }
  }
  return most;
}

/// The latest wait, of those that are not for loads.
std::vector<LastWait>::const_reverse_iterator latest_plain_wait(const std::vector<LastWait>& waits) {
  return std::find_if(waits.rbegin(), waits.rend(),
                      [](const LastWait& last) { return last.barrier->loaded_phases == 0; });
}

/// The later access comes behind a wait on an mbarrier at which the warp of the earlier one arrives, and its
/// own does not: what that wait has not told. False where there is no such wait.
bool explain_guarded(Report& report, const Thread& thread, std::uintptr_t address, Stamp earlier,
                     Where earlier_where, Access access) {
  const Gang& gang = *thread.cta->gang;
  if (!gang.hopper) return false;
  const std::uint32_t warp = stamp_thread(earlier) / kWarpSize;
  const HopperCta& cta = gang.hopper->cta(*thread.cta);
  const auto arrives = [&](std::uint32_t of_warp, const Mbarrier& barrier) {
    return arrivals_of_warp(cta, of_warp, barrier) > 0;
  };
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = latest_plain_wait(waits);
  if (wait == waits.rend() || !wait->barrier->live ||
      arrives(static_cast<std::uint32_t>(thread.warp()), *wait->barrier))
    return false;
  // It said that it guards something else than stages, or the earlier thread waits in turn for this one's
  // warp.
  const bool entry = wait->activity.role && !is_ring(wait->activity);
  const auto& of_earlier = cta.threads[stamp_thread(earlier)].waits;
  const auto back = latest_plain_wait(of_earlier);
  const bool pair =
      back != of_earlier.rend() && arrives(static_cast<std::uint32_t>(thread.warp()), *back->barrier);
  if (!entry && !pair && !arrives(warp, *wait->barrier)) return false;
  // What orders roles says nothing of two warps of one role.
  const bool one_role = stamp_thread(earlier) / kWarpgroupSize == thread.index / kWarpgroupSize;
  if (entry && !pair && one_role && !arrives(warp, *wait->barrier)) return false;
  const std::string stage = stage_text(*thread.cta, address);
  const std::string index = index_in(member_name(*wait->barrier->cta, wait->barrier->offset));
  if (!stage.empty() && !index.empty() && "stage " + index.substr(1, index.size() - 2) != stage) return false;
  const Mbarrier& barrier = *wait->barrier;
  const std::string at =
      fmt::format("at {} for parity {} of {}", wait->where.text(), wait->parity, name_mbarrier(barrier));
  if (wait->phase == barrier.first_phase) {
    report.line(
        "waited",
        at + ", whose first phase had not completed: a fresh barrier lets a wait for parity 1 pass, once");
    report.missing("a wait for the arrival of warp {} there, after its {} at {}", warp,
                   access == Access::kRead ? "read" : "write", earlier_where.text());
    return true;
  }
  report.line("waited", "{}; these arrivals ended phase {} there:", at, wait->phase - 1);
  report.block(arrivals_text(gang.grid, barrier.previous_events));
  explain_odd_phase(report, barrier);
  const std::uint32_t arriving = arriving_threads(gang, barrier);
  report.missing(what_the_arrival_missed(barrier, earlier, earlier_where, access) +
                 (arriving > barrier.count
                      ? fmt::format(" ({} threads have arrived at {} so far, and its count is {})", arriving,
                                    name_mbarrier(barrier), barrier.count)
                      : std::string()));
  return true;
}

/// The thread of the earlier access waits behind it at a named barrier of its warpgroup, to which `thread`,
/// of the same one, is still to come. False where that is not so.
bool explain_named_barrier(Report& report, const Thread& thread, Stamp earlier, Where where, Access now,
                           Where earlier_where, Access access) {
  const Gang& gang = *thread.cta->gang;
  if (!gang.hopper || stamp_thread(earlier) / kWarpgroupSize != thread.index / kWarpgroupSize) return false;
  const auto& barriers = gang.hopper->cta(*thread.cta).named_barriers;
  for (const NamedBarrier& barrier : barriers) {
    const auto of = [&](std::uint32_t index) {
      return std::find_if(
          barrier.arrivals.begin(), barrier.arrivals.end(),
          [&](const NamedBarrier::Arrival& arrival) { return arrival.thread->index == index; });
    };
    const auto waiting = of(stamp_thread(earlier));
    if (barrier.threads < kWarpgroupSize || waiting == barrier.arrivals.end() || !waiting->waits ||
        of(thread.index) != barrier.arrivals.end())
      continue;
    const char* act = now == Access::kRead ? "read" : "write";
    const char* did = access == Access::kRead ? "read" : "write";
    const auto number = &barrier - barriers.data();
    report.line(
        "next",
        "{} waits at {} for named barrier {} of {} threads, after its {}; {} has not reached the barrier yet",
        name_thread(gang.grid, earlier), waiting->where.text(), number, barrier.threads, did,
        name_thread(gang.grid, thread.stamp()));
    report.missing(
        "a barrier between the {} at {} and the {} at {}: the bar.sync of barrier {} at {} follows both; it, "
        "or another barrier, belongs between them",
        did, earlier_where.text(), act, where.text(), number, waiting->where.text());
    return true;
  }
  return false;
}

/// A write comes before the read of what was there: the warp of the reader has said before that it had read,
/// at the mbarrier that the writer waited for.
bool reads_too_late(const Thread& reader, Stamp writer, Access earlier, Access now) {
  const Gang& gang = *reader.cta->gang;
  if (!gang.hopper || earlier != Access::kWrite || now != Access::kRead) return false;
  const HopperCta& cta = gang.hopper->cta(*reader.cta);
  const auto& of_writer = cta.threads[stamp_thread(writer)].waits;
  const auto& of_reader = gang.hopper->thread(reader).waits;
  const auto freed = latest_plain_wait(of_writer);
  const auto filled = latest_plain_wait(of_reader);
  if (freed == of_writer.rend() || filled == of_reader.rend()) return false;
  // The first wait at a fresh barrier passes without an arrival: no reader has let the writer in.
  if (freed->phase == freed->barrier->first_phase && freed->count == 1) return false;
  return arrivals_of_warp(cta, static_cast<std::uint32_t>(reader.warp()), *freed->barrier) >= filled->count;
}

/// A read comes before the first write, by a thread that nobody had to let in: its first wait at a fresh
/// barrier passes without an arrival.
bool reads_too_early(const Thread& writer, Stamp reader, Access earlier, Access now, Stamp held) {
  const Gang& gang = *writer.cta->gang;
  if (!gang.hopper || earlier != Access::kRead || now != Access::kWrite || held != 0) return false;
  const auto& of_writer = gang.hopper->thread(writer).waits;
  const auto& of_reader = gang.hopper->cta(*writer.cta).threads[stamp_thread(reader)].waits;
  const auto freed = latest_plain_wait(of_writer);
  return freed != of_writer.rend() && latest_plain_wait(of_reader) != of_reader.rend() &&
         freed->phase == freed->barrier->first_phase && freed->count == 1;
}

/// Two warpgroups write one place at one line: whether one of them goes on, behind the end of an array
/// element (a row) that it writes, into the next one.
bool explain_overrun(Report& report, const Thread& thread, std::uintptr_t address, Where where, Stamp other) {
  const Cta& cta = *thread.cta;
  const std::uintptr_t place = address - cta.dynamic_window.begin;
  if (place >= cta.dynamic_window.bytes) return false;
  const auto name_at = [&](std::int64_t offset) {
    return offset < 0 ? std::string() : member_name(cta, static_cast<std::uint32_t>(offset));
  };
  const std::string here = name_at(static_cast<std::int64_t>(place));
  constexpr std::int64_t kWord = 4;
  constexpr std::int64_t kFarthest = 16384;
  // Two with the same place in their warpgroups lack an index by the warpgroup.
  if (here.empty() || here.back() != ']' ||
      stamp_thread(other) % kWarpgroupSize == thread.index % kWarpgroupSize)
    return false;
  std::int64_t begin = static_cast<std::int64_t>(place) / kWord * kWord;  // of the row
  const std::int64_t last = begin - kFarthest;
  while (begin >= kWord && begin > last && name_at(begin - kWord) == here) begin -= kWord;
  const std::string before = name_at(begin - kWord);
  if (before.empty() || before.substr(0, before.rfind('[')) != here.substr(0, here.rfind('['))) return false;
  // By warpgroup: a thread that has written the row before, at this line.
  std::map<std::uint32_t, std::uint32_t> writers;
  std::int64_t first = begin;
  for (; first >= kWord && first > last && name_at(first - kWord) == before; first -= kWord) {
    const auto offset = static_cast<std::uintptr_t>(first - kWord);
    Line& line = cta.dynamic_window.lines[offset / 16];
    if (line.tag() != cta.tag || line.cells() == nullptr) continue;
    const Cell& cell = line.cells()[offset % 16 >> line.granule_log2()];
    if (cell.write != 0 && stamp_cta(cell.write) == cta.key &&
        (cell.write_where & ~kAtomicBit) == where.packed())
      writers.emplace(stamp_thread(cell.write) / kWarpgroupSize, stamp_thread(cell.write));
  }
  const std::uint32_t one = thread.index / kWarpgroupSize;
  const std::uint32_t two = stamp_thread(other) / kWarpgroupSize;
  if (writers.contains(one) == writers.contains(two)) return false;
  const std::uint32_t over = writers.contains(one) ? one : two;
  const std::uint32_t owner = over == one ? two : one;
  report.missing(
      "a bound: warpgroup {} writes {} at {} (thread {} did), but thread {} writes past its end, {} bytes "
      "from its beginning, although it has only {}. Those bytes are {}, which warpgroup {} writes",
      over, before, where.text(), writers[over], over == one ? thread.index : stamp_thread(other),
      static_cast<std::int64_t>(place) - first, begin - first, here, owner);
  return true;
}

/// Whether a thread of the CTA has read at `where` what it has not written since: bytes whose readers it is
/// still among, as a write would have ended their list. Such a line is no update of what it reads.
bool reads_and_keeps(const Cta& cta, Where where) {
  for (const Window* window : {&cta.dynamic_window, &cta.static_window}) {
    if (!window->lines) continue;
    for (std::uintptr_t offset = 0; offset < window->bytes; offset += 16) {
      const Line& line = window->lines[offset / 16];
      if (line.tag() != cta.tag || line.cells() == nullptr) continue;
      for (unsigned i = 0; i < 16u >> line.granule_log2(); ++i) {
        const Cell& cell = line.cells()[i];
        for (std::size_t j = 0; j < cell.readers; ++j) {
          const Reader& reader = j == 0 ? cell.first : cell.more[j - 1];
          if (reader.where == where.packed() && !is_agent(reader.stamp) && stamp_cta(reader.stamp) == cta.key)
            return true;
        }
      }
    }
  }
  return false;
}

/// A read and a write at one line: an update (+=) of bytes that two threads share, or a thread that reads
/// what another one updates (a reduction).
void explain_one_line(Report& report, const Thread& thread, Where where, Access earlier, Stamp stamp,
                      Stamp held) {
  const bool read_came_first = earlier == Access::kRead;
  const bool wrote_it_before = held != 0 && !is_agent(held) && stamp_cta(held) == stamp_cta(stamp) &&
                               stamp_thread(held) == stamp_thread(stamp);
  const bool keeps = read_came_first ? !wrote_it_before : reads_and_keeps(*thread.cta, where);
  if (!keeps) {
    report.missing(
        "an atomic at {} (atomicAdd, for example), if a thread reads these bytes there and stores an updated "
        "value, as += does. Otherwise, a barrier between this line's reads and its writes",
        where.text());
    return;
  }
  const std::uint32_t other = stamp_thread(stamp);
  const auto mine = static_cast<std::uint32_t>(thread.index);
  report.missing(
      "a barrier between the reads and the writes at {}: thread {} reads there what thread {} writes, and "
      "itself "
      "writes elsewhere, so an atomic would not help. In a loop, the barrier belongs in the body, and every "
      "thread must reach it",
      where.text(), read_came_first ? other : mine, read_came_first ? mine : other);
}

}  // namespace

bool explain_cluster_scope(Report& report, const Thread& thread, Stamp stamp) {
  const Gang& gang = *thread.cta->gang;
  const LastWait* passed = nullptr;
  const Thread* waiter = nullptr;
  const auto look = [&](const Thread& of) {
    if (passed != nullptr) return;
    for (const LastWait& wait : gang.hopper->thread(of).waits) {
      const Mbarrier::Published& completed = wait.barrier->completed;
      if (!completed.cluster.covers(stamp) && !completed.execution.covers(stamp)) continue;
      passed = &wait;
      waiter = &of;
    }
  };
  if (gang.hopper != nullptr && thread.execution.covers(stamp)) {
    look(thread);
    for (const Thread& mate : thread.cta->threads) look(mate);
  }
  if (passed == nullptr) return false;
  const bool released = passed->barrier->completed.cluster.covers(stamp);
  report.line("mbarrier", "{}: {} waited for it at {}, after an arrival by CTA {}",
              name_mbarrier(*passed->barrier), name_thread(gang.grid, waiter->stamp()), passed->where.text(),
              name_cta(gang.grid, stamp_cta(stamp)));
  const std::string wait = passed->where.text();
  report.missing(
      released ? fmt::format("an acquire at cluster scope: the wait at {} acquires at the scope of its CTA, "
                             "which says that the other CTA is through, and makes nothing visible that it "
                             "wrote (cuda::ptx: sem_acquire, scope_cluster)",
                             wait)
               : fmt::format("a release at cluster scope: the arrival releases at the scope of its own CTA, "
                             "which says to the wait at {} that the thread is through, and makes nothing "
                             "visible that it wrote. The arrival has .release.cluster, and the wait "
                             ".acquire.cluster (cuda::ptx: sem_release, sem_acquire, scope_cluster)",
                             wait));
  return true;
}

void explain_race(Report& report, const Thread& thread, std::uintptr_t address, Access now, Where where,
                  Access earlier, Stamp stamp, Where earlier_where, Stamp held) {
  const Cta& cta = *thread.cta;
  // A write that came first is in memory; one that comes now finds what was written before.
  const std::string content = content_text(thread, address, now, earlier == Access::kRead ? held : stamp);
  if (!content.empty()) report.line("content", content);
  if (cta.gang->hopper != nullptr && cta.gang->hopper->thread(thread).behind_relaxed.covers(stamp)) {
    report.missing(
        "a release at the barrier of the cluster between {} and {}: barrier.cluster.arrive.relaxed orders no "
        "accesses to memory. The arrival has .release, which is also what it has without a qualifier",
        earlier_where.text(), where.text());
    return;
  }
  if (stamp_cta(stamp) != cta.key) {
    if (!explain_cluster_scope(report, thread, stamp))
      report.missing(
          "a barrier of the cluster between {} and {}, or an arrival that releases and a wait that acquires "
          "at cluster scope",
          earlier_where.text(), where.text());
    return;
  }
  const BarrierInterval* barrier = last_barrier(cta, stamp);
  if (earlier == Access::kWrite && now == Access::kRead && cta.gang->cp_async &&
      cta.gang->cp_async->has_written(cta, address)) {
    report.missing(
        "a barrier after cp.async.wait_group and before {}: the wait by {} covers only that "
        "thread's own copies, and only a barrier after it makes them visible to other threads",
        where.text(), name_thread(cta.gang->grid, stamp));
    if (barrier)
      report.line("last", fmt::format("both follow {} number {} of the CTA, at {}", barrier->what,
                                      barrier - cta.intervals.data() + 1, barrier->where.text()));
    return;
  }
  if (explain_named_barrier(report, thread, stamp, where, now, earlier_where, earlier)) return;
  if (reads_too_late(thread, stamp, earlier, now) || reads_too_early(thread, stamp, earlier, now, held)
          ? explain_guarded(report, cta.threads[stamp_thread(stamp)], address, thread.stamp(), where, now)
          : explain_guarded(report, thread, address, stamp, earlier_where, earlier))
    return;
  if (earlier == Access::kWrite && now == Access::kWrite && earlier_where.packed() == where.packed() &&
      stamp_thread(stamp) / kWarpgroupSize != thread.index / kWarpgroupSize) {
    if (explain_overrun(report, thread, address, where, stamp)) return;
    report.missing(
        "separate bytes for each warpgroup: warpgroups {} and {} both execute {} and write the "
        "same bytes there (the index does not depend on the warpgroup or its role, or is the "
        "same for both). If the two should take turns, an order between them is missing instead",
        stamp_thread(stamp) / kWarpgroupSize, thread.index / kWarpgroupSize, where.text());
    return;
  }
  if (earlier == Access::kWrite && now == Access::kWrite && earlier_where.packed() == where.packed()) {
    report.missing(
        "separate bytes for each thread: threads {} and {} both write these, and nothing orders the two "
        "writes. A barrier would only decide which of the two values remains: the address that one of them "
        "gives (for a matrix, the lane that owns the row) belongs to another thread",
        stamp_thread(stamp), thread.index);
    return;
  }
  const bool read_and_write = (earlier == Access::kRead && now == Access::kWrite) ||
                              (earlier == Access::kWrite && now == Access::kRead);
  if (read_and_write && earlier_where.is_line_of(where)) {
    explain_one_line(report, thread, where, earlier, stamp, held);
    return;
  }
  if (!barrier) {
    report.missing("a barrier between {} and {}; the CTA has passed none so far", earlier_where.text(),
                   where.text());
    return;
  }
  // In a loop the access above the last barrier is of the next round.
  const auto below = [&](Where access) { return access.line() > barrier->where.line(); };
  const bool one_file = earlier_where.file() == where.file() && where.file() == barrier->where.file();
  const bool wraps = one_file && below(where) != below(earlier_where);
  report.missing(wraps ? fmt::format("a barrier after {}, before {} in the next iteration",
                                     (below(where) ? where : earlier_where).text(),
                                     (below(where) ? earlier_where : where).text())
                       : fmt::format("a barrier between {} and {}", earlier_where.text(), where.text()));
  report.line("last", fmt::format("both follow {} number {} of the CTA, at {}", barrier->what,
                                  barrier - cta.intervals.data() + 1, barrier->where.text()));
}

}  // namespace emulator
