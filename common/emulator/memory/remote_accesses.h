// Loads, stores and atomics in the shared memory of another CTA of the cluster: that CTA has to be there
// still.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "emulator/machine/where.h"
#include "emulator/memory/shadow.h"

namespace emulator {

struct Cta;
struct Thread;

/// The latest access of each thread of other CTAs to the shared memory of one CTA.
struct RemoteAccesses {
  struct Latest {
    Stamp stamp = 0;
    Where where;
    Access access = Access::kRead;
  };
  std::unordered_map<Stamp, Latest> by_thread;
};

/// The running thread accesses `owner`'s shared memory; reports when that CTA has ended, or when the thread
/// does not know that it has started.
void note_remote_access(Cta& owner, Access access, Where where);

/// The last thread of a CTA ends: some thread of it must have synchronised with every access from outside.
void check_remote_accesses_over(const Thread& last);

}  // namespace emulator
