// Clusters: ranks, addresses of other CTAs' shared memory, the cluster's barrier.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/machine.h"

namespace emulator {

/// One for each cluster. PTX ISA, "barrier.cluster".
struct ClusterBarrier {
  std::uint64_t round = 0;
  std::uint64_t arrived = 0;
  SyncObject arriving;
  SyncObject completed;
  // What relaxed arrivals come behind: known to be over, and no more than that. Enough for mbarriers that
  // fence.mbarrier_init has made visible.
  VectorClock relaxed_arriving;
  VectorClock relaxed_completed;
  std::vector<Thread*> waiting;
};

// Executed by the running thread.
std::uint32_t cluster_ctarank(Where where);
std::uint32_t cluster_nctarank(Where where);
/// The place in CTA `rank` that `address`, rank << 24 | offset, names in its own.
std::uint32_t mapa(std::uint32_t address, std::uint32_t rank, Where where);
void barrier_cluster_arrive(bool releases, Where where);
void barrier_cluster_wait(Where where);
/// `bytes` (4, 8 or 16) from registers to `address` in the cluster's window; `barrier`, in the same CTA,
/// counts them.
void st_async(std::uint32_t address, const void* value, std::uint32_t bytes, std::uint32_t barrier,
              Where where);

// For the engine.

/// A thread of the cluster returns: its barrier no longer waits for it.
void cluster_thread_exits(Thread& thread);
/// All threads of the gang have returned or the running one is the last: no thread may have touched the
/// memory of a CTA that could already have ended.
void check_remote_accesses(Gang& gang);

}  // namespace emulator
