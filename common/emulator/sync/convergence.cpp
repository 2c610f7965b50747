#include "emulator/sync/convergence.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/report/report.h"

namespace emulator {
namespace {

/// A place that is on one way and not on the other, or 0.
std::uint64_t difference(const std::vector<std::uint64_t>& one, const std::vector<std::uint64_t>& other) {
  for (const std::uint64_t place : one) {
    if (std::find(other.begin(), other.end(), place) == other.end()) return place;
  }
  return 0;
}

}  // namespace

void note_step(Thread& thread, Where where) {
  // A set, not a sequence: lanes may poll a different number of times.
  if (std::find(thread.way.begin(), thread.way.end(), where.packed()) == thread.way.end())
    thread.way.push_back(where.packed());
}

void check_aligned(const char* what, Where where) {
  Thread& thread = this_thread(what, where);
  Cta& cta = *thread.cta;
  Warp& warp = cta.warps[static_cast<std::size_t>(thread.warp())];
  const std::size_t index = thread.aligned++ - warp.aligned_done;
  if (index >= warp.aligned.size()) warp.aligned.push_back({what, where, thread.index, thread.way, 0});
  AlignedMeeting& meeting = warp.aligned[index];
  // Other instructions altogether: what they break has rules of its own.
  if (meeting.where.packed() == where.packed()) {
    const std::uint64_t mine = difference(thread.way, meeting.way);
    const std::uint64_t theirs = mine != 0 ? 0 : difference(meeting.way, thread.way);
    if (mine != 0 || theirs != 0) {
      const Thread& first = cta.threads[meeting.first];
      const Thread& with = mine != 0 ? thread : first;
      const Thread& without = mine != 0 ? first : thread;
      fail("convergence",
           Report("{} is executed while the lanes of a warp may be apart", what)
               .line("where", "{} by warp {} of CTA {}", where.text(), thread.warp(), text(cta.id))
               .line("one", "{} has come by {}", name_thread(with),
                     Where::from_packed(mine != 0 ? mine : theirs).text())
               .line("other", "lane {} has not", without.lane())
               .rule("all lanes of a warp must execute an .aligned instruction together. After a branch that "
                     "only some of them take, __syncwarp() makes them reconverge",
                     "PTX ISA, \"wgmma.fence\", \"bar, barrier\", \"ldmatrix\": .aligned")
               .course_rule(CourseRule::kConvergence)
               .str());
    }
  }
  thread.way.clear();
  const int lanes = std::min(kWarpSize, cta.thread_count - thread.warp() * kWarpSize);
  ++meeting.arrived;
  while (!warp.aligned.empty() && warp.aligned.front().arrived == lanes) {
    warp.aligned.pop_front();
    ++warp.aligned_done;
  }
}

}  // namespace emulator
