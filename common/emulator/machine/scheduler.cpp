// Runs the threads of a gang, one at a time, in an order that the seed decides.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "emulator/explore/run.h"
#include "emulator/machine/context.h"
#include "emulator/machine/frames.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/ranks.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/remote_accesses.h"
#include "emulator/report/causes/byte_counts.h"
#include "emulator/report/causes/departures.h"
#include "emulator/report/causes/meetings.h"
#include "emulator/report/causes/missing_arrivals.h"
#include "emulator/report/causes/never_arrived.h"
#include "emulator/report/causes/tensor_causes.h"
#include "emulator/report/causes/wrong_state.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/sync/warps.h"
#include "harness/backend/backend.h"
#include "ptx/core.cuh"

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local uint3 blockDim{};
constinit thread_local uint3 gridDim{};

namespace emulator {

constinit thread_local Context context;
constinit thread_local bool store_is_open = false;

namespace {

std::atomic<std::uint64_t> next_tag{1};

/// A CTA's stream of random numbers depends on the seed and its place in the grid, not on the OS thread.
std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  Random random(seed * 0x2545f4914f6cdd1du + index);
  return random.next();
}

constexpr std::uint64_t kSwitchesPerLook = 65536;  // at the clock
/// The number of yields in a row without any write, barrier or exit after which a gang counts as stuck,
/// whatever its threads do between them; and after which it is worth looking whether they run in circles.
constexpr std::uint64_t kSpinLimit = 2'000'000;
constexpr std::uint64_t kSpinsBeforeCircles = 1024;
/// The number of times that the time of all waits is up before a gang counts as stuck: without any change in
/// between, and in all.
constexpr int kTimesInVain = 2;
constexpr int kMostTimes = 1000;
/// A thread that asks so often in a row does not decide at random whether it waits.
constexpr std::uint32_t kPollsBeforeCircle = 256;
constexpr std::uint32_t kPollsUntilNextFingerprint =
    61;  // a prime, so that every poll of a circle has its turn
// So many polls that change nothing, and an asynchronous operation completes even in the mode in which they
// are late.
constexpr std::uint64_t kPatience = 256;

// Bytes of __shared__ variables from which on the scheduler avoids switches between CTAs.
constexpr std::size_t kMuchToExchange = 4096;

}  // namespace

struct ThreadEntry {
  static void run(void* argument) {
    auto* thread = static_cast<Thread*>(argument);
    Gang& gang = *thread->cta->gang;
    try {
      (*gang.grid.body)();
      if (store_is_open) [[unlikely]]
        settle_store();
      for (const auto& engine : gang.engines) engine->thread_exits(*thread);
      leave_warp(*thread);
      const Cta& cta = *thread->cta;
      if (cta.exited + 1 == cta.thread_count && !cta.unwritten_read.empty()) {
        gang.fail("shared-uninitialised", cta.unwritten_read);
      }
      if (cta.exited + 1 == cta.thread_count) check_remote_accesses_over(*thread);
      if (cta.exited + 1 == cta.thread_count && !cta.unseen_phase.empty())
        gang.fail("mbarrier-phase-unseen", cta.unseen_phase);
    } catch (const Fiber::Stop&) {
      // The report is where run() finds it.
    } catch (...) {
      gang.exception_ = std::current_exception();  // run() throws it again: it cannot cross the fiber's end
    }
    thread->state = ThreadState::kExited;
    ++thread->cta->exited;
    --gang.live_;
    ++gang.progress;
  }
};

Stamp Thread::stamp() const {
  return make_stamp(cta->key, index, time);
}

void Thread::advance() {
  ++time;
  if (context.thread == this) context.now = stamp();
}

void Thread::release_into(SyncObject& object) {
  object.clock.join(clock);
  object.clock.raise_base(cta->key, base);
  if (!execution.empty()) object.execution.join(execution);
  if (!sequential_past.empty()) object.sequential_past.join(sequential_past);
  if (!sequential_seen.empty()) object.sequential_seen.join(sequential_seen);
  object.clock.add(stamp());
  advance();
}

void Thread::acquire_from(const SyncObject& object) {
  clock.join(object.clock);
  if (!object.execution.empty()) execution.join(object.execution);
  if (!object.sequential_past.empty()) sequential_past.join(object.sequential_past);
  if (!object.sequential_seen.empty()) sequential_seen.join(object.sequential_seen);
}

uint3 Grid::cta_id(std::uint64_t linear) const {
  const gemm::ptx::Extent& grid = shape.grid;
  return {static_cast<unsigned>(linear % grid.x), static_cast<unsigned>(linear / grid.x % grid.y),
          static_cast<unsigned>(linear / grid.x / grid.y)};
}

Gang::Gang(Worker& worker_, Grid& grid_, std::uint64_t index, const std::vector<std::uint64_t>& members)
    : worker(worker_),
      grid(grid_),
      random(mix(grid_.options.seed, index + (std::uint64_t{grid_.first_key} << 32))) {
  worker.cta_arena.reset();
  const gemm::ptx::Extent& block = grid.shape.block;
  const int thread_count = static_cast<int>(block.count());
  worker.fibers.reserve(members.size() * static_cast<std::size_t>(thread_count));
  std::size_t fiber = 0;
  for (const std::uint64_t linear : members) {
    auto cta = std::make_unique<Cta>();
    cta->gang = this;
    cta->linear = linear;
    cta->id = grid.cta_id(linear);
    cta->key = cta_key(grid.first_key + linear);
    cta->thread_count = thread_count;
    cta->index_in_gang = ctas.size();
    const gemm::ptx::Extent& cluster = grid.shape.cluster;
    cta->rank_in_cluster = static_cast<int>(cta->id.x % cluster.x + cta->id.y % cluster.y * cluster.x +
                                            cta->id.z % cluster.z * cluster.x * cluster.y);
    cta->tag = next_tag.fetch_add(1, std::memory_order_relaxed);
    cta->threads.resize(static_cast<std::size_t>(thread_count));
    cta->warps.resize(static_cast<std::size_t>((thread_count + kWarpSize - 1) / kWarpSize));
    const std::size_t shared_bytes = static_cast<std::size_t>(grid.shape.shared_bytes);
    Worker::SharedArena& arena = worker.shared_arena(ctas.size());
    cta->shared = arena.memory;
    cta->arena = arena.memory;
    cta->static_begin = static_cast<std::uint32_t>((shared_bytes + 1023) / 1024 * 1024);
    cta->dynamic_window = {reinterpret_cast<std::uintptr_t>(arena.memory), shared_bytes / 16 * 16,
                           shared_bytes, arena.lines};
    std::memset(arena.memory, 0xff, shared_bytes);  // NaN in every format
    for (int i = 0; i < thread_count; ++i) {
      Thread& thread = cta->threads[static_cast<std::size_t>(i)];
      const unsigned u = static_cast<unsigned>(i);
      thread.cta = cta.get();
      if (!grid.before.empty()) thread.clock = grid.before;
      thread.index = u;
      thread.id = {u % block.x, u / block.x % block.y, u / block.x / block.y};
      thread.fiber = &worker.fibers[fiber++];
    }
    ctas.push_back(std::move(cta));
  }
  // Half of the schedules pick any runnable thread; the other half prefers some warps to others for a while,
  // so that a fast producer meets a slow consumer and the other way round.
  favour_warps_ = random.below(2) == 0;
}

Gang::~Gang() = default;

void Gang::start_threads() {
  for (const auto& cta : ctas) {
    for (Thread& thread : cta->threads) {
      thread.fiber->start(&ThreadEntry::run, &thread);
      runnable_.push_back(&thread);
      ++live_;
    }
  }
}

bool Gang::only_slow_ones() const {
  return std::all_of(runnable_.begin(), runnable_.end(), [&](const Thread* one) { return is_slow(*one); });
}

/// What Options::cta_order wants. A thread that polls goes behind all that may change what it waits for.
bool Gang::goes_before(const Thread& one, const Thread& other) const {
  const bool one_polls = one.polls.front().repeats > 0;
  const bool other_polls = other.polls.front().repeats > 0;
  if (one_polls != other_polls) return other_polls;
  return grid.options.cta_order == CtaOrder::kAscending ? one.cta->linear < other.cta->linear
                                                        : one.cta->linear > other.cta->linear;
}

Thread* Gang::pick() {
  std::size_t chosen = random.below(static_cast<std::uint32_t>(runnable_.size()));
  // Threads that poll may be waiting for a slow one, so then all have their turn.
  if (grid.options.slow_warps != 0 && spins_ < kPatience && !only_slow_ones()) {
    while (is_slow(*runnable_[chosen])) chosen = random.below(static_cast<std::uint32_t>(runnable_.size()));
  } else if (grid.options.cta_order != CtaOrder::kSeed) {
    // Whoever polls has a turn now and then: it goes on before others have brought more.
    const bool in_order = spins_ < kPatience && random.below(8) != 0;
    const std::size_t first = chosen;
    for (std::size_t i = 1; in_order && i < runnable_.size(); ++i) {
      const std::size_t other = (first + i) % runnable_.size();
      if (goes_before(*runnable_[other], *runnable_[chosen])) chosen = other;
    }
  } else if (favour_warps_ && runnable_.size() > 1) {
    // The better of three random candidates, by a priority per warp that changes now and then.
    const std::uint64_t epoch = switches_ >> 10;
    auto priority = [&](const Thread& thread) {
      return Random((epoch << 40) ^ (static_cast<std::uint64_t>(thread.cta->linear) << 8) ^
                    static_cast<std::uint64_t>(thread.warp()))
          .next();
    };
    for (int i = 0; i < 2; ++i) {
      const std::size_t other = random.below(static_cast<std::uint32_t>(runnable_.size()));
      if (priority(*runnable_[other]) > priority(*runnable_[chosen])) chosen = other;
    }
  }
  if (static_shared.exchanged_bytes() > kMuchToExchange && random.below(8) != 0) {
    // A switch to another CTA costs more than what a thread does until it waits: mostly stay.
    for (int i = 0; i < 8 && !static_shared.in_place(*runnable_[chosen]->cta); ++i)
      chosen = random.below(static_cast<std::uint32_t>(runnable_.size()));
  }
  Thread* thread = runnable_[chosen];
  runnable_[chosen] = runnable_.back();
  runnable_.pop_back();
  return thread;
}

void Gang::switch_to(Thread& thread) {
  const Cta& cta = *thread.cta;
  Context& c = context;
  if (c.thread == nullptr || c.thread->cta != thread.cta) {
    const gemm::ptx::Extent& block = grid.shape.block;
    const gemm::ptx::Extent& extent = grid.shape.grid;
    c.tag = cta.tag << 8;
    c.dynamic_shared = cta.dynamic_window;
    c.static_shared = cta.static_window;
    if (static_shared.exchanges()) static_shared.bring_in(*thread.cta);
    c.counters = grid.options.counters;
    blockIdx = cta.id;
    blockDim = {block.x, block.y, block.z};
    gridDim = {extent.x, extent.y, extent.z};
  }
  c.thread = &thread;
  c.now = thread.stamp();
  c.base = thread.base;
  c.first_load = thread.first_load;
  c.last_load = thread.last_load;
  c.first_stored = thread.first_stored;
  c.last_stored = thread.last_stored;
  threadIdx = thread.id;
  watch_fiber_begins();
  thread.fiber->resume();
  watch_fiber_ends();
  thread.first_load = c.first_load;
  thread.last_load = c.last_load;
  thread.first_stored = c.first_stored;
  thread.last_stored = c.last_stored;
}

bool Gang::complete_something() {
  std::size_t total = 0;
  for (const auto& engine : engines) total += engine->pending();
  if (total == 0) return false;
  ++completions;
  std::size_t chosen = random.below(static_cast<std::uint32_t>(total));
  for (const auto& engine : engines) {
    if (chosen < engine->pending()) {
      engine->complete_one(random);
      return true;
    }
    chosen -= engine->pending();
  }
  return false;
}

/// A single try_wait for a phase that never ends returns after some time, and the thread goes on. A loop
/// around it asks again: when time has passed without anything else happening, the threads wait for ever.
bool Gang::let_time_pass() {
  const std::uint64_t changes = progress + global_stores + live_;
  if (changes != time_changes_) times_in_vain_ = 0;
  time_changes_ = changes;
  if (times_in_vain_ == kTimesInVain || times_ == kMostTimes) return false;
  bool passes = false;
  for (const auto& engine : engines) passes |= engine->time_is_up();
  if (passes) {
    ++times_in_vain_;
    ++times_;
  }
  return passes;
}

/// A loop with barriers or changing atomics inside makes progress for ever.
void Gang::check_time(double passed) {
  const double limit = grid.options.launch_seconds;
  if (limit <= 0 || passed < limit) return;
  Report report(
      "the kernel is still running after {:g} s: either it does not end, or it needs more time than that",
      limit);
  for (const auto& cta : ctas) {
    if (cta->exited < cta->thread_count) report.block(places_of_threads(*cta));
  }
  report.rule("every loop in a kernel must end: a tile, a k-tile or a counter advances in each iteration",
              "this course");
  failure_ = std::make_unique<Failure>(Failure{"livelock", report.str()});
}

std::unique_ptr<Failure> Gang::run() {
  start_threads();
  context.thread = nullptr;
  store_is_open = false;
  if (explore::searching() && explore::current().kind() != explore::Run::Kind::kRecord) run_explored();
  if (explore::searching() && explore::current().kind() == explore::Run::Kind::kRecord)
    explore::current().begin_gang(*this);
  while (live_ > 0 && !failure_ && !exception_) {
    if (grid.rank >= 0 && !ranks::take_turn(*this, failure_)) {
      stopped_ = true;
      break;
    }
    if (++switches_ % kSwitchesPerLook == 0) {
      check_time(std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count());
    } else if (watch_has_ticked()) {
      check_time(watch_seconds());
    }
    if (failure_) break;
    if (!engines.empty() && grid.options.completion == Completion::kRandom && random.below(4) == 0) {
      complete_something();
    }
    if (starved_) {
      starved_ = false;
      complete_something();
    }
    if (failure_) break;  // of an operation that has just completed: no thread need run to find it
    if (runnable_.empty()) {
      if (complete_something() || let_time_pass()) continue;
      stuck();
      break;
    }
    if (grid.options.slow_warps != 0 && grid.options.completion != Completion::kLatest && only_slow_ones() &&
        complete_something())
      continue;
    Thread& thread = *pick();
    switch_to(thread);
    if (std::unique_ptr<Failure> fault = take_fault(thread)) failure_ = std::move(fault);
    if (spins_ > kSpinsBeforeCircles && !failure_ && all_in_circles(thread)) {
      failure_ =
          std::make_unique<Failure>(livelock("nothing in memory changes any more: every thread that can run "
                                             "polls for a value that no thread is going to write"));
    }
  }
  if (explore::searching()) explore::current().end_gang();
  if (grid.options.counters) finish_counters(*this);
  if (!failure_ && !exception_ && !stopped_) remember_phases(*this);
  context = Context{};
  if (exception_) std::rethrow_exception(exception_);
  return std::move(failure_);
}

void Gang::suspend_waiting() {
  Thread& thread = running_thread();
  thread.state = ThreadState::kWaiting;
  thread.fiber->suspend();
}

void Gang::make_runnable(Thread& thread) {
  if (explore::is_choosing()) explore::woken(thread);
  thread.state = ThreadState::kRunnable;
  thread.wait = {};
  runnable_.push_back(&thread);
}

Failure Gang::livelock(const std::string& headline) const {
  Report report(headline);
  report.block(describe_polls(*this));
  const std::string unset = unset_words(*this);
  if (!grid.all_started()) {
    report.missing(
        "{} of the {} CTAs have not started: they wait for an SM, but the polling CTAs occupy all of them",
        (grid.gangs - grid.started) * ctas.size(), grid.shape.grid.count());
    if (!unset.empty()) report.block(unset);
    report.rule(
        "a CTA may wait only for CTAs that are resident at the same time, as in co-resident grids and "
        "clusters",
        "CUDA C++ Programming Guide, \"Cooperative Groups: Grid Synchronization\"");
  } else {
    if (!unset.empty()) report.block(unset);
    report.rule("every wait needs a thread or an operation that can still end it",
                "PTX ISA, \"Memory Consistency Model\"");
  }
  return {"livelock", report.str()};
}

std::uint64_t Gang::shared_fingerprint() const {
  std::uint64_t print = 0;
  for (const auto& cta : ctas) {
    for (std::size_t i = 0; i + sizeof print <= cta->dynamic_window.bytes; i += sizeof print) {
      std::uint64_t word = 0;
      std::memcpy(&word, cta->shared + i, sizeof word);
      print = (print ^ word) * 0x9e3779b97f4a7c15u;
      print ^= print >> 32;
    }
  }
  return print;
}

/// Whether no thread can ever do anything else than it does now. What a thread does next follows from its
/// registers and its stack, and from memory. So a thread that polls, and in whose registers and stack there
/// is the same as at an earlier poll, runs in a circle as long as memory is the same; and when all do that
/// can run, no operation is under way, and memory is the same behind a circle of each of them, then they will
/// do so for ever. (Other threads could change memory only from another OS thread. A wrapper that returns
/// something that changes by itself, like a clock, would have to count as progress.)
bool Gang::all_in_circles(Thread& polled) {
  if (grid.rank >= 0) return false;  // other ranks may change memory (ranks::take_turn)
  if (polled.state != ThreadState::kRunnable || !(grid.gangs == 1 || grid.single_os_thread)) return false;
  if (static_shared.end() != 0 || static_shared.exchanges()) return false;  // not in the fingerprint
  const std::uint64_t changes = progress + global_stores;
  if (changes != circle_changes_ || circle_round_ == 0) {
    circle_changes_ = changes;
    circle_shared_known_ = false;
    circles_closed_ = 0;
    ++circle_round_;
  }
  Thread::Circle& circle = polled.circle;
  if (circle.round != circle_round_) circle = {.round = circle_round_};
  if (circle.is_closed || ++circle.polls < kPollsBeforeCircle) return false;
  const std::uint64_t fingerprint = polled.fiber->fingerprint();
  if (circle.fingerprint != fingerprint) {
    // Later ones are compared with another one now and then: the circle may begin later, and the emulator's
    // own values, which decide nothing, may lie on the stack at some of its polls.
    if (circle.polls % kPollsUntilNextFingerprint == 0) circle.fingerprint = fingerprint;
    return false;
  }
  circle.is_closed = true;
  if (++circles_closed_ < runnable_.size()) return false;
  for (const auto& engine : engines) {
    if (engine->pending() != 0) return false;
  }
  const std::uint64_t shared = shared_fingerprint();
  if (circle_shared_known_ && circle_shared_ == shared) return true;
  circle_shared_ = shared;
  circle_shared_known_ = true;
  circles_closed_ = 0;
  ++circle_round_;
  return false;
}

void Gang::yield() {
  if (store_is_open) [[unlikely]]
    settle_store();
  ++yields;
  if (progress != progress_seen_) {
    progress_seen_ = progress;
    spins_ = 0;
  } else if (++spins_ % kPatience == 0 && (spins_ <= kSpinLimit || grid.rank >= 0)) {
    starved_ = true;  // threads that poll may wait for what only the engines can bring
  } else if (spins_ > kSpinLimit && grid.rank < 0) {
    [&]() __attribute__((noinline)) {  // its variables are in a frame of its own
      Failure failure =
          livelock(fmt::format("nothing in memory has changed for {} polls: the threads that can run wait "
                               "for a value that no thread is going to write",
                               kSpinLimit));
      fail(std::move(failure.rule), std::move(failure.text));
    }
    ();
  }
  Thread& thread = running_thread();
  runnable_.push_back(&thread);
  if (spins_ > kSpinsBeforeCircles) forget_returned_frames();
  thread.fiber->suspend();
}

void Gang::fail(std::string rule, std::string text) {
  failure_ = std::make_unique<Failure>(Failure{std::move(rule), std::move(text)});
  if (running_thread().in_hook) {
    abandon();
    std::abort();  // nobody resumes it
  }
  throw Fiber::Stop{};  // the other threads are abandoned where they wait
}

void Gang::abandon() {
  running_thread().fiber->suspend();
}

void Gang::fail_from_engine(Failure failure) {
  if (!failure_) failure_ = std::make_unique<Failure>(std::move(failure));
}

/// Lanes that a warp-wide instruction waits for and that have returned, of the first such warp; or "".
static std::string lanes_that_left(const Cta& cta) {
  for (const Thread& thread : cta.threads) {
    if (thread.state != ThreadState::kWaiting || thread.wait.kind != WaitKind::kWarp) continue;
    std::vector<std::uint32_t> left;
    std::vector<std::uint32_t> there;
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
      const std::size_t index = static_cast<std::size_t>(thread.warp()) * kWarpSize + lane;
      if (index >= cta.threads.size()) break;
      const Thread& mate = cta.threads[index];
      if (mate.state != ThreadState::kExited) there.push_back(lane);
      if ((thread.wait.mask >> lane & 1) && mate.state == ThreadState::kExited) left.push_back(lane);
    }
    if (left.empty()) continue;
    return fmt::format(
        "{} of warp {} of CTA {}: the mask {:#x} of {} at {} names them, but they returned from the kernel "
        "before that instruction. A lane may return only after its warp's last warp-wide instruction (until "
        "then it takes part and stores nothing), or together with its whole warp; {} still here",
        emulator::ranges("lane", left), thread.warp(), text(cta.id), thread.wait.mask, thread.wait.what,
        thread.wait.where.text(), emulator::ranges("lane", there) + (there.size() == 1 ? " is" : " are"));
  }
  return {};
}

/// Whether the thread waits at an instruction that all lanes of its warp execute, in one place.
static bool waits_at_aligned(const Thread& thread) {
  if (thread.state != ThreadState::kWaiting || thread.wait.kind != WaitKind::kWarp) return false;
  const auto& open = thread.cta->warps[static_cast<std::size_t>(thread.warp())].open;
  return std::any_of(open.begin(), open.end(), [&](const Rendezvous& meeting) {
    return meeting.same_place && (meeting.arrived >> thread.lane() & 1) != 0;
  });
}

/// "tcgen05.ld" of tcgen05_ld_32x32b_x32, "ldmatrix" of ldmatrix_x4.
static std::string instruction_name(std::string_view what) {
  std::string name(what);
  std::size_t end = name.find('_');
  if (name.starts_with("tcgen05_") || name.starts_with("mma_") || name.starts_with("wgmma_")) {
    name[end] = '.';
    end = name.find('_', end);
  }
  return name.substr(0, end);
}

/// Lanes that a warp-wide instruction waits for and that wait elsewhere, of the first such warp; or "".
static std::string lanes_elsewhere(const Cta& cta) {
  for (const Thread& thread : cta.threads) {
    if (thread.state != ThreadState::kWaiting || thread.wait.kind != WaitKind::kWarp) continue;
    std::vector<std::uint32_t> here;
    std::vector<std::uint32_t> away;
    const Thread* first = nullptr;  // of these
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
      const std::size_t index = static_cast<std::size_t>(thread.warp()) * kWarpSize + lane;
      if (index >= cta.threads.size()) break;
      const Thread& mate = cta.threads[index];
      if (mate.state != ThreadState::kWaiting) continue;
      const bool same = mate.wait.kind == WaitKind::kWarp && mate.wait.where.is_line_of(thread.wait.where);
      if (same) here.push_back(lane);
      if (same || !(thread.wait.mask >> lane & 1)) continue;
      if (first == nullptr) first = &mate;
      if (mate.wait.where.is_line_of(first->wait.where)) away.push_back(lane);
    }
    if (first == nullptr) continue;
    const auto verb = [](const auto& lanes, const char* one, const char* many) {
      return lanes.size() == 1 ? one : many;
    };
    return fmt::format(
        "{} in warp {} of CTA {} at {} ({}), where {} {} for the whole warp: {} at {} {}. {}",
        emulator::ranges("lane", away), thread.warp(), text(cta.id), thread.wait.where.text(),
        thread.wait.what, emulator::ranges("lane", here), verb(here, "waits", "wait"),
        verb(away, "it has taken another branch and waits", "they have taken another branch and wait"),
        first->wait.where.text(), first->wait.what,
        waits_at_aligned(thread)
            ? "A condition before that instruction must be the same for all lanes in a warp; only what a "
              "lane does with the result may differ (store it if its row lies inside D, for example)"
            : "The condition before that instruction must be the same for all lanes in the mask");
  }
  return {};
}

/// "threads 704-1023: they returned without it ...": whom a barrier of the CTA waits for in vain, and what
/// the line says that is missing; or "". A stuck CTA whose threads wait nowhere else.
std::string returned_before_barrier(const Cta& cta) {
  std::vector<std::uint32_t> gone;
  const Thread* waits = nullptr;
  for (const Thread& thread : cta.threads) {
    if (thread.state == ThreadState::kExited) gone.push_back(thread.index);
    if (thread.state == ThreadState::kWaiting && !waits) waits = &thread;
  }
  if (gone.empty() || !waits) return {};
  return fmt::format(
      "{} at {} {}: {} returned from the kernel without reaching it. A thread that has nothing to compute or "
      "to store must still reach every barrier of its CTA, and do its share of the loads",
      emulator::ranges("thread", gone), waits->wait.where.text(), waits->wait.what,
      gone.size() == 1 ? "it" : "they");
}

/// Nothing can run and no operation is under way: names what the threads wait for.
void Gang::stuck() {
  bool at_object = false;
  bool at_warp = false;
  const char* own_rule = nullptr;
  const char* aligned = nullptr;  // the first such instruction
  for (const auto& cta : ctas) {
    for (const Thread& thread : cta->threads) {
      if (thread.state != ThreadState::kWaiting) continue;
      if (aligned == nullptr && waits_at_aligned(thread)) aligned = thread.wait.what;
      at_object |= thread.wait.kind == WaitKind::kObject;
      at_warp |= thread.wait.kind == WaitKind::kWarp;
      if (thread.wait.kind == WaitKind::kObject && thread.wait.rule) own_rule = thread.wait.rule;
    }
  }
  std::string rule;
  std::string headline;
  std::string sentence;
  std::string source;
  if (at_object) {
    rule = own_rule ? own_rule : "deadlock";
    headline = "no thread can run and no asynchronous operation is in flight";
    sentence = "every wait needs a thread or an operation that can still end it";
    source = "PTX ISA, \"Parallel Synchronization and Communication Instructions\"";
  } else if (at_warp) {
    rule = "warp-divergence";
    headline = "a warp-wide instruction waits for lanes that never reach it";
    sentence = "every lane in the mask must execute the same instruction with the same mask";
    source = "CUDA C++ Programming Guide, \"Warp Shuffle Functions\", \"Synchronization Functions\"";
    if (aligned != nullptr) {
      sentence =
          "all threads in a warp must execute the same .sync.aligned instruction, so it may depend on a "
          "condition only if the condition is the same for all of them";
      source = fmt::format("PTX ISA, \"{}\"", instruction_name(aligned));
    }
  } else {
    rule = "barrier-divergence";
    headline = "not all threads of the CTA reach the barrier";
    sentence =
        "a barrier without a thread count is for all threads of the CTA, even in conditional code. This "
        "course's rule is stricter and also counts threads that have returned; the hardware has not waited "
        "for them since Volta";
    source =
        "PTX ISA, \"bar, barrier\"; CUDA C++ Programming Guide, \"Synchronization Functions\"; Volta Tuning "
        "Guide, \"Independent Thread Scheduling\"";
  }
  Report report(headline);
  if (at_object && own_rule && std::string_view(own_rule) == "setmaxnreg") {
    sentence =
        "setmaxnreg.inc waits until the registers are free: the numbers that the CTA's warpgroups keep or "
        "raise to must add up to no more than they started with";
    source = "PTX ISA, \"setmaxnreg\"";
    explain_registers(report, *this);
  }
  // What can never come, whatever else happens, is the cause of the rest.
  bool known = false;
  for (const auto& cta : ctas) {
    std::string lanes = at_warp ? lanes_that_left(*cta) : std::string();
    if (lanes.empty() && at_warp && !at_object) lanes = lanes_elsewhere(*cta);
    if (lanes.empty()) continue;
    report.missing(lanes);
    known = true;
    break;
  }
  for (const auto& cta : ctas) {
    const std::string threads = at_object || at_warp ? std::string() : returned_before_barrier(*cta);
    if (threads.empty()) continue;
    report.missing(threads);
    break;
  }
  if (at_object && !known && !own_rule)
    known = explain_unreachable_count(report, *this) || explain_unexpected_bytes(report, *this) ||
            explain_wrong_item(report, *this) || explain_taken_twice(report, *this) ||
            explain_told_too_often(report, *this);
  if (at_object && !known && !own_rule) known = explain_lanes_apart(report, *this);
  if (at_object && !known) {
    const bool bytes = explain_missing_bytes(report, *this);
    known = (!own_rule && explain_missing_arrivals(report, *this)) || bytes || own_rule ||
            explain_unseen_item(report, *this) || explain_waits_for_itself(report, *this) ||
            explain_never_enough(report, *this) || explain_never_arrived(report, *this) ||
            explain_handed_back_out_of_order(report, *this);
  }
  if (at_object && !own_rule) explain_departures(report, *this, known);
  for (const auto& cta : ctas) {
    if (std::none_of(cta->threads.begin(), cta->threads.end(),
                     [](const Thread& thread) { return thread.state == ThreadState::kWaiting; })) {
      continue;
    }
    report.line("CTA", name_cta(*cta)).block(places_of_threads(*cta));
  }
  for (const auto& engine : engines) {
    if (const std::string line = engine->describe(); !line.empty()) report.block(line);
  }
  report.rule(sentence, source);
  if (rule == "barrier-divergence") report.course_rule(CourseRule::kBarrierDivergence);
  failure_ = std::make_unique<Failure>(Failure{rule, report.str()});
}

Thread& this_thread(const char* function, Where where) {
  if (!context.thread) {
    throw harness::Error(
        fmt::format("{} is a device function, but {} calls it on the host", function, where.text()));
  }
  if (store_is_open) [[unlikely]]
    settle_store();
  if (convergence_is_strict() && std::strcmp(function, "__nanosleep") != 0) [[unlikely]]  // of a poll
    note_step(*context.thread, where);
  return *context.thread;
}

void fail(std::string rule, std::string text) {
  running_thread().cta->gang->fail(std::move(rule), std::move(text));
}

}  // namespace emulator
