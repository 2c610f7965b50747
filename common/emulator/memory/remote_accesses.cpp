#include "emulator/memory/remote_accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "emulator/machine/context.h"
#include "emulator/machine/machine.h"
#include "emulator/report/report.h"

namespace emulator {
namespace {

const char* remote_verb(Access access) {
  return access == Access::kRead ? "load" : access == Access::kWrite ? "store" : "atomic access";
}

[[noreturn]] void fail_gone(const Cta& owner, const RemoteAccesses::Latest& access, const char* headline,
                            const char* missing) {
  const Grid& grid = owner.gang->grid;
  fail("cluster-exit", Report(headline)
                           .line("access", "a {} at {} by {}", remote_verb(access.access),
                                 access.where.text(), name_thread(grid, access.stamp))
                           .line("memory", "shared memory of CTA {}", text(owner.id))
                           .missing(missing)
                           .rule("a CTA's shared memory exists only until its last thread ends, so other "
                                 "CTAs must access it before then",
                                 "CUDA C++ Programming Guide, \"Distributed Shared Memory\"")
                           .str());
}

}  // namespace

void note_remote_access(Cta& owner, Access access, Where where) {
  const Thread& thread = running_thread();
  const RemoteAccesses::Latest latest{thread.stamp(), where, access};
  if (owner.exited == owner.thread_count) {
    fail_gone(
        owner, latest, "a thread accesses the shared memory of a CTA that has ended",
        "a barrier of the cluster after the last remote access, at which the other CTA waits before it ends");
  }
  if (!thread.clock.knows_of(owner.key) && !thread.execution.knows_of(owner.key)) {
    fail("cluster-start",
         Report("an access to the shared memory of a CTA that may not have started")
             .line("access", "a {} at {} by {}", remote_verb(access), where.text(), name_thread(thread))
             .line("memory", "shared memory of CTA {}", text(owner.id))
             .missing("a barrier of the cluster before the first remote access: no thread of CTA {} has told "
                      "this one yet that it runs",
                      text(owner.id))
             .rule("a CTA's shared memory exists from the start of the CTA: all CTAs of a cluster have "
                   "started when a barrier of the cluster has been passed",
                   "CUDA C++ Programming Guide, \"Distributed Shared Memory\"")
             .str());
  }
  if (!owner.remote_accesses) owner.remote_accesses = std::make_shared<RemoteAccesses>();
  owner.remote_accesses->by_thread[latest.stamp >> 32] = latest;
}

void check_remote_accesses_over(const Thread& last) {
  const Cta& cta = *last.cta;
  if (!cta.remote_accesses) return;
  for (const auto& [thread, access] : cta.remote_accesses->by_thread) {
    const Stamp stamp = access.stamp;
    const bool known = std::any_of(cta.threads.begin(), cta.threads.end(), [stamp](const Thread& own) {
      return own.clock.covers(stamp) || own.execution.covers(stamp);
    });
    if (known) continue;
    fail_gone(cta, access,
              "a CTA ends, but nothing shows that another CTA has finished with its shared memory",
              "a barrier of the cluster after that access, at which this CTA waits before it ends");
  }
}

}  // namespace emulator
