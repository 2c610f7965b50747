#include "emulator/instrument/grid_barrier.h"

#include <fmt/format.h>

#include <string>

#include "emulator/machine/machine.h"
#include "emulator/report/report.h"

namespace emulator {
namespace {

std::string waiting_detail(const Thread& thread) {
  const Gang& gang = *thread.cta->gang;
  return fmt::format("{} of {} CTAs have arrived", gang.grid_meeting.waiting.size(), gang.ctas.size());
}

}  // namespace

bool is_cooperative() {
  return running_thread().cta->gang->grid.shape.co_resident;
}

void grid_barrier(const char* what, Where where) {
  Thread& thread = this_thread(what, where);
  Gang& gang = *thread.cta->gang;
  if (!gang.grid.shape.co_resident) {
    fail("co-residency", Report("{} is executed in a launch that is not cooperative", what)
                             .at(where, thread)
                             .rule("all CTAs of the grid must be on an SM at the same time: use "
                                   "cudaLaunchCooperativeKernel, or cudaLaunchAttributeCooperative",
                                   "CUDA C++ Programming Guide, \"Cooperative Groups: Grid Synchronization\"")
                             .str());
  }
  cta_barrier(what, 0, where);
  if (thread.index == 0) {
    GridMeeting& meeting = gang.grid_meeting;
    thread.release_into(meeting.arriving);
    meeting.waiting.push_back(&thread);
    if (meeting.waiting.size() == gang.ctas.size()) {
      meeting.completed = meeting.arriving;
      meeting.arriving = {};
      ++gang.progress;
      for (Thread* other : meeting.waiting) {
        if (other != &thread) gang.make_runnable(*other);
      }
      meeting.waiting.clear();
    } else {
      gang.block({.kind = WaitKind::kObject, .what = what, .where = where, .detail = waiting_detail});
    }
    thread.acquire_from(meeting.completed);
    thread.advance();
  }
  cta_barrier(what, 0, where);
}

}  // namespace emulator
