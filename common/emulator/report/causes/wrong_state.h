// A wait that never ends because a pipeline state (stage and parity) is not where its counterpart is: it is
// behind, ahead, at another stage, or another one takes the same item.
#pragma once

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// A thread waits for a phase of a stage that holds what nobody has waited for: its own item, and the parity
/// is wrong, or another one.
bool explain_unseen_item(Report& report, const Gang& gang);
/// A thread that waits was let through before by a phase that brought something else than it waited for.
bool explain_wrong_item(Report& report, const Gang& gang);
/// Two warpgroups have waited for one phase of a ring whose stages one of them hands back.
bool explain_taken_twice(Report& report, const Gang& gang);
/// A thread waits for an arrival of its own warpgroup, which it would make itself.
bool explain_waits_for_itself(Report& report, const Gang& gang);
/// Two phases are over since a thread's last wait at an mbarrier, or one before its first, for parity 1.
bool explain_told_too_often(Report& report, const Gang& gang);
/// In a ring the stage that was filled first has not been handed back, and one that was filled later has.
bool explain_handed_back_out_of_order(Report& report, const Gang& gang);

}  // namespace emulator
