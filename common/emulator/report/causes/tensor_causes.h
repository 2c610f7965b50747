// What is missing in a kernel with tensor memory: which phase let a thread in, who handed an accumulator
// back, whose copies a pair lacks. Looked for when a report is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// The latest wait of the thread for an mbarrier at which tcgen05.commits arrive, or nullptr.
const LastWait* latest_commit_wait(const Thread& thread);

/// What let a thread in that uses an accumulator too early.
enum class EarlyPass : std::uint8_t {
  kNone,          // nothing that is known
  kEarlierPhase,  // a commit for which the accumulator's latest multiplication was still to come
  kOtherThread,   // a commit by a thread that has not issued it
  kOvertaken,     // the right commit; the next tile's multiplications have come in between
};
/// Adds it, and the wait or commit that is missing. `labelled`: an earlier phase only where the wait itself
/// said that it was for `k_tile`, that of the latest multiplication.
EarlyPass explain_earlier_commit(Report& report, const Thread& thread, const TensorAccumulation& accumulation,
                                 int k_tile, bool labelled);

/// `writer` overwrites what `read`, of which it knows nothing, may still be reading. Adds for which
/// accumulator the reader has waited, or which arrivals have let the writer in, and returns what is missing;
/// "" where nothing is known.
std::string explain_handed_back(Report& report, const Thread& writer, const TensorTransfer& read,
                                std::uint32_t column);

/// The thread has waited for the phase before the one that `load` belongs to, for the same k-tile: fewer
/// bytes were expected than its copies bring. False where that is not so.
bool explain_small_expectation(Report& report, const LastWait& wait, const LoadRecord& load);

/// A deadlock: the mbarrier lacks the bytes of a thread that waits itself, or has gone. Adds it, and what
/// that thread waits for. False where no such thread is known.
bool explain_absent_loader(Report& report, const Gang& gang, const Mbarrier& full);
/// The bytes that `full` lacks are those of another CTA of the cluster, which is through. False where that is
/// not so.
bool explain_idle_peer(Report& report, const Gang& gang, const Mbarrier& full);
/// ": 32768 by CTA (2,0,0), none by CTA (3,0,0)", of the copies issued in the present phase, in a cluster.
std::string bytes_by_cta(const Mbarrier& full);

/// "the tcgen05.commit behind the multiplications of k-tile 3", by its number at the mbarrier.
std::string name_commit(const Mbarrier& barrier, std::uint32_t number);
/// "the latest arrival was that of tcgen05.commit at ..., in phase 1", or "".
std::string describe_commits(const Mbarrier& barrier);

}  // namespace emulator
