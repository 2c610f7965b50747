// The emulated machine: threads, warps, CTAs, and the scheduler that runs the CTAs
// that are resident together.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/machine/arena.h"
#include "emulator/machine/context.h"
#include "emulator/machine/fiber.h"
#include "emulator/machine/options.h"
#include "emulator/machine/random.h"
#include "emulator/machine/vector_types.h"
#include "emulator/machine/where.h"
#include "emulator/memory/happens_before.h"
#include "emulator/memory/shadow.h"
#include "emulator/memory/static_shared.h"
#include "ptx/launch_shape.h"

namespace emulator {

inline constexpr int kWarpSize = 32;
inline constexpr int kMaxThreads = 1024;            // per CTA
inline constexpr int kMaxSharedBytes = 227 * 1024;  // per CTA, sm_90
inline constexpr int kSharedBytesPerSm = 228 * 1024;
inline constexpr int kReservedSharedBytes = 1024;  // per CTA
inline constexpr int kMaxThreadsPerSm = 2048;
inline constexpr int kMaxCtasPerSm = 32;
inline constexpr int kMaxCluster = 8;
inline constexpr int kMaxUnportableCluster = 16;

struct Cta;
struct CtaLog;
struct Thread;
class Gang;

/// What kind of thing a blocked thread waits for; decides the name of a deadlock's report.
enum class WaitKind : std::uint8_t {
  kNone,
  kCtaBarrier,  // __syncthreads and its kin
  kWarp,        // a warp-collective instruction
  kObject,      // a flag, an mbarrier, an asynchronous operation
};

struct Wait {
  WaitKind kind = WaitKind::kNone;
  const char* what = "";  // "__syncthreads"
  Where where;
  std::uint32_t mask = 0;                          // kWarp: the lanes named
  std::string (*detail)(const Thread&) = nullptr;  // kObject: what is missing, for the report
  const char* rule = nullptr;                      // kObject: of the report, if not "deadlock"
};

struct Mbarrier;

/// What a thread asked for last without being blocked: should it ask forever, the report names it.
struct Poll {
  const char* what = nullptr;  // "ld_acquire_gpu"
  const void* address = nullptr;
  unsigned bytes = 0;
  const Mbarrier* barrier = nullptr;  // instead of an address
  Where where;
  std::uint64_t value = 0;    // the first bytes there
  std::uint32_t repeats = 0;  // of the same value, in a row
};

enum class ThreadState : std::uint8_t { kRunnable, kWaiting, kExited };

struct Thread {
  Cta* cta = nullptr;
  Fiber* fiber = nullptr;
  std::uint32_t index = 0;  // in the CTA: x fastest
  uint3 id{};
  ThreadState state = ThreadState::kRunnable;
  // Happens-before: `time` stamps this thread's accesses.
  std::uint32_t time = 1;
  std::uint32_t base = 1;  // of its own CTA in `clock`, kept here for the fast path
  // See Context. What each switch to the thread reads lies in two lines of the cache, up to here.
  const void* first_load = nullptr;
  const void* last_load = nullptr;
  const void* first_stored = nullptr;
  const void* last_stored = nullptr;
  Wait wait;

  VectorClock clock;  // what it knows of others, its own CTA first
  // Fences: what a fence has made releasable, and what relaxed reads have seen that a fence will acquire.
  VectorClock fenced_system, fenced_device, fenced_cta;
  std::uint64_t fence_where = 0;                   // Where::packed of the latest of device scope
  std::uint32_t fence_time = 0;                    // `time` behind it
  VectorClock seen_system, seen_device, seen_cta;  // seen_system: of other ranks
  // For Fence-SC (memory/atomics.h): what comes before some fence.sc before here, and what came before one
  // that a write of a flag followed, which has been read before here. By any thread.
  VectorClock sequential_past, sequential_seen;
  /// What atomic loads of global memory saw, of other threads: the latest. See AtomicAccess::saw().
  struct Seen {
    Stamp writer = 0;
    std::uint64_t number = 0;  // of the store among all of the launch
    const void* address = nullptr;
    std::uint64_t load = 0;  // Where::packed
    std::uint64_t store = 0;
    bool by_update = false;  // not by a load
  };
  std::array<Seen, 4> seen;
  std::uint32_t seen_count = 0;
  bool narrow_atomics = false;  // see AtomicScope
  bool system_atomics = false;
  // What is known to be over without its writes being visible: an arrival in another CTA that was not
  // released to the cluster. Enough for an asynchronous copy to overwrite what was read, not for reading.
  VectorClock execution;

  std::array<Poll, 4> polls;  // the latest first
  // In strict mode (sync/convergence.h): places passed since the warp was last together, and how many
  // .aligned instructions came before.
  std::vector<std::uint64_t> way;
  std::uint64_t aligned = 0;
  // Since when it polls without any change in memory, and whether it has come back to where it was
  // (Gang::all_in_circles).
  struct Circle {
    std::uint64_t round = 0;
    std::uint64_t fingerprint = 0;
    std::uint32_t polls = 0;
    bool is_closed = false;
  } circle;

  /// Inside a hook of the compiler's instrumentation, through which no exception passes.
  bool in_hook = false;
  /// It has had registers that wgmma or tcgen05.ld was still writing, and may have copied them.
  bool may_hold_poison = false;

  int warp() const { return static_cast<int>(index) / kWarpSize; }
  int lane() const { return static_cast<int>(index) % kWarpSize; }
  Stamp stamp() const;

  /// Publishes everything this thread did and knows; later accesses are not covered.
  void release_into(SyncObject& object);
  /// Everything published there happened before what this thread does from now on.
  void acquire_from(const SyncObject& object);
  /// Starts a new time after the clock has been handed out.
  void advance();
};

/// From a barrier of the CTA to the next one.
struct BarrierInterval {
  std::uint32_t end = 0;  // Thread::base behind it
  const char* what = "";  // of the barrier at its end
  Where where;
  int first_k_tile = -1;  // that the CTA's threads have stored in shared memory, or -1
  int last_k_tile = -1;
};

/// A CTA-wide barrier (bar.sync id): __syncthreads is number 0.
struct CtaBarrier {
  std::vector<Thread*> waiting;
  std::uint64_t completed = 0;
  int count = 0;  // of __syncthreads_count/_and/_or
  int result = 0;
};

/// Lanes on their way into one warp-collective instruction.
struct Rendezvous {
  const char* what = nullptr;
  std::uint32_t mask = 0;
  std::uint32_t arrived = 0;
  Where where;              // of the first lane
  bool same_place = false;  // .aligned: every lane executes the very same instruction
  bool orders_memory = false;
  void (*execute)(Rendezvous& rendezvous) = nullptr;
  std::array<Thread*, kWarpSize> lanes{};
  std::array<void*, kWarpSize> arguments{};
  std::optional<std::uint64_t> result{};  // of the lowest lane, where lanes exchange values
};

/// The latest warp-wide instructions of a warp, while nothing else happens.
struct Rounds {
  struct Step {
    const char* what = nullptr;
    Where where;
    std::uint64_t result = 0;
    bool same_as(const Step& other) const {
      return what == other.what && where.packed() == other.where.packed() && result == other.result;
    }
  };
  static constexpr std::size_t kSteps = 32;
  std::array<Step, kSteps> latest{};
  std::uint32_t count = 0;
  std::uint64_t changes = 0;  // of the gang, when they began
  std::uint64_t loads = 0;    // the addresses that the lanes have loaded last
};

/// An .aligned instruction that some lanes of a warp have executed, in strict mode.
struct AlignedMeeting {
  const char* what;
  Where where;
  std::uint32_t first;             // thread
  std::vector<std::uint64_t> way;  // its
  int arrived = 0;                 // lanes
};

/// Lanes that come to one place in a group that is not yet closed, for __activemask and coalesced_threads.
struct Gathering {
  Where where;
  std::uint32_t lanes = 0;
  std::vector<Thread*> waiting;
  std::shared_ptr<std::uint32_t> mask;  // the lanes, once it is closed
};

struct Warp {
  std::list<Rendezvous> open;
  std::uint32_t exited = 0;  // lanes
  std::list<Gathering> gatherings;
  std::deque<AlignedMeeting> aligned;
  std::uint64_t aligned_done = 0;
  Rounds rounds;
};

/// An engine completes operations on its own time: cp.async, TMA, wgmma. The scheduler offers it the chance
/// to; waits demand it. Registered with the gang that issued to it.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Number of operations that the architecture would allow to complete now.
  virtual std::size_t pending() const = 0;
  /// Lets one of them, drawn from `random`, take effect.
  virtual void complete_one(Random& random) = 0;
  /// Nothing else can happen any more: waits that end after some time return without what they waited for.
  /// Whether there was one.
  virtual bool time_is_up() { return false; }
  /// A thread returned from the kernel: report what it left under way.
  virtual void thread_exits(Thread& thread) = 0;
  /// A line for a deadlock report, or nothing.
  virtual std::string describe() const { return {}; }
};

struct Cta {
  Gang* gang = nullptr;
  std::uint64_t linear = 0;  // in the grid, x fastest
  uint3 id{};
  std::uint32_t key = 0;  // cta_key(linear)
  std::uint64_t tag = 0;  // of its shared memory's history
  int rank_in_cluster = 0;
  std::size_t index_in_gang = 0;
  int thread_count = 0;
  int exited = 0;
  bool waited = false;                 // griddepcontrol.wait, by any thread
  bool let_start_before_wait = false;  // griddepcontrol.launch_dependents by a thread that knew of no wait
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  CtaBarrier barrier;
  std::vector<BarrierInterval> intervals;
  CtaLog* timeline = nullptr;          // while one is recorded
  struct CtaLedger* ledger = nullptr;  // likewise

  /// The report of a read of shared memory that no thread had written. It waits for the next barrier: if a
  /// thread writes there before, unordered, the fault is a race and is reported as one.
  std::string unwritten_read;
  /// The report of an arrival for a phase of an mbarrier while no wait has seen the one before it complete.
  /// It waits for the CTA's end.
  std::string unseen_phase;
  std::shared_ptr<struct RemoteAccesses> remote_accesses;  // from other CTAs of the cluster

  unsigned char* shared = nullptr;              // where the dynamic bytes are now (memory/shared_space.h)
  const struct MemberTable* members = nullptr;  // of the struct there, for reports
  Window dynamic_window;                        // at the addresses that the CTA's threads use
  unsigned char* arena = nullptr;               // of the dynamic bytes, unless `extern __shared__` has them
  std::uint32_t static_begin = 0;               // offsets from here on are those of __shared__ variables
  Window static_window;
  std::vector<unsigned char> static_image;  // from static_begin: the copies, while another CTA's are in place
};

struct Grid {
  gemm::ptx::LaunchShape shape;
  const std::function<void()>* body = nullptr;
  Options options;
  std::uint64_t tag = 0;     // of the histories of global memory
  std::uint64_t launch = 0;  // how many launches came before
  bool single_os_thread = false;
  int os_threads = 1;
  std::uint64_t gangs = 1;
  std::atomic<int> waiting{0};      // gangs that poll for long (memory/co_residency.h)
  bool keeps_reads = false;         // also of memory that no kernel has written
  bool overlaps = false;            // grids that were launched before may still run (sync/dependent_launch.h)
  std::atomic<bool> waited{false};  // griddepcontrol.wait, by any thread
  std::atomic<bool> started_behind_wait{false};  // a CTA waited before it let dependents start
  std::atomic<std::uint64_t> started{0};         // gangs
  bool all_started() const { return started >= gangs; }
  std::atomic<std::uint64_t> cancelled_from{~std::uint64_t{0}};  // gangs from here on need not run

  // In a run of several devices (ranks.h).
  int rank = -1;                // the device; -1: the run has only one
  std::uint32_t first_key = 0;  // of its CTAs among those of all grids
  bool is_engine = false;       // a copy
  VectorClock before;           // what its stream knows of others
  VectorClock after;            // what its threads have come to know

  uint3 cta_id(std::uint64_t linear) const;
  /// Of gang `index`, where a gang is a cluster.
  uint3 first_cta(std::uint64_t index) const;
};

/// A gang that has not started, and that another one of its queue may cancel.
struct Unlaunched {
  std::uint64_t position = 0;  // in the order of launch
  std::uint64_t index = 0;     // in the grid
};

/// A report on its way out of the emulated machine.
struct Failure {
  std::string rule;
  std::string text;
};

/// The resources of one OS thread that runs gangs, kept between launches.
class Worker {
 public:
  Worker();
  ~Worker();
  FiberPool fibers;
  Arena cta_arena;     // reader lists of shared memory; dies with the gang
  Arena launch_arena;  // reader lists of global memory; dies with the launch

  /// Dynamic shared memory of the n-th CTA of a gang, with its lines and those of its thread-local storage.
  struct SharedArena {
    unsigned char* memory = nullptr;
    LineTable lines;
    std::vector<Window> static_windows;
  };
  SharedArena& shared_arena(std::size_t index);
  /// The window of thread-local storage around `address` with the lines of the n-th CTA, or an empty one.
  Window static_window(std::size_t index, std::uintptr_t address);

 private:
  std::vector<SharedArena> shared_;
};

/// A barrier of a cooperative grid: one thread of each CTA meets those of the others.
struct GridMeeting {
  std::vector<Thread*> waiting;
  SyncObject arriving;
  SyncObject completed;
};

/// The CTAs that are resident together and interleave on one OS thread: one CTA of an ordinary grid, the CTAs
/// of a cluster, all of a co-resident grid, or, where the rule co-residency is off, as many as the SMs hold.
class Gang {
 public:
  /// `index` of the gang in the grid, `members` its CTAs.
  Gang(Worker& worker, Grid& grid, std::uint64_t index, const std::vector<std::uint64_t>& members);
  ~Gang();
  Gang(const Gang&) = delete;
  Gang& operator=(const Gang&) = delete;

  /// Runs all threads to their end; what went wrong, or nullptr.
  std::unique_ptr<Failure> run();

  Worker& worker;
  Grid& grid;
  Random random;
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<std::unique_ptr<Engine>> engines;
  class CpAsyncEngine* cp_async = nullptr;        // one of the engines, made by the first cp.async
  class HopperEngine* hopper = nullptr;           // another one: mbarriers, TMA, wgmma
  std::vector<Unlaunched>* unlaunched = nullptr;  // clusters that clusterlaunchcontrol may cancel
  std::uint64_t progress = 0;                     // counts whatever may let a spinning thread go on
  std::uint64_t global_stores = 0;                // plain ones, which may
  std::uint64_t completions = 0;                  // of operations
  std::uint64_t yields = 0;
  std::uint32_t until_turn = 0;  // switches until other ranks may go on (ranks.h)
  bool waits_long = false;       // it counts in grid.waiting
  StaticShared static_shared{*this};
  GridMeeting grid_meeting;

  // Called by the running thread.
  void block(const Wait& wait);
  void yield();
  /// Until the search for schedules wants the running thread to go on.
  void suspend_parked();
  /// Whether Options::slow_warps wants this thread to be late.
  bool is_slow(const Thread& thread) const { return (grid.options.slow_warps >> thread.warp() & 1) != 0; }
  [[noreturn]] void fail(std::string rule, std::string text);
  void make_runnable(Thread& thread);

  /// Another rank has failed (ranks.h).
  bool is_stopped() const { return stopped_; }
  /// Stops the running fiber for good, from inside a signal handler; the report comes from take_fault().
  void abandon();
  /// From an engine's completion, outside every thread: ends the run with this report.
  void fail_from_engine(Failure failure);

 private:
  friend struct ThreadEntry;
  void start_threads();
  bool run_explored();
  void switch_to(Thread& thread);
  Thread* pick();
  bool goes_before(const Thread& one, const Thread& other) const;
  bool only_slow_ones() const;
  bool complete_something();
  bool let_time_pass();
  void check_time(double passed);
  void suspend_waiting();
  void stuck();
  bool all_in_circles(Thread& polled);
  std::uint64_t shared_fingerprint() const;
  Failure livelock(const std::string& headline) const;

  std::vector<Thread*> runnable_;
  std::unique_ptr<Failure> failure_;
  std::exception_ptr exception_;
  bool favour_warps_ = false;
  bool stopped_ = false;  // another rank has failed
  std::size_t live_ = 0;
  std::uint64_t switches_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::uint64_t spins_ = 0;
  bool starved_ = false;
  std::uint64_t progress_seen_ = 0;
  // See let_time_pass.
  std::uint64_t time_changes_ = 0;
  int times_in_vain_ = 0;
  int times_ = 0;
  // See all_in_circles.
  std::uint64_t circle_round_ = 0;
  std::uint64_t circle_changes_ = 0;
  std::uint64_t circle_shared_ = 0;
  bool circle_shared_known_ = false;
  std::size_t circles_closed_ = 0;
};

/// The running thread; reports misuse when host code calls a device function.
Thread& this_thread(const char* function, Where where);
inline Thread& running_thread() {
  return *context.thread;
}

inline void Gang::block(const Wait& wait) {
  if (store_is_open) [[unlikely]]
    settle_store();
  running_thread().wait =
      wait;  // here, where the compiler sees its members: a copy of what was just written stalls
  suspend_waiting();
}

/// The running thread gives way for a while, and will probably ask again for something.
void note_pause(const char* what, Where where);

/// Ends the running kernel with a report.
[[noreturn]] void fail(std::string rule, std::string text);

/// All threads of the CTA; returns the number of threads whose predicate was true. One rule for every barrier
/// of the whole CTA.
int cta_barrier(const char* what, int predicate, Where where);

/// Brings the lanes of `mask` together; the last one runs `execute` on the arguments of all (indexed by lane,
/// nullptr where a lane does not take part), then all go on. With `orders_memory` the lanes' accesses are
/// ordered. Lanes that have returned are not waited for, except at an .aligned instruction (`same_place`),
/// which every thread of the warp executes; `execute` finds in `mask` those that have come.
void warp_collective(const char* what, std::uint32_t mask, void* argument,
                     void (*execute)(Rendezvous& rendezvous), bool same_place, bool orders_memory,
                     Where where);

/// The running thread returns from the kernel: what waited only for it goes on, instructions of its warp and,
/// with the rule barrier-divergence off, a barrier of its CTA.
void leave_warp(Thread& thread);
/// The lanes of the warp that run together with the calling one: those that come to the same place meanwhile,
/// or some of them. Each of them gets the same mask.
std::uint32_t lanes_together(const char* what, Where where);

/// Launches of this kernel may have clusters of 16 CTAs; otherwise 8 are the most.
void allow_unportable_cluster(const void* kernel, bool allow);
/// CTAs with so much shared memory that an SM holds at once.
int ctas_per_sm(const gemm::ptx::LaunchShape& shape, int shared_bytes);
/// CTAs that the emulated GPU holds at once, in whole clusters; at least one.
unsigned resident_ctas(const gemm::ptx::LaunchShape& shape);

/// `kernel`: what body() calls, nullptr if that has no address of its own.
void run_grid(const gemm::ptx::LaunchShape& shape, gemm::ptx::Stream stream,
              const std::function<void()>& body, const void* kernel = nullptr);

}  // namespace emulator
