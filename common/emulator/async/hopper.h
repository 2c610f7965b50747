// The asynchronous engines of Hopper as one engine of a gang: mbarriers, the copy engine, wgmma, and what
// their rules need to remember of every CTA and thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/async/async_memory.h"
#include "emulator/async/launch_control.h"
#include "emulator/async/tcgen05.h"
#include "emulator/async/tma.h"
#include "emulator/async/wgmma.h"
#include "emulator/machine/machine.h"
#include "emulator/sync/cluster.h"
#include "emulator/sync/mbarrier.h"
#include "emulator/sync/named_barrier.h"

namespace emulator {

class Report;

/// A successful wait, for reports about data that was not there.
struct LastWait {
  const Mbarrier* barrier;
  std::uint32_t parity;
  std::uint64_t phase;  // of the barrier when the wait passed
  Where where;
  std::uint32_t loads_before = 0;           // serial of the next load of the gang, at that time
  Activity activity;                        // what it was for, if it said
  std::uint32_t count = 1;                  // so many waits of the thread there have passed
  bool cluster = false;                     // acquires at cluster scope
  std::vector<Mbarrier::Event> arrivals{};  // that ended the phase: of threads, beside tensor memory
  std::uint64_t phase_before = kNoPhase;    // `phase` of the thread's wait there before this one
  std::uint32_t loads_before_that = 0;      // its loads_before

  static constexpr std::uint64_t kNoPhase = ~std::uint64_t{0};
};

/// The arrivals of a thread at an mbarrier.
struct Arrivals {
  const Mbarrier* barrier;
  const Mbarrier* full = nullptr;  // of the same stage, in the thread's CTA, if that is known
  std::uint32_t count = 0;
  bool ahead = false;  // the first one came before any wait: the stage began as free
};

/// An arrival that says that a stage was read, by a warpgroup that has not waited for it again since.
struct EarlyArrival {
  Stamp stamp;
  Where where;
  Activity activity;
  Arrivals arrivals;
  std::uint32_t passed = 0;  // waits of its warpgroup
};

struct HopperThread {
  FenceTimes shared_fences;  // fence.proxy.async, for shared memory
  FenceTimes global_fences;
  Activity activity;            // of the latest wait, if it said
  bool labelled = false;        // the wait that comes next has said what it is for
  FenceTimes init_fences;       // fence.mbarrier_init, fence.proxy.async
  FenceTimes init_releases;     // fence.mbarrier_init
  VectorClock tensor;           // what is ordered before its tcgen05 instructions alone: relaxed waits
  VectorClock behind_relaxed;   // what came before relaxed arrivals at cluster barriers that it waited for
  std::vector<LastWait> waits;  // the latest of each barrier, in order
  std::vector<Arrivals> arrivals;
  const Mbarrier* waiting_for = nullptr;
  std::uint32_t waiting_parity = 0;
  Acquires waiting_acquires = Acquires::kCta;
  bool time_is_up = false;  // it was resumed without the phase
  std::uint32_t polls = 0;  // unsuccessful, in a row
  BulkStores stores;
  std::uint64_t cluster_rounds_owed = 0;  // the round whose end the thread must wait for, or 0
  bool at_cluster_barrier = false;        // arrived in the present round
};

/// A thread's latest access to the shared memory of a CTA that is not its own.
struct RemoteAccess {
  Stamp stamp;
  Where where;
  const Mbarrier* barrier = nullptr;  // that it arrives at
};

struct HopperCta {
  Cta* cta = nullptr;
  std::vector<Cta*> cluster;  // by rank
  std::vector<HopperThread> threads;
  std::vector<Agent> agents;
  std::vector<std::unique_ptr<Mbarrier>> barriers;
  std::unordered_map<std::uint32_t, Mbarrier*> barrier_at;  // by offset
  std::vector<std::unique_ptr<Warpgroup>> warpgroups;
  std::vector<NamedBarrier> named_barriers = std::vector<NamedBarrier>(kNamedBarriers);
  ClusterBarrier cluster_barrier;           // of the cluster, in its CTA of rank 0
  std::vector<std::uint32_t> load_of_line;  // serial of the load that wrote the line of 16 bytes
  std::vector<RemoteAccess> remote;         // by threads of other CTAs, to this one's memory

  std::uint32_t add_agent(AgentKind kind, std::uint32_t object);
};

class HopperEngine final : public Engine {
 public:
  explicit HopperEngine(Gang& gang);
  ~HopperEngine() override;

  std::size_t pending() const override;
  void complete_one(Random& random) override;
  bool time_is_up() override;
  void thread_exits(Thread& thread) override;
  std::string describe() const override;
  /// What will arrive at an mbarrier, for the search for schedules; and lets one of them do so.
  void arrivals_under_way(std::vector<explore::UnderWay>& all) const;
  void complete(const explore::UnderWay& one);
  /// Executes the wgmma that threads wait for. Whether there were some.
  bool serve_waits();

  HopperCta& cta(const Cta& cta) { return *ctas_[cta.index_in_gang]; }
  const HopperThread& thread(const Thread& thread) const {
    return ctas_[thread.cta->index_in_gang]->threads[thread.index];
  }
  HopperThread& thread(const Thread& thread) { return cta(*thread.cta).threads[thread.index]; }

  /// Ends the kernel with a report, from a thread or from a completion.
  [[noreturn]] void fail(std::string rule, const Report& report);
  /// The running thread touches bytes that a load is on its way to. Never returns.
  [[noreturn]] void fail_touched(std::uint32_t operation, const std::string& bytes, Access access,
                                 Where where);

  /// The CTA that an address of the cluster's window (rank << 24 | offset) lies in.
  /// `alignment`: of what is there, and how much of it there must be.
  Cta& cluster_cta(const char* what, std::uint32_t address, Where where, std::uint32_t alignment = 8);
  /// The time of the proxy fence that the thread that wrote has executed since, or 0.
  std::uint32_t fence_after(Stamp write, bool shared) const;
  /// Whether there is one, and `reader` is behind it.
  bool fenced(const Thread& reader, Stamp write, bool shared) const;
  /// Whether a read of shared memory has a fence of its thread behind it, and that fence is at least over.
  bool read_fenced(const Thread& thread, Stamp read) const;
  /// Shared memory has offsets up to `end`.
  void make_room(std::uint32_t end);
  void touches_remote(Thread& thread, const Mbarrier& barrier, Where where);
  /// The memory of `target`, which has not ended, is used from another CTA.
  void note_remote(const Cta& target, const RemoteAccess& access);
  /// The same for an arrival that has the stamp `stamp`, and comes later than the instruction.
  void arrives_at(const Thread& thread, Stamp stamp, const Mbarrier& barrier, Where where);

  Gang& gang;
  CopyEngine copies;
  std::unique_ptr<Tcgen05> tcgen05;               // nullptr: no such instruction so far
  std::unique_ptr<LaunchControl> launch_control;  // likewise
  std::vector<EarlyArrival> early_arrivals;       // the first few
  /// Whether the access stamped so was made through the asynchronous proxy.
  bool by_async_proxy(Stamp stamp) const;
  bool earliest() const { return gang.grid.options.completion == Completion::kEarliest; }

 private:
  std::vector<std::unique_ptr<HopperCta>> ctas_;
  bool completing_ = false;
};

/// The running thread's engine, made on first use.
HopperEngine& hopper_engine(const char* what, Where where);

/// What an agent is, for reports: "wgmma of warpgroup 1", "the load that signals full[0], phase 3".
std::string name_agent(const Gang& gang, Stamp stamp);
/// A race in which the earlier access was an agent's. Never returns.
[[noreturn]] void fail_async_race(const char* space, const std::string& bytes, std::uintptr_t address,
                                  Access access, Where where, const Thread& thread, Access earlier,
                                  Stamp stamp, Where earlier_where);
[[noreturn]] void fail_remote_exit(HopperEngine& engine, const Cta& target, const RemoteAccess& access);
/// Adds the thread's latest waits, which may explain why the data is not there.
void add_wait_notes(Report& report, const Thread& thread);

// Fences, executed by the running thread.
void fence_proxy_async(const char* what, bool shared, bool global, Where where);
void fence_mbarrier_init(Where where);

}  // namespace emulator
