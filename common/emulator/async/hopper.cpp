#include "emulator/async/hopper.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/async/proxy_fences.h"
#include "emulator/explore/left_out.h"
#include "emulator/ledger/ledger.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/causes/missing_arrivals.h"
#include "emulator/report/causes/missing_ends.h"
#include "emulator/report/causes/overwrites.h"
#include "emulator/report/causes/passed_phases.h"
#include "emulator/report/causes/tensor_causes.h"
#include "emulator/report/counters.h"
#include "emulator/report/member_names.h"
#include "emulator/report/report.h"
#include "harness/backend/backend.h"

namespace emulator {
namespace {

constexpr std::uint32_t kMaxAgents = 1024;

/// ", which reads k-tile 3 in stage[1].a and stage[1].b", of an instruction of the warpgroup, counted from 1.
std::string operand_text(const Warpgroup& warpgroup, std::uint32_t number) {
  const std::uint64_t first = warpgroup.started - warpgroup.operands.size() + 1;
  if (number < first || number > warpgroup.started) return {};
  const WgmmaOperand& operand = warpgroup.operands[number - first];
  const Cta& cta = *warpgroup.cta;
  std::string member = member_name(cta, operand.b);
  if (operand.a && !member.empty()) member = fmt::format("{} and {}", member_name(cta, *operand.a), member);
  std::string text = operand.k_tile < 0 ? std::string() : fmt::format("k-tile {}", operand.k_tile);
  if (!member.empty()) text += (text.empty() ? "" : " in ") + member;
  return text.empty() ? text : ", which reads " + text;
}

}  // namespace

std::uint32_t HopperCta::add_agent(AgentKind kind, std::uint32_t object) {
  if (agents.size() == kMaxAgents) {
    throw harness::Error(
        "the emulator can track 1024 mbarriers, warpgroups and storing threads per CTA; this kernel has "
        "more");
  }
  agents.push_back({kind, object});
  return static_cast<std::uint32_t>(agents.size() - 1);
}

HopperEngine::HopperEngine(Gang& gang_) : gang(gang_), copies(*this) {
  const gemm::ptx::Extent& extent = gang.grid.shape.cluster;
  for (const auto& cta : gang.ctas) {
    auto state = std::make_unique<HopperCta>();
    state->cta = cta.get();
    state->threads.resize(static_cast<std::size_t>(cta->thread_count));
    state->cluster.resize(static_cast<std::size_t>(extent.count()));
    for (const auto& other : gang.ctas) {
      if (other->id.x / extent.x == cta->id.x / extent.x && other->id.y / extent.y == cta->id.y / extent.y &&
          other->id.z / extent.z == cta->id.z / extent.z) {
        state->cluster[static_cast<std::size_t>(other->rank_in_cluster)] = other.get();
      }
    }
    state->load_of_line.assign(
        std::max<std::size_t>(cta->dynamic_window.bytes, gang.static_shared.end()) / 16 + 1, 0);
    for (int first = 0; first + static_cast<int>(kWarpgroupSize) <= cta->thread_count;
         first += static_cast<int>(kWarpgroupSize)) {
      auto warpgroup = std::make_unique<Warpgroup>();
      warpgroup->cta = cta.get();
      warpgroup->first_thread = static_cast<unsigned>(first);
      warpgroup->agent =
          state->add_agent(AgentKind::kWgmma, static_cast<std::uint32_t>(first) / kWarpgroupSize);
      state->warpgroups.push_back(std::move(warpgroup));
    }
    ctas_.push_back(std::move(state));
  }
}

HopperEngine::~HopperEngine() = default;

HopperEngine& hopper_engine(const char* what, Where where) {
  Gang& gang = *this_thread(what, where).cta->gang;
  if (!gang.hopper) {
    auto engine = std::make_unique<HopperEngine>(gang);
    gang.hopper = engine.get();
    gang.engines.push_back(std::move(engine));
  }
  return *gang.hopper;
}

void HopperEngine::make_room(std::uint32_t end) {
  for (const auto& cta : ctas_) {
    if (cta->load_of_line.size() < end / 16 + 1) cta->load_of_line.resize(end / 16 + 1, 0);
  }
}

std::size_t HopperEngine::pending() const {
  std::size_t count = copies.pending() + (tcgen05 ? tcgen05->pending() : 0);
  for (const auto& cta : ctas_) {
    for (const auto& warpgroup : cta->warpgroups) count += wgmma_pending(*warpgroup) > 0;
  }
  return count;
}

bool HopperEngine::time_is_up() {
  bool passes = false;
  for (const auto& cta : ctas_) {
    for (const auto& barrier : cta->barriers) passes |= mbarrier_time_is_up(*barrier);
  }
  return passes;
}

void HopperEngine::complete_one(Random& random) {
  std::size_t chosen = random.below(static_cast<std::uint32_t>(pending()));
  const bool nested = completing_;
  completing_ = true;
  try {
    if (chosen < copies.pending()) {
      copies.complete_one(random);
    } else if (tcgen05 && chosen - copies.pending() < tcgen05->pending()) {
      tcgen05->complete_one(random);
    } else {
      chosen -= copies.pending() + (tcgen05 ? tcgen05->pending() : 0);
      for (const auto& cta : ctas_) {
        for (const auto& warpgroup : cta->warpgroups) {
          if (wgmma_pending(*warpgroup) == 0) continue;
          if (chosen-- == 0) {
            wgmma_complete(*warpgroup, random);
            completing_ = nested;
            return;
          }
        }
      }
    }
  } catch (Failure& failure) {
    gang.fail_from_engine(std::move(failure));
  }
  completing_ = nested;
}

void HopperEngine::arrivals_under_way(std::vector<explore::UnderWay>& all) const {
  copies.arrivals_under_way(all);
  if (tcgen05) tcgen05->arrivals_under_way(all);
}

void HopperEngine::complete(const explore::UnderWay& one) {
  const bool nested = std::exchange(completing_, true);
  try {
    if (one.kind == explore::ActorKind::kCommit) {
      tcgen05->complete(one);
    } else {
      copies.complete(one);
    }
  } catch (Failure& failure) {
    gang.fail_from_engine(std::move(failure));
  }
  completing_ = nested;
}

bool HopperEngine::serve_waits() {
  bool served = false;
  for (const auto& cta : ctas_) {
    for (const auto& warpgroup : cta->warpgroups) served |= wgmma_serve_waits(*warpgroup);
  }
  return served;
}

void HopperEngine::fail(std::string rule, const Report& report) {
  if (completing_) throw Failure{std::move(rule), report.str()};
  emulator::fail(std::move(rule), report.str());
}

void HopperEngine::fail_touched(std::uint32_t operation, const std::string& bytes, Access access,
                                Where where) {
  copies.fail_touched(operation, bytes, access, where);
}

void HopperEngine::thread_exits(Thread& thread) {
  HopperCta& state = cta(*thread.cta);
  copies.thread_exits(thread);
  const std::size_t warpgroup = thread.index / kWarpgroupSize;
  if (warpgroup < state.warpgroups.size()) wgmma_thread_exits(*state.warpgroups[warpgroup], thread);
  if (tcgen05) tcgen05->thread_exits(thread);
  if (thread.cta->exited + 1 == thread.cta->thread_count) copies.cta_exits(*thread.cta);
  if (launch_control) launch_control->thread_exits(thread);
  cluster_thread_exits(thread);
  if (gang.ctas.size() == 1) return;
  int running = 0;
  for (const auto& other : gang.ctas) running += other->thread_count - other->exited;
  if (running == 1) check_remote_accesses(gang);
}

std::string HopperEngine::describe() const {
  std::string lines = copies.describe();
  if (tcgen05) {
    const std::string line = tcgen05->describe();
    if (!lines.empty() && !line.empty()) lines += '\n';
    lines += line;
  }
  for (const auto& cta : ctas_) {
    for (const auto& warpgroup : cta->warpgroups) {
      const std::string line = describe_wgmma(*warpgroup);
      if (line.empty()) continue;
      if (!lines.empty()) lines += '\n';
      lines += line;
    }
    if (const std::string named = describe_named_barriers(cta->named_barriers); !named.empty()) {
      if (!lines.empty()) lines += '\n';
      lines += named;
    }
    for (const auto& barrier : cta->barriers) {
      if (barrier->waiting.empty()) continue;
      if (!lines.empty()) lines += '\n';
      lines += describe_waited(*barrier);
      if (const std::string releases = describe_releases(*barrier); !releases.empty())
        lines += "\n  " + releases;
    }
  }
  for (const EarlyArrival& early : early_arrivals) {
    if (!lines.empty()) lines += '\n';
    lines += "early: " + text(gang.grid, early);
  }
  return lines;
}

namespace {

/// A place of another CTA's shared memory that lies behind its end: by how much, and where in it the thread's
/// store before this one went.
void explain_behind_the_end(Report& report, const Thread& thread, std::uint32_t rank, std::uint32_t offset) {
  HopperEngine& engine = *thread.cta->gang->hopper;
  const Cta& target = *engine.cta(*thread.cta).cluster[rank];
  const auto end = static_cast<std::uint32_t>(target.dynamic_window.bytes);
  if (offset < end) return;
  const LoadRecord* before = nullptr;
  engine.copies.visit_loads([&](const LoadRecord& load) {
    if (load.remote && load.issuer >> 32 == thread.stamp() >> 32 && (!before || load.serial > before->serial))
      before = &load;
  });
  std::string member = before ? member_name(*before->barrier->cta, before->offset) : std::string();
  if (!member.empty())
    report.line("before", "its previous store, at {}, went to {} in CTA {} (offset {:#x})",
                before->where.text(), member, text(before->barrier->cta->id), before->offset);
  report.missing(
      "a smaller index: the shared memory of CTA {} has {:#x} bytes, and this address lies {} bytes past its "
      "end{}. If several CTAs send, each needs its own slots at the receiver. A receiver that sends nothing "
      "to itself has one slot fewer, and CTAs with higher ranks use the slot before",
      text(target.id), end, offset - end,
      member.empty() ? std::string() : fmt::format(" (and after {}[])", member.substr(0, member.find('['))));
}

}  // namespace

Cta& HopperEngine::cluster_cta(const char* what, std::uint32_t address, Where where,
                               std::uint32_t alignment) {
  const Thread& thread = running_thread();
  const HopperCta& state = cta(*thread.cta);
  const std::uint32_t rank = address >> 24;
  const std::uint32_t offset = address & 0xffffffu;
  if (rank < state.cluster.size() && offset % alignment == 0 &&
      shared_room(*state.cluster[rank], offset) >= alignment) {
    return *state.cluster[rank];
  }
  Report report(
      "{} uses an address that is misaligned or outside the cluster's shared memory: at least {} bytes must "
      "follow, and it must be a multiple of {}",
      what, alignment, alignment);
  report.at(where, thread)
      .line("address", "{:#x}: offset {:#x} of CTA rank {} in a cluster of {}", address, offset, rank,
            state.cluster.size());
  if (rank < state.cluster.size() && offset % alignment == 0)
    explain_behind_the_end(report, thread, rank, offset);
  fail(
      "cluster-address",
      report.rule(
          "the address must come from mapa, for a variable in the shared memory of a CTA in the same cluster",
          "PTX ISA, \"mapa\""));
}

std::uint32_t HopperEngine::fence_after(Stamp write, bool shared) const {
  for (const auto& state : ctas_) {
    if (state->cta->key != stamp_cta(write)) continue;
    const HopperThread& writer = state->threads[stamp_thread(write)];
    return first_fence(shared ? writer.shared_fences : writer.global_fences, stamp_time(write));
  }
  // cp.async copies that arrive by themselves: no thread could have executed a fence behind them.
  if (is_agent(write)) return 0;
  return stamp_time(write);  // another gang's: its fences are not known here
}

bool HopperEngine::by_async_proxy(Stamp stamp) const {
  if (!is_agent(stamp)) return false;
  for (const auto& state : ctas_) {
    if (state->cta->key == (stamp_cta(stamp) & (kAgentKey - 1))) {
      const AgentKind kind = state->agents[stamp_thread(stamp)].kind;
      return kind != AgentKind::kCopies && kind != AgentKind::kRemote;
    }
  }
  return true;
}

bool HopperEngine::fenced(const Thread& reader, Stamp write, bool shared) const {
  const std::uint32_t fence = fence_after(write, shared);
  if (fence != 0 && knows(reader, make_stamp(stamp_cta(write), stamp_thread(write), fence))) return true;
  return !course_rule_on(CourseRule::kProxyFenceByWriter) && fenced_on_the_way(reader, write, shared);
}

bool HopperEngine::read_fenced(const Thread& thread, Stamp read) const {
  const std::uint32_t fence = fence_after(read, true);
  return (fence != 0 && knows_over(thread, make_stamp(stamp_cta(read), stamp_thread(read), fence))) ||
         fenced(thread, read, true);
}

void HopperEngine::touches_remote(Thread& thread, const Mbarrier& barrier, Where where) {
  arrives_at(thread, thread.stamp(), barrier, where);
}

void HopperEngine::arrives_at(const Thread& thread, Stamp stamp, const Mbarrier& barrier, Where where) {
  if (barrier.cta != thread.cta) note_remote(*barrier.cta, {stamp, where, &barrier});
}

void HopperEngine::note_remote(const Cta& target, const RemoteAccess& access) {
  HopperCta& state = cta(target);
  if (target.exited == target.thread_count) fail_remote_exit(*this, target, access);
  for (RemoteAccess& known : state.remote) {
    if (known.stamp >> 32 == access.stamp >> 32) {
      known = access;
      return;
    }
  }
  state.remote.push_back(access);
}

std::string name_agent(const Gang& gang, Stamp stamp) {
  const std::uint32_t key = stamp_cta(stamp) & (kAgentKey - 1);
  const std::string cta_text = name_cta(gang.grid, key);
  const HopperCta* state = nullptr;
  for (const auto& cta : gang.ctas) {
    if (cta->key == key && gang.hopper) state = &gang.hopper->cta(*cta);
  }
  if (!state) return fmt::format("an asynchronous copy by CTA {}", cta_text);
  const Agent agent = state->agents[stamp_thread(stamp)];
  const std::uint32_t time = stamp_time(stamp);
  switch (agent.kind) {
    case AgentKind::kWgmma:
      return fmt::format("wgmma {} of warpgroup {} of CTA {}{}", time, agent.object, cta_text,
                         operand_text(*state->warpgroups[agent.object], time));
    case AgentKind::kMultiplications:
      return gang.hopper->tcgen05->name_agent(*state->cta, agent.object, time);
    case AgentKind::kLoads:
      return fmt::format("a load that signals {} in phase {}", name_mbarrier(*state->barriers[agent.object]),
                         time - 1);
    case AgentKind::kCommits:
      return name_commit(*state->barriers[agent.object], time);
    case AgentKind::kCopies:
      return fmt::format("a cp.async that arrives at {} in phase {}",
                         name_mbarrier(*state->barriers[agent.object]), time - 1);
    case AgentKind::kRemote:
      return fmt::format("an st.async that signals {} in phase {}",
                         name_mbarrier(*state->barriers[agent.object]), time - 1);
    default:
      return fmt::format("a bulk store of {}, group {}",
                         name_thread(gang.grid, make_stamp(key, agent.object, 1)), time);
  }
}

void add_wait_notes(Report& report, const Thread& thread) {
  HopperEngine* engine = thread.cta->gang->hopper;
  if (!engine) return;
  constexpr std::size_t kShown = 2;
  const std::vector<LastWait>& waits = engine->thread(thread).waits;
  for (std::size_t i = 0; i < std::min(kShown, waits.size()); ++i) {
    const LastWait& wait = waits[waits.size() - 1 - i];
    // A wait that passed without any phase completing is the classic one.
    if (wait.phase == 0) {
      report.line("note",
                  "its wait at {} for parity {} of {} passed at once: a barrier in phase 0 counts the "
                  "preceding phase, with parity 1, as complete",
                  wait.where.text(), wait.parity, name_mbarrier(*wait.barrier));
    } else {
      report.line("note", "its latest wait on {}, at {}, saw phase {} complete", name_mbarrier(*wait.barrier),
                  wait.where.text(), wait.phase - 1);
    }
  }
}

void fail_async_race(const char* space, const std::string& bytes, std::uintptr_t address, Access access,
                     Where where, const Thread& thread, Access earlier, Stamp stamp, Where earlier_where) {
  Gang& gang = *thread.cta->gang;
  const char* now = access == Access::kRead ? "read" : access == Access::kWrite ? "write" : "atomic access";
  const std::string subject = fmt::format("{} {}", now[0] == 'a' ? "an" : "a", now);
  const std::uint32_t key = stamp_cta(stamp) & (kAgentKey - 1);
  AgentKind kind = AgentKind::kStoreWrites;
  const HopperCta* state = nullptr;
  for (const auto& cta : gang.ctas) {
    if (cta->key == key && gang.hopper) state = &gang.hopper->cta(*cta);
  }
  if (state) kind = state->agents[stamp_thread(stamp)].kind;
  std::string rule;
  std::string headline;
  std::string sentence;
  std::string source;
  switch (kind) {
    case AgentKind::kWgmma:
      rule = "wgmma-operand-overwritten";
      headline = fmt::format("{} accesses bytes that wgmma may still be reading", subject);
      sentence =
          "an operand in shared memory belongs to wgmma until wgmma.wait_group covers it; other threads "
          "learn that through a barrier (or an mbarrier arrival) after the wait";
      source = "PTX ISA, \"wgmma.mma_async\", \"wgmma.wait_group\"";
      break;
    case AgentKind::kMultiplications:
      rule = "tcgen05-operand-overwritten";
      headline =
          fmt::format("{} accesses bytes that tcgen05.mma or tcgen05.cp may still be reading", subject);
      sentence =
          "an operand in shared memory belongs to tcgen05.mma, and the source to tcgen05.cp, until a wait "
          "has seen the arrival of a later tcgen05.commit";
      source = "PTX ISA, \"tcgen05.mma\", \"tcgen05.cp\", \"tcgen05.commit\"";
      break;
    case AgentKind::kLoads:
      rule = "load-not-waited";
      headline =
          fmt::format("{} accesses bytes that a copy has written, without a wait for the copy", subject);
      sentence =
          "a load is visible to a thread only after its own successful wait at the mbarrier that the load "
          "signals, or after a barrier with a thread that has waited";
      source = "PTX ISA, \"cp.async.bulk.tensor\", \"mbarrier.try_wait\"";
      break;
    case AgentKind::kCopies:
      rule = "load-not-waited";
      headline =
          fmt::format("{} accesses bytes that a cp.async has written, without a wait for the copy", subject);
      sentence = "copies that arrive at an mbarrier are complete when their phase is complete";
      source = "PTX ISA, \"cp.async.mbarrier.arrive\"";
      break;
    case AgentKind::kRemote:
      rule = "load-not-waited";
      headline = fmt::format("{} accesses bytes that an st.async has written, without a wait for the store",
                             subject);
      sentence =
          "data that a CTA in the cluster stores with st.async are visible to a thread when it has waited, "
          "with acquire at cluster scope, for the phase of the mbarrier that the store signals";
      source = "PTX ISA, \"st.async\", \"mbarrier.try_wait\"";
      break;
    case AgentKind::kStoreReads:
      rule = "store-source-overwritten";
      headline = fmt::format("{} accesses shared memory that a bulk store may still be reading", subject);
      sentence =
          "before the bytes are reused, the thread that issued the store must wait with "
          "cp.async.bulk.wait_group.read, and a barrier must follow";
      source = "PTX ISA, \"cp.async.bulk.wait_group\"";
      break;
    case AgentKind::kCommits:  // it touches no memory but the mbarrier
    case AgentKind::kStoreWrites:
      rule = "store-not-waited";
      headline = fmt::format("{} accesses {} memory that a bulk store may still be writing", subject, space);
      sentence =
          "a bulk store's data are in memory only after its thread's cp.async.bulk.wait_group (without "
          ".read)";
      source = "PTX ISA, \"cp.async.bulk.wait_group\"";
      break;
  }
  Report report(headline);
  report.line("bytes", bytes);
  report.line("one", "{} at {} by {}", earlier == Access::kRead ? "read" : "write", earlier_where.text(),
              name_agent(gang, stamp));
  report.line("other", "{} at {} by {}", now, where.text(), name_thread(thread));
  if (kind == AgentKind::kWgmma) {
    if (const std::string content = content_text(thread, address, access, 0); !content.empty())
      report.line("content", content);
  }
  if (kind == AgentKind::kLoads) {
    const std::optional<std::uint32_t> offset =
        shared_offset(*state->cta, reinterpret_cast<const void*>(address), where);
    if (const LoadRecord* load = offset ? gang.hopper->copies.record(*state->cta, *offset / 16) : nullptr) {
      report.line("load", describe_load(gang.grid, *load));
    }
    const Mbarrier& barrier = *state->barriers[state->agents[stamp_thread(stamp)].object];
    report.line("barrier", "{}, {}", name_mbarrier(barrier), describe_mbarrier(barrier));
  }
  if (kind == AgentKind::kLoads) {
    explain_missing_wait(report, thread, *state->barriers[state->agents[stamp_thread(stamp)].object],
                         stamp_time(stamp) - 1);
  }
  if (kind == AgentKind::kRemote)
    explain_missing_wait(report, thread, *state->barriers[state->agents[stamp_thread(stamp)].object],
                         stamp_time(stamp) - 1, true);
  if (kind == AgentKind::kMultiplications)
    report.missing(gang.hopper->tcgen05->missing_commit(
        *state->cta, state->agents[stamp_thread(stamp)].object, stamp_time(stamp)));
  if (kind == AgentKind::kWgmma || kind == AgentKind::kStoreReads) {
    explain_missing_end(report, gang, stamp, earlier_where, fmt::format("the {} at {}", now, where.text()));
    if (kind == AgentKind::kStoreReads) explain_other_buffers(report, thread, stamp);
  }
  if (kind == AgentKind::kStoreWrites) {
    if (access == Access::kRead && key != thread.cta->key)
      report.missing(
          "cp.async.bulk.wait_group 0 (without .read) by the thread that stores, after the store at {} and "
          "before it tells CTA {} that the bytes are there: wait_group.read waits only until the store has "
          "read its source",
          earlier_where.text(), name_cta(*thread.cta));
    else if (gang.hopper)
      gang.hopper->copies.explain_stores(report, thread, stamp, address);
    else
      explain_two_owners(report, thread, stamp, address);  // this CTA copies nothing itself
  }
  const bool other_owner =
      key != thread.cta->key ||
      (state && state->agents[stamp_thread(stamp)].object / kWarpgroupSize != thread.index / kWarpgroupSize);
  if (kind == AgentKind::kStoreWrites && other_owner && earlier == Access::kWrite &&
      access == Access::kWrite) {
    sentence =
        "if nothing orders two writes, either value may remain, so each element of D must be stored by only "
        "one CTA and by only one of its warpgroups";
    source = "PTX ISA, \"Memory Consistency Model\"";
  }
  add_wait_notes(report, thread);
  report.rule(sentence, source);
  gang.hopper ? gang.hopper->fail(rule, report) : fail(rule, report.str());
  std::abort();
}

void fence_proxy_async(const char* what, bool shared, bool global, Where where) {
  if (is_left_out(what, where)) return;
  Thread& thread = this_thread(what, where);
  HopperThread& state = hopper_engine(what, where).thread(thread);
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  note_proxy_fence(shared, global, where);
  if (ledger_on() && shared) ledger_proxy_fence();
  const std::uint32_t time = thread.time;
  if (shared) state.shared_fences.push_back(time);
  if (global) state.global_fences.push_back(time);
  if (shared) state.init_fences.push_back(time);
  thread.advance();
}

void fence_mbarrier_init(Where where) {
  constexpr const char* kWhat = "fence_mbarrier_init_release_cluster";
  if (is_left_out(kWhat, where)) return;
  Thread& thread = this_thread(kWhat, where);
  if (context.counters) count_instruction(kWhat, where, 1, 1);
  HopperThread& state = hopper_engine(kWhat, where).thread(thread);
  state.init_releases.push_back(thread.time);
  record_fence(state.init_fences, thread);
}

}  // namespace emulator
