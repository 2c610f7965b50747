// The barrier ledger of what has run: for each barrier who arrives and who waits, how often in a phase, which
// phase is waited for first, and which bytes of shared memory it orders. Found from what the threads do:
// nothing depends on the names in the kernel.
//
// Of two accesses of the same 16 bytes, one of them a write, the first wait after which the second thread
// knows of the first access is the one that orders them. The ledger keeps vector clocks of its own for that:
// those of the checks say whether accesses are ordered, and not by what.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine/where.h"

namespace emulator {

struct ArriveOptions;
struct Cta;
struct LoadRecord;
struct Mbarrier;
struct Thread;
enum class Acquires : std::uint8_t;

inline std::atomic<bool> ledger_active{false};
inline bool ledger_on() {
  return ledger_active.load(std::memory_order_relaxed);
}

/// Bytes of shared memory that a barrier orders: of one of the row's barriers, the one that orders most.
struct LedgerBytes {
  std::string before;  // "TMA writes"
  std::string after;   // "wgmma reads"
  std::string proxy_before, proxy_after;
  std::uint64_t bytes = 0;
};

/// Barriers of which the same can be said.
struct LedgerRow {
  std::uint64_t launch = 1;  // the first that has them: launches of other kernels have other rows
  std::string kind;     // "mbarrier", "CTA barrier", "named barrier", "cluster barrier", "wait for groups"
  std::string barrier;  // "full[0-3]"
  std::string where;    // of the initialisation, or of the barrier
  std::string count;    // what completes a phase: "1 + 49152 bytes"
  std::string arrives, waits;
  std::string first;         // "parity 0"
  std::uint64_t phases = 0;  // completed, of all of the row's barriers
  std::vector<LedgerBytes> bytes;
  std::string bytes_text() const;
};

struct LedgerRole {
  std::uint64_t launch = 1;
  std::string text;  // "warps 1-2: waits at full[0-1]; arrives at empty[0-1]"
};

struct Ledger {
  std::vector<LedgerRole> roles;
  std::vector<LedgerRow> rows;
  std::uint64_t ctas = 0;       // of the launches
  std::uint64_t ctas_seen = 0;  // that were recorded: the first ones
};

/// Starts a new ledger; the launches until end_ledger() go into it. Options::counters must be on.
void begin_ledger();
Ledger end_ledger();

// What the instructions call while ledger_on(); the running thread executes them unless one is named.
void ledger_init(const Mbarrier& barrier);
/// Before the phase may end.
void ledger_arrive(const Mbarrier& barrier, const ArriveOptions& options);
/// A tcgen05.commit, operation `number` of the committer, and its arrival.
void ledger_commit(const Thread& committer, std::uint32_t number);
void ledger_commit_arrives(const Mbarrier& barrier, const Thread& committer, std::uint32_t number);
/// cp.async.mbarrier.arrive: the copies will arrive.
void ledger_copies_arrive(const Mbarrier& barrier);
/// The phase is over, and the next one has begun.
void ledger_phase(const Mbarrier& barrier);
void ledger_asks(const Mbarrier& barrier, std::uint32_t parity);
void ledger_wait(const Thread& thread, const Mbarrier& barrier, Acquires acquires);

enum class LedgerMeeting : std::uint8_t { kCta, kNamed, kCluster };
/// The thread arrives at a barrier for `threads` threads. `holder`: the CTA whose barrier it is.
void ledger_meet(const Cta& holder, LedgerMeeting kind, std::uint32_t number, std::uint64_t threads,
                 bool waits, Where where);
void ledger_meeting_over(const Cta& holder, LedgerMeeting kind, std::uint32_t number);
void ledger_cluster_wait(const Cta& holder);
/// A wait for groups of the thread's own copies or stores; `what` has the form "cp.async.wait_group".
void ledger_group_wait(const char* what, std::uint64_t pending, Where where);
void ledger_proxy_fence();
/// __syncwarp, by these threads.
void ledger_warp_together(const Cta& cta, const std::vector<std::uint32_t>& threads);

/// A plain access of shared memory, or a part of ldmatrix and stmatrix.
void ledger_access(const void* address, unsigned bytes, bool writes, Where where);
/// The bytes of a cp.async are there for its thread, which is not always the running one.
void ledger_copied(const Thread& thread, const void* shared, unsigned bytes);
/// A load into `target` was issued; its bytes are told to the ledger one by one.
void ledger_load(const Cta& target, const Mbarrier& barrier, const LoadRecord& load);
void ledger_load_bytes(const Cta& target, const Mbarrier& barrier, const LoadRecord& load,
                       std::uint32_t offset);
enum class LedgerReader : std::uint8_t { kWgmma, kTensorCores, kStore };
/// 16 bytes that an operation of the thread (wgmma: of its warpgroup) reads from now on; `number`: a wait for
/// so many operations or groups covers it.
void ledger_engine_reads(const Thread& issuer, LedgerReader reader, std::uint64_t number, const Cta& holder,
                         std::uint32_t offset);
/// The thread has waited for its operations up to `number`.
void ledger_engine_done(const Thread& issuer, LedgerReader reader, std::uint64_t number);

}  // namespace emulator
