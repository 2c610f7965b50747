// mbarrier objects: arriving threads, arriving bytes, phases.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "emulator/async/async_memory.h"
#include "emulator/ledger/phases.h"
#include "emulator/machine/machine.h"

namespace emulator {

/// What a thread has said of its latest wait (gemm::ptx::WaitInfo).
struct Activity {
  const char* role = nullptr;
  const char* barrier = nullptr;
  int stage = 0;
  int k_tile = 0;
};

/// A tcgen05.commit that arrives at an mbarrier, now or later.
struct CommitRecord {
  const Thread* committer = nullptr;
  Where where;
  std::uint32_t number = 0;  // of the committer's asynchronous tcgen05 operations
  // The latest multiplication before it.
  int k_tile = -1;
  std::uint32_t column = 0;            // of the accumulator
  std::uint32_t columns = 0;           // 0: there was none
  std::optional<std::uint64_t> phase;  // of the mbarrier, in which it arrived; none: it has not
};

/// The state behind the 64-bit word in shared memory. PTX ISA, "mbarrier", "Contents of the mbarrier object".
struct Mbarrier {
  Cta* cta = nullptr;
  std::uint32_t offset = 0;                   // in the CTA's dynamic shared memory
  std::uint32_t agent = 0;                    // the loads that signal it
  std::optional<std::uint32_t> copies_agent;  // the cp.async copies that do
  std::optional<std::uint32_t> remote_agent;  // the st.async stores that do
  std::optional<std::uint32_t> peer_agent;    // the peer CTA's loads that do, with cta_group::2
  std::optional<std::uint32_t> commit_agent;  // the tcgen05.commits that arrive
  std::uint32_t commits = 0;                  // of them, issued so far
  std::deque<CommitRecord> commit_log;        // the latest of these
  bool live = false;                          // between init and inval
  std::uint32_t count = 0;                    // arrivals that complete a phase
  std::uint32_t pending = 0;
  std::int64_t tx = 0;  // bytes expected and not yet there
  std::uint64_t phase = 0;
  std::uint64_t first_phase = 0;  // after init

  Stamp init = 0;
  Where init_where;
  /// What arrivals published: within the barrier's CTA, from other CTAs to the cluster, what of other CTAs is
  /// merely over (Thread::execution), and what relaxed arrivals order for tcgen05 instructions alone.
  struct Published {
    VectorClock local, cluster, execution, tensor;
    VectorClock sequential_past, sequential_seen;  // see Thread::sequential_past
  };
  Published arriving;   // of this phase
  Published completed;  // of all completed phases

  struct Event {
    enum Kind { kArrive, kExpect, kArriveExpect } kind;
    Stamp stamp;
    Where where;
    std::uint32_t bytes;
    Activity activity;        // of the thread
    std::uint64_t wgmma = 0;  // so many had the thread executed by then
    bool commit = false;      // by tcgen05.commit
  };
  /// Threads of one warpgroup that arrive at one place one after the other, each once.
  struct Run {
    std::uint32_t cta = 0;  // key
    std::uint32_t warpgroup = 0;
    Where where;
    std::vector<std::uint32_t> threads;
    std::uint64_t first_phase = 0;
    std::uint64_t phases = 0;  // that they have ended
  };
  Run run;                             // the present one
  Run longest;                         // that has ended more than one phase
  std::vector<Event> events;           // of this phase
  std::vector<Event> previous_events;  // of the one before
  PhaseHistory history;                // of all that are completed
  std::uint64_t expected = 0;          // bytes, this phase
  std::uint64_t issued = 0;            // bytes of the loads issued in this phase
  std::uint32_t loads = 0;             // issued in this phase and not complete
  std::uint32_t late = 0;              // arrivals that copies will bring
  std::vector<Thread*> waiting;
  std::uint64_t loaded_phases = 0;    // the last phase in which a load was issued, + 1
  std::uint64_t observed_phases = 0;  // completed phases that some wait has seen
  Where last_load;

  bool complete(std::uint32_t parity) const { return (phase & 1) != parity; }
};

/// The word in shared memory, as an H200 has it (ptx/mbarrier_word.h).
std::uint64_t mbarrier_word(const Mbarrier& barrier);

/// "consumer of k-tile 3, stage 1", "consumer at posted, stage 1" where the wait is not for a k-tile, or "".
std::string text(const Activity& activity);
/// The running thread now waits for this, and then works on it.
void note_activity(const Activity& activity, Where where);

// The instructions, executed by the running thread. `cluster`: the scope of the release or acquire.
void mbarrier_init(void* object, std::uint32_t count, Where where);
void mbarrier_inval(void* object, Where where);

struct ArriveOptions {
  const char* what;
  bool arrives = true;
  std::uint32_t expected_bytes = 0;
  bool expects = false;
  bool releases_cluster = false;
  std::uint32_t count = 1;     // of arrivals
  bool drops = false;          // mbarrier.arrive_drop: the phases that follow expect `count` fewer
  bool completes = true;       // false: .noComplete, which must leave an arrival to others
  bool releases = true;        // false: .relaxed, which publishes nothing
  bool orders_tensor = false;  // .relaxed.cluster: and yet orders what tcgen05.fence puts before it
};
void mbarrier_arrive(void* object, const ArriveOptions& options, Where where);
/// Returns the word as it was before: the state that test_wait and try_wait take.
std::uint64_t mbarrier_arrive_state(void* object, const ArriveOptions& options, Where where);
/// The arrivals that were pending before the arrival with .noComplete that returned the state.
std::uint32_t mbarrier_pending_count(std::uint64_t state, Where where);
/// mbarrier.complete_tx: as if a copy had brought the bytes. It orders nothing.
void mbarrier_complete_tx_by_thread(const char* what, void* object, std::uint32_t bytes, Where where);
void mbarrier_complete_tx_remote(const char* what, std::uint32_t address, std::uint32_t bytes, Where where);
/// `address` is one of the cluster's window: rank << 24 | offset.
void mbarrier_arrive_remote(std::uint32_t address, const ArriveOptions& options, Where where);

bool mbarrier_test_wait(const char* what, void* object, std::uint32_t parity, Where where,
                        bool cluster = false);
/// How a wait acquires: at the scope of the CTA, of the cluster, or (.relaxed.cluster) for tcgen05 alone.
enum class Acquires : std::uint8_t { kCta, kCluster, kTensor };
bool mbarrier_try_wait(const char* what, void* object, std::uint32_t parity, Acquires acquires, Where where);
inline bool mbarrier_try_wait(const char* what, void* object, std::uint32_t parity, bool cluster,
                              Where where) {
  return mbarrier_try_wait(what, object, parity, cluster ? Acquires::kCluster : Acquires::kCta, where);
}
/// The time that hardware waits is up: what waits there returns without the phase. Whether there was one.
bool mbarrier_time_is_up(Mbarrier& barrier);

/// Arrives when all earlier cp.async of the thread have landed. `adds`: an arrival that the phase did not
/// wait for before (without .noinc).
void cp_async_mbarrier_arrive(const char* what, void* object, bool adds, Where where);

// For the copy engine.

/// The barrier at `offset` of `cta`, which the running thread is about to use. Reports what is wrong with
/// it. `by_engine`: the copy engine will signal it.
Mbarrier& use_mbarrier(const char* what, Cta& cta, std::uint32_t offset, bool by_engine, Where where);
/// Copies will arrive for the running thread; and they do, publishing `stamps`.
void mbarrier_expect_late_arrival(const char* what, Mbarrier& barrier, Where where);
void mbarrier_arrive_late(const char* what, Mbarrier& barrier, const std::vector<Stamp>& stamps, Where where);
/// The offset of the mbarrier behind a pointer of the running thread; reports where there can be none.
std::uint32_t mbarrier_offset(const char* what, const void* object, Where where);
/// The stamp of the arrival of one more tcgen05.commit: they come one after the other at one mbarrier, and in
/// no order at two.
Stamp mbarrier_expect_commit(Mbarrier& barrier, const CommitRecord& commit);
/// Whether a wait, of any scope, has told the thread of such an arrival.
bool knows_arrival(const Thread& thread, Stamp arrival);
/// "tcgen05.commit at ... by ..., behind the multiplications of k-tile 3".
std::string describe_commit(const CommitRecord& commit);
/// The stamp of the last such arrival, or 0.
Stamp last_commit_arrival(const Mbarrier& barrier);
/// The commit whose arrival ended the phase, or nullptr when that is not known.
const CommitRecord* commit_that_ended(const Mbarrier& barrier, std::uint64_t phase);
/// One arrival, with the stamp `arrival`, of a commit behind what has stamps up to `done`. `over`: what the
/// thread knew that committed.
void mbarrier_arrive_by_commit(const char* what, Mbarrier& barrier, Stamp arrival, Stamp done,
                               const SyncObject& over, const Thread& committer, Stamp issuer, Where where);
/// What brings bytes that an mbarrier counts.
enum class Brings : std::uint8_t {
  kLoad,      // of its own CTA
  kStore,     // st.async: for waits that acquire at cluster scope
  kPeerLoad,  // into the other CTA of the pair: for such waits, too
};
/// The agent whose time says that it is there.
std::uint32_t agent_of(const Mbarrier& barrier, Brings brings);
/// A load that was issued in the barrier's present phase has landed.
void mbarrier_complete_tx(Mbarrier& barrier, std::uint32_t bytes, Brings brings = Brings::kLoad);

/// "full[1] (shared + 0x18048)".
std::string name_mbarrier(const Mbarrier& barrier);
/// A barrier that threads wait for in a deadlock: what has arrived.
std::string describe_waited(const Mbarrier& barrier);
/// "phase 3 (parity 1): 1 of 2 arrivals pending, 4096 bytes missing (32768 expected, 28672 arrived)".
std::string describe_mbarrier(const Mbarrier& barrier);

}  // namespace emulator
